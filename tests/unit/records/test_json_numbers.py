from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_omnigraph.catalog.numbers import Real, float_value, integral
from spark_omnigraph.catalog.types import Scalar
from spark_omnigraph.records.json_numbers import float_text, whole_number


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        (Real("2.0"), 2),
        (Real("2.5"), None),
        (Real("1e3"), 1000),
        (Real("-0"), 0),
        (Real("9007199254740993.0"), 9007199254740993),
        (Real("9007199254740992.5"), None),
        (Real("1e18"), 10**18),
        (True, None),
        ("5", None),
        (None, None),
        ([1], None),
    ],
)
def test_integral(value: object, expected: int | None) -> None:
    assert integral(value) == expected


def test_numbers_beyond_every_float_are_integral_and_out_of_every_range() -> None:
    assert abs(integral(Real("-1e400")) or 0) > 2**64
    assert (integral(Real("9" * 500)) or 0) > 2**64


def test_whole_numbers_are_written_without_fraction_and_exponent() -> None:
    assert [whole_number(v) for v in (5, Real("-0"), Real("2.0"), Real("1e3"), True, "5", None)] == [
        5,
        0,
        None,
        None,
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("value", "scalar", "expected"),
    [
        (3, Scalar.F64, 3.0),
        (2**53, Scalar.F64, 2.0**53),
        (2**53 + 1, Scalar.F64, None),
        (10**400, Scalar.F64, math.inf),
        (2**24, Scalar.F32, 2.0**24),
        (2**24 + 1, Scalar.F32, None),
        (2**24 + 2, Scalar.F32, 2.0**24 + 2),
        (10**39, Scalar.F32, math.inf),
        (Real("0.1"), Scalar.F32, float(np.float32(0.1))),
        (Real("1e39"), Scalar.F32, math.inf),
        (Real("-1e39"), Scalar.F32, -math.inf),
        (Real("1e-60"), Scalar.F32, 0.0),
        (Real("1e400"), Scalar.F64, math.inf),
        (Real("1e300"), Scalar.F64, 1e300),
    ],
)
def test_stored_floats(value: int | float, scalar: Scalar, expected: float | None) -> None:
    assert float_value(value, scalar) == expected


def test_the_sign_of_zero_is_kept() -> None:
    stored = float_value(Real("-0"), Scalar.F32)
    assert stored is not None
    assert math.copysign(1, stored) == -1


@pytest.mark.parametrize(
    ("value", "scalar", "text"),
    [
        (0.0, Scalar.F64, "0"),
        (-0.0, Scalar.F32, "0"),
        (2.0, Scalar.F64, "2"),
        (-1.5, Scalar.F64, "-1.5"),
        (0.1, Scalar.F32, "0.1"),
        (0.1, Scalar.F64, "0.1"),
        (1e21, Scalar.F64, "1000000000000000000000"),
        (1e-7, Scalar.F64, "0.0000001"),
        (16777216.0, Scalar.F32, "16777216"),
        (0.30000000000000004, Scalar.F64, "0.30000000000000004"),
    ],
)
def test_shortest_texts(value: float, scalar: Scalar, text: str) -> None:
    assert float_text(value, scalar) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_texts_read_back(value: float) -> None:
    assert float(float_text(value, Scalar.F64)) == value


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_narrow_texts_read_back(value: float) -> None:
    assert np.float32(float_text(value, Scalar.F32)) == np.float32(value)
    assert float_value(value, Scalar.F32) == value
