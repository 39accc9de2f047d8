"""Merging one branch into another: what the source changed since the branches parted, in one commit with two parents.

    plan_merge      both heads, merge bases, tables that differ                              reads only
    candidates      ids that the source may have changed                                     driver
    merge_slice     whole rows of candidates: taken, kept, or in conflict; taken ones staged executors
    check_merged    the rules of the schema over what changes                                driver
    commit          one staged commit a table, one publish                                   all or nothing

Every difference is written onto the target's own line of a table: version numbers of different lines are not
comparable, and a snapshot shows the greatest. Tables whose rows turn out equal are left out. A merge that lost a race
is planned again, a bounded number of times: nobody has seen anything of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypedDict

import pyarrow as pa

from spark_omnigraph.branch.conflicts import OnConflict
from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.plan import PreparedCommit, Published, WriterKind
from spark_omnigraph.draw.card import Card, commit_line, counts_line, figures_grid, phases_grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRequestError, ConflictError, MergeConflict, OmnigraphError
from spark_omnigraph.graph.arguments import TEXT, require, require_known
from spark_omnigraph.graph.load.bad_rows import check_report_path
from spark_omnigraph.graph.merge.check import check_merged
from spark_omnigraph.graph.merge.conflicts import Conflicts, off_memory, open_rows_of, write_conflicts
from spark_omnigraph.graph.merge.decisions import (
    GivenDecision,
    TableDecisions,
    check_decisions,
    read_decisions,
    refuse_unused,
)
from spark_omnigraph.graph.merge.parallel import parallel_edges
from spark_omnigraph.graph.merge.plan import MergePlan, plan_merge
from spark_omnigraph.graph.merge.rows import MergedTable, TableDelta, candidates, merge_slice, slices
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.facts import CommitFacts, CommitOrigin, RowFacts
from spark_omnigraph.records.mode import choice
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.input.found import list_inputs
from spark_omnigraph.validate.probes import tables_read
from spark_omnigraph.words import TextEnum
from spark_omnigraph.write.attempts import in_attempts
from spark_omnigraph.write.candidates import candidate, fork_first, target_of
from spark_omnigraph.write.clock import Clock
from spark_omnigraph.write.executor import Executor
from spark_omnigraph.write.staged_files import StagedFiles, staged_files


class MergeChoices(TypedDict, total=False):
    """How a merge is to be done; see `Graph.merge_branch`."""

    dry_run: bool
    on_conflict: str
    conflicts: str | os.PathLike[str] | None
    decisions: object
    metadata: Mapping[str, str]
    executor: Executor | None


class MergeOutcome(TextEnum):
    """What a merge came to."""

    ALREADY_UP_TO_DATE = "already_up_to_date"
    """The target has every commit of the source: nothing was written."""
    FAST_FORWARD = "fast_forward"
    """The target had not moved since the branches parted. A commit is made all the same."""
    MERGED = "merged"


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """What the caller asked for; None is main."""

    source: Branch
    target: Branch
    actor: str | None = None
    dry_run: bool = False
    """Everything is found, decided and checked, nothing is written."""
    on_conflict: OnConflict = OnConflict.FAIL
    conflicts: str | None = None
    """File (JSON lines, or Parquet) that gets every conflict with its rows, those that were decided included."""
    decisions: tuple[GivenDecision, ...] = ()
    origin: CommitOrigin = field(default_factory=CommitOrigin)

    def __post_init__(self) -> None:
        """BadRequestError for a branch and itself, and where rows would be discarded without a trace."""
        if self.source == self.target:
            twice = f"not '{display(self.source)}' twice"
            raise BadRequestError(f"a merge needs distinct source and target branches, {twice}")
        if self.on_conflict is not OnConflict.FAIL and self.conflicts is None:
            raise BadRequestError(
                f"on_conflict '{self.on_conflict}' discards rows: name a file that gets them (conflicts, --conflicts)"
            )


def merge_request(store: GraphStore, source: str, into: str, actor: str | None, choices: MergeChoices) -> MergeRequest:
    """A checked request. BadRequestError for what is no branch name, choice or file that could be written."""
    require("source", source, TEXT)
    require_known(choices, MergeChoices, "a merge")
    path = choices.get("conflicts")
    file = None if path is None else os.fspath(path)
    given = choices.get("decisions")
    read = list_inputs(given, store.storage_options).files if isinstance(given, (str, os.PathLike)) else ()
    check_report_path(file, read, store.root, "file of conflicts")
    wanted = choice("on_conflict", choices.get("on_conflict", OnConflict.FAIL), OnConflict)
    decisions = () if given is None else read_decisions(given, store.storage_options)
    branches = parse_branch(source), parse_branch(into)
    return MergeRequest(*branches, actor, choices.get("dry_run", False), wanted, file, decisions)


@dataclass(frozen=True, slots=True, repr=False)
class MergeReport(Displayed):
    """What a merge did. `bases` are the commits where the branches parted; `commit` is None when none was made."""

    outcome: MergeOutcome
    source: str
    target: str
    source_commit: str
    target_commit: str
    bases: tuple[str, ...]
    commit: str | None
    manifest_version: int
    tables: Mapping[str, MergedTable]
    phases: Mapping[str, float]
    actor: str | None = None
    warnings: tuple[str, ...] = field(default=())

    def _card(self) -> Card:
        tables = {key: rows.figures() for key, rows in self.tables.items()}
        outcome = self.outcome.replace("_", " ")
        return Card(
            "MergeReport",
            f"{self.source} into {self.target}, {outcome}: {counts_line(tables.values())}, {commit_line(self.commit)}",
            {
                "actor": self.actor,
                "commit of the target before": self.target_commit,
                "commit of the source": self.source_commit,
                "parted at": ", ".join(self.bases),
                "manifest version": self.manifest_version,
            },
            without_empty(figures_grid("Rows that the target took", tables), phases_grid(self.phases)),
            self.warnings,
        )


def merge_branch(store: GraphStore, request: MergeRequest, executor: Executor) -> MergeReport:
    """Merges in one commit, or refuses and changes nothing.

    Raises MergeConflictsError with every row on which the branches disagree, or else every rule that the merged graph
    would break; BadRequestError, NotFoundError; ConflictError after bounded replanning.
    """
    clock = Clock()

    def attempt() -> MergeReport:
        with staged_files(store) as files:
            return _attempt(store, request, executor, clock, files)

    return in_attempts(store, request.target, attempt, lambda _: frozenset())


def _attempt(
    store: GraphStore, request: MergeRequest, executor: Executor, clock: Clock, files: StagedFiles
) -> MergeReport:
    with clock.phase("plan"):
        plan = plan_merge(store, request.source, request.target)
    if plan.is_contained:
        return _report(request, plan, MergeOutcome.ALREADY_UP_TO_DATE, {}, plan.target.unchanged, clock)
    reach(CrashPoint.PLANNED)
    with clock.phase("stage"), _others_as_planned(store, plan):
        deltas = _stage(store, request, plan, executor, files)
    reach(CrashPoint.STAGED)
    with clock.phase("check"):
        found = _conflicts(store, request, plan, deltas)
        if request.conflicts is not None:
            write_conflicts(request.conflicts, found.batches(), store.storage_options)
        found.refuse()
    reach(CrashPoint.CHECKED)
    outcome = MergeOutcome.FAST_FORWARD if plan.is_fast_forward else MergeOutcome.MERGED
    tables = {key: delta.counts for key, delta in deltas.items() if delta.counts != MergedTable()}
    changed = {key: delta for key, delta in deltas.items() if delta.has_changes}
    published = plan.target.unchanged
    if not request.dry_run:
        with clock.phase("commit"):
            counts = {key: RowFacts(rows.appended, rows.updated, rows.deleted) for key, rows in sorted(tables.items())}
            facts = CommitFacts("merge", None, counts, None, clock.total(), request.origin)
            published = files.commit(replace(_candidate(store, request, plan, changed), facts=facts))
    if published.parent not in (None, plan.target_commit):  # others wrote tables that this merge does not look at
        outcome = MergeOutcome.MERGED
    report = _report(request, plan, outcome, tables, published, clock)
    return replace(report, warnings=(*plan.warnings, *found.warnings, *report.warnings))


def _stage(
    store: GraphStore, request: MergeRequest, plan: MergePlan, executor: Executor, files: StagedFiles
) -> dict[str, TableDelta]:
    """Decides on every candidate of every table and stages what the target takes; tables that may differ alone."""
    target = plan.target.snapshot
    decisions = check_decisions(plan.target.contract.catalog, request.decisions)
    deltas: dict[str, TableDelta] = {}
    for key in plan.changed_tables():
        sides = plan.sides(store, key, request.on_conflict, decisions.get(key, TableDecisions()))
        found = candidates(sides)
        if not found.num_rows:
            continue
        if not request.dry_run:
            fork_first(store, target, [key])
        line = target.entry(key).branch if request.dry_run else target.branch
        into = target_of(store, target, key, line)
        parts = []
        for part in executor.map(partial(merge_slice, sides, into, store.storage_options), list(slices(found))):
            files.add(part.files)
            parts.append(replace(part, conflicts=off_memory(part.conflicts)))
        deltas[key] = TableDelta(sides, into, tuple(parts))
    return deltas


@contextmanager
def _others_as_planned(store: GraphStore, plan: MergePlan) -> Iterator[None]:
    """Refuses what was read of a branch that went or was made anew meanwhile, the source's and those of bases: versions
    of both count alike, and what cannot be read has gone along. The protocol sees to the target.

    NotFoundError for a source that is gone, else ConflictError.
    """
    try:
        yield
    except OmnigraphError:
        _refuse_others_anew(store, plan)
        raise
    _refuse_others_anew(store, plan)


def _refuse_others_anew(store: GraphStore, plan: MergePlan) -> None:
    store.require_branch(plan.source.snapshot.branch)
    now = store.branch_refs()
    for branch, known in plan.read_from().items():
        if branch is not None and (branch not in now or now[branch].id != known):
            raise ConflictError(
                f"branch '{branch}', which this merge reads, was deleted or made anew meanwhile; nothing has changed, "
                "merge again"
            )


def _conflicts(
    store: GraphStore, request: MergeRequest, plan: MergePlan, deltas: Mapping[str, TableDelta]
) -> Conflicts:
    """Rows on which the branches disagree, and where it is said of all of them what becomes of them, rules that break.

    BadRequestError for decisions about other rows.
    """
    refuse_unused(request.decisions, {key: delta.conflicts for key, delta in deltas.items()})
    broken: list[MergeConflict] = []
    notes: tuple[str, ...] = ()
    if not open_rows_of(deltas)[0]:
        target, catalog = plan.target.snapshot, plan.target.contract.catalog
        targets = {key: target_of(store, target, key, entry.branch) for key, entry in target.entries.items()}
        broken = check_merged(catalog, deltas, targets, store.storage_options)
        notes = tuple(parallel_edges(catalog, deltas, store.storage_options))
    return Conflicts(deltas, broken, plan.source_commit, plan.target_commit, notes)


def find_conflicts(store: GraphStore, request: MergeRequest, executor: Executor) -> Iterator[pa.RecordBatch]:
    """All conflicts of a merge as it would be now, found as by a dry run; batches as in `Conflicts.batches`."""
    with staged_files(store) as files:
        plan = plan_merge(store, request.source, request.target)
        with _others_as_planned(store, plan):
            deltas = {} if plan.is_contained else _stage(store, request, plan, executor, files)
        found = _conflicts(store, request, plan, deltas)
    yield from found.batches()


def _candidate(
    store: GraphStore, request: MergeRequest, plan: MergePlan, deltas: Mapping[str, TableDelta]
) -> PreparedCommit:
    target = plan.target
    deletes = any(delta.counts.deleted for delta in deltas.values())
    # What was compared must still stand, also where nothing is written: the source counts as merged from here on.
    read = {*plan.changed_tables(), *tables_read(target.contract.catalog, deltas, deletes)}
    changes = {key: delta.change for key, delta in deltas.items()}
    prepared = candidate(store, target, WriterKind.BRANCH_MERGE, request.actor, changes, read)
    return replace(prepared, merged=plan.source_commit, planned_on=target.snapshot.version)


def _report(
    request: MergeRequest,
    plan: MergePlan,
    outcome: MergeOutcome,
    tables: Mapping[str, MergedTable],
    published: Published,
    clock: Clock,
) -> MergeReport:
    return MergeReport(
        outcome,
        display(request.source),
        display(request.target),
        plan.source_commit,
        published.parent or plan.target_commit,
        tuple(commit.id for commit, _ in plan.bases),
        published.commit_id,
        published.manifest_version,
        tables,
        clock.seconds(),
        request.actor,
        published.warnings,
    )
