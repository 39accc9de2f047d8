"""JSON values of a result."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pytest

from spark_omnigraph.answer import Json, json_values
from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.engine.result import QueryResult
from spark_omnigraph.lang.gq.plan import ResultColumn


def dates(values: list[int | None], of: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int32() if of == pa.date32() else pa.int64()).view(of)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([2**63 - 1, None]), [2**63 - 1, None]),
        (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
        (pa.array([0.1], pa.float32()), [0.10000000149011612]),
        (pa.array([math.nan, math.inf, -math.inf, -0.0]), ["NaN", "Infinity", "-Infinity", -0.0]),
        (dates([0, -1, None, 2932896], pa.date32()), ["1970-01-01", "1969-12-31", None, "9999-12-31"]),
        (dates([1, -1, None], pa.date64()), ["1970-01-01T00:00:00.001Z", "1969-12-31T23:59:59.999Z", None]),
        (dates([-719529], pa.date32()), ["-001-12-31"]),
        (pa.array([[1.5, None], None, []], pa.list_(pa.float64())), [[1.5, None], None, []]),
        (pa.array([[0.5, 1.0]], pa.list_(pa.float32(), 2)), [[0.5, 1.0]]),
        (pa.array([], pa.date32()), []),
        (pa.array([None, None], pa.null()), [None, None]),
        (pa.array([True, None]), [True, None]),
    ],
)
def test_values(column: pa.Array, expected: list[Json]) -> None:
    found = json_values(column)
    assert found == expected
    assert json_values(pa.chunked_array([column, column])) == expected * 2
    json.dumps(found, allow_nan=False)


def test_lists_of_dates() -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2]), dates([0, None], pa.date32()))
    assert json_values(lists) == [["1970-01-01", None], []]
    assert json_values(lists.slice(1)) == [[]]


def test_the_last_of_two_columns_with_one_name_stays_in_a_dictionary() -> None:
    of = PropType(Scalar.I64)
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])
    result = QueryResult("q", (ResultColumn("n", of), ResultColumn("n", of)), table, "main", 4)
    assert result.column_names == ["n", "n"]
    assert (result.to_pylist(), len(result)) == ([{"n": 2}], 1)
    assert json.loads(result.to_json()) == {
        "query_name": "q",
        "target": {"branch": "main", "manifest_version": 4},
        "row_count": 1,
        "columns": ["n", "n"],
        "rows": [{"n": 2}],
    }
