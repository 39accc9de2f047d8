"""Rows of main's manifest that say what of the past is kept: tags by name, and below which version a dataset expired.

Rows of the manifest are never removed: that of a tag which is gone holds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from spark_omnigraph.catalog.dates import moment
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.manifest.branches import MAIN, Branch, display, stored_branch
from spark_omnigraph.manifest.rows import ManifestRow, RowKind, compact, decoded
from spark_omnigraph.stored import Count

TAG_PREFIX = "x:tag:"
EXPIRED_PREFIX = "x:expired:"


@dataclass(frozen=True, slots=True)
class Tag:
    """A name of one state of a graph, which stays readable as long as the tag stands. `commit` is the newest one of the
    state, `branch` None is main.
    """

    name: str
    branch: Branch
    manifest_version: int
    commit: str | None
    created_micros: int

    @property
    def created_at(self) -> datetime:
        """When it was made, in UTC."""
        return moment(self.created_micros)


class _TagBody(msgspec.Struct):
    manifest_version: Count
    created_at: Count
    branch: str = MAIN
    commit: str | None = None


def tag_row(tag: Tag) -> ManifestRow:
    """The row that makes a tag stand."""
    body = {
        "branch": display(tag.branch),
        "manifest_version": tag.manifest_version,
        "commit": tag.commit,
        "created_at": tag.created_micros,
    }
    return ManifestRow(f"{TAG_PREFIX}{tag.name}", RowKind.TAG, TableKey(), metadata=compact(body))


def no_tag_row(name: str) -> ManifestRow:
    """The row of a tag that is gone."""
    return ManifestRow(f"{TAG_PREFIX}{name}", RowKind.TAG, TableKey())


def tags_of(rows: Iterable[ManifestRow]) -> dict[str, Tag]:
    """Tags by name, in name order, of the newest rows of main."""
    found: dict[str, Tag] = {}
    for row in rows:
        if row.kind == RowKind.TAG and row.metadata is not None:
            body = decoded(row.metadata, _TagBody, row)
            name = row.object_id.removeprefix(TAG_PREFIX)
            found[name] = Tag(name, stored_branch(body.branch), body.manifest_version, body.commit, body.created_at)
    return dict(sorted(found.items()))


Floors = Mapping[str, Mapping[Branch, int]]
"""Dataset → Lance branch → version below which those that nothing needs were removed, or may be at any moment."""


class _FloorBody(msgspec.Struct):
    lines: dict[str, Count]


def floor_row(location: str, lines: Mapping[Branch, int]) -> ManifestRow:
    """The row that says how far a dataset expired."""
    body = {"lines": {display(line): version for line, version in sorted(lines.items(), key=lambda e: e[0] or "")}}
    return ManifestRow(f"{EXPIRED_PREFIX}{location}", RowKind.EXPIRED, TableKey(), metadata=compact(body))


def floors_of(rows: Iterable[ManifestRow]) -> dict[str, dict[Branch, int]]:
    """How far each dataset expired, of the newest rows of main."""
    found: dict[str, dict[Branch, int]] = {}
    for row in rows:
        if row.kind == RowKind.EXPIRED and row.metadata is not None:
            lines = decoded(row.metadata, _FloorBody, row).lines
            place = row.object_id.removeprefix(EXPIRED_PREFIX)
            found[place] = {stored_branch(line): version for line, version in lines.items()}
    return found
