"""JSON numbers as values of the stored width: exact, or refused."""

from __future__ import annotations

import math
import struct

import numpy as np

from spark_omnigraph.catalog.numbers import BEYOND, Real, integer_of
from spark_omnigraph.catalog.types import Scalar

STORED_NAMES = {
    Scalar.I32: "Int32",
    Scalar.I64: "Int64",
    Scalar.U32: "UInt32",
    Scalar.U64: "UInt64",
    Scalar.F32: "Float32",
    Scalar.F64: "Float64",
}
EXACT_INTEGERS = {Scalar.F32: 2**24, Scalar.F64: 2**53}
"""Below this every integer has its own float."""
FLOAT_INTEGERS = 2**53
_FLOAT32 = struct.Struct("<f")


def integral(value: object) -> int | None:
    """The integer that a JSON number means: integers, and numbers whose fraction is zero. None for anything else.

    A number that was read from text is judged by its digits: the nearest float may have lost its fraction.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, Real):
        return integer_of(value.text)
    if not isinstance(value, float):
        return None
    if math.isinf(value):
        return BEYOND if value > 0 else -BEYOND
    return int(value) if value.is_integer() else None


def whole_number(value: object) -> int | None:
    """The integer that was written without fraction and exponent; None for any other value."""
    if isinstance(value, Real):
        return 0 if value.text == "-0" else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def float_value(value: int | float, scalar: Scalar) -> float | None:
    """The stored float of a JSON number; infinite when it overflows, None for an integer that no such float equals."""
    if isinstance(value, int):
        if abs(value) > 2**128 and scalar is Scalar.F32:
            return math.inf
        try:
            wide = float(value)
        except OverflowError:
            return math.inf
        stored = _narrow(wide) if scalar is Scalar.F32 else wide
        return stored if math.isinf(stored) or int(stored) == value else None
    return _narrow(value) if scalar is Scalar.F32 else float(value)


def float_text(value: float, scalar: Scalar) -> str:
    """Shortest decimal spelling of a finite float that reads back as the same stored value; both zeros are `0`.

    >>> float_text(2.0, Scalar.F64), float_text(0.1, Scalar.F32), float_text(-0.0, Scalar.F64)
    ('2', '0.1', '0')
    """
    if value == 0:
        return "0"
    stored = np.float32(value) if scalar is Scalar.F32 else np.float64(value)
    return str(np.format_float_positional(stored, unique=True, trim="-"))


def _narrow(value: float) -> float:
    try:
        narrow: float = _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return narrow
