"""The row of main's manifest by which a copy of a graph knows what it is a copy of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from spark_omnigraph.catalog.dates import moment, moment_text
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.manifest.branches import MAIN
from spark_omnigraph.manifest.rows import ManifestRow, RowKind, compact, decoded
from spark_omnigraph.stored import Count

_ID = "x:copy"


@dataclass(frozen=True, slots=True)
class CopyOrigin:
    """Which graph was copied, and when. `branch` and `manifest_version` are those of the state that was copied; of a
    copy of all branches those of main, and `is_whole`.
    """

    graph: str
    branch: str
    manifest_version: int
    is_whole: bool
    copied_micros: int

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {
            "graph": self.graph,
            "branch": self.branch,
            "manifest_version": self.manifest_version,
            "all_branches": self.is_whole,
            "copied_at": moment_text(moment(self.copied_micros)),
        }


class _CopyBody(msgspec.Struct):
    graph: str
    manifest_version: Count
    copied_at: Count
    branch: str = MAIN
    all_branches: bool = False


def copy_row(origin: CopyOrigin) -> ManifestRow:
    """The row as it is stored."""
    body = {
        "graph": origin.graph,
        "branch": origin.branch,
        "manifest_version": origin.manifest_version,
        "all_branches": origin.is_whole,
        "copied_at": origin.copied_micros,
    }
    return ManifestRow(_ID, RowKind.COPY, TableKey(), metadata=compact(body))


def copy_origin(rows: Iterable[ManifestRow]) -> CopyOrigin | None:
    """What the newest rows of main say that the graph is a copy of; None where it is none."""
    for row in rows:
        if row.kind == RowKind.COPY and row.metadata is not None:
            body = decoded(row.metadata, _CopyBody, row)
            return CopyOrigin(body.graph, body.branch, body.manifest_version, body.all_branches, body.copied_at)
    return None
