"""Predicates → Lance SQL, where that keeps every row that a predicate keeps.

A literal takes the exact type of the column when that loses nothing, so that scalar indexes are used; otherwise the
comparison is rewritten (`i >= 2.7` is `i >= 3`), decided here (`i32 < 3000000000`), or left to memory.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from spark_omnigraph.catalog.types import Scalar
from spark_omnigraph.engine.compare import fits_float, normal
from spark_omnigraph.lang.gq.plan import Column, Comparator, Comparison, Constant, Predicate

NONE = "false"
"""SQL that keeps no row."""

_RANGES = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
    Scalar.DATE: (-(2**31), 2**31 - 1),
    Scalar.DATETIME: (-(2**63), 2**63 - 1),
}
_UP = (Comparator.GREATER, Comparator.GREATER_OR_EQUAL, Comparator.NOT_EQUAL)
_DOWN = (Comparator.LESS, Comparator.LESS_OR_EQUAL, Comparator.NOT_EQUAL)


@dataclass(frozen=True, slots=True)
class Asked:
    """A predicate as Lance is asked for it: `where` is SQL (None: it cannot be said), `exact` whether that says all."""

    predicate: Predicate
    where: str | None
    exact: bool


@dataclass(frozen=True, slots=True)
class Pushed:
    """`where` is for Lance (None: all rows), `rest` must still be asked of the rows that come back."""

    where: str | None
    rest: tuple[Predicate, ...]

    @classmethod
    def of(cls, asked: Iterable[Asked]) -> Pushed:
        """All that can be said of some predicates."""
        listed = tuple(asked)
        terms = [a.where for a in listed if a.where is not None]
        rest = tuple(a.predicate for a in listed if a.where is None or not a.exact)
        return cls(" AND ".join(terms) or None, rest)


def ask(predicate: Predicate, stored: Collection[str], text_key: str | None = None) -> Asked:
    """What Lance can decide of a predicate of one variable. `stored` are the columns of the table's version;
    `text_key` is a String property that alone is the key: `id` has the same values, and an index for comparisons.
    """
    found = _term(predicate, stored, text_key) if isinstance(predicate, Comparison) else None
    return Asked(predicate, *(found if found is not None else (None, False)))


def push(predicates: Iterable[Predicate], stored: Collection[str], text_key: str | None = None) -> Pushed:
    """What Lance can decide of several predicates of one variable."""
    return Pushed.of(ask(predicate, stored, text_key) for predicate in predicates)


def _term(predicate: Comparison, stored: Collection[str], text_key: str | None) -> tuple[str, bool] | None:
    """SQL, and whether it says all; None when it cannot be said."""
    predicate = normal(predicate)
    column, constant, comparator = predicate.left, predicate.right, predicate.comparator
    if comparator is Comparator.HAS_ITEM and isinstance(column, Constant) and isinstance(constant, Column):
        return _one_of(constant, column, stored, text_key)
    if not isinstance(column, Column) or not isinstance(constant, Constant):
        return None
    if constant.value is None or column.name not in stored:
        return NONE, True
    name = quoted("id" if column.name == text_key else column.name)
    if comparator is Comparator.HAS_ITEM:
        return _item(name, column.type.scalar, constant)
    if comparator is Comparator.HAS_TEXT:
        return f"contains({name}, {text(str(constant.value))})", True
    if comparator is Comparator.STARTS_WITH:
        return f"starts_with({name}, {text(str(constant.value))})", True
    if column.type.is_list or column.type.is_vector:
        return None
    return _compared(name, column.type.scalar, comparator, constant)


def _compared(name: str, scalar: Scalar, comparator: Comparator, constant: Constant) -> tuple[str, bool] | None:
    value = constant.value
    if scalar is Scalar.STRING and isinstance(value, str):
        return f"{name} {comparator} {text(value)}", True
    if scalar is Scalar.BOOL and isinstance(value, bool):
        return _boolean(name, comparator, value)
    if scalar in _RANGES and isinstance(value, int | float) and not isinstance(value, bool):
        return _integer(name, scalar, comparator, value), True
    if scalar in (Scalar.F32, Scalar.F64) and isinstance(value, int | float) and not isinstance(value, bool):
        return _float(name, scalar, comparator, value)
    return None


def _one_of(
    column: Column, constant: Constant, stored: Collection[str], text_key: str | None
) -> tuple[str, bool] | None:
    """A column whose value is an item of a constant list."""
    items = constant.value if isinstance(constant.value, tuple) else ()
    if not items or column.name not in stored:
        return NONE, True
    name = quoted("id" if column.name == text_key else column.name)
    scalar = column.type.scalar
    if scalar is Scalar.STRING:
        return f"{name} IN ({', '.join(text(item) for item in items if isinstance(item, str))})", True
    if scalar not in _RANGES or not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
        return None
    low, high = _RANGES[scalar]
    fitting = [_integer_literal(scalar, item) for item in items if isinstance(item, int) and low <= item <= high]
    return (f"{name} IN ({', '.join(fitting)})" if fitting else NONE), True


def _boolean(name: str, comparator: Comparator, value: bool) -> tuple[str, bool]:
    """Only equality reaches an index on Bool."""
    allowed = {
        Comparator.EQUAL: {value},
        Comparator.NOT_EQUAL: {not value},
        Comparator.LESS: {False} if value else set(),
        Comparator.LESS_OR_EQUAL: {False, True} if value else {False},
        Comparator.GREATER: set() if value else {True},
        Comparator.GREATER_OR_EQUAL: {True} if value else {False, True},
    }[comparator]
    if len(allowed) == 2:
        return f"{name} IS NOT NULL", True
    return (f"{name} = {str(allowed.pop()).lower()}" if allowed else NONE), True


def _integer(name: str, scalar: Scalar, comparator: Comparator, value: int | float) -> str:
    """An integer column against a number: the number is made an integer of the column's range first."""
    if isinstance(value, float):
        if math.isnan(value):
            return f"{name} IS NOT NULL" if comparator is Comparator.NOT_EQUAL else NONE
        if math.isinf(value):
            value = 2**65 if value > 0 else -(2**65)
        elif not value.is_integer():
            return _fraction(name, scalar, comparator, value)
    low, high = _RANGES[scalar]
    whole = int(value)
    if whole > high:
        return f"{name} IS NOT NULL" if comparator in _DOWN else NONE
    if whole < low:
        return f"{name} IS NOT NULL" if comparator in _UP else NONE
    return f"{name} {comparator} {_integer_literal(scalar, whole)}"


def _fraction(name: str, scalar: Scalar, comparator: Comparator, value: float) -> str:
    if comparator is Comparator.EQUAL:
        return NONE
    if comparator is Comparator.NOT_EQUAL:
        return f"{name} IS NOT NULL"
    if comparator in (Comparator.LESS, Comparator.LESS_OR_EQUAL):
        return _integer(name, scalar, Comparator.LESS_OR_EQUAL, math.floor(value))
    return _integer(name, scalar, Comparator.GREATER_OR_EQUAL, math.ceil(value))


def _integer_literal(scalar: Scalar, value: int) -> str:
    if scalar is Scalar.DATE:
        return f"arrow_cast({_signed(value)}, 'Date32')"
    if scalar is Scalar.DATETIME:
        return f"arrow_cast({_signed(value)}, 'Date64')"
    return _signed(value)


def _signed(value: int) -> str:
    # Lance reads the digits before the sign, and these do not fit 64 bits without it.
    return str(value) if value > -(2**63) else "(-9223372036854775807 - 1)"


def _float(name: str, scalar: Scalar, comparator: Comparator, value: int | float) -> tuple[str, bool] | None:
    """Lance orders NaN above all numbers; rows are asked again where that could matter."""
    if not fits_float(value, scalar):
        return None
    value = float(value)
    exact = comparator in (Comparator.EQUAL, Comparator.LESS, Comparator.LESS_OR_EQUAL)
    return f"{name} {comparator} {value!r}", exact


def _item(name: str, scalar: Scalar, constant: Constant) -> tuple[str, bool] | None:
    value = constant.value
    if scalar is Scalar.STRING and isinstance(value, str):
        return f"array_has({name}, {text(value)})", True
    if scalar.is_integer and isinstance(value, int) and not isinstance(value, bool):
        low, high = _RANGES[scalar]
        return (f"array_has({name}, {_signed(value)})", True) if low <= value <= high else (NONE, True)
    return None


def quoted(name: str) -> str:
    """A column name as Lance SQL reads it, whatever its letters."""
    return f"`{name}`"


def text(value: str) -> str:
    """A string literal of Lance SQL."""
    doubled = value.replace("'", "''")
    return f"'{doubled}'"
