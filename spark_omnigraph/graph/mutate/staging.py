"""Pending rows → staged files that nothing names yet, and which stored rows they replace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_omnigraph.errors import OmnigraphError
from spark_omnigraph.graph.mutate.pending import PendingRows
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.commits import Addresses
from spark_omnigraph.storage.tables.keys import find_rows
from spark_omnigraph.storage.tables.staged import StagedFile, TableTarget, discard, stage_rows

FILE_ROWS = 1_000_000
"""Rows of one staged file."""


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Rows of one table that a mutation added, replaced and took away."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class StagedRows:
    """Staged rows of one table: its files, the stored rows they replace, and how many they add and replace."""

    target: TableTarget
    files: tuple[StagedFile, ...]
    removed: Addresses
    inserted: int

    @property
    def updated(self) -> int:
        return len(self.removed)

    @property
    def fragments(self) -> tuple[str, ...]:
        return tuple(file.fragment for file in self.files)


class StagedTables:
    """What a mutation staged so far; `discard` removes the files as long as no commit was tried with them."""

    def __init__(self, store: GraphStore) -> None:
        self.tables: dict[str, StagedRows] = {}
        self._store = store

    def add(self, rows: StagedRows) -> None:
        self.tables[rows.target.table_key] = rows

    def discard(self) -> None:
        for rows in self.tables.values():
            discard(self._store.objects, rows.target.uri, rows.files)


def count_pending(store: GraphStore, snapshot: Snapshot, key: str, pending: PendingRows) -> ChangedRows:
    """What staging these rows would count, from a look at the stored ids alone."""
    entry, ids = snapshot.entry(key), pending.table().column("id")
    replaced = int(find_rows(store.open_table(entry), ids).hit.sum()) if pending.given_ids and entry.row_count else 0
    return ChangedRows(len(ids) - replaced, replaced)


def stage_pending(store: GraphStore, snapshot: Snapshot, key: str, pending: PendingRows) -> StagedRows:
    """Writes the rows of one table: first those that replace stored rows, under their stable row ids, then the new."""
    entry, options, rows = snapshot.entry(key), store.storage_options, pending.table()
    target = TableTarget(key, store.table_uri(entry.location, snapshot.branch), entry.version, entry.row_count)
    row_ids = removed = np.empty(0, dtype=np.uint64)
    if pending.given_ids and entry.row_count:
        matches = find_rows(target.open(options), rows.column("id"))
        order = np.concatenate([np.flatnonzero(matches.hit), np.flatnonzero(~matches.hit)])
        rows, row_ids, removed = rows.take(pa.array(order)), matches.row_ids, np.sort(matches.addresses)
    files: list[StagedFile] = []
    try:
        for first in range(0, rows.num_rows, FILE_ROWS):
            part = rows.slice(first, FILE_ROWS)
            files.append(stage_rows(target, part, row_ids[first : first + FILE_ROWS], options))
    except OmnigraphError:
        discard(store.objects, target.uri, files)
        raise
    return StagedRows(target, tuple(files), removed, rows.num_rows - len(removed))
