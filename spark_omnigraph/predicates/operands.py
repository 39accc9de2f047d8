"""Values that users compare with columns: read by the type of the column, exactly, or refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from reprlib import repr as shortened

from spark_omnigraph.catalog.dates import parse_day, parse_instant
from spark_omnigraph.catalog.numbers import float_value, integer_of, integral
from spark_omnigraph.catalog.types import INTEGER_RANGES, PropType, Scalar
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.predicates.condition import Condition, Number, item_of, on_boolean, on_number, on_text
from spark_omnigraph.predicates.sql import quote_name


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
    return item_of(compare(column, "=", value))


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
        wide = float_value(value, Scalar.F64) if isinstance(value, int) else float(value)
    except ValueError:
        raise _mismatch(column, value) from None
    if wide is None or math.isnan(wide) or (isinstance(value, int) and math.isinf(wide)):
        raise BadRequestError(
            f"{value} cannot be compared exactly with '{column.name}' of type {column.type.display()}"
        )
    return wide


def _days(column: StoredColumn, value: object) -> int:
    days = parse_day(text(column, value))
    if days is None:
        raise _mismatch(column, value)
    return days


def _milliseconds(column: StoredColumn, value: object) -> Fraction:
    instant = parse_instant(text(column, value))
    if instant is None:
        raise _mismatch(column, value)
    nanos, has_zone = instant
    if not has_zone:
        raise BadRequestError(f"the time compared with '{column.name}' has no zone; DateTime values are instants")
    return Fraction(nanos, 1_000_000)


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
