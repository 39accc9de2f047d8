"""JSON numbers as values of the stored width: exact, or refused."""

from __future__ import annotations

import numpy as np

from spark_omnigraph.catalog.numbers import Real
from spark_omnigraph.catalog.types import Scalar

EXACT_INTEGERS = {Scalar.F32: 2**24, Scalar.F64: 2**53}
"""Below this every integer has its own float."""
FLOAT_INTEGERS = 2**53


def whole_number(value: object) -> int | None:
    """The integer that was written without fraction and exponent; None for any other value."""
    if isinstance(value, Real):
        return 0 if value.text == "-0" else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def float_text(value: float, scalar: Scalar) -> str:
    """Shortest decimal spelling of a finite float that reads back as the same stored value; both zeros are `0`.

    >>> float_text(2.0, Scalar.F64), float_text(0.1, Scalar.F32), float_text(-0.0, Scalar.F64)
    ('2', '0.1', '0')
    """
    if value == 0:
        return "0"
    stored = np.float32(value) if scalar is Scalar.F32 else np.float64(value)
    return str(np.format_float_positional(stored, unique=True, trim="-"))
