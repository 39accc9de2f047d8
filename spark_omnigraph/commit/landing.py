"""Landing one table: its own commit, and what became of it when that failed."""

from __future__ import annotations

from spark_omnigraph.commit.plan import BoundWrite, LandedTable
from spark_omnigraph.errors import StorageError
from spark_omnigraph.manifest.rows import TableUpdate
from spark_omnigraph.storage.faults import CommitFailed, Outcome
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import branch_path
from spark_omnigraph.storage.tables.commits import (
    at_version,
    commit_compaction,
    commit_strict,
    landed_version,
    newest_version,
)


def land(bound: BoundWrite) -> LandedTable:
    """Phase B for one table: its transaction lands at exactly pin + 1, or CommitFailed says that it did not.

    Every failure is read back: a client that asks again after a lost answer is refused by its own success.
    """
    if bound.transaction is None:
        return _land_compaction(bound)
    try:
        dataset = commit_strict(bound.dataset, bound.transaction)
    except CommitFailed as failure:
        version = landed_version(bound.dataset, bound.transaction)
        if version is None:
            raise CommitFailed(Outcome.LOST, f"{failure} (read back: it did not land)") from failure
        dataset = at_version(bound.dataset, version)
    return LandedTable(bound, dataset)


def landed_update(store: GraphStore, table: LandedTable, row_count: int) -> TableUpdate:
    """What the manifest is told of a table that has landed."""
    write = table.bound.write
    folder = branch_path(write.entry.location, write.branch)
    return store.table_update(write.table_key, folder, write.branch, table.version, row_count)


def _land_compaction(bound: BoundWrite) -> LandedTable:
    """Like `land`, at exactly pin + 2. It changes no row, so recovery may finish it wherever it stopped: what is not
    plainly done or plainly undone is left to that.
    """
    table = f"'{bound.write.table_key}' ({bound.dataset.uri})"
    try:
        landed = LandedTable(bound, commit_compaction(bound.dataset, bound.write.change.rewrites))
    except CommitFailed as failure:
        if newest_version(bound.dataset) == bound.write.entry.version:
            raise CommitFailed(Outcome.LOST, f"{failure} (read back: it did not land)") from failure
        raise StorageError(
            f"storage: the compaction of {table} stopped half-way ({failure}); recover ends it"
        ) from failure
    if landed.version != bound.write.landing:
        raise StorageError(
            f"storage: the compaction of {table} landed over a commit of another program; recover decides"
        )
    return landed
