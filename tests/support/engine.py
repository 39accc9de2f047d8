"""Queries with other costs than the usual ones."""

from __future__ import annotations

from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.engine.result import QueryResult
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.read.query import bound_plan, prepare, run_query


def answer(graph: Graph, text: str, costs: Costs) -> QueryResult:
    """The rows of a query on the newest state of main."""
    plan = bound_plan(prepare(graph.catalog(), text), None)
    return run_query(graph.store, graph.catalog(), graph.snapshot(), plan, costs)
