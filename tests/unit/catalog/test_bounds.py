"""Spellings of bounds. The expected texts come from the reference engine's own writers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_omnigraph.catalog.bounds import debug_bound, json_float
from spark_omnigraph.catalog.types import Bound


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (0.30000000000000004, "0.30000000000000004"),
        (1234567.125, "1234567.125"),
        (0.0001, "0.0001"),
        (0.00001, "0.00001"),
        (0.000001, "1e-6"),
        (0.0000012, "1.2e-6"),
        (1e15, "1000000000000000.0"),
        (9007199254740993.0, "9007199254740992.0"),
        (1e16, "1e+16"),
        (12345678901234567.0, "1.2345678901234568e+16"),
        (9223372036854775808.0, "9.223372036854776e+18"),
        (123456789012345678901234.5, "1.2345678901234569e+23"),
        (5e-324, "5e-324"),
    ],
)
def test_json(value: float, text: str) -> None:
    assert json_float(value) == text


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (None, "None"),
        (0, "Some(Integer(0))"),
        (-7, "Some(Integer(-7))"),
        (1.0, "Some(Float(1.0))"),
        (-0.0, "Some(Float(-0.0))"),
        (0.0001, "Some(Float(0.0001))"),
        (0.00001, "Some(Float(1e-5))"),
        (1.25e-7, "Some(Float(1.25e-7))"),
        (1e15, "Some(Float(1000000000000000.0))"),
        (1e16, "Some(Float(1e16))"),
        (1.5e300, "Some(Float(1.5e300))"),
    ],
)
def test_debug(bound: Bound | None, text: str) -> None:
    assert debug_bound(bound) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_reads_back_to_the_same_float(value: float) -> None:
    read = float(json_float(value))
    assert (read, math.copysign(1, read)) == (value, math.copysign(1, value))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_digit_is_wasted(value: float) -> None:
    def digits(text: str) -> str:
        return text.lower().split("e")[0].replace(".", "").replace("-", "").strip("0")

    assert digits(json_float(value)) == digits(repr(value))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_only_finite_numbers_have_a_spelling(value: float) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        json_float(value)
