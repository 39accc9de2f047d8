"""What an update makes of rows, in plain Python, from the rules of docs/jobs.md: the answer of tests about patches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Row = Mapping[str, object]
Rows = Mapping[str, Row]
"""Rows by id, each with all of its properties."""


@dataclass(frozen=True)
class Patch:
    """One record: the row that it names, and what it has of its properties."""

    id: str
    given: Row


@dataclass(frozen=True)
class Outcome:
    """The rows afterwards, and the places of the patches that are bad rows, with their rules."""

    rows: Rows
    bad: Mapping[int, str]


def apply(
    rows: Rows, patches: Iterable[Patch], required: Iterable[str], *, missing: str = "error", nulls: str = "set"
) -> Outcome:
    """Patches in their order. A null of a required property is a bad row, also where the row is not stored."""
    after: dict[str, Row] = dict(rows)
    names = {name for row in rows.values() for name in row}
    bad: dict[int, str] = {}
    for place, patch in enumerate(patches):
        given = {n: v for n, v in patch.given.items() if v is not None or nulls == "set"}
        if any(given.get(name, 0) is None for name in required):
            bad[place] = "required"
        elif patch.id in after:
            after[patch.id] = {**after[patch.id], **given}
        elif missing == "error":
            bad[place] = "not_stored"
        elif not given.keys() >= set(required):
            bad[place] = "required"
        else:
            after[patch.id] = {**dict.fromkeys(names), **given}
    return Outcome(after, bad)
