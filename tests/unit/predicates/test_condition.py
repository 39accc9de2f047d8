"""A comparison means the same to Lance as by the book, also with numbers that no column can hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from spark_omnigraph.catalog.types import EntityType, NodeType, Property, PropType, Scalar
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.predicates.condition import Number, on_number
from spark_omnigraph.predicates.where import parse_where, where_json, where_sql

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
STORED: dict[Scalar, tuple[pa.DataType, list[int | float]]] = {
    Scalar.I64: (pa.int64(), [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1]),
    Scalar.U64: (pa.uint64(), [0, 2**63, 2**64 - 1]),
    Scalar.F32: (pa.float32(), [-1.5, 0.0, float(np.float32(0.1)), 16777216.0, float(np.finfo(np.float32).max)]),
    Scalar.F64: (pa.float64(), [-1.5, 0.0, 0.1, 2.0**53, 1e300]),
    Scalar.DATETIME: (pa.date64(), [-86_400_001, 0, 1, 1704067200001]),
}
ASKED: list[Number] = [
    0, 1, -1, 2**53 + 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 2**1100, -(2**1100), 0.1, -0.5, 1e300,
    math.inf, -math.inf, 16777217, Fraction(1, 3), Fraction(1704067200001000001, 1000000),
]  # laid out as a table  # fmt: skip


@pytest.mark.parametrize("scalar", STORED, ids=str)
def test_every_number_against_every_operator(tmp_path: Path, scalar: Scalar) -> None:
    of, values = STORED[scalar]
    whole = pa.array(values, pa.int64() if pa.types.is_date64(of) else of)
    stored = whole.view(of) if pa.types.is_date64(of) else whole
    table = lance.write_dataset(pa.table({"p": stored, "n": range(len(values))}), tmp_path / "t")
    for value in ASKED:
        for operator, holds in OPERATORS.items():
            expected = [n for n, each in enumerate(values) if holds(each, value)]
            where = on_number("p", scalar, operator, value).sql
            assert table.to_table(filter=where)["n"].to_pylist() == expected, (operator, value, where)


def one(scalar: Scalar) -> EntityType:
    return NodeType("T", 1, (Property("p", 1, PropType(scalar)),))


@pytest.mark.parametrize("text", ["1e999999999", "1e5000", "-1e26", "9" * 4000])
@pytest.mark.parametrize("scalar", [Scalar.I32, Scalar.U64], ids=str)
def test_an_integer_of_many_digits_is_out_of_range_before_it_is_spelled_out(scalar: Scalar, text: str) -> None:
    with pytest.raises(BadRequestError, match="out of range for 'p'"):
        where_sql(parse_where(f'[["p", "=", "{text}"]]'), one(scalar))


def test_small_texts_of_integers_are_exact() -> None:
    terms = parse_where('[["p", "in", ["0e999999999", "1e3", "12.0"]]]')
    assert where_sql(terms, one(Scalar.I64)) == "(`p` IN (0, 1000, 12))"


@pytest.mark.parametrize("text", ['"1e-999999999"', '"0.5"', '"x"', '""', '"Infinity"', "0.5"])
def test_what_is_no_integer(text: str) -> None:
    with pytest.raises(BadRequestError, match="cannot be compared with 'p' of type I64"):
        where_sql(parse_where(f'[["p", "=", {text}]]'), one(Scalar.I64))


def test_deep_conditions_are_no_json() -> None:
    with pytest.raises(BadRequestError, match="is not JSON"):
        parse_where("[" * 200_000)


def test_dates_are_days() -> None:
    terms = parse_where(where_json([("p", "<", date(1970, 1, 3))]))
    assert where_sql(terms, one(Scalar.DATE)) == "(`p` < arrow_cast(2, 'Date32'))"
