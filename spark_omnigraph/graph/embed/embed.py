"""Embedding stored rows: a reconciler, which can be interrupted, repeated, and is paid for once.

    select       rows without a vector, or with one of another text                    driver, one scan a property
    ask          texts that no answer is stored for; answers are kept within seconds   executors
    write_part   answers of the selected rows → columns or rows, staged                executors
    commit       one commit                                                            all or nothing

A row gets the answer to the text that it has in the version on which the commit is made: a commit that loses a race is
planned again, a bounded number of times.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from spark_omnigraph.bad_rows import BadRowSummary
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.plan import Published, WriterKind
from spark_omnigraph.embed.counts import minutes
from spark_omnigraph.graph.embed.plan import NO_IDS, EmbedPlan, PlannedProperty, Planner
from spark_omnigraph.graph.embed.report import EmbedReport, FailedRows, bad_rows_of, refuse
from spark_omnigraph.graph.embed.request import EmbedMode, EmbedRequest
from spark_omnigraph.graph.embed.seen import looks_at_all, note_seen, place_of
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.manifest.facts import CommitFacts, RowFacts
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.vectors import Rows
from spark_omnigraph.write.attempts import in_attempts, lost_columns_named
from spark_omnigraph.write.candidates import candidate, fork_first, target_of
from spark_omnigraph.write.clock import Clock
from spark_omnigraph.write.personal import without_personal
from spark_omnigraph.write.staged_files import StagedFiles, staged_files
from spark_omnigraph.write.values import LEFT_ALONE, ValueChange, WriteContext, change_of, parts_of, write_part

_LOG = logging.getLogger(__name__)
_NAMED = 10
"""Commits of a stopped run that are named."""


def embed(store: GraphStore, request: EmbedRequest) -> EmbedReport:
    """Gives the rows that a request means their vectors, in one commit, or in several whole ones.

    Raises EmbeddingError when nothing was answered or more rows failed than may, EmbeddingConfigError, ConflictError
    after bounded replanning. What was answered is kept, and is not asked again.
    """
    run = _EmbedRun(store, request)
    with _scratch(request), _naming_commits(run), lost_columns_named(store, request.branch):
        run.once()
        while run.planner.is_cut and not request.bounds.dry_run:
            run.once()
        if not request.bounds.dry_run:
            run.note_seen()
            request.store.tidy(*{each.target.dimension for each in run.plans[-1].properties.values()})
    return run.report()


@contextmanager
def _naming_commits(run: _EmbedRun) -> Iterator[None]:
    """Says which commits stand of a run that is stopped, whatever stops it."""
    try:
        yield
    except BaseException:
        if run.commits:
            named = ", ".join(run.commits[-_NAMED:])
            _LOG.warning("stopped after %d commits, which stand; the last of them: %s", len(run.commits), named)
        raise


@contextmanager
def _scratch(request: EmbedRequest) -> Iterator[None]:
    """A store that nobody is to find afterwards goes when the run ends."""
    try:
        yield
    finally:
        if not request.keeps_answers:
            request.store.remove()


@dataclass(slots=True)
class _EmbedRun:
    """What one call has done so far, commit by commit."""

    store: GraphStore
    request: EmbedRequest
    clock: Clock = field(default_factory=Clock)
    planner: Planner = field(init=False)
    plans: list[EmbedPlan] = field(default_factory=list)
    published: list[Published] = field(default_factory=list)
    bad_rows: BadRowSummary = field(default_factory=BadRowSummary)

    def __post_init__(self) -> None:
        self.planner = Planner(self.store, self.request, self.clock)

    def once(self) -> None:
        """One commit, with as many rows as it may have."""
        planned = [self.planner.plan(None)]

        def attempt() -> Published:
            with staged_files(self.store) as files:
                planned[0] = self.planner.plan(planned[0])
                return self._commit(planned[0], files)

        if self.request.bounds.dry_run:
            published = planned[0].base.unchanged
        else:
            tables = frozenset(planned[0].by_table())
            published = in_attempts(self.store, self.request.branch, attempt, lambda _: tables)
        self.plans.append(planned[0])
        self.published.append(published)
        if not self.request.bounds.dry_run:
            self._note(planned[0])

    def _commit(self, plan: EmbedPlan, files: StagedFiles) -> Published:
        request, plans = self.request, [*self.plans, plan]
        failed = [FailedRows(each.target, each.failed) for one in plans for each in one.properties.values()]
        told = bad_rows_of(failed, self.planner.failures, request)
        self.bad_rows = without_personal(told, plan.base.contract.catalog)
        refuse(self.bad_rows, self.planner.meant, request, len(self.commits))
        with self.clock.phase("stage"):
            changes = {key: self._stage(plan, parts, files) for key, parts in plan.by_table().items()}
        reach(CrashPoint.STAGED)
        if not changes:
            return plan.base.unchanged
        prepared = candidate(self.store, plan.base, WriterKind.MUTATION, request.actor, changes, frozenset())
        facts = CommitFacts("embed", str(request.mode), _facts(plan), None, self.clock.total(), request.origin)
        reach(CrashPoint.CHECKED)
        with self.clock.phase("commit"):
            return files.commit(replace(prepared, facts=facts))

    @property
    def commits(self) -> tuple[str, ...]:
        """Those that were made, in their order."""
        return tuple(each.commit_id for each in self.published if each.commit_id is not None)

    def _stage(self, plan: EmbedPlan, parts: list[PlannedProperty], files: StagedFiles) -> TableChange:
        """What changes in one table, which is forked first."""
        snapshot, entity = plan.base.snapshot, parts[0].target.entity
        fork_first(self.store, snapshot, [entity.table_key])
        context = WriteContext(
            entity,
            target_of(self.store, snapshot, entity.table_key, snapshot.branch),
            parts[0].selection.table,
            {each.target.prop: each.answers for each in parts},
            self.store.storage_options,
        )
        rows = {each.target.prop: each.good for each in parts}
        change = _joined(rows, {each.target.prop: each.found[each.is_good] for each in parts})
        written = []
        for part in self.request.executor.map(partial(write_part, context), list(parts_of(context, change))):
            files.add(part.staged)
            written.append(part)
        return change_of(written)

    def _note(self, plan: EmbedPlan) -> None:
        """Remembers what was committed, also for the next run, which finds it up to date."""
        request, planner = self.request, self.planner
        for name, each in plan.properties.items():
            done = [planner.done.get(name, NO_IDS), *each.selection.rows.column("id").chunks]
            planner.done[name] = pa.chunked_array(done, pa.string()).combine_chunks()
            known, good = planner.counts[name], each.good
            if request.mode is EmbedMode.CLEAN:
                planner.counts[name] = replace(known, cleaned=known.cleaned + good.num_rows)
                continue
            failed = known.failed + each.failed.num_rows
            planner.counts[name] = replace(known, embedded=known.embedded + good.num_rows, failed=failed)
            adopted = each.selection.known
            if adopted.num_rows and request.keeps_answers:
                ids, marks = (adopted.column(column).combine_chunks() for column in ("id", "key"))
                request.store.record(place_of(self.store, plan.base, each.target), ids, marks, request.embedder().model)

    def note_seen(self) -> None:
        """Remembers of which properties no row is left behind. In several commits others may have come between them:
        what has not changed since the first was planned is then all that is known.
        """
        first, published = self.plans[0], self.published[0]
        for name, each in first.properties.items() if looks_at_all(self.request) else ():
            if not self.planner.counts[name].failed:
                alone = published if len(self.plans) == 1 else first.base.unchanged
                note_seen(self.store, first.base, self.request, each.target, alone)

    def report(self) -> EmbedReport:
        request, counts = self.request, self.planner.counts
        commits = self.commits
        tables: dict[str, int] = {}
        for plan, published in zip(self.plans, self.published, strict=True):
            for key, rows in _facts(plan).items() if published.commit_id is not None else ():
                tables[key] = tables.get(key, 0) + rows.updated
        return EmbedReport(
            str(request.mode),
            "" if request.mode is EmbedMode.CLEAN else request.embedder().model,
            display(request.branch),
            commits[-1] if commits else None,
            self.plans[0].base.commit,
            self.published[-1].manifest_version,
            commits,
            tables,
            counts,
            self.bad_rows,
            self.clock.seconds(),
            tuple(warning for each in self.published for warning in each.warnings),
            minutes(request.provider, counts.values()) if request.bounds.dry_run else None,
        )


def _joined(parts: Mapping[str, pa.Table], answers: Mapping[str, Rows]) -> ValueChange:
    """The rows of several properties of one table, each row once, by address."""
    given = [chunk for part in parts.values() for chunk in part.column("address").chunks]
    addresses = np.sort(pa.chunked_array(given, pa.uint64()).unique().to_numpy())
    rows = np.zeros(len(addresses), dtype=np.uint64)
    found = {}
    for name, part in parts.items():
        at = np.searchsorted(addresses, np.asarray(part.column("address")))
        rows[at] = np.asarray(part.column("row"))
        found[name] = np.full(len(addresses), LEFT_ALONE, dtype=np.int64)
        found[name][at] = answers[name]
    return ValueChange(rows, addresses, found)


def _facts(plan: EmbedPlan) -> dict[str, RowFacts]:
    """Rows of each table that change, and those that failed."""
    facts = {}
    for key, parts in sorted(plan.by_table().items()):
        addresses = [chunk for each in parts for chunk in each.good.column("address").chunks]
        changed = len(pa.chunked_array(addresses, pa.uint64()).unique())
        facts[key] = RowFacts(updated=changed, bad=sum(each.failed.num_rows for each in parts))
    return facts
