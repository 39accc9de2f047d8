"""What the operators of a plan need of the rows below them: variables, columns, distances, and how many rows come."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, EntityType
from spark_omnigraph.lang.gq.lower import operators
from spark_omnigraph.lang.gq.plan import (
    IDENTITY,
    AntiJoin,
    Column,
    Comparator,
    Comparison,
    Connect,
    Constant,
    Cross,
    Expand,
    Expression,
    Filter,
    Fuse,
    Nearest,
    Operator,
    OuterRows,
    Predicate,
    Project,
    Ranking,
    Scan,
    Score,
    TextMatch,
)

MANY = 1 << 62
"""Rows of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Columns of variables, besides their ids, and distances of their vectors."""

    columns: frozenset[tuple[str, str]] = frozenset()
    distances: frozenset[Nearest] = frozenset()

    def __or__(self, other: Needs) -> Needs:
        return Needs(self.columns | other.columns, self.distances | other.distances)

    def of(self, variable: str) -> tuple[list[str], list[Nearest]]:
        """Columns and distances of one variable, in a fixed order."""
        columns = sorted(name for owner, name in self.columns if owner == variable)
        return columns, sorted((d for d in self.distances if d.column.variable == variable), key=repr)


def needs_of(parts: Iterable[Expression | Predicate | Ranking | TextMatch]) -> Needs:
    """What some expressions are made of."""
    found = Needs()
    for part in parts:
        found |= _needs(part)
    return found


def _needs(part: Expression | Predicate | Ranking | TextMatch) -> Needs:
    if isinstance(part, Column):
        return Needs(frozenset({(part.variable, part.name)}) if part.name != IDENTITY else frozenset())
    if isinstance(part, Comparison):
        return needs_of((part.left, part.right))
    if isinstance(part, Score):
        return _needs(part.of)
    if isinstance(part, Fuse):
        return needs_of((part.primary, part.secondary))
    return Needs(distances=frozenset({part})) if isinstance(part, Nearest) else Needs()


def predicates_of(root: Operator) -> list[Predicate]:
    """Every predicate of some operators."""
    return [p for each in operators(root) for p in getattr(each, "predicates", ())]


def named_in(root: Operator) -> frozenset[str]:
    """Variables that operators name: those that they bind, walk from or to, and compare."""
    names: set[str] = set()
    for operator in operators(root):
        if isinstance(operator, Scan):
            names.add(operator.variable)
        elif isinstance(operator, Expand | Connect):
            edge = operator.hops.edge_variable
            names.update((operator.source, operator.target), () if edge is None else (edge,))
    for predicate in predicates_of(root):
        sides = (predicate.column,) if isinstance(predicate, TextMatch) else (predicate.left, predicate.right)
        names.update(side.variable for side in sides if isinstance(side, Column))
    return frozenset(names)


def walks_far(root: Operator) -> bool:
    """Whether any walk of several hops is among operators."""
    return any(isinstance(each, Expand | Connect) and each.hops.max_hops > 1 for each in operators(root))


def leading_scan(root: Operator) -> Scan | None:
    """The scan on which all rows of a plan begin, where each row goes its way by itself, so that a part of the scan
    gives a part of the rows; None where rows are ordered, counted, or chosen among each other.
    """
    if not isinstance(root, Project) or any(isinstance(c.value, Score) and _is_fused(c.value) for c in root.columns):
        return None
    return first_scan(root.input)


def first_scan(rows: Operator) -> Scan | None:
    """The scan on which the rows of a pattern begin, at its left."""
    while not isinstance(rows, Scan):
        if isinstance(rows, Cross):
            rows = rows.left
        elif isinstance(rows, Expand | Connect | Filter | AntiJoin):
            rows = rows.input
        else:
            return None
    return rows


def _is_fused(score: Score) -> bool:
    return isinstance(score.of, Fuse)


def is_lookup(entity: EntityType, predicates: Iterable[Predicate]) -> bool:
    """Whether predicates give the id of the only row that there can be, or its whole key."""
    given: set[str] = set()
    for each in predicates:
        if isinstance(each, Comparison) and each.comparator is Comparator.EQUAL:
            sides = each.left, each.right
            if any(isinstance(side, Constant) for side in sides):
                given.update(side.name for side in sides if isinstance(side, Column))
    key = entity.key
    return IDENTITY in given or (key is not None and bool(key) and given.issuperset(key))


def most_rows(root: Operator, catalog: Catalog, stored: Callable[[TableKey], int], outer: int = MANY) -> int:
    """A bound of the rows of an operator, as far as the numbers of stored rows say it; `outer` is that of the rows that
    `OuterRows` stands for.
    """
    if isinstance(root, Scan):
        key = TableKey.node(root.node_type)
        return min(1, stored(key)) if is_lookup(catalog.require(key), root.predicates) else stored(key)
    if isinstance(root, Cross):
        left, right = (most_rows(side, catalog, stored, outer) for side in (root.left, root.right))
        return min(MANY, left * right)
    if isinstance(root, Connect | Filter | AntiJoin):
        return most_rows(root.input, catalog, stored, outer)
    return outer if isinstance(root, OuterRows) else MANY
