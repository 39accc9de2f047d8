"""JSON numbers as values of the stored width: exact, or refused."""

from __future__ import annotations

import math

import numpy as np

from spark_omnigraph.catalog.numbers import Real, single
from spark_omnigraph.catalog.types import Scalar

EXACT_INTEGERS = {Scalar.F32: 2**24, Scalar.F64: 2**53}
"""Below this every integer has its own float."""
FLOAT_INTEGERS = 2**53


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
        stored = single(wide) if scalar is Scalar.F32 else wide
        return stored if math.isinf(stored) or int(stored) == value else None
    return single(value) if scalar is Scalar.F32 else float(value)


def float_text(value: float, scalar: Scalar) -> str:
    """Shortest decimal spelling of a finite float that reads back as the same stored value; both zeros are `0`.

    >>> float_text(2.0, Scalar.F64), float_text(0.1, Scalar.F32), float_text(-0.0, Scalar.F64)
    ('2', '0.1', '0')
    """
    if value == 0:
        return "0"
    stored = np.float32(value) if scalar is Scalar.F32 else np.float64(value)
    return str(np.format_float_positional(stored, unique=True, trim="-"))
