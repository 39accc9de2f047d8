"""Conformance case files as values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT_VERSION = 1

Json = Any
"""A decoded JSON value; case files are data whose shape depends on the operation."""


@dataclass(frozen=True, slots=True)
class Step:
    op: str
    expect: dict[str, Json]
    fields: dict[str, Json] = field(default_factory=dict)

    @property
    def fails(self) -> bool:
        return "error" in self.expect and self.op != "http_error"


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    area: str
    schema: str
    data: tuple[str, ...]
    load_mode: str
    expect: dict[str, Json]
    steps: tuple[Step, ...]
    profile: str
    requires: frozenset[str]

    @property
    def loads(self) -> bool:
        """Whether an executor has anything to do here."""
        return bool(self.data) or any(step.op in ("load", "ingest", "export_reload") for step in self.steps)


def read_cases(folder: Path) -> list[Case]:
    """All cases of the `*.json` files of a folder, in file order; names are unique over the folder."""
    cases: dict[str, Case] = {}
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.get("format_version") != FORMAT_VERSION:
            raise ValueError(f"{path}: format_version {document.get('format_version')!r} is not {FORMAT_VERSION}")
        for raw in document["cases"]:
            case = _case(raw)
            if case.name in cases:
                raise ValueError(f"{path}: a case named {case.name!r} exists already")
            cases[case.name] = case
    if not cases:
        raise ValueError(f"no conformance cases in {folder}")
    return list(cases.values())


def _case(raw: dict[str, Json]) -> Case:
    return Case(
        name=raw["name"],
        area=raw["area"],
        schema=raw.get("schema", ""),
        data=tuple(raw.get("data", ())),
        load_mode=raw.get("load_mode", "overwrite"),
        expect=raw.get("expect", {"ok": True}),
        steps=tuple(_step(step) for step in raw.get("steps", ())),
        profile=raw.get("profile", "both"),
        requires=frozenset(raw.get("requires", ())),
    )


def _step(raw: dict[str, Json]) -> Step:
    fields = {name: value for name, value in raw.items() if name not in ("op", "expect")}
    return Step(raw["op"], raw.get("expect", {}), fields)
