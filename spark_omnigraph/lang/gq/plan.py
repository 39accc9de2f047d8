"""What a read query asks, as a tree of typed operators that no engine owns.

An operator yields rows; a row holds a value for each column of each bound variable. Rows are never made distinct unless
an operator says so. A plan knows the catalog but no snapshot, and after `bind` no parameters: what is left are columns,
constants, and scores. The operators' meaning is written here so that two engines can agree on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_omnigraph.catalog.types import PropType
from spark_omnigraph.words import TextEnum

Value = str | int | float | bool | None | tuple["Value", ...]
"""A literal or a parameter: lists and vectors are tuples, a Date counts days and a DateTime milliseconds since
the epoch (as they are stored), a Blob is text."""

IDENTITY = "id"
"""Column of every variable besides its properties. Edge variables have `src` and `dst` too."""


# ---------------------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Column:
    """A property of a bound variable, or its `id` (for edge variables also `src` and `dst`)."""

    variable: str
    name: str
    type: PropType


@dataclass(frozen=True, slots=True)
class Constant:
    """A value known before the query runs; `type` is that of the literal or of the declared parameter."""

    value: Value
    type: PropType


@dataclass(frozen=True, slots=True)
class Parameter:
    """Stands for a declared parameter until `bind` puts its value in. `now()` is a parameter of type DateTime."""

    name: str
    type: PropType


Operand = Column | Constant | Parameter


@dataclass(frozen=True, slots=True)
class Nearest:
    """Squared Euclidean distance between a stored vector and the query, null for a null vector. Smaller is better.

    `query` is a vector, or, until the plan is bound, a text that stands for one; `model` is the one that stored vectors
    were made with, where the schema says it.
    """

    column: Column
    query: Operand
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Bm25:
    """Full-text score of a column for a query; null where nothing matches. Larger is better."""

    column: Column
    query: Operand


class TextForm(TextEnum):
    """`match_text` means the same as `search`; `fuzzy` allows edits."""

    SEARCH = "search"
    MATCH_TEXT = "match_text"
    FUZZY = "fuzzy"


@dataclass(frozen=True, slots=True)
class TextMatch:
    """True where a text has any token of the query (for `fuzzy`: within `max_edits`); null text never matches."""

    form: TextForm
    column: Column
    query: Operand
    max_edits: Operand | None = None


@dataclass(frozen=True, slots=True)
class Fuse:
    """Reciprocal rank fusion: the sum over two rankings of 1 / (k + place + 1), places from 0. Larger is better.

    An arm's ranking lists each id of its variable once, at its first appearance; `nearest` arms rank `limit` rows.
    """

    primary: Nearest | Bm25
    secondary: Nearest | Bm25
    k: Operand


Ranking = Nearest | Bm25 | Fuse


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a search as a value of type F64. A `TextMatch` has the score that `Bm25` gives its query."""

    of: Ranking | TextMatch


Expression = Column | Constant | Parameter | Score


class Comparator(TextEnum):
    """How two operands are compared. Null on either side is never true, for every comparator."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    HAS_ITEM = "has item"
    """Left is a list, right an item; null items never match."""
    HAS_TEXT = "has text"
    """Left contains right as a substring, exact and case-sensitive."""
    STARTS_WITH = "starts_with"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares without loss: integers and floats by value, strings by UTF-8 bytes, false < true."""

    comparator: Comparator
    left: Operand
    right: Operand


Predicate = Comparison | TextMatch


# ------------------------------------------------------------------------------------------------------------ operators


class Direction(TextEnum):
    """From the expanded variable: along the edge, against it, or either way (edges between equal types only)."""

    OUT = "out"
    IN = "in"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Scan:
    """All nodes of a type that satisfy every predicate; predicates concern this variable alone."""

    variable: str
    node_type: str
    predicates: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True)
class OuterRows:
    """Inside an anti-join: the rows whose survival is being decided."""


@dataclass(frozen=True, slots=True)
class Cross:
    """Every pair of a left and a right row, left-major."""

    left: Operator
    right: Operator


@dataclass(frozen=True, slots=True)
class Hops:
    """A walk over one edge type: breadth-first from the source, each node once, at its first hop if that is in bounds.

    A node already met is not walked to again, with one exception: when a node is walked from, its own stored self-loop
    reaches it at that hop (so a source can reach itself), and nothing is walked on from there. A node is emitted once.
    Edges between different types cannot chain: the walk stops after one hop. With `edge_variable` (one hop only)
    every stored edge counts, so parallel edges give several rows.
    """

    edge_type: str
    direction: Direction
    min_hops: int = 1
    max_hops: int = 1
    edge_variable: str | None = None


@dataclass(frozen=True, slots=True)
class Expand:
    """For each row, a row for every node that the walk from `source` reaches, that is stored, and that satisfies all
    predicates (they concern `target` alone). Rows without any are dropped.

    `anonymous`: nothing refers to the target; it still multiplies rows.
    """

    input: Operator
    source: str
    target: str
    target_type: str
    hops: Hops
    predicates: tuple[Predicate, ...] = ()
    anonymous: bool = False


@dataclass(frozen=True, slots=True)
class Connect:
    """Keeps rows whose two bound variables the walk connects, once each; with an edge variable, once for each edge."""

    input: Operator
    source: str
    target: str
    hops: Hops


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps rows that satisfy every predicate."""

    input: Operator
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Keeps the rows of `input` for which `inner` yields nothing; `OuterRows` in it stands for that row."""

    input: Operator
    inner: Operator


@dataclass(frozen=True, slots=True)
class Rank:
    """Keeps rows that have a score, best first, and of them `limit`.

    Everything below counts first: filters, walks and negations narrow the candidates, then the best are taken. Equal
    scores are ordered by `ties`, then by the ids of all variables, in order of their names. A `Fuse` keeps one row for
    each id of the primary arm's variable: the first of the primary arm's result, else of the secondary's; equal scores
    keep the order of the primary arm, then of the secondary.
    """

    input: Operator
    by: Ranking
    limit: int | None
    ties: tuple[SortKey, ...] = ()


@dataclass(frozen=True, slots=True)
class SortKey:
    """Nulls are smallest."""

    by: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Sort:
    """Orders rows by the keys, then by the ids of all variables, in order of their names: a total order."""

    input: Operator
    keys: tuple[SortKey, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """The first `count` rows."""

    input: Operator
    count: int


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the result; a bare variable is its `Column` named `id`."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Project:
    """The result's columns, in order; names may repeat."""

    input: Operator
    columns: tuple[Output, ...]


class AggregateFunction(TextEnum):
    """Nulls are skipped. `count` is I64 and 0 for nothing; `sum` and `avg` are F64, `min` and `max` of their argument's
    type, all four null for nothing. Sums of integers are exact and rounded once, an average is such a sum divided; sums
    of floats are within rounding, since they may be added in any order.
    """

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Aggregated:
    """A column of the result that summarises a group; `count` of a variable counts its `id`."""

    name: str
    function: AggregateFunction
    argument: Column
    type: PropType


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row for each combination of the `Output` columns (null is a group of its own); without any, one row."""

    input: Operator
    columns: tuple[Output | Aggregated, ...]


@dataclass(frozen=True, slots=True)
class ResultKey:
    """A sort key that is a column of the result, by its place."""

    place: int
    descending: bool = False


@dataclass(frozen=True, slots=True)
class SortResult:
    """Orders the rows of an aggregate by the keys, nulls smallest, then by all its other columns from the left: a total
    order.
    """

    input: Aggregate
    keys: tuple[ResultKey, ...]


Operator = (
    Scan
    | OuterRows
    | Cross
    | Expand
    | Connect
    | Filter
    | AntiJoin
    | Rank
    | Sort
    | Limit
    | Project
    | Aggregate
    | SortResult
)


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """Name and type of a column of the result."""

    name: str
    type: PropType


@dataclass(frozen=True, slots=True)
class Plan:
    """A read query: its root yields the result's columns.

    Shape: `Project [Limit] [Sort] rows`, `Project Rank rows`, or `[Limit] [SortResult] Aggregate rows`, where rows are
    made of the other operators.
    """

    query: str
    root: Operator
    columns: tuple[ResultColumn, ...]
