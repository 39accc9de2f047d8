"""Manifest rows from stamp 5 on: tables have ids, and names are what a table is called at a version of the manifest.

A type that is renamed keeps its table; one that is dropped and made again has another, with the same name. So versions
and tombstones belong to the pair of ids, and the row that registers the pair says its path and its present name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.rows import SHOWING, ManifestRow, RowKind
from spark_omnigraph.manifest.snapshot import Snapshot, reduce_rows
from spark_omnigraph.redaction import excerpt

IDENTITY_COLUMNS = ("stable_table_id", "table_incarnation_id")


def reduce_by_identity(branch: Branch, version: int, rows: Iterable[ManifestRow]) -> Snapshot:
    """Snapshot of manifest rows: per pair of ids the greatest version that no tombstone of the pair covers.

    Raises as `reduce_rows`, and DamagedError for a row without ids, a path that is not that of its ids, and two tables
    of one name.
    """
    return reduce_rows(branch, version, map(_looked_at, rows), lambda row: row.identity)


def _looked_at(row: ManifestRow) -> ManifestRow:
    if row.kind not in SHOWING or row.fault is not None:
        return row
    if row.identity is None or 0 in row.identity:
        return replace(row, fault="its table has no ids, or one that is 0")
    stable, incarnation = row.identity
    path = f"{row.table_key.kind}s/{stable:016x}-{incarnation:016x}"
    if row.kind == RowKind.TABLE and row.location != path:
        return replace(row, fault=f"it places its table at '{excerpt(str(row.location))}', and its ids at '{path}'")
    return row
