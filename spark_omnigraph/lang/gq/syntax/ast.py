"""Syntax tree of a query text. Every part knows its place, so that any rule can point at what breaks it."""

from __future__ import annotations

from dataclasses import dataclass

from spark_omnigraph.catalog.types import PropType
from spark_omnigraph.lang.gq.plan import AggregateFunction, Comparator, TextForm, Value
from spark_omnigraph.lang.source import Name, Region, SourceText

ANONYMOUS = "_"
"""Name of the variable `$_`, which binds nothing."""


# ---------------------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Literal:
    """A scalar literal; Date and DateTime keep their text, which is read when the query is checked."""

    value: Value
    type: PropType
    region: Region


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, b]`; a nested list is refused by the type check."""

    items: tuple[Literal | ListLiteral, ...]
    region: Region


@dataclass(frozen=True, slots=True)
class Variable:
    """`$x`: a bound variable or a parameter; `name` is without the `$`."""

    name: Name


@dataclass(frozen=True, slots=True)
class PropertyAccess:
    """`$x.p`."""

    variable: Name
    property: Name


@dataclass(frozen=True, slots=True)
class AliasReference:
    """A bare word: the alias of a returned column."""

    name: Name


@dataclass(frozen=True, slots=True)
class NowCall:
    """`now()`."""

    region: Region


@dataclass(frozen=True, slots=True)
class NearestCall:
    """`nearest($x.p, query)`."""

    target: PropertyAccess
    query: Expr
    region: Region


@dataclass(frozen=True, slots=True)
class TextCall:
    """`search(field, query)`, `match_text(field, query)`, `fuzzy(field, query[, max_edits])`."""

    form: TextForm
    field: Expr
    query: Expr
    max_edits: Expr | None
    region: Region


@dataclass(frozen=True, slots=True)
class Bm25Call:
    """`bm25(field, query)`."""

    field: Expr
    query: Expr
    region: Region


@dataclass(frozen=True, slots=True)
class RrfCall:
    """`rrf(ranking, ranking[, k])`."""

    primary: NearestCall | Bm25Call
    secondary: NearestCall | Bm25Call
    k: Expr | None
    region: Region


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """`count(x)`, `sum(x)`, `avg(x)`, `min(x)`, `max(x)`."""

    function: AggregateFunction
    argument: Expr
    region: Region


Assigned = Literal | ListLiteral | Variable | NowCall
Expr = (
    Literal
    | ListLiteral
    | Variable
    | PropertyAccess
    | AliasReference
    | NowCall
    | NearestCall
    | TextCall
    | Bm25Call
    | RrfCall
    | AggregateCall
)


def region_of(part: Expr) -> Region:
    """Where an expression stands."""
    if isinstance(part, Variable | AliasReference):
        return part.name.region
    if isinstance(part, PropertyAccess):
        return part.variable.region.to(part.property.region)
    return part.region


# -------------------------------------------------------------------------------------------------------------- clauses


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`name: value` inside the braces of a binding, or an assignment of a mutation."""

    name: Name
    value: Assigned


@dataclass(frozen=True, slots=True)
class Binding:
    """`$x: Type { p: value }`."""

    variable: Name
    type_name: Name
    matches: tuple[PropertyMatch, ...]


@dataclass(frozen=True, slots=True)
class Bounds:
    """`{min,max}`; `max` None is unbounded (and refused by the type check)."""

    min: int
    max: int | None
    region: Region


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$a edge $b`, `$a edge{1,3} $b`, `$a <edge> $b`, `$a $w:edge $b`."""

    left: Name
    edge: Name
    right: Name
    bounds: Bounds | None
    undirected: bool
    edge_variable: Name | None


@dataclass(frozen=True, slots=True)
class FilterClause:
    """`left operator right`; `comparator` is HAS_ITEM for the word `contains`, whose meaning the type check decides."""

    left: Expr
    comparator: Comparator
    right: Expr


@dataclass(frozen=True, slots=True)
class TextClause:
    """A text search that stands alone."""

    call: TextCall


@dataclass(frozen=True, slots=True)
class Negation:
    """`not { … }`."""

    clauses: tuple[Clause, ...]
    region: Region


Clause = Binding | Traversal | FilterClause | TextClause | Negation


# -------------------------------------------------------------------------------------------------------------- queries


@dataclass(frozen=True, slots=True)
class Item:
    """One returned expression with its alias."""

    value: Expr
    alias: Name | None


@dataclass(frozen=True, slots=True)
class Ordering:
    """One sort key."""

    by: Expr
    descending: bool


@dataclass(frozen=True, slots=True)
class Read:
    """`match { … } return { … } order { … } limit n`."""

    match: tuple[Clause, ...]
    returns: tuple[Item, ...]
    order: tuple[Ordering, ...]
    limit: int | None


@dataclass(frozen=True, slots=True)
class WhereClause:
    """`property operator value` of an update or a delete."""

    property: Name
    comparator: Comparator
    value: Assigned


@dataclass(frozen=True, slots=True)
class Insert:
    """`insert Type { p: value }`."""

    type_name: Name
    assignments: tuple[PropertyMatch, ...]


@dataclass(frozen=True, slots=True)
class Update:
    """`update Type set { p: value } where …`."""

    type_name: Name
    assignments: tuple[PropertyMatch, ...]
    where: WhereClause


@dataclass(frozen=True, slots=True)
class Delete:
    """`delete Type where …`."""

    type_name: Name
    where: WhereClause


Statement = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class Param:
    """`$name: Type`."""

    name: Name
    type: PropType


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a text: a read, or the statements of a mutation."""

    source: SourceText
    name: Name
    params: tuple[Param, ...]
    description: str | None
    instruction: str | None
    body: Read | tuple[Statement, ...]

    @property
    def is_mutation(self) -> bool:
        return isinstance(self.body, tuple)


@dataclass(frozen=True, slots=True)
class QueryFile:
    """All queries of a text, in order."""

    source: SourceText
    queries: tuple[Query, ...]
