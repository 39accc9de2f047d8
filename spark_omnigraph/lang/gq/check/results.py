"""Rules T8, T9, T17, T18, T21 and T24: what a query returns and in which order."""

from __future__ import annotations

from dataclasses import dataclass

from spark_omnigraph.catalog.types import EdgeType, PropType, Scalar
from spark_omnigraph.lang.gq.check.scope import BlockScope, constant, now
from spark_omnigraph.lang.gq.check.searches import ranking, text_match
from spark_omnigraph.lang.gq.check.typed import ANONYMOUS_PREFIX, NOW, Summary, TypedItem
from spark_omnigraph.lang.gq.plan import (
    AggregateFunction,
    Column,
    Expression,
    Fuse,
    Nearest,
    Ranking,
    ResultKey,
    Score,
    SortKey,
    TextMatch,
)
from spark_omnigraph.lang.gq.report import request_error
from spark_omnigraph.lang.gq.syntax.ast import (
    AggregateCall,
    AliasReference,
    Bm25Call,
    Expr,
    Item,
    ListLiteral,
    Literal,
    NearestCall,
    NowCall,
    Ordering,
    PropertyAccess,
    Read,
    RrfCall,
    TextCall,
    Variable,
    region_of,
)

_F64 = PropType(Scalar.F64, nullable=True)
_ROWS = (AggregateFunction.SUM, AggregateFunction.AVG)


@dataclass(frozen=True, slots=True)
class Results:
    """Columns and order of a query; `order` breaks ties of `rank` when there is one."""

    items: tuple[TypedItem, ...]
    rank: Ranking | None
    order: tuple[SortKey, ...]
    result_order: tuple[ResultKey, ...]


def check_results(scope: BlockScope, body: Read) -> Results:
    """The checked return, order and limit of a read query."""
    grouped = any(isinstance(item.value, AggregateCall) for item in body.returns)
    # A bare word among aggregates breaks T9, which says more than that it means nothing.
    known = [item for item in body.returns if not (grouped and isinstance(item.value, AliasReference))]
    items = tuple(_item(scope, item) for item in known)
    if grouped:
        _check_grouping(scope, body)
        keys = tuple(ResultKey(_place(scope, key, items, body), key.descending) for key in body.order)
        return Results(items, None, (), keys)
    first = _ranking(scope, body.order[0], body, items) if body.order else None
    if first is not None:
        _check_ranked(scope, body, first)
    rest = body.order[1:] if first is not None else body.order
    keys_before = tuple(SortKey(_sort_value(scope, key.by, body, items), key.descending) for key in rest)
    return Results(items, first, keys_before, ())


def _item(scope: BlockScope, item: Item) -> TypedItem:
    name, value, declared = _value(scope, item.value)
    return TypedItem(name if item.alias is None else item.alias.text, value, declared)


def _value(scope: BlockScope, part: Expr) -> tuple[str, Expression | Summary, PropType]:
    """Name without an alias, value and type of a returned expression."""
    if isinstance(part, PropertyAccess):
        column = _readable(scope, part)
        return f"{column.variable}.{column.name}", column, column.type
    if isinstance(part, Variable):
        return _variable(scope, part)
    if isinstance(part, Literal | ListLiteral):
        value = constant(scope, part)
        return "literal", value, value.type
    if isinstance(part, NowCall):
        return NOW, now(), now().type
    if isinstance(part, AggregateCall):
        return _aggregate(scope, part)
    if isinstance(part, AliasReference):
        message = f"`{part.name.text}` is neither a variable nor a literal; did you mean `${part.name.text}`?"
        raise scope.error(part.name.region, message)
    return _score(scope, part)


def _score(scope: BlockScope, part: NearestCall | Bm25Call | RrfCall | TextCall) -> tuple[str, Expression, PropType]:
    if isinstance(part, TextCall):
        return str(part.form), Score(text_match(scope, part)), _F64
    found = ranking(scope, part)
    name = "nearest" if isinstance(found, Nearest) else "rrf" if isinstance(found, Fuse) else "bm25"
    return name, Score(found), _F64


def _variable(scope: BlockScope, part: Variable) -> tuple[str, Expression, PropType]:
    name = part.name.text
    entity = scope.bound.get(name)
    if isinstance(entity, EdgeType):
        message = f"T23: `${name}` stands for an edge; return one of its properties: `${name}.property`"
        raise scope.error(part.name.region, message)
    if entity is not None:
        column = scope.identity(name)
        return name, column, column.type
    parameter = scope.parameter(name)
    if parameter is None:
        raise scope.unbound("", part.name, scope.params)
    if parameter.type.scalar is Scalar.BLOB:
        message = f"T24: blob parameter `${name}` cannot be projected, ordered or aggregated"
        raise scope.error(part.name.region, message)
    return name, parameter, parameter.type


def _readable(scope: BlockScope, part: PropertyAccess) -> Column:
    column = scope.column(part)
    if column.type.scalar is Scalar.BLOB:
        shown = f"{scope.bound[column.variable].name}.{column.name}"
        message = f"T24: blob property `{shown}` cannot be projected, ordered or aggregated; read it with the entity"
        raise scope.error(region_of(part), message)
    return column


def _aggregate(scope: BlockScope, part: AggregateCall) -> tuple[str, Summary, PropType]:
    name, argument, declared = _value(scope, part.argument)
    if not isinstance(argument, Column):
        message = f"T8: {part.function} needs a property or a variable"
        nodes = [name for name in scope.bound if scope.node(name) and not name.startswith(ANONYMOUS_PREFIX)]
        if part.function is AggregateFunction.COUNT and nodes:
            message += f", as in `count(${nodes[0]})`"
        raise scope.error(region_of(part.argument), message)
    if part.function is AggregateFunction.COUNT:
        return name, Summary(part.function, argument), PropType(Scalar.I64)
    is_node = isinstance(part.argument, Variable)
    shown = f"node `{scope.bound[argument.variable].name}`" if is_node else declared.display()
    is_number = declared.scalar.is_numeric and not declared.is_list
    if part.function in _ROWS:
        if not is_number:
            message = f"T8: {part.function} requires numeric type, got {shown}"
            raise scope.error(region_of(part.argument), message)
        return name, Summary(part.function, argument), _F64
    if not (is_number or (declared.scalar is Scalar.STRING and not declared.is_list)):
        message = f"T8: {part.function} requires numeric or string type, got {shown}"
        raise scope.error(region_of(part.argument), message)
    return name, Summary(part.function, argument), PropType(declared.scalar, nullable=True)


def _check_grouping(scope: BlockScope, body: Read) -> None:
    for item in body.returns:
        if not isinstance(item.value, AggregateCall | PropertyAccess | Variable):
            message = "T9: non-aggregate expressions in an aggregate query must be property accesses or variables"
            raise scope.error(region_of(item.value), message)


def _place(scope: BlockScope, key: Ordering, items: tuple[TypedItem, ...], body: Read) -> int:
    """Which column of an aggregate's result a sort key names."""
    if isinstance(key.by, AliasReference):
        names = [item.name for item in items]
        if key.by.name.text not in names:
            raise request_error(_unknown_alias(key.by, body))
        place = names.index(key.by.name.text)
        _check_sortable(key.by.name.text, items[place].type)
        return place
    if isinstance(key.by, PropertyAccess):
        column = scope.column(key.by)
        for place, (item, typed) in enumerate(zip(body.returns, items, strict=True)):
            if typed.value == column and item.alias is None:
                _check_sortable(typed.name, typed.type)
                return place
        shown = f"{column.variable}.{column.name}"
        raise request_error(f"column '{shown}' not found for ordering: an aggregate is ordered by what it returns")
    raise request_error("unsupported ordering expression: an aggregate is ordered by its columns or their aliases")


def _ranking(scope: BlockScope, key: Ordering, body: Read, items: tuple[TypedItem, ...]) -> Ranking | None:
    """The ranking that a first sort key asks for, also through an alias; the farthest first is no ranking."""
    part = key.by
    if isinstance(part, NearestCall | Bm25Call | RrfCall):
        return ranking(scope, part)
    if isinstance(part, AliasReference):
        found = _aliased(part, body, items)
        if isinstance(found, Score) and not isinstance(found.of, TextMatch):
            return None if isinstance(found.of, Nearest) and key.descending else found.of
    return None


def _check_ranked(scope: BlockScope, body: Read, by: Ranking) -> None:
    region = region_of(body.order[0].by)
    if body.limit is None and isinstance(by, Nearest):
        raise scope.error(region, "T17: nearest ordering requires a limit clause")
    if body.limit is None and isinstance(by, Fuse):
        raise scope.error(region, "T21: rrf ordering requires a limit clause")
    aliases = [key.by for key in body.order if isinstance(key.by, AliasReference)]
    if isinstance(by, Nearest) and aliases and not isinstance(body.order[0].by, AliasReference):
        message = "T18: alias-based ordering is not supported together with nearest in phase 1"
        raise scope.error(aliases[0].name.region, message)


def _sort_value(scope: BlockScope, part: Expr, body: Read, items: tuple[TypedItem, ...]) -> Expression:
    if isinstance(part, PropertyAccess):
        column = _readable(scope, part)
        _check_sortable(f"{column.variable}.{column.name}", column.type)
        return column
    if isinstance(part, AliasReference):
        found = _aliased(part, body, items)
        if found is None:
            raise request_error(_unknown_alias(part, body))
        if not isinstance(found, Score):
            _check_sortable(part.name.text, found.type)
        return found
    if isinstance(part, Variable):
        _variable(scope, part)
    region = region_of(part)
    text = scope.source.text[region.start : region.end]
    if isinstance(part, NearestCall | Bm25Call | RrfCall):
        raise request_error(f"unsupported ordering expression: {text} ranks the result only as the first sort key")
    raise request_error(f"unsupported ordering expression: {text}; order by properties, aliases or rankings")


def _check_sortable(name: str, of: PropType) -> None:
    if of.is_list or of.is_vector:
        raise request_error(f"unsupported ordering expression: '{name}' is {of.display()}")


def _aliased(part: AliasReference, body: Read, items: tuple[TypedItem, ...]) -> Expression | None:
    for item, typed in zip(body.returns, items, strict=True):
        if item.alias is not None and item.alias.text == part.name.text and not isinstance(typed.value, Summary):
            return typed.value
    return None


def _unknown_alias(part: AliasReference, body: Read) -> str:
    known = ", ".join(item.alias.text for item in body.returns if item.alias is not None) or "none"
    return f"alias '{part.name.text}' not found for ordering (aliases: {known})"
