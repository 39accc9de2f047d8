"""A read query that fits its schema: every name is resolved, every value has a type, clauses keep their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_omnigraph.catalog.types import EdgeType, PropType, Scalar
from spark_omnigraph.lang.gq.plan import (
    AggregateFunction,
    Column,
    Direction,
    Expression,
    Predicate,
    Ranking,
    ResultKey,
    SortKey,
)

NOW = "__nanograph_now"
"""Parameter behind `now()`: one instant a query."""

STRING = PropType(Scalar.STRING)
ANONYMOUS_PREFIX = "?"
"""Begins the names given to `$_`; no variable of the language can have it."""


@dataclass(frozen=True, slots=True)
class TypedBinding:
    """A variable is of a node type and satisfies predicates."""

    variable: str
    node_type: str
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class TypedWalk:
    """A traversal; `direction` is seen from `left`, whose and whose other end's node types are known."""

    left: str
    left_type: str
    right: str
    right_type: str
    edge: EdgeType
    direction: Direction
    min_hops: int
    max_hops: int
    edge_variable: str | None


@dataclass(frozen=True, slots=True)
class TypedFilter:
    """A predicate that stands alone."""

    predicate: Predicate


@dataclass(frozen=True, slots=True)
class TypedNegation:
    """No row of the clauses may exist."""

    clauses: tuple[TypedClause, ...]


TypedClause = TypedBinding | TypedWalk | TypedFilter | TypedNegation


@dataclass(frozen=True, slots=True)
class Summary:
    """An aggregate of a returned column."""

    function: AggregateFunction
    argument: Column


@dataclass(frozen=True, slots=True)
class TypedItem:
    """A column of the result."""

    name: str
    value: Expression | Summary
    type: PropType


@dataclass(frozen=True, slots=True)
class TypedRead:
    """A checked read query. `rank` excludes `order`; `ties` break its equal scores; aggregates have `result_order`."""

    name: str
    params: Mapping[str, PropType]
    clauses: tuple[TypedClause, ...]
    items: tuple[TypedItem, ...]
    rank: Ranking | None
    order: tuple[SortKey, ...]
    result_order: tuple[ResultKey, ...]
    limit: int | None

    @property
    def has_aggregates(self) -> bool:
        return any(isinstance(item.value, Summary) for item in self.items)
