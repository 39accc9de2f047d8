"""Optimize: small files joined, masked rows dropped, indexes whole; no row, id or version of a row changes.

Each table is a maintenance write of its own, with a sidecar and without a commit. Indexes come first: only fragments
that the same parts of them cover are joined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_omnigraph.commit.claim import refuse_remade
from spark_omnigraph.commit.plan import TableWrite, WriterKind
from spark_omnigraph.commit.stage import staging
from spark_omnigraph.errors import ConflictError
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.snapshot import TableEntry
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.blobs import column_with_hidden_nulls
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.tables.compaction import TARGET_ROWS, stage_compaction
from spark_omnigraph.write.attempts import ATTEMPTS, in_attempts
from spark_omnigraph.write.candidates import maintenance
from spark_omnigraph.write.indexes import BuiltIndexes, ensure_indices
from spark_omnigraph.write.staged_files import staged_files


@dataclass(frozen=True, slots=True)
class CompactedTable:
    """Files of one table's rows before and after, and why it was left alone, if it was."""

    files_before: int
    files_after: int
    left: str | None = None


@dataclass(frozen=True, slots=True)
class OptimizeReport:
    """What was done: by table, the indexes that were built, and how many files joined internal datasets had before."""

    branch: str
    tables: Mapping[str, CompactedTable]
    indexes: tuple[str, ...]
    internal: Mapping[str, int]
    manifest_version: int
    warnings: tuple[str, ...] = ()
    """Indexes that could not be built, and the way out."""


def optimize(
    store: GraphStore, branch: Branch, target_rows: int = TARGET_ROWS, dry_run: bool = False
) -> OptimizeReport:
    """Compacts the tables that a branch owns, and the datasets of the manifest and the commit log.

    A table on which other writers are busy is left alone, and the report says so. A dry run counts files.
    RecoveryRequiredError when a write that died covers a table.
    """
    indexes = (
        BuiltIndexes() if dry_run else ensure_indices(store, branch, extend=True, attempts=ATTEMPTS, most_segments=1)
    )
    own = [key for key, entry in store.snapshot(branch).entries.items() if entry.branch == branch]
    tables = {key: _compact(store, branch, key, target_rows, dry_run) for key in sorted(own)}
    internal = {} if dry_run else _tidy(store, branch)
    version = store.snapshot(branch).version
    return OptimizeReport(display(branch), tables, tuple(indexes), internal, version, indexes.warnings)


def _tidy(store: GraphStore, branch: Branch) -> dict[str, int]:
    """Joins the files of internal datasets, under a stage: they must be those that are there at the end, too."""
    with staging(store):
        refuse_remade(store)
        return store.tidy(branch, above=1)


def _compact(store: GraphStore, branch: Branch, key: str, target_rows: int, dry_run: bool) -> CompactedTable:
    """A table on which other writers are busy is left for the next time."""

    def attempt() -> CompactedTable:
        entry = store.snapshot(branch).entry(key)
        dataset = store.open_table(entry)
        files = len(dataset.get_fragments())
        hidden = column_with_hidden_nulls(dataset)
        if hidden is not None:
            why = f"an older Lance wrote nulls of '{hidden}' that would become empty blobs; load those rows again first"
            return CompactedTable(files, files, why)
        after = None if dry_run else _rewrite(store, branch, entry, target_rows)
        return CompactedTable(files, files if after is None else after)

    try:
        return in_attempts(store, branch, attempt, lambda _: frozenset(), lost=ConflictError)
    except ConflictError:
        files = _files(store, store.snapshot(branch).entry(key))
        return CompactedTable(files, files, "other writers kept moving it")


def _rewrite(store: GraphStore, branch: Branch, entry: TableEntry, target_rows: int) -> int | None:
    """Files that the table has now; None when there was nothing to gain."""
    branch_id = store.branch_id(branch)
    with staged_files(store) as files:
        rewrites = stage_compaction(store.open_table(entry), target_rows)
        if not rewrites:
            return None
        write = TableWrite(entry, branch, TableChange(rewrites=rewrites))
        files.commit(maintenance(store, WriterKind.OPTIMIZE, branch, branch_id, write))
    return _files(store, store.snapshot(branch).entry(entry.table_key))


def _files(store: GraphStore, entry: TableEntry) -> int:
    return len(store.open_table(entry).get_fragments())
