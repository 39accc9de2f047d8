"""Equality of rows by type: what differs to a user differs here, and nothing else does."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_omnigraph.records.arrow_schema import BLOB
from spark_omnigraph.records.equality import equal_rows

NAN = float("nan")
CASES = [
    (pa.string(), ["a", "", None, None, ""], ["a", "", None, "", None], [True, True, True, False, False]),
    (pa.string(), ["a\u001fb"], ["a"], [False]),
    (pa.float64(), [1.0, NAN, 0.0, None, NAN], [1.0, NAN, -0.0, 0.0, None], [True, True, False, False, False]),
    (pa.int64(), [2**63 - 1, -(2**63)], [2**63 - 2, -(2**63)], [False, True]),
    (pa.list_(pa.int32()), [[1, 2], [], None, [None], [1], []], [[1, 2], [], None, [0], [1, 2], None],
     [True, True, True, False, False, False]),
    (pa.list_(pa.string()), [["a"], [""], ["x", None]], [["a"], [None], ["x", None]], [True, False, True]),
    (pa.list_(pa.float32(), 2), [[1, 2], None, [1, 2]], [[1, 2], None, [1, 3]], [True, True, False]),
    (BLOB, [{"data": b"a", "uri": None}, None, {"data": None, "uri": "u"}, {"data": b"", "uri": None}],
     [{"data": b"a", "uri": None}, None, {"data": None, "uri": "v"}, None], [True, True, False, False]),
]  # laid out as a table  # fmt: skip


@pytest.mark.parametrize(("kind", "left", "right", "expected"), CASES, ids=lambda value: str(value)[:30])
def test_values_of_each_type(kind: pa.DataType, left: list[object], right: list[object], expected: list[bool]) -> None:
    tables = [pa.table({"id": [str(i) for i in range(len(v))], "v": pa.array(v, kind)}) for v in (left, right)]
    assert equal_rows(*tables).tolist() == expected
    shifted = [pa.concat_tables([t, t]).combine_chunks().slice(1, len(left)) for t in tables]
    assert equal_rows(*shifted).tolist() == [*expected[1:], expected[0]], "arrays that begin inside a longer one"


def test_no_rows_are_equal_rows() -> None:
    empty = pa.table({"v": pa.array([], pa.list_(pa.float32(), 3)), "w": pa.array([], pa.list_(pa.string()))})
    assert equal_rows(empty, empty).tolist() == []
