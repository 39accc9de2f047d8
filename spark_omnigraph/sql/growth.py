"""How far values grow in a plan. Texts and lists are made in memory that nothing bounds, so one that is joined to
itself a few dozen times would end the process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from spark_omnigraph.errors import BadRequestError

MOST_PIECES = 4_000
"""Stored values, or pieces of texts of the statement, that the values which a row of a plan makes may consist of."""
_BULK = MOST_PIECES // 40
"""What a value counts that consists of many rows, or has a type of which a batch may hold more than 2 GiB."""
_PIECE, _LONG_PIECE = 32, 4 << 10
"""Bytes of a text of the statement that count as one: of the beginning, and of what follows `_BULK` of these."""
_SHORT = 8
"""How many times longer than what it replaces a text may be and not count."""
_INSERTED, _LEAST_INSERTED = 16, 2
"""What it counts to put any text into another one for each letter of it, and for what is many letters long."""
_GROUP = re.compile(r"\\\d|\$\w|\$\{")
"""What stands for the text that is replaced, or a part of it."""
_MAKING = re.compile(r"\|\||[a-z]\(")
"""An operator or a call; it may be the name of a type too, then it is looked at in vain."""
_ROUNDS = 16
"""Of a recursive query: what each round makes longer by as much is below the bound then, what each multiplies above."""
_COLLECTING = frozenset(("array_agg", "string_agg"))
_INSERTING = frozenset(("replace", "regexp_replace")) | {
    f"{of}_{what}" for of in ("array", "list") for what in ("to_string", "join", "replace", "replace_n", "replace_all")
}
"""Functions that may put one of their arguments into another one many times."""
_CHOOSING = frozenset(("coalesce", "nullif", "nvl", "nvl2", "ifnull", "greatest", "least"))
_HIDDEN = frozenset(("ScalarSubquery", "Exists", "InSubquery", "SetComparison"))
_Node = TypeVar("_Node")
_Found = TypeVar("_Found")
_Columns = list[tuple[str, int]]
"""Names of the columns of a plan, and of how many pieces a value of each consists."""


@dataclass(slots=True)
class Growth:
    """Counts the pieces that values of a plan consist of."""

    has_hidden: bool = False
    """Whether something in it can be looked into only when it is optimized."""
    _most: int = 1
    """Of any value so far."""
    _rounds: dict[str, _Columns] = field(default_factory=dict)
    """What recursive queries had in their last round, by name."""

    def check(self, plan: LogicalPlan) -> _Columns:
        """What the plan gives. BadRequestError where a value may consist of too many others."""
        return _upwards(plan, _inputs, self._columns)

    def _columns(self, plan: LogicalPlan, inputs: Sequence[_Columns]) -> _Columns:
        node = _variant(plan)
        kind = type(node).__name__
        if kind == "RecursiveQuery":
            return self._recursive(plan)
        below = [column for each in inputs for column in each]
        if kind == "TableScan":
            weights = [weight for _, weight in self._rounds.get(node.table_name(), ())]
        elif kind == "Union":
            weights = [max(each) for each in zip(*([weight for _, weight in one] for one in inputs), strict=False)]
        else:
            weights = self._made(kind, node, below)
        self.has_hidden |= kind == "Distinct" and "DistinctOn" in plan.display()
        schema = getattr(node, "schema", None)
        names = (
            schema().field_names() if schema is not None and kind != "DescribeTable" else [name for name, _ in below]
        )
        return [(name, weights[at] if at < len(weights) else 1) for at, name in enumerate(names)]

    def _made(self, kind: str, node: Any, below: _Columns) -> list[int]:
        """Of the columns that a part of a plan makes, or hands on."""
        passed = [weight for _, weight in below]
        if kind == "Projection":
            return self._bounded([self._of(each, below) for each in node.projections()])
        if kind == "Values":
            rows = [[self._of(each, below) for each in row] for row in node.values()]
            return self._bounded([max(each) for each in zip(*rows, strict=True)])
        if kind == "Aggregate":
            sets = [each for each in node.group_by_exprs() if each.variant_name() == "GroupingSet"]
            names = node.schema().field_names()
            made = [self._of(each, below) for each in node.aggregate_exprs()]
            groups = [self._unseen(name, below) for name in names[: len(names) - len(made)]]
            return self._bounded([*(groups if sets else (self._of(e, below) for e in node.group_by_exprs())), *made])
        if kind == "WindowExpr":
            return passed + self._bounded([self._window(node, each, below) for each in node.get_window_expr()])
        self._bounded([self._of(each, below) for each in _looked_at(kind, node)])
        return passed

    def _bounded(self, weights: list[int]) -> list[int]:
        grown = sum(weight for weight in weights if weight > 1)
        if grown > MOST_PIECES:
            raise BadRequestError(
                f"the statement makes values of more than {MOST_PIECES:,} others, counted through: texts and lists "
                "that are joined, or put into each other, over and over take more memory than there is"
            )
        self._most = max(self._most, *weights, 1)
        return weights

    def _recursive(self, plan: LogicalPlan) -> _Columns:
        first, again = plan.inputs()
        found = self.check(first)
        outside = dict(self._rounds)
        for _ in range(_ROUNDS):
            self._rounds |= dict.fromkeys(_scans(again, [_bare(name) for name, _ in found]), found)
            further = self.check(again)
            found = [(name, max(a, b)) for (name, a), (_, b) in zip(found, further, strict=True)]
        self._rounds = outside
        return found

    def _of(self, expression: Expr, below: _Columns) -> int:
        return _upwards(expression, _operands, lambda e, weights: self._bounded([self._weight(e, weights, below)])[0])

    def _weight(self, each: Expr, weights: Sequence[int], below: _Columns) -> int:
        kind = each.variant_name()
        self.has_hidden |= kind in _HIDDEN
        if kind == "Column":
            return self._column(each, below)
        if kind == "Literal":
            return min(1 + _length(each) // _PIECE, _BULK) + _length(each) // _LONG_PIECE
        if kind == "BinaryExpr":
            return sum(weights) if each.rex_call_operator() == "||" else 1
        if kind in ("Alias", "Cast", "TryCast", "Case"):
            return max(weights, default=1)
        if kind == "AggregateFunction":
            return _collected(each.to_variant().aggregate_type(), weights)
        if kind == "ScalarFunction":
            return _called(each.rex_call_operator(), each.rex_call_operands(), weights)
        return self._unseen(each.schema_name(), below) if not weights and kind not in _HIDDEN else 1

    def _column(self, each: Expr, below: _Columns) -> int:
        full, name = each.schema_name(), each.to_variant().name()
        found = [weight for known, weight in below if known == full] or [
            weight for known, weight in below if known == name or known.endswith(f".{name}")
        ]
        return max(found) if found else self._unseen(full, below)

    def _unseen(self, name: str, below: _Columns) -> int:
        """Of what is known by its name alone, which spells it: at most all that it may join."""
        known = [weight for listed, weight in below if listed == name]
        return max(known) if known else self._most * (1 + name.count("||") + name.count(","))

    def _window(self, node: Any, each: Expr, below: _Columns) -> int:
        bare = each.to_variant().expr() if each.variant_name() == "Alias" else each
        name, frame = node.window_func_name(bare), node.get_frame(bare)
        made = max((self._of(argument, below) for argument in node.get_args(bare)), default=1)
        if name not in _COLLECTING:
            return made
        ends = frame.get_lower_bound(), frame.get_upper_bound()
        if frame.get_frame_units().upper() != "ROWS" or any(end.is_unbounded() for end in ends):
            raise BadRequestError(
                f"{name} OVER would make a value of many rows for each row: bound its frame (ROWS BETWEEN 2 PRECEDING "
                "AND CURRENT ROW), or aggregate with GROUP BY and join"
            )
        return made * (1 + sum(end.get_offset() or 0 for end in ends))


def _called(name: str, arguments: Sequence[Expr], weights: Sequence[int]) -> int:
    """Of what a function returns."""
    if name in _CHOOSING:
        return max(weights, default=1)
    if name in _INSERTING:
        return _inserted(name, arguments, weights)
    if name == "concat_ws":
        return sum(weights) + max(len(weights) - 2, 0) * weights[0]
    wide = name.startswith("arrow_") and any(word in str(arguments[-1]) for word in ("Large", "View"))
    return max(sum(weights), _BULK if wide else 1)


def _inserted(name: str, arguments: Sequence[Expr], weights: Sequence[int]) -> int:
    """Of a text or a list into which others are put for what they replace, as far as the statement tells how often."""
    replaces = name in ("replace", "regexp_replace")
    taken = max(_length(arguments[1]), 1) if name == "replace" else 1
    grown = weights[0]
    for put, weight in [*zip(arguments, weights, strict=True)][2 if replaces else 1 : 3 if replaces else None]:
        if put.variant_name() == "Literal":
            groups = len(_GROUP.findall(str(put))) if name == "regexp_replace" else 1
            grown *= max(1, groups, _length(put) // (_SHORT * taken))
        else:
            grown *= weight * max(_INSERTED // taken, _LEAST_INSERTED)
    return grown


def _collected(name: str, weights: Sequence[int]) -> int:
    return max(*weights, _BULK) if name in _COLLECTING else max(weights, default=1)


def _length(each: Expr) -> int:
    """Bytes of a text of the statement, 0 for anything else."""
    if each.variant_name() != "Literal":
        return 0
    try:
        value = each.python_value()
    except Exception:  # noqa: BLE001 - of any class: a value of a kind that Python has not
        return len(each.schema_name())
    return len(str(value).encode())


def _looked_at(kind: str, node: Any) -> list[Expr]:
    """Expressions whose values decide something, and go no further."""
    if kind == "Filter":
        return [node.predicate()]
    if kind == "Sort":
        return [each.expr() for each in node.sort_exprs()]
    if kind == "Join":
        return [*([] if node.filter() is None else [node.filter()]), *(side for pair in node.on() for side in pair)]
    return []


def _operands(each: Expr) -> list[Expr]:
    if each.variant_name() in ("Column", "Literal"):  # they would be operands of themselves
        return []
    if each.variant_name() == "InList" and not _MAKING.search(each.schema_name()):
        return [each.to_variant().expr()]  # its values may be many thousand
    try:
        return each.rex_call_operands()
    except Exception:  # noqa: BLE001 - of any class: a kind that has none
        return []


def _variant(plan: LogicalPlan) -> Any:
    try:
        return plan.to_variant()
    except Exception:  # noqa: BLE001 - of any class: a kind that Python has no view of, which makes nothing
        return None


def _inputs(plan: LogicalPlan) -> list[LogicalPlan]:
    return [] if type(_variant(plan)).__name__ == "RecursiveQuery" else plan.inputs()


def _scans(plan: LogicalPlan, columns: list[str]) -> set[str]:
    """Names of the tables below a plan that have these columns: among them what the round before gave."""
    found, todo = set(), [plan]
    while todo:
        each = todo.pop()
        todo += each.inputs()
        node = _variant(each)
        if type(node).__name__ == "TableScan" and [*map(_bare, node.schema().field_names())] == columns:
            found.add(node.table_name())
    return found


def _bare(name: str) -> str:
    return name.rpartition(".")[2]


def _upwards(
    root: _Node, below: Callable[[_Node], Sequence[_Node]], make: Callable[[_Node, Sequence[_Found]], _Found]
) -> _Found:
    """What `make` makes of a tree, of each part after all below it; a tree may be deeper than calls go."""
    todo: list[tuple[_Node, int | None]] = [(root, None)]
    done: list[_Found] = []
    while todo:
        each, count = todo.pop()
        if count is None:
            parts = below(each)
            todo.append((each, len(parts)))
            todo += [(part, None) for part in reversed(parts)]
        else:
            start = len(done) - count
            done[start:] = [make(each, done[start:])]
    return done[0]
