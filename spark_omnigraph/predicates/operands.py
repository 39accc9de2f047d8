"""Values that users compare with columns: read by the type of the column, exactly, or refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from reprlib import repr as shortened

from spark_omnigraph.catalog.numbers import integer_of, integral
from spark_omnigraph.catalog.types import ARROW_NAMES, INTEGER_RANGES, PropType, Scalar
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.predicates.condition import Condition, Number, on_boolean, on_number, on_text
from spark_omnigraph.predicates.instants import instant_micros, parse_instant
from spark_omnigraph.predicates.sql import NO_ROW, boolean, number, quote_name, quote_text

_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A stored column that a condition names."""

    name: str
    type: PropType

    @property
    def sql(self) -> str:
        return quote_name(self.name)


def compare(column: StoredColumn, operator: str, value: object) -> Condition:
    """`column operator value` for one of the six comparison operators. BadRequestError when the value does not fit."""
    scalar = column.type.scalar
    if scalar is Scalar.STRING:
        return on_text(column.name, operator, text(column, value))
    if scalar is Scalar.BOOL:
        if operator not in ("=", "!="):
            raise BadRequestError(f"'{operator}' does not apply to the Bool column '{column.name}'")
        return on_boolean(column.name, operator, _bool(column, value))
    return on_number(column.name, scalar, operator, _NUMBERS[scalar](column, value))


def text(column: StoredColumn, value: object) -> str:
    """A value for a String column."""
    if not isinstance(value, str):
        raise _mismatch(column, value)
    try:
        value.encode()
    except UnicodeEncodeError:
        message = f"{shortened(value)}, compared with '{column.name}', holds half of a surrogate pair"
        raise BadRequestError(message) from None
    return value


def list_has(column: StoredColumn, value: object) -> str:
    """Whether a list column holds a value; null for a null list."""
    scalar = column.type.scalar
    if scalar is Scalar.STRING:
        literal = quote_text(text(column, value))
    elif scalar is Scalar.BOOL:
        literal = boolean(_bool(column, value))
    else:
        equal = on_number(column.name, scalar, "=", _NUMBERS[scalar](column, value))
        if not isinstance(equal.operand, int | float):
            return NO_ROW
        literal = number(scalar, equal.operand)
        if scalar in ARROW_NAMES:
            literal = f"arrow_cast({literal}, '{ARROW_NAMES[scalar]}')"
    return f"array_has({column.sql}, {literal})"


def _bool(column: StoredColumn, value: object) -> bool:
    if not isinstance(value, bool):
        raise _mismatch(column, value)
    return value


def _integer(column: StoredColumn, value: object) -> int:
    low, high = INTEGER_RANGES[column.type.scalar]
    whole = integer_of(value.strip()) if isinstance(value, str) else integral(value)
    if whole is None:
        raise _mismatch(column, value)
    if not low <= whole <= high:
        raise BadRequestError(f"{value} is out of range for '{column.name}' of type {column.type.scalar}")
    return whole


def _float(column: StoredColumn, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise _mismatch(column, value)
    try:
        wide = float(value)
    except (ValueError, OverflowError):
        raise _mismatch(column, value) from None
    if math.isnan(wide) or (isinstance(value, int) and int(wide) != value):
        raise BadRequestError(
            f"{value} cannot be compared exactly with '{column.name}' of type {column.type.display()}"
        )
    return wide


def _days(column: StoredColumn, value: object) -> int:
    try:
        return (date.fromisoformat(text(column, value)) - _EPOCH).days
    except ValueError:
        raise _mismatch(column, value) from None


def _milliseconds(column: StoredColumn, value: object) -> Fraction:
    instant = parse_instant(text(column, value))
    if instant is None:
        raise _mismatch(column, value)
    if instant.tzinfo is None:
        raise BadRequestError(f"the time compared with '{column.name}' has no zone; DateTime values are instants")
    return Fraction(instant_micros(instant), 1000)


def _mismatch(column: StoredColumn, value: object) -> BadRequestError:
    return BadRequestError(
        f"{shortened(value)} cannot be compared with '{column.name}' of type {column.type.display()}"
    )


_NUMBERS: Mapping[Scalar, Callable[[StoredColumn, object], Number]] = {
    Scalar.I32: _integer,
    Scalar.I64: _integer,
    Scalar.U32: _integer,
    Scalar.U64: _integer,
    Scalar.F32: _float,
    Scalar.F64: _float,
    Scalar.DATE: _days,
    Scalar.DATETIME: _milliseconds,
}
