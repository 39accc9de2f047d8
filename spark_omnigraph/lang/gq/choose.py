"""Which of the two engines answers a query whose caller leaves it open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.lang.gq.needs import MANY, first_scan, most_rows
from spark_omnigraph.lang.gq.plan import AntiJoin, Connect, Cross, Expand, Operator, Plan, Project, Sort
from spark_omnigraph.words import TextEnum, counted

Stored = Callable[[TableKey], int]
"""Numbers of stored rows."""

LARGE_ANSWER = 5_000_000
"""Rows of the scan on which an answer begins, above which its rows are better made by many tasks."""
FEW_STARTS = 10_000
"""Rows from which a walk looks its edges up, or soon could."""
MANY_EDGES = 50_000_000
"""Edges whose index takes some 4 GB while the embedded engine makes it, in each worker that walks them."""


class Engine(TextEnum):
    """Who finds the rows of a read query."""

    EMBEDDED = "embedded"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine, and why it is taken."""

    engine: Engine
    reason: str

    def __str__(self) -> str:
        return f"{self.engine}, since {self.reason}"


def choose(plan: Plan, catalog: Catalog, stored: Stored) -> Choice:
    """By numbers of rows alone: the embedded engine, unless its index of the edges that are walked from many nodes
    may not fit into a worker, or the answer itself is large.
    """
    walked = {key: stored(key) for key in _walked(plan.root, catalog, stored, MANY)}
    edges = sum(walked.values())
    if edges > MANY_EDGES:
        names = ", ".join(sorted(key.type_name for key in walked))
        return Choice(Engine.SPARK, f"{edges:,} edges ({names}) are walked from many nodes")
    rows = _answer(plan.root, catalog, stored)
    if rows is not None and rows > LARGE_ANSWER:
        return Choice(Engine.SPARK, f"the answer begins with {rows:,} rows and is not limited")
    walks = "no edges are walked from many nodes"
    if walked:
        walks = f"{counted(edges, 'edge')} {'is' if edges == 1 else 'are'} walked from many nodes"
    begins = "the answer is limited or aggregated" if rows is None else f"the answer begins with {counted(rows, 'row')}"
    few = f"{walks}, and {begins}"
    return Choice(Engine.EMBEDDED, few)


def _answer(root: Operator, catalog: Catalog, stored: Stored) -> int | None:
    """Rows with which an answer begins that has all of them; None for one that is limited or aggregated."""
    if not isinstance(root, Project):
        return None
    rows = root.input.input if isinstance(root.input, Sort) else root.input
    scan = first_scan(rows)
    return None if scan is None else most_rows(scan, catalog, stored)


def _walked(root: Operator, catalog: Catalog, stored: Stored, outer: int) -> Iterator[TableKey]:
    """Edge types that are walked from more than a few rows."""
    if isinstance(root, Expand | Connect) and most_rows(root.input, catalog, stored, outer) > FEW_STARTS:
        yield TableKey.edge(root.hops.edge_type)
    if isinstance(root, Cross):
        yield from _walked(root.left, catalog, stored, outer)
        yield from _walked(root.right, catalog, stored, outer)
        return
    below = getattr(root, "input", None)
    if below is not None:
        yield from _walked(below, catalog, stored, outer)
    if isinstance(root, AntiJoin):
        yield from _walked(root.inner, catalog, stored, most_rows(root.input, catalog, stored, outer))
