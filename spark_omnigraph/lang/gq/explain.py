"""A plan as text: one operator a line, what it reads from below it and further right."""

from __future__ import annotations

import json
from collections.abc import Callable

from spark_omnigraph.catalog.dates import MS_PER_DAY, moment, moment_text
from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.errors import InternalError
from spark_omnigraph.lang.gq.check.typed import NOW
from spark_omnigraph.lang.gq.plan import (
    IDENTITY,
    Aggregate,
    Aggregated,
    AntiJoin,
    Bm25,
    Column,
    Comparator,
    Connect,
    Constant,
    Cross,
    Direction,
    Expand,
    Expression,
    Filter,
    Fuse,
    Hops,
    Limit,
    Nearest,
    Operator,
    OuterRows,
    Output,
    Parameter,
    Plan,
    Predicate,
    Project,
    Rank,
    Ranking,
    Scan,
    Score,
    Sort,
    SortKey,
    SortResult,
    TextMatch,
    Value,
)

_ITEMS = 4
_CHARACTERS = 80
_ARROWS = {Direction.OUT: ("-", "->"), Direction.IN: ("<-", "-"), Direction.BOTH: ("-", "-")}
_WORDS = {Comparator.HAS_ITEM: "contains", Comparator.HAS_TEXT: "contains"}


def explain(plan: Plan, note: Callable[[Operator], str] = lambda _: "") -> str:
    """The text of a plan, with a `note` behind each operator. Parameters show as `$name` before `bind`, and as values
    after it.
    """
    columns = ", ".join(f"{column.name}: {column.type.display()}" for column in plan.columns)
    return "\n".join([f"query {plan.query} -> {columns}", *_lines(plan.root, 1, note)]) + "\n"


def _lines(operator: Operator, depth: int, note: Callable[[Operator], str]) -> list[str]:
    lines = [f"{'  ' * depth}{_headline(operator)}{note(operator)}"]
    for child in _inputs(operator):
        lines.extend(_lines(child, depth + 1, note))
    return lines


def operators(root: Operator) -> int:
    """How many operators a plan has, from this one down."""
    return 1 + sum(map(operators, _inputs(root)))


def _inputs(operator: Operator) -> tuple[Operator, ...]:
    if isinstance(operator, Scan | OuterRows):
        return ()
    if isinstance(operator, Cross):
        return operator.left, operator.right
    if isinstance(operator, AntiJoin):
        return operator.input, operator.inner
    return (operator.input,)


def _headline(operator: Operator) -> str:
    if isinstance(operator, Scan | Expand | Connect | OuterRows | Cross | AntiJoin | Filter):
        return _rows(operator)
    return _results(operator)


def _rows(operator: Scan | Expand | Connect | OuterRows | Cross | AntiJoin | Filter) -> str:
    if isinstance(operator, Scan):
        return f"scan ${operator.variable}: {operator.node_type}{_where(operator.predicates)}"
    if isinstance(operator, Expand):
        target = f"{_variable(operator.target, operator.anonymous)}: {operator.target_type}"
        return f"expand {_walk(operator.source, operator.hops, target)}{_where(operator.predicates)}"
    if isinstance(operator, Connect):
        return f"connect {_walk(operator.source, operator.hops, f'${operator.target}')}"
    if isinstance(operator, Filter):
        return f"filter {_all(operator.predicates)}"
    if isinstance(operator, AntiJoin):
        return "anti-join: rows of the first for which the second has none"
    return "cross" if isinstance(operator, Cross) else "outer rows"


def _results(operator: Rank | Sort | Limit | Project | Aggregate | SortResult) -> str:
    if isinstance(operator, Rank):
        limit = "" if operator.limit is None else f", limit {operator.limit}"
        ties = f", then {_keys(operator.ties)}" if operator.ties else ""
        return f"rank by {_ranking(operator.by)}{ties}{limit}"
    if isinstance(operator, Sort):
        return f"sort by {_keys(operator.keys)}"
    if isinstance(operator, Limit):
        return f"limit {operator.count}"
    if isinstance(operator, SortResult):
        named = operator.input.columns
        return "sort by " + ", ".join(f"{named[k.place].name}{' desc' * k.descending}" for k in operator.keys)
    if isinstance(operator, Project | Aggregate):
        word = "project" if isinstance(operator, Project) else "aggregate"
        return f"{word} {', '.join(map(_output, operator.columns))}"
    raise InternalError(f"operator {type(operator).__name__} has no text")


def _walk(source: str, hops: Hops, target: str) -> str:
    left, right = _ARROWS[hops.direction]
    named = "" if hops.edge_variable is None else f"${hops.edge_variable}:"
    bounds = "" if (hops.min_hops, hops.max_hops) == (1, 1) else f"{{{hops.min_hops},{hops.max_hops}}}"
    return f"${source} {left}{named}{hops.edge_type}{bounds}{right} {target}"


def _variable(name: str, anonymous: bool = False) -> str:
    return "$_" if anonymous else f"${name}"


def _where(predicates: tuple[Predicate, ...]) -> str:
    return f" where {_all(predicates)}" if predicates else ""


def _all(predicates: tuple[Predicate, ...]) -> str:
    return " and ".join(map(_predicate, predicates))


def _predicate(predicate: Predicate) -> str:
    if isinstance(predicate, TextMatch):
        edits = "" if predicate.max_edits is None else f", {_expression(predicate.max_edits)}"
        return f"{predicate.form}({_expression(predicate.column)}, {_expression(predicate.query)}{edits})"
    word = _WORDS.get(predicate.comparator, str(predicate.comparator))
    return f"{_expression(predicate.left)} {word} {_expression(predicate.right)}"


def _keys(keys: tuple[SortKey, ...]) -> str:
    return ", ".join(f"{_expression(key.by)}{' desc' if key.descending else ''}" for key in keys)


def _output(column: Output | Aggregated) -> str:
    if isinstance(column, Aggregated):
        return f"{column.name} = {column.function}({_expression(column.argument)})"
    return f"{column.name} = {_expression(column.value)}"


def _ranking(by: Ranking) -> str:
    if isinstance(by, Fuse):
        return f"rrf({_ranking(by.primary)}, {_ranking(by.secondary)}, {_expression(by.k)})"
    word = "nearest" if isinstance(by, Nearest) else "bm25"
    return f"{word}({_expression(by.column)}, {_expression(by.query)})"


def _expression(part: Expression) -> str:
    if isinstance(part, Column):
        return f"${part.variable}" if part.name == IDENTITY else f"${part.variable}.{part.name}"
    if isinstance(part, Constant):
        return _value(part.value, part.type)
    if isinstance(part, Parameter):
        return "now()" if part.name == NOW else f"${part.name}"
    return _scored(part)


def _scored(score: Score) -> str:
    of = score.of
    return _ranking(of) if isinstance(of, Nearest | Bm25 | Fuse) else _predicate(of)


def _value(value: Value, of: PropType) -> str:
    if isinstance(value, tuple):
        item = PropType(of.scalar)
        shown = [_value(one, item) for one in value[:_ITEMS]]
        more = [f"… {len(value)} values"] if len(value) > _ITEMS else []
        return f"[{', '.join(shown + more)}]"
    if isinstance(value, int) and of.scalar in (Scalar.DATE, Scalar.DATETIME):
        return _instant(value, of.scalar)
    if isinstance(value, str) and len(value) > _CHARACTERS:
        return json.dumps(f"{value[:_CHARACTERS]}…", ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def _instant(value: int, scalar: Scalar) -> str:
    try:
        at = moment(value * 1000 * (MS_PER_DAY if scalar is Scalar.DATE else 1))
    except OverflowError:
        return f"{str(scalar).lower()}({value})"
    text = at.date().isoformat() if scalar is Scalar.DATE else moment_text(at)
    return f'{str(scalar).lower()}("{text}")'
