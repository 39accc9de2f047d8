from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.engine.compare import compare
from spark_omnigraph.lang.gq.plan import Column, Comparator, Comparison, Constant
from spark_omnigraph.records.arrow_schema import property_type

ORDERED: dict[Comparator, Callable[[Any, Any], bool]] = {
    Comparator.EQUAL: lambda a, b: a == b,
    Comparator.NOT_EQUAL: lambda a, b: a != b,
    Comparator.LESS: lambda a, b: a < b,
    Comparator.LESS_OR_EQUAL: lambda a, b: a <= b,
    Comparator.GREATER: lambda a, b: a > b,
    Comparator.GREATER_OR_EQUAL: lambda a, b: a >= b,
}
VALUES: dict[Scalar, list[Any]] = {
    Scalar.I32: [None, -(2**31), -3, 0, 2, 3, 2**31 - 1],
    Scalar.I64: [None, -(2**63), -1, 0, 2**53, 2**53 + 1, 2**60, 2**60 + 1, 2**63 - 1],
    Scalar.U32: [None, 0, 3, 2**32 - 1],
    Scalar.U64: [None, 0, 2**53 + 1, 2**60, 2**63, 2**63 + 2**11, 2**63 + 2**11 + 1, 2**64 - 1],
    Scalar.F32: [None, -0.0, 0.0, 2.5, -1e30, math.inf, math.nan],
    Scalar.F64: [
        *(None, -0.0, 0.0, 0.5, -0.5, 2.7, -1e-300, -1e300, math.inf, -math.inf, math.nan),
        *map(float, (2**53, 2**60, 2**63, -(2**63), 2**63 + 2**11, 2**64)),
    ],
}


def exact(value: float) -> Fraction | float:
    return Fraction(value) if math.isfinite(value) else value


def column(name: str, scalar: Scalar) -> Column:
    return Column("x", name, PropType(scalar, nullable=True))


@pytest.mark.parametrize(("left", "right"), list(itertools.product(VALUES, VALUES)))
def test_numbers_of_any_two_types_compare_by_value(left: Scalar, right: Scalar) -> None:
    pairs = list(itertools.product(VALUES[left], VALUES[right]))
    columns = {
        "l": pa.array([a for a, _ in pairs], property_type(PropType(left))),
        "r": pa.array([b for _, b in pairs], property_type(PropType(right))),
    }
    stored = list(zip(columns["l"].to_pylist(), columns["r"].to_pylist(), strict=True))
    for comparator, plain in ORDERED.items():
        comparison = Comparison(comparator, column("l", left), column("r", right))
        got = compare(comparison, len(pairs), lambda c: columns[c.name]).tolist()
        assert got == [a is not None and b is not None and plain(exact(a), exact(b)) for a, b in stored], comparator


@pytest.mark.parametrize("scalar", VALUES)
@pytest.mark.parametrize(
    "value", [2, 2.7, 2.0, 3_000_000_000, -1, 2**63, 0.0, -0.0, 1e300, math.nan, math.inf, 2**53 + 1]
)
def test_constants_compare_by_value_on_either_side(scalar: Scalar, value: float) -> None:
    stored = pa.array(VALUES[scalar], property_type(PropType(scalar)))
    constant = Constant(
        value, PropType(Scalar.F64 if isinstance(value, float) else Scalar.U64 if value >= 2**63 else Scalar.I64)
    )
    for comparator, plain in ORDERED.items():
        expected = [v is not None and plain(exact(v), exact(value)) for v in stored.to_pylist()]
        if scalar is Scalar.F32 and value == 2.7:  # rounded to F32; no stored value lies between
            continue
        forward = Comparison(comparator, column("l", scalar), constant)
        assert compare(forward, len(stored), lambda _: stored).tolist() == expected
        backward = Comparison(comparator, constant, column("l", scalar))
        flipped = [v is not None and plain(exact(value), exact(v)) for v in stored.to_pylist()]
        assert compare(backward, len(stored), lambda _: stored).tolist() == flipped


def test_a_float_meets_an_f32_column_in_f32() -> None:
    stored = pa.array([0.1, 0.2], pa.float32())
    found = Comparison(Comparator.EQUAL, column("l", Scalar.F32), Constant(0.1, PropType(Scalar.F64)))
    assert compare(found, 2, lambda _: stored).tolist() == [True, False]


def test_null_is_never_true_for_any_comparator() -> None:
    texts = pa.array(["a", None])
    null = Constant(None, PropType(Scalar.STRING, nullable=True))
    for comparator in (*ORDERED, Comparator.STARTS_WITH, Comparator.HAS_TEXT):
        assert not compare(Comparison(comparator, column("l", Scalar.STRING), null), 2, lambda _: texts).any()
        assert not compare(
            Comparison(comparator, column("l", Scalar.STRING), Constant("", PropType(Scalar.STRING))),
            2,
            lambda _: texts,
        )[1]


def test_strings_compare_by_bytes() -> None:
    texts = pa.array(["Z", "a", "é", "\U0001f41d", "\uffee"])
    comparison = Comparison(Comparator.GREATER, column("l", Scalar.STRING), Constant("é", PropType(Scalar.STRING)))
    assert compare(comparison, 5, lambda _: texts).tolist() == [False, False, False, True, True]


def test_items_of_lists() -> None:
    lists = pa.array([[1, 2], [None], None, [], [2]], pa.list_(pa.int32()))
    of = Column("x", "l", PropType(Scalar.I32, nullable=True, is_list=True))
    for value, expected in [
        (2, [True, False, False, False, True]),
        (2.5, [False] * 5),
        (2.0, [True, False, False, False, True]),
    ]:
        constant = Constant(value, PropType(Scalar.F64 if isinstance(value, float) else Scalar.I64))
        assert compare(Comparison(Comparator.HAS_ITEM, of, constant), 5, lambda _: lists).tolist() == expected
    columns = {"l": lists, "r": pa.array([1, 1, 1, 1, 2], pa.int64())}
    found = Comparison(Comparator.HAS_ITEM, of, column("r", Scalar.I64))
    assert compare(found, 5, lambda c: columns[c.name]).tolist() == [True, False, False, False, True]


def test_text_parts_are_exact_and_not_patterns() -> None:
    texts = pa.array(["a%b", "axb", "A%B", None])
    of = column("l", Scalar.STRING)
    for comparator, part, expected in [
        (Comparator.HAS_TEXT, "%b", [True, False, False, False]),
        (Comparator.STARTS_WITH, "a", [True, True, False, False]),
        (Comparator.STARTS_WITH, "", [True, True, True, False]),
    ]:
        constant = Constant(part, PropType(Scalar.STRING))
        assert compare(Comparison(comparator, of, constant), 4, lambda _: texts).tolist() == expected
    columns = {"l": texts, "r": pa.array(["%", "%", None, "a"])}
    found = Comparison(Comparator.HAS_TEXT, of, column("r", Scalar.STRING))
    assert compare(found, 4, lambda c: columns[c.name]).tolist() == [True, False, False, False]
