from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_omnigraph.catalog.numbers import Real
from spark_omnigraph.catalog.types import Scalar
from spark_omnigraph.records.keys import composite_id, composite_ids, endpoint_id, key_ids, key_text
from tests.unit.records.builders import CATALOG


def _ids(node: str, **columns: pa.Array) -> list[str | None]:
    ids: list[str | None] = key_ids(CATALOG.nodes[node], pa.table(columns)).to_pylist()
    return ids


def test_single_keys() -> None:
    assert _ids("Reed", tag=pa.array(["a", "", "é\n"])) == ["a", "", "é\n"]
    assert _ids("Nth", n=pa.array([0, 2**64 - 1], pa.uint64())) == ["0", "18446744073709551615"]
    assert _ids("Flag", on=pa.array([True, False])) == ["true", "false"]
    assert _ids("Day", day=pa.array([-1, 19727], pa.int32()).cast(pa.date32())) == ["-1", "19727"]
    assert _ids("Moment", at=pa.array([-1, 1704449472001], pa.int64()).view(pa.date64())) == ["-1", "1704449472001"]
    reals = pa.array(np.array([0.0, -0.0, 0.1, 2.0, -1.5e10], dtype=np.float32))
    assert _ids("Real", x=reals) == ["0", "0", "0.1", "2", "-15000000000"]


def test_rows_without_a_usable_key_have_no_id() -> None:
    assert _ids("Real", x=pa.array([None, float("nan"), float("inf"), 1], pa.float32())) == [None, None, None, "1"]
    assert _ids("Reed", tag=pa.array([None, "x"])) == [None, "x"]


def test_chunked_tables() -> None:
    column = pa.chunked_array([pa.array(["a"]), pa.array(["b", "c"])])
    assert key_ids(CATALOG.nodes["Reed"], pa.table({"tag": column})).to_pylist() == ["a", "b", "c"]


def test_composite_keys_are_arrays_of_all_columns_in_sorted_order() -> None:
    area = pa.array(["n", 'q"\\', "\x01", "é", None])
    num = pa.array([1, -2, 3, 4, 5], pa.int32())
    assert _ids("Lot", num=num, area=area) == [
        '["n","1"]',
        '["q\\"\\\\","-2"]',
        '["\\u0001","3"]',
        '["é","4"]',
        None,
    ]


def test_composite_keys_of_other_types() -> None:
    columns = {
        "a": pa.array([19727], pa.int32()).cast(pa.date32()),
        "b": pa.array([2.0]),
        "c": pa.array([True]),
    }
    assert _ids("Pair", **columns) == ['["19727","2","true"]']


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_columns_and_single_values_give_the_same_arrays(pairs: list[tuple[str, str]]) -> None:
    columns = [pa.array([pair[place] for pair in pairs], pa.string()) for place in (0, 1)]
    expected = [composite_id(pair) for pair in pairs]
    assert composite_ids(columns).to_pylist() == expected
    assert [tuple(json.loads(text)) for text in expected] == pairs


@pytest.mark.parametrize(
    ("node", "value", "expected"),
    [
        ("Reed", "x", "x"),
        ("Reed", 5, None),
        ("Reed", True, None),
        ("Reed", ["x"], None),
        ("Reed", {"tag": "x"}, None),
        ("Reed", None, None),
        ("Free", "01J", "01J"),
        ("Free", 5, None),
        ("Nth", 5, "5"),
        ("Nth", "5", "5"),
        ("Nth", Real("2.0"), "2"),
        ("Nth", Real("2.5"), None),
        ("Nth", Real("-0"), "0"),
        ("Nth", True, None),
        ("Nth", 18446744073709551615, "18446744073709551615"),
        ("Flag", True, "true"),
        ("Flag", "true", "true"),
        ("Flag", 1, None),
        ("Real", 2, "2"),
        ("Real", Real("0.1"), "0.1"),
        ("Real", Real("-0.0"), "0"),
        ("Real", Real("1e39"), None),
        ("Real", 16777217, None),
        ("Day", 19727, "19727"),
        ("Day", "19727", "19727"),
        ("Day", "-1", "-1"),
        ("Day", "2024-01-05", "19727"),
        ("Day", "2024-1-5", "19727"),
        ("Day", "no day", "no day"),
        ("Day", "20240105", "20240105"),
        ("Day", Real("19727.0"), None),
        ("Moment", "2024-01-05T10:11:12.001Z", "1704449472001"),
        ("Moment", 1704449472001, "1704449472001"),
        ("Lot", ["n", 1], '["n","1"]'),
        ("Lot", ["n", "1"], '["n","1"]'),
        ("Lot", '["n","1"]', '["n","1"]'),
        ("Lot", ["n"], None),
        ("Lot", ["n", 1, 2], None),
        ("Lot", ["n", None], None),
        ("Lot", [1, 1], None),
        ("Lot", 1, None),
        ("Pair", ["2024-01-05", 2, True], '["19727","2","true"]'),
        ("Pair", [19727, "2", "true"], '["19727","2","true"]'),
    ],
)
def test_endpoints(node: str, value: object, expected: str | None) -> None:
    assert endpoint_id(value, CATALOG.nodes[node]) == expected


def test_stored_values_have_the_text_that_columns_have() -> None:
    assert key_text(19727, Scalar.DATE) == "19727"
    assert key_text(float(np.float32(0.1)), Scalar.F32) == "0.1"
    assert key_text(False, Scalar.BOOL) == "false"
