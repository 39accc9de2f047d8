"""What a commit is to contain: rows selected on one state of the branch, and an answer for each, asked for if need be.

Asking may take hours. What has moved meanwhile is selected anew, and only texts that are new then are asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.embed.counts import PropertyCounts, estimated, refuse_dear, took
from spark_omnigraph.embed.embedder import Embedder
from spark_omnigraph.errors import ConflictError, StorageError
from spark_omnigraph.graph.embed.ask import AskContext, AskPart, ask
from spark_omnigraph.graph.embed.request import EmbedRequest, EmbedTarget, embed_targets
from spark_omnigraph.graph.embed.select import Selection, select
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.staging.asking import Asking
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.origin import require_origin
from spark_omnigraph.storage.vectors import Answers, Rows, first_of_each
from spark_omnigraph.write.attempts import ATTEMPTS
from spark_omnigraph.write.candidates import Base, capture
from spark_omnigraph.write.clock import Clock

QUESTION_TEXTS, QUESTION_BYTES = 1 << 14, 16 << 20
"""Texts that one task asks at most, and has in memory."""
NO_IDS = pa.array([], pa.string())


@dataclass(frozen=True, slots=True, eq=False)
class PlannedProperty:
    """Selected rows of a property, and the rows of their answers (-1: none)."""

    selection: Selection
    answers: Answers
    found: Rows

    @property
    def target(self) -> EmbedTarget:
        return self.selection.target

    @property
    def is_good(self) -> npt.NDArray[np.bool_]:
        """Which of the rows get what they are to get: their answer, or none where none is meant."""
        good: npt.NDArray[np.bool_] = (self.found >= 0) | np.asarray(pc.is_null(self.selection.rows.column("key")))
        return good

    @property
    def good(self) -> pa.Table:
        return self._rows(self.is_good)

    @property
    def failed(self) -> pa.Table:
        return self._rows(~self.is_good)

    def _rows(self, which: npt.NDArray[np.bool_]) -> pa.Table:
        return self.selection.rows if which.all() else self.selection.rows.filter(pa.array(which))


@dataclass(frozen=True, slots=True, eq=False)
class EmbedPlan:
    """All properties of a run, by name, and the state on which their rows were selected."""

    base: Base
    properties: Mapping[str, PlannedProperty]

    def by_table(self) -> dict[str, list[PlannedProperty]]:
        """Properties that have a row to change, by table."""
        tables: dict[str, list[PlannedProperty]] = {}
        for each in self.properties.values():
            if each.is_good.any():
                tables.setdefault(each.target.entity.table_key, []).append(each)
        return tables

    def stands(self, base: Base) -> bool:
        """Whether nothing that was looked at has moved."""
        if self.base.contract.schema_hash != base.contract.schema_hash or self.base.branch_id != base.branch_id:
            return False
        keys = {each.target.entity.table_key for each in self.properties.values()}
        return all(self.base.snapshot.place(key) == base.snapshot.place(key) for key in keys)


@dataclass(slots=True)
class Planner:
    """Plans commits of one run, and knows what was asked in it."""

    store: GraphStore
    request: EmbedRequest
    clock: Clock
    counts: dict[str, PropertyCounts] = field(default_factory=dict)
    """By property."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why a text got no answer, by key. None is asked twice in a run."""
    done: dict[str, pa.Array] = field(default_factory=dict)
    """Ids that earlier commits of the run had, by property."""
    texts: dict[str, pa.Array] = field(default_factory=dict)
    """Keys of their texts, which are counted once."""
    is_cut: bool = False
    """Whether the last plan left rows to another commit."""
    meant: int = 0
    """Rows of all commits of the run, as the last plan found them."""
    first: Base | None = None
    """What stood when the run began."""
    embedders: dict[int, Embedder] = field(default_factory=dict)
    """By the number of tasks that ask at a time: one goes through the whole run, so that it keeps its pace."""

    def plan(self, before: EmbedPlan | None) -> EmbedPlan:
        """What is to be committed on the branch as it is now: the plan `before` where it stands."""
        plan = self._planned(self._captured(), is_first=True) if before is None else before
        for _ in range(0 if self.request.bounds.dry_run else ATTEMPTS):
            base = self._captured()
            if plan.stands(base):
                return replace(plan, base=base)
            plan = self._planned(base, is_first=False)
        return plan

    def _captured(self) -> Base:
        """What stands now. NotFoundError where the branch is gone, ConflictError where it, or the graph, is another one
        than that of which the run was asked.
        """
        with self.clock.phase("plan"):
            base = capture(self.store, self.request.branch)
            if self.first is None:
                self.first = base
                return base
            for entry in tuple(self.first.snapshot.entries.values())[:1]:
                require_origin(entry.origin, self.store.storage_options)
            if base.branch_id != self.first.branch_id:
                raise ConflictError(
                    f"branch '{display(self.request.branch)}' was deleted and made anew while its rows were embedded; "
                    "what was answered is kept, run it again"
                )
            return base

    def _planned(self, base: Base, is_first: bool) -> EmbedPlan:
        with self.clock.phase("plan"):
            selections = self._select(base)
        reach(CrashPoint.PLANNED)
        return EmbedPlan(base, {s.target.name: self._with_answers(s, is_first) for s in selections})

    def _select(self, base: Base) -> list[Selection]:
        """Rows that are meant, as many as one commit may have, in a dry run all. BadRequestError where all of them are
        too dear.
        """
        targets = embed_targets(base.contract.catalog, self.request)
        meant = [select(self.store, base, self.request, each, self.done.get(each.name, NO_IDS)) for each in targets]
        self.meant = sum(map(len, self.done.values())) + sum(each.rows.num_rows for each in meant)
        if not self.counts and not self.request.bounds.dry_run:
            self._refuse_dear(meant)
        left = None if self.request.bounds.dry_run else self.request.commit_every
        self.is_cut = False
        found = []
        for each in meant:
            rows = each.rows.slice(0, left)
            self.is_cut |= rows.num_rows < each.rows.num_rows
            left = None if left is None else left - rows.num_rows
            found.append(replace(each, rows=rows))
        return found

    def _refuse_dear(self, meant: list[Selection]) -> None:
        if self.request.max_tokens is None:
            return
        sizes = 0
        for each in meant:
            found = self.request.store.answers(each.target.dimension).find(each.rows.column("key").combine_chunks())
            wanted = self._unanswered(each.rows.filter(pa.array(found < 0)))
            sizes += pc.sum(wanted.column("size")).as_py() or 0
        refuse_dear(sizes, self.request.max_tokens)

    def _with_answers(self, selection: Selection, is_first: bool) -> PlannedProperty:
        """Asks what no answer is stored for."""
        keys, dimension = selection.rows.column("key").combine_chunks(), selection.target.dimension
        answers = self.request.store.answers(dimension)
        found = answers.find(keys)
        wanted = self._unanswered(selection.rows.filter(pa.array(found < 0)))
        if is_first or selection.target.name not in self.counts:  # a change of the schema brings properties
            self._count(selection, wanted)
        if wanted.num_rows and not self.request.bounds.dry_run:
            with self.clock.phase("ask"):
                self._ask(selection, wanted)
            answers = self.request.store.answers(dimension)
            found = answers.find(keys)
            self._refuse_lost(pc.filter(keys, pa.array(found < 0)))
        return PlannedProperty(selection, answers, found)

    def _refuse_lost(self, keys: pa.Array) -> None:
        """StorageError for answers that are not there any more: unless too many failed, every text was asked."""
        lost = len(set(keys.to_pylist()) - self.failures.keys())
        if lost and len(self.failures) <= self.request.bounds.most(self.meant):
            raise StorageError(
                f"storage: {lost:,} answers are gone from the cache {self.request.store.root} while others were asked "
                "for: somebody removed it, or part of it; run it again"
            )

    def _unanswered(self, rows: pa.Table) -> pa.Table:
        """One row of each text that is to be asked, in their order."""
        if rows.column("key").null_count:
            return rows.slice(0, 0)
        if self.failures:
            failed = pa.array(list(self.failures), pa.string())
            rows = rows.filter(pc.invert(pc.is_in(rows.column("key"), value_set=failed)))
        first = first_of_each(rows.column("key").combine_chunks())
        return rows if len(first) == rows.num_rows else rows.take(pa.array(first))

    def _count(self, selection: Selection, wanted: pa.Table) -> None:
        name = selection.target.name
        first = PropertyCounts(selection.total, selection.missing, selection.stale, selection.blank)
        known = self.counts.get(name, first)
        keys = selection.rows.column("key").drop_null().unique()
        if self.request.commit_every is not None:
            before = self.texts.get(name, NO_IDS)
            keys = keys.filter(pc.invert(pc.is_in(keys, value_set=before)))
            self.texts[name] = pa.concat_arrays([before, keys])
        distinct = len(keys)
        size = known.bytes + (pc.sum(wanted.column("size")).as_py() or 0)
        counts = replace(
            known, distinct=known.distinct + distinct, cached=known.cached + distinct - wanted.num_rows, bytes=size
        )
        self.counts[name] = estimated(counts, self.request.provider) if self.request.bounds.dry_run else counts

    def _ask(self, selection: Selection, wanted: pa.Table) -> None:
        request, executor = self.request, self.request.executor
        lanes = min(executor.parallelism, request.most_tasks)
        turns_each = -(-wanted.num_rows // (lanes * QUESTION_TEXTS))
        parts = _parts(wanted, -(-wanted.num_rows // (lanes * turns_each)))
        questions = [AskPart(np.asarray(part.column("row")), part.column("key").combine_chunks()) for part in parts]
        tasks = min(lanes, len(questions))
        if tasks not in self.embedders:
            self.embedders[tasks] = request.embedder(tasks)
        asking = Asking(
            self.embedders[tasks],
            selection.target.dimension,
            request.store,
            max(1, request.texts_at_once // tasks),
            None if request.every_texts is None else max(1, request.every_texts // tasks),
            request.every_seconds,
        )
        context = AskContext(asking, selection.target, selection.table, request.bounds.most(self.meant))
        # Where there are more slots than requests may be under way, only so many questions are handed out at once.
        turns = len(questions) if lanes == executor.parallelism else lanes
        for first in range(0, len(questions), turns):
            for part in executor.map(partial(ask, context), questions[first : first + turns]):
                self.failures.update(part.failures)
                name = selection.target.name
                self.counts[name] += took(part.texts, part.usage)


def _parts(wanted: pa.Table, most: int) -> list[pa.Table]:
    """Texts for a task each: so many at most, and so many bytes unless one alone has more."""
    sizes = np.asarray(wanted.column("size")).cumsum()
    parts, first = [], 0
    while first < len(sizes):
        before = sizes[first - 1] if first else 0
        last = int(np.searchsorted(sizes, before + QUESTION_BYTES, side="right"))
        last = min(max(last, first + 1), first + most)
        parts.append(wanted.slice(first, last - first))
        first = last
    return parts
