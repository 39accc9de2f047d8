"""Comparison of a column with a value, exact for the column's type.

A literal takes the type of the column, so that scalar indexes are used. Where no stored value can equal it, the
comparison moves to the nearest value that the column can hold (`i >= 2.7` is `i >= 3`), or is decided here (`i32 <
3000000000`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne

from spark_omnigraph.catalog.numbers import single
from spark_omnigraph.catalog.types import ARROW_NAMES, INTEGER_RANGES, Scalar
from spark_omnigraph.predicates.sql import NO_ROW, boolean, not_null, number, quote_name, quote_text

Number = int | float | Fraction

_EVERY = "every"
_NONE = "none"
_OPERATORS: Mapping[str, Callable[[bool, bool], bool]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_WHOLE: Mapping[Scalar, tuple[int, int]] = {
    **INTEGER_RANGES,
    Scalar.DATE: INTEGER_RANGES[Scalar.I32],
    Scalar.DATETIME: INTEGER_RANGES[Scalar.I64],
}


@dataclass(frozen=True, slots=True)
class Condition:
    """`column operator operand`, the operand a value that the column can hold; null never matches. Dates are days and
    instants milliseconds since the epoch.
    """

    column: str
    scalar: Scalar
    operator: str
    operand: str | int | float | bool | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no row can match."""
        return self.operator == _NONE

    @property
    def is_every(self) -> bool:
        """Whether every row matches that has a value."""
        return self.operator == _EVERY

    @property
    def sql(self) -> str:
        """The condition for Lance, which orders NaN above all numbers."""
        if self.is_empty:
            return NO_ROW
        if self.is_every:
            return not_null(self.column)
        return f"{quote_name(self.column)} {self.operator} {self.literal}"

    @property
    def literal(self) -> str:
        """The operand for Lance."""
        value = self.operand
        if isinstance(value, bool):
            return boolean(value)
        return number(self.scalar, value) if isinstance(value, int | float) else quote_text(str(value))


def nothing(column: str, scalar: Scalar) -> Condition:
    """A comparison with null."""
    return Condition(column, scalar, _NONE)


def on_text(column: str, operator: str, value: str) -> Condition:
    """A String column against a text, by UTF-8 bytes."""
    return Condition(column, Scalar.STRING, operator, value)


def on_boolean(column: str, operator: str, value: bool) -> Condition:
    """A Bool column, false before true; only equality reaches an index."""
    matching = [stored for stored in (False, True) if _OPERATORS[operator](stored, value)]
    if len(matching) == 1:
        return Condition(column, Scalar.BOOL, "=", matching[0])
    return Condition(column, Scalar.BOOL, _EVERY if matching else _NONE)


def on_number(column: str, scalar: Scalar, operator: str, value: Number) -> Condition:
    """A column of numbers, dates or instants against any number, by value. Of NaN only `!=` is true.

    >>> on_number("i", Scalar.I32, ">=", 2.7).sql, on_number("i", Scalar.I32, "<", 3e9).sql
    ('`i` >= 3', '`i` IS NOT NULL')
    >>> on_number("f", Scalar.F64, "=", 2**53 + 1).sql, on_number("f", Scalar.F64, "<", 2**53 + 1).sql
    ('false', '`f` <= 9007199254740992.0')
    """
    if value != value:
        return Condition(column, scalar, _EVERY if operator == "!=" else _NONE)
    below, above = _beyond(scalar, value)
    if below or above:
        matches = operator == "!=" or operator in (("<", "<=") if above else (">", ">="))
        return Condition(column, scalar, _EVERY if matches else _NONE)
    stored = _nearest(scalar, value, upwards=operator in (">", ">="))
    if stored == value:
        return Condition(column, scalar, operator, stored)
    if operator in ("=", "!="):
        return Condition(column, scalar, _EVERY if operator == "!=" else _NONE)
    if operator in ("<", "<="):
        return Condition(column, scalar, "<=" if stored < value else "<", stored)
    return Condition(column, scalar, ">" if stored < value else ">=", stored)


def item_of(equal: Condition) -> str:
    """Whether a list column has an item that meets an equality; null for a null list."""
    if equal.is_empty:
        return NO_ROW
    literal = equal.literal
    if equal.scalar in ARROW_NAMES:
        literal = f"arrow_cast({literal}, '{ARROW_NAMES[equal.scalar]}')"
    return f"array_has({quote_name(equal.column)}, {literal})"


def _beyond(scalar: Scalar, value: Number) -> tuple[bool, bool]:
    """Whether a number is below, or above, everything that a column of whole numbers can hold."""
    if scalar not in _WHOLE:
        return False, False
    low, high = _WHOLE[scalar]
    return value < low, value > high


def _nearest(scalar: Scalar, value: Number, upwards: bool) -> int | float:
    """A value of the column's type with none between it and `value`."""
    if scalar in _WHOLE:
        return math.ceil(value) if upwards else math.floor(value)
    try:
        wide = float(value)
    except OverflowError:
        wide = math.inf if value > 0 else -math.inf
    return single(wide) if scalar is Scalar.F32 else wide
