"""Literals and comparisons of Lance SQL, exact for the type of the column they stand beside."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.spark.instants import instant_micros, parse_instant

NO_ROW = "false"
"""Predicate that no row meets."""

_INTEGER_RANGES: Mapping[Scalar, tuple[int, int]] = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}
_ARROW_NAMES: Mapping[Scalar, str] = {
    Scalar.I32: "Int32",
    Scalar.I64: "Int64",
    Scalar.U32: "UInt32",
    Scalar.U64: "UInt64",
    Scalar.F32: "Float32",
    Scalar.F64: "Float64",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A stored column that a condition names."""

    name: str
    type: PropType

    @property
    def sql(self) -> str:
        return quote_name(self.name)


def quote_name(name: str) -> str:
    """Identifier of Lance SQL; double quotes would make it a text."""
    return f"`{name}`"


def quote_text(text: str) -> str:
    """Text literal: only the single quote needs care."""
    return "'" + text.replace("'", "''") + "'"


def date64(millis: int) -> str:
    """A stored DateTime. A `timestamp` literal has nanoseconds, which do not reach the years that are allowed."""
    return f"arrow_cast({millis}, 'Date64')"


def compare(column: Column, operator: str, value: object) -> str:
    """`column operator value` for one of the six comparison operators. BadRequestError when the value does not fit."""
    return _COMPARE.get(column.type.scalar, _compare_literal)(column, operator, value)


def text_literal(column: Column, value: object) -> str:
    """Literal for a String column."""
    if not isinstance(value, str):
        raise _mismatch(column, value)
    return quote_text(value)


def list_has(column: Column, value: object) -> str:
    """Whether a list column holds a value; null for a null list."""
    scalar = column.type.scalar
    if scalar is Scalar.DATETIME:
        millis, rest = divmod(_micros(column, value), 1000)
        return NO_ROW if rest else f"array_has({column.sql}, {date64(millis)})"
    literal = _LITERALS[scalar](column, value)
    if scalar is Scalar.F32 and not _is_float32(_float(column, value)):
        return NO_ROW
    if scalar in _ARROW_NAMES:
        literal = f"arrow_cast({literal}, '{_ARROW_NAMES[scalar]}')"
    return f"array_has({column.sql}, {literal})"


def _compare_literal(column: Column, operator: str, value: object) -> str:
    return f"{column.sql} {operator} {_LITERALS[column.type.scalar](column, value)}"


def _compare_bool(column: Column, operator: str, value: object) -> str:
    if operator not in ("=", "!="):
        raise BadRequestError(f"'{operator}' does not apply to the Bool column '{column.name}'")
    return _compare_literal(column, operator, value)


def _compare_float32(column: Column, operator: str, value: object) -> str:
    """Lance would round the literal to the column's width; a value between two floats is compared in double width."""
    if _is_float32(_float(column, value)):
        return _compare_literal(column, operator, value)
    return f"CAST({column.sql} AS DOUBLE) {operator} {_double(column, value)}"


def _compare_instant(column: Column, operator: str, value: object) -> str:
    """Stored milliseconds against an instant in microseconds, without loss."""
    millis, rest = divmod(_micros(column, value), 1000)
    if rest:
        if operator == "=":
            return NO_ROW
        if operator == "!=":
            return f"{column.sql} IS NOT NULL"
        operator = "<=" if operator in ("<", "<=") else ">"
    return f"{column.sql} {operator} {date64(millis)}"


def _bool(column: Column, value: object) -> str:
    if not isinstance(value, bool):
        raise _mismatch(column, value)
    return "true" if value else "false"


def _integer(column: Column, value: object) -> str:
    number = _integral(column, value)
    low, high = _INTEGER_RANGES[column.type.scalar]
    if not low <= number <= high:
        raise BadRequestError(f"{number} is out of range for '{column.name}' of type {column.type.scalar}")
    # The negative limit of 64 bits would be read as the negation of a number that does not fit.
    return f"({number + 1} - 1)" if number == -(2**63) else str(number)


def _integral(column: Column, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        try:
            number = Decimal(value)
        except ArithmeticError:
            raise _mismatch(column, value) from None
        if number.is_finite() and number == number.to_integral_value():
            return int(number)
    raise _mismatch(column, value)


def _double(column: Column, value: object) -> str:
    number = _float(column, value)
    if math.isinf(number):
        return f"CAST('{number}' AS DOUBLE)"
    return repr(number)


def _float(column: Column, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise _mismatch(column, value)
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise _mismatch(column, value) from None
    if math.isnan(number) or (isinstance(value, int) and int(number) != value):
        raise BadRequestError(
            f"{value} cannot be compared exactly with '{column.name}' of type {column.type.display()}"
        )
    return number


def _is_float32(number: float) -> bool:
    try:
        return bool(struct.unpack("<f", struct.pack("<f", number))[0] == number)
    except OverflowError:
        return False


def _date(column: Column, value: object) -> str:
    if not isinstance(value, str):
        raise _mismatch(column, value)
    try:
        return f"date '{date.fromisoformat(value).isoformat()}'"
    except ValueError:
        raise _mismatch(column, value) from None


def _micros(column: Column, value: object) -> int:
    if not isinstance(value, str):
        raise _mismatch(column, value)
    instant = parse_instant(value)
    if instant is None:
        raise _mismatch(column, value)
    if instant.tzinfo is None:
        raise BadRequestError(f"the time compared with '{column.name}' has no zone; DateTime values are instants")
    return instant_micros(instant)


def _mismatch(column: Column, value: object) -> BadRequestError:
    return BadRequestError(f"{value!r} cannot be compared with '{column.name}' of type {column.type.display()}")


_Literal = Callable[[Column, object], str]
_LITERALS: Mapping[Scalar, _Literal] = {
    Scalar.STRING: text_literal,
    Scalar.BOOL: _bool,
    Scalar.I32: _integer,
    Scalar.I64: _integer,
    Scalar.U32: _integer,
    Scalar.U64: _integer,
    Scalar.F32: _double,
    Scalar.F64: _double,
    Scalar.DATE: _date,
}
_COMPARE: Mapping[Scalar, Callable[[Column, str, object], str]] = {
    Scalar.BOOL: _compare_bool,
    Scalar.F32: _compare_float32,
    Scalar.DATETIME: _compare_instant,
}
