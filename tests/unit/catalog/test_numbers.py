"""Integers by their digits, whatever the exponent."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_omnigraph.catalog.numbers import BEYOND, count_of, integer_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4503599627370497.5", None),
        ("9007199254740990.6", None),
        ("1e-400", None),
        ("0e-400", 0),
        ("-0.0", 0),
        ("1.00000000000000000001", None),
        ("9007199254740993.000", 9007199254740993),
        ("-18446744073709551615e0", -(2**64 - 1)),
        ("1500e-2", 15),
        ("1505e-2", None),
        (".5e1", 5),
        ("1e999999999999999999999999", BEYOND),
        ("-1e+999999999", -BEYOND),
        ("1e-999999999999999999999999", None),
        ("0e999999999999999999999999", 0),
        ("9" * 100_000, BEYOND),
        ("0." + "0" * 100_000, 0),
        ("1" + "0" * 100_000 + "e-100000", 1),
        ("1e0000000000000000000000002", 100),
        ("", None),
        ("e5", None),
        (".", None),
        ("1x", None),
        ("١", None),
    ],
)
def test_integers_of_texts(text: str, expected: int | None) -> None:
    assert integer_of(text) == expected


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30))
def test_it_agrees_with_decimals(number: Decimal) -> None:
    whole = number == number.to_integral_value()
    assert integer_of(str(number)) == (int(number) if whole else None)


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 0), ("0042", 42), ("9" * 18, 10**18 - 1), ("0" * 5000 + "7", 7), ("9" * 19, None), ("9" * 5000, None)]
    + [(text, None) for text in ("", "-1", "+1", "1.0", "1_000", " 1", "²", "٣")],
)
def test_a_count_is_ascii_digits_that_fit(text: str, count: int | None) -> None:
    assert count_of(text) == count
