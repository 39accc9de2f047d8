"""Optimize: small files joined, masked rows dropped, indexes whole; no row, id or version of a row changes.

Indexes come first, as a write without a commit: only fragments that the same parts of them cover are joined. Then the
files of all tables of the branch are joined in one commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spark_omnigraph.commit.claim import refuse_remade
from spark_omnigraph.commit.plan import Published, WriterKind
from spark_omnigraph.commit.stage import staging
from spark_omnigraph.draw.card import Card, commit_line, grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import ConflictError
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.facts import CommitFacts, CommitOrigin
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.blobs import column_with_hidden_nulls
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.tables.compaction import MASKED_SHARE, TARGET_ROWS, plan_compaction, stage_compaction
from spark_omnigraph.storage.tables.index import Upkeep
from spark_omnigraph.write.attempts import ATTEMPTS, in_attempts
from spark_omnigraph.write.candidates import candidate, capture, fork_first
from spark_omnigraph.write.clock import Clock
from spark_omnigraph.write.executor import Executor, LocalExecutor
from spark_omnigraph.write.indexes import BuiltIndexes, ensure_indices
from spark_omnigraph.write.staged_files import staged_files

_BUSY = "other writers kept moving it"
_LOSSES = 2
"""Attempts that one table may cost the others before it is left for the next time."""


@dataclass(frozen=True, slots=True)
class OptimizeRequest:
    """Which branch, and how."""

    branch: Branch
    target_rows: int = TARGET_ROWS
    actor: str | None = None
    dry_run: bool = False
    origin: CommitOrigin = field(default_factory=CommitOrigin)


@dataclass(frozen=True, slots=True)
class CompactedTable:
    """Files of one table's rows before and after, and why it was left alone, if it was."""

    files_before: int
    files_after: int
    left: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class OptimizeReport(Displayed):
    """What was done: by table, the indexes that were built, and how many files joined internal datasets had before.
    `commit` is None when no files were joined.
    """

    branch: str
    tables: Mapping[str, CompactedTable]
    indexes: tuple[str, ...]
    internal: Mapping[str, int]
    manifest_version: int
    commit: str | None = None
    warnings: tuple[str, ...] = ()
    """Indexes that could not be built, and the way out."""

    def _card(self) -> Card:
        tables, indexes, internal = self.tables, self.indexes, self.internal
        before, after = (sum(getattr(t, name) for t in tables.values()) for name in ("files_before", "files_after"))
        rows = ((key, table.files_before, table.files_after, table.left) for key, table in tables.items())
        done = f"{before:,} to {after:,} files, {len(indexes):,} indexes built"
        joined = grid(
            "Internal datasets that were joined", ("dataset", "files before"), internal.items(), len(internal)
        )
        return Card(
            "OptimizeReport",
            f"on {self.branch}: {done}, {commit_line(self.commit)}",
            {"manifest version": self.manifest_version},
            without_empty(
                grid("Files", ("table", "before", "after", "left alone"), rows, len(tables)),
                grid("Indexes that were built", ("index",), ((name,) for name in indexes), len(indexes)),
                joined,
            ),
            self.warnings,
        )


def optimize(store: GraphStore, request: OptimizeRequest, executor: Executor | None = None) -> OptimizeReport:
    """Compacts the tables that a branch owns in one commit, and the datasets of the manifest and the commit log. The
    files of each task of a compaction, and each index, are made by the executor.

    A table on which other writers are busy is left alone, and the report says so. A dry run counts files.
    RecoveryRequiredError when a write that died covers a table.
    """
    branch = request.branch
    built = BuiltIndexes()
    if not request.dry_run:
        built = ensure_indices(store, branch, upkeep=Upkeep(1), attempts=ATTEMPTS, executor=executor)
    work = _Compaction(store, request, executor if executor is not None else LocalExecutor(1))
    published = work.run()
    internal = {} if request.dry_run else _tidy(store, branch)
    version = store.snapshot(branch).version
    commit, warnings = (None, ()) if published is None else (published.commit_id, published.warnings)
    tables = dict(sorted(work.tables.items()))
    return OptimizeReport(display(branch), tables, tuple(built), internal, version, commit, built.warnings + warnings)


def rewrite_tables(store: GraphStore, request: OptimizeRequest, tables: frozenset[str]) -> None:
    """Writes files of these tables anew that hold any masked row, in one commit; a branch forks those that it shares.
    ConflictError when other writers kept moving them.
    """
    fork_first(store, store.snapshot(request.branch), tables)
    work = _Compaction(store, request, LocalExecutor(1), masked_share=0.0, only=tables)
    work.run()
    busy = sorted(key for key, table in work.tables.items() if table.left == _BUSY)
    if busy:
        raise ConflictError(f"other writers kept moving {', '.join(busy)}; run it again")


def _tidy(store: GraphStore, branch: Branch) -> dict[str, int]:
    """Joins the files of internal datasets, under a stage: they must be those that are there at the end, too."""
    with staging(store):
        refuse_remade(store)
        return store.tidy(branch, above=1)


@dataclass(slots=True)
class _Compaction:
    """The files of all tables of a branch: what is found, and how often a table was lost to other writers."""

    store: GraphStore
    request: OptimizeRequest
    executor: Executor
    masked_share: float = MASKED_SHARE
    only: frozenset[str] | None = None
    tables: dict[str, CompactedTable] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)

    def run(self) -> Published | None:
        """None when nothing was joined."""
        try:
            return in_attempts(self.store, self.request.branch, self._attempt, self._again, lost=ConflictError)
        except ConflictError:
            for entry in self._chosen(self.store.snapshot(self.request.branch)):
                files = _files(self.store, entry)
                self.tables[entry.table_key] = CompactedTable(files, files, _BUSY)
            return None

    def _again(self, moved: str) -> frozenset[str]:
        self.lost[moved] = self.lost.get(moved, 0) + 1
        return frozenset()

    def _attempt(self) -> Published | None:
        base = capture(self.store, self.request.branch)
        self.tables.clear()
        with staged_files(self.store) as files:
            staged = {entry.table_key: self._stage(entry) for entry in self._chosen(base.snapshot)}
            changes = {str(key): change for key, change in staged.items() if change is not None}
            if not changes:
                return None
            prepared = candidate(self.store, base, WriterKind.OPTIMIZE, self.request.actor, changes, set())
            facts = CommitFacts("optimize", seconds=self.clock.total(), origin=self.request.origin)
            published = files.commit(replace(prepared, facts=facts))
        snapshot = self.store.snapshot(self.request.branch)
        for key in changes:
            self.tables[key] = replace(self.tables[key], files_after=_files(self.store, snapshot.entry(key)))
        return published

    def _chosen(self, snapshot: Snapshot) -> list[TableEntry]:
        """Tables that were written on the branch: those that it shares are another one's to keep."""
        own = (entry for entry in snapshot.entries.values() if entry.branch == snapshot.branch)
        return sorted((e for e in own if self.only is None or e.table_key in self.only), key=lambda e: e.table_key)

    def _stage(self, entry: TableEntry) -> TableChange | None:
        """Joined files of a table, which nothing names yet; None where there is nothing to gain, or a reason not to."""
        dataset = self.store.open_table(entry)
        files = len(dataset.get_fragments())
        why = _BUSY if self.lost.get(entry.table_key, 0) >= _LOSSES else None
        hidden = column_with_hidden_nulls(dataset) if why is None else None
        if hidden is not None:
            why = f"an older Lance wrote nulls of '{hidden}' that would become empty blobs; load those rows again first"
        self.tables[entry.table_key] = CompactedTable(files, files, why)
        if why is not None or self.request.dry_run:
            return None
        plan = plan_compaction(dataset, self.request.target_rows, self.masked_share)
        rewrites = stage_compaction(dataset, plan, self.executor, self.store.storage_options)
        return TableChange(rewrites=rewrites) if rewrites else None


def _files(store: GraphStore, entry: TableEntry) -> int:
    return len(store.open_table(entry).get_fragments())
