"""Queries with other costs than the usual ones, and what of a query Lance decides."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.engine.pushdown import Pushed, ask
from spark_omnigraph.engine.result import QueryResult
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.read.query import bound_plan, prepare, run_query
from spark_omnigraph.lang.gq.plan import Predicate


def answer(graph: Graph, text: str, costs: Costs) -> QueryResult:
    """The rows of a query on the newest state of main."""
    plan = bound_plan(prepare(graph.catalog(), text), None)
    return run_query(graph.store, graph.catalog(), graph.snapshot(), plan, costs)


def push(predicates: Iterable[Predicate], stored: Collection[str], text_key: str | None = None) -> Pushed:
    """What Lance can decide of several predicates of one variable."""
    return Pushed.of(ask(predicate, stored, text_key) for predicate in predicates)
