"""Pending rows → staged files that nothing names yet, and which stored rows they replace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_omnigraph.graph.mutate.pending import PendingRows
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.tables.keys import find_rows
from spark_omnigraph.storage.tables.staged import StagedFile, stage_rows
from spark_omnigraph.write.candidates import target_of
from spark_omnigraph.write.staged_files import StagedFiles

FILE_ROWS = 1_000_000
"""Rows of one staged file."""


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Rows of one table that a mutation added, replaced and took away."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


def changed_rows(change: TableChange) -> ChangedRows:
    """What a change does: without files its rows are gone, with some they are replaced."""
    if not change.files:
        return ChangedRows(deleted=change.masked)
    return ChangedRows(change.added - change.masked, change.masked)


def count_pending(store: GraphStore, snapshot: Snapshot, key: str, pending: PendingRows) -> ChangedRows:
    """What staging these rows would count, from a look at the stored ids alone."""
    entry, ids = snapshot.entry(key), pending.table().column("id")
    replaced = int(find_rows(store.open_table(entry), ids).hit.sum()) if pending.given_ids and entry.row_count else 0
    return ChangedRows(len(ids) - replaced, replaced)


def stage_pending(
    store: GraphStore, snapshot: Snapshot, key: str, pending: PendingRows, owner: StagedFiles
) -> TableChange:
    """Writes the rows of one table: first those that replace stored rows, under their stable row ids, then the new."""
    options, rows = store.storage_options, pending.table()
    target = target_of(store, snapshot, key, snapshot.branch)
    row_ids, removed = np.empty(0, dtype=np.uint64), None
    if pending.given_ids and target.row_count:
        matches = find_rows(target.open(options), rows.column("id"))
        order = np.concatenate([np.flatnonzero(matches.hit), np.flatnonzero(~matches.hit)])
        rows, row_ids = rows.take(pa.array(order)), matches.row_ids
        removed = np.sort(matches.addresses) if len(row_ids) else None
    files: list[StagedFile] = []
    for first in range(0, rows.num_rows, FILE_ROWS):
        part = rows.slice(first, FILE_ROWS)
        files.append(stage_rows(target, part, row_ids[first : first + FILE_ROWS], options))
        owner.add(files[-1:])
    return TableChange(tuple(files), removed)
