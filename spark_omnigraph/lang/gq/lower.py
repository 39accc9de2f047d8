"""A checked read query → its plan.

In each part of the pattern that walks hold together, one binding is scanned and everything else is reached from it;
what concerns one variable alone is asked where that variable appears. Nothing that was written is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.errors import InternalError
from spark_omnigraph.lang.gq.check.typed import (
    ANONYMOUS_PREFIX,
    Summary,
    TypedBinding,
    TypedClause,
    TypedFilter,
    TypedItem,
    TypedNegation,
    TypedRead,
    TypedWalk,
)
from spark_omnigraph.lang.gq.plan import (
    Aggregate,
    Aggregated,
    AntiJoin,
    Column,
    Comparator,
    Comparison,
    Connect,
    Cross,
    Direction,
    Expand,
    Filter,
    Hops,
    Limit,
    Operator,
    OuterRows,
    Output,
    Plan,
    Predicate,
    Project,
    Rank,
    ResultColumn,
    Scan,
    Sort,
    SortResult,
    TextMatch,
)
from spark_omnigraph.lang.gq.report import request_error

_REVERSED = {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT, Direction.BOTH: Direction.BOTH}


def lower(catalog: Catalog, read: TypedRead) -> Plan:
    """The plan of a read query, with its parameters. BadRequestError when a traversal hangs on no binding."""
    rows = _block(catalog, read.clauses, None, frozenset())
    columns = tuple(ResultColumn(item.name, item.type) for item in read.items)
    return Plan(read.name, _result(read, rows), columns)


def _result(read: TypedRead, rows: Operator) -> Operator:
    if read.has_aggregates:
        groups = Aggregate(rows, tuple(_aggregated(item) for item in read.items))
        ordered: Operator = SortResult(groups, read.result_order) if read.result_order else groups
        return ordered if read.limit is None else Limit(ordered, read.limit)
    if read.rank is not None:
        return Project(Rank(rows, read.rank, read.limit, read.order), tuple(map(_output, read.items)))
    if read.order:
        rows = Sort(rows, read.order)
    if read.limit is not None:
        rows = Limit(rows, read.limit)
    return Project(rows, tuple(map(_output, read.items)))


def _output(item: TypedItem) -> Output:
    if isinstance(item.value, Summary):
        raise InternalError(f"'{item.name}' is an aggregate in a query without aggregates")
    return Output(item.name, item.value)


def _aggregated(item: TypedItem) -> Output | Aggregated:
    if isinstance(item.value, Summary):
        return Aggregated(item.name, item.value.function, item.value.argument, item.type)
    return Output(item.name, item.value)


@dataclass(slots=True)
class _Pattern:
    """The clauses of one block, by kind. `predicates` are those of one variable alone."""

    nodes: dict[str, str] = field(default_factory=dict)
    """Node types of bound variables, in the order of their first binding."""
    walks: list[TypedWalk] = field(default_factory=list)
    predicates: dict[str, list[Predicate]] = field(default_factory=dict)
    filters: list[Predicate] = field(default_factory=list)
    negations: list[TypedNegation] = field(default_factory=list)

    def take(self, variable: str) -> tuple[Predicate, ...]:
        """The predicates of a variable; whoever takes them asks them."""
        return tuple(self.predicates.pop(variable, ()))


def _block(catalog: Catalog, clauses: Iterable[TypedClause], start: Operator | None, outer: frozenset[str]) -> Operator:
    pattern = _sorted(clauses)
    rows = start
    bound = set(outer)
    if start is not None:
        rows = _walk_all(pattern, start, bound)
    for variable in _starts(catalog, pattern):
        if variable in bound:
            continue
        bound.add(variable)
        part = _walk_all(pattern, Scan(variable, pattern.nodes[variable], pattern.take(variable)), bound)
        rows = part if rows is None else Cross(rows, part)
    if rows is None or pattern.walks:
        raise request_error(_unbound(pattern))
    remaining = [p for found in pattern.predicates.values() for p in found] + pattern.filters
    if remaining:
        rows = Filter(rows, tuple(remaining))
    for negation in pattern.negations:
        rows = AntiJoin(rows, _block(catalog, negation.clauses, OuterRows(), frozenset(bound)))
    return rows


def _sorted(clauses: Iterable[TypedClause]) -> _Pattern:
    pattern = _Pattern()
    for clause in clauses:
        if isinstance(clause, TypedBinding):
            pattern.nodes.setdefault(clause.variable, clause.node_type)
            pattern.predicates.setdefault(clause.variable, []).extend(clause.predicates)
        elif isinstance(clause, TypedWalk):
            pattern.walks.append(clause)
        elif isinstance(clause, TypedFilter):
            names = _variables(clause.predicate)
            if len(names) == 1:
                pattern.predicates.setdefault(names.pop(), []).append(clause.predicate)
            else:
                pattern.filters.append(clause.predicate)
        else:
            pattern.negations.append(clause)
    return pattern


def _variables(predicate: Predicate) -> set[str]:
    if isinstance(predicate, TextMatch):
        return {predicate.column.variable}
    return {side.variable for side in (predicate.left, predicate.right) if isinstance(side, Column)}


def _starts(catalog: Catalog, pattern: _Pattern) -> list[str]:
    """Variables in the order in which they may be scanned: the first binding of each part, unless another is found by
    its key. Then the part is walked the other way, which gives the same rows only for single hops.
    """
    order = list(pattern.nodes)
    if any(walk.max_hops > 1 for walk in pattern.walks):
        return order
    return sorted(order, key=lambda v: not _by_key(catalog, pattern, v))


def _by_key(catalog: Catalog, pattern: _Pattern, variable: str) -> bool:
    key = catalog.nodes[pattern.nodes[variable]].key or ()
    given = {
        p.left.name
        for p in pattern.predicates.get(variable, ())
        if isinstance(p, Comparison)
        and p.comparator is Comparator.EQUAL
        and isinstance(p.left, Column)
        and not isinstance(p.right, Column)
    }
    return bool(key) and given.issuperset(key)


def _walk_all(pattern: _Pattern, rows: Operator, bound: set[str]) -> Operator:
    """Walks from what is bound until nothing more can be reached."""
    while True:
        ready = [w for w in pattern.walks if w.left in bound or w.right in bound]
        if not ready:
            return rows
        pattern.walks = [w for w in pattern.walks if w not in ready]
        for walk in ready:
            rows = _step(pattern, rows, walk, bound)


def _step(pattern: _Pattern, rows: Operator, walk: TypedWalk, bound: set[str]) -> Operator:
    forward = walk.left in bound
    hops = Hops(
        walk.edge.name,
        walk.direction if forward else _REVERSED[walk.direction],
        walk.min_hops,
        walk.max_hops,
        walk.edge_variable,
    )
    if walk.edge_variable is not None:
        bound.add(walk.edge_variable)
    if forward and walk.right in bound:
        return Connect(rows, walk.left, walk.right, hops)
    source, target, target_type = (
        (walk.left, walk.right, walk.right_type) if forward else (walk.right, walk.left, walk.left_type)
    )
    bound.add(target)
    anonymous = target.startswith(ANONYMOUS_PREFIX)
    return Expand(rows, source, target, target_type, hops, pattern.take(target), anonymous)


def _unbound(pattern: _Pattern) -> str:
    if not pattern.walks:
        return "a match block needs a binding, such as `$p: Person`"
    walk = pattern.walks[0]
    return (
        f"neither end of `${_shown(walk.left)} {walk.edge.name} ${_shown(walk.right)}` is bound: "
        f"bind one with its type, such as `${_shown(walk.left)}: {walk.left_type}`"
    )


def _shown(variable: str) -> str:
    return "_" if variable.startswith(ANONYMOUS_PREFIX) else variable


def operators(root: Operator) -> Sequence[Operator]:
    """All operators of a plan, an operator before its inputs."""
    found: list[Operator] = [root]
    for name in ("input", "left", "right", "inner"):
        child = getattr(root, name, None)
        if child is not None:
            found.extend(operators(child))
    return found
