"""Asks one question of the engine in all its forms and of the oracle, and shows where they differ."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from spark_omnigraph.answer import json_values
from spark_omnigraph.engine.costs import Costs, Strategy
from spark_omnigraph.errors import OmnigraphError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.read.query import bound_plan, prepare, query_task, run_query
from spark_omnigraph.lang.gq.check.read_query import check_read
from spark_omnigraph.lang.gq.needs import leading_scan
from spark_omnigraph.lang.gq.plan import Plan
from spark_omnigraph.lang.gq.syntax.parser import parse_queries, pick_query
from spark_omnigraph.manifest.snapshot import Snapshot
from tests.differential.questions import Question
from tests.differential.worlds import NOW, State, World
from tests.oracle.answer import Answer, answer
from tests.oracle.evaluate import NOW_NAME, AmbiguousError
from tests.oracle.values import Stored

NOW_STORED = round(NOW.timestamp() * 1000)
Table = tuple[list[str], list[tuple[Stored, ...]]]


@dataclass(frozen=True)
class Mismatch:
    """A question that was answered wrongly."""

    state: State
    form: str
    question: Question
    expected: Answer
    got: Table | str

    def shown(self, schema: str) -> str:
        rows = {**self.state.rows.nodes, **self.state.rows.edges}
        lines = [json.dumps([name, key, row], default=str) for name, of in rows.items() for key, row in of.items()]
        return "\n".join(
            [
                f"{self.form}, {self.state.name}:",
                schema,
                *lines,
                self.question.text,
                json.dumps(self.question.given),
                f"expected {self.expected}",
                f"got      {self.got}",
            ]
        )


@dataclass(frozen=True)
class Form:
    """One way in which the engine can answer: over which graph, how it walks, and how it finds rows."""

    name: str
    graph: Graph
    snapshot: Snapshot
    costs: Costs

    def table(self, world: World, plan: Plan) -> pa.Table:
        return run_query(self.graph.store, world.catalog, self.snapshot, plan, self.costs).table


@dataclass(frozen=True)
class InShares:
    """Answers a share of the leading scan at a time, where the plan has one."""

    name: str
    graph: Graph
    snapshot: Snapshot

    def table(self, world: World, plan: Plan) -> pa.Table:
        task = query_task(self.graph.store, world.catalog, self.snapshot, plan)
        cuts = (0, 2, 3, 1 << 40) if leading_scan(plan.root) is not None else ()
        return pa.concat_tables([task.run(share) for share in itertools.pairwise(cuts)] or [task.run()])


IN_MEMORY = Costs()
"""Small tables are looked at in memory by themselves."""
BY_SCAN = Costs(column_share=1 << 50)
"""No column fits."""
BY_INDEX = Costs(key_rows=-1, index_share=0, index_rows=1, first_asked=1 << 30)
"""Those of Lance, and none of texts in memory."""


def forms(world: World, state: State) -> Iterator[Way]:
    """Every way in which the engine can answer."""
    ways = (
        ("plain", Strategy.ADJACENCY, "in memory", IN_MEMORY),
        ("plain", Strategy.LOOKUP, "by scan", BY_SCAN),
        ("indexed", Strategy.ADJACENCY, "by index", BY_INDEX),
        ("indexed", Strategy.LOOKUP, "in memory", IN_MEMORY),
    )
    for kind, strategy, name, costs in ways:
        graph, snapshot = (world.indexed, state.indexed) if kind == "indexed" else (world.plain, state.plain)
        yield Form(f"{kind}, {strategy}, {name}", graph, snapshot, replace(costs, walks=strategy))
    yield InShares("plain, in shares", world.plain, state.plain)


def expected(world: World, state: State, question: Question) -> Answer | None:
    """The oracle's answer; None where the rules leave it open."""
    query = pick_query(parse_queries(question.text), None)
    check_read(world.catalog, query)
    try:
        return answer(world.catalog, state.rows, query, {**question.stored, NOW_NAME: NOW_STORED})
    except AmbiguousError:
        return None


class Way(Protocol):
    """Something that answers plans."""

    @property
    def name(self) -> str: ...

    def table(self, world: World, plan: Plan) -> pa.Table:
        """The rows of a plan."""


Ways = Callable[[World, State], Iterable[Way]]


def first_mismatch(world: World, state: State, question: Question, ways: Ways = forms) -> Mismatch | None:
    """The first form that answers differently from the oracle."""
    wanted = expected(world, state, question)
    if wanted is None:
        return None
    plan = bound_plan(prepare(world.catalog, question.text), question.given, NOW)
    for form in ways(world, state):
        try:
            found = form.table(world, plan)
        except OmnigraphError as error:
            return Mismatch(state, form.name, question, wanted, f"{type(error).__name__}: {error}")
        columns = [json_values(column) for column in found.columns]
        rows = [tuple(map(_frozen, row)) for row in zip(*columns, strict=True)]
        if not agrees(wanted, found.column_names, rows):
            return Mismatch(state, form.name, question, wanted, (found.column_names, rows))
    return None


def minimal(world: World, mismatch: Mismatch, ways: Ways = forms) -> Mismatch:
    """The same mistake with as few parts of the question as possible."""
    for smaller in mismatch.question.smaller():
        try:
            found = first_mismatch(world, mismatch.state, smaller, ways)
        except OmnigraphError:
            continue  # without this part it is no query any more
        if found is not None:
            return minimal(world, found, ways)
    return mismatch


def agrees(wanted: Answer, columns: list[str], rows: list[tuple[Stored, ...]]) -> bool:
    """Whether rows are those of the oracle, in its order where there is one."""
    ours, theirs = [_rounded(row) for row in rows], [_rounded(row) for row in wanted.rows]
    if columns != wanted.columns:
        return False
    if wanted.ordered:
        return ours == theirs
    if wanted.limit is None:
        return Counter(ours) == Counter(theirs)
    return len(ours) == min(wanted.limit, len(theirs)) and not Counter(ours) - Counter(theirs)


def _frozen(value: Stored) -> Stored:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _rounded(row: tuple[Stored, ...]) -> tuple[Stored, ...]:
    """Rows whose kinds count, and whose sums may have been added in any order."""
    return tuple(
        ("float", _shortened(v))  # a literal is a float that knows its digits
        if isinstance(v, float)
        else (type(v).__name__, _rounded(v) if isinstance(v, tuple) else v)
        for v in row
    )


def _shortened(value: float) -> float:
    return float(f"{value:.12g}") + 0.0 if math.isfinite(value) else value
