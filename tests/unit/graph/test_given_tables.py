"""Tables that a caller has in memory: what they are in polars and pandas, and sources that are not what they say."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from spark_omnigraph import BadRequestError, BadRowsError, Graph, LoadOptions

SCHEMA = """
node Person { name: String @key  born: I64?  score: F64?  tags: [String]?  day: Date?  at: DateTime?  ok: Bool? }
"""
QUERY = (
    "query all() { match { $p: Person } return { $p.name as name, $p.born as born, $p.score as score, $p.tags as tags, "
    "$p.day as day, $p.at as at, $p.ok as ok } order { name asc } }"
)
UTC = dt.timezone.utc
FRAME = pl.DataFrame(
    {
        "name": ["", "a", "b"],
        "born": [-(2**63), 2**63 - 1, None],
        "score": [-0.0, 5e-324, None],
        "tags": [["x", None, ""], [], None],
        "day": [dt.date(1, 1, 1), dt.date(9999, 12, 31), None],
        "at": [dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), None],
        "ok": [True, False, None],
    },
    schema_overrides={"at": pl.Datetime("ms", "UTC")},
)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", SCHEMA)


def stored(graph: Graph) -> list[dict[str, Any]]:
    """What rows have, their ids and nulls aside."""
    rows = (json.loads(line)["data"] for line in graph.export())
    return [{name: value for name, value in row.items() if value is not None and name != "id"} for row in rows]


def load(graph: Graph, rows: object, mode: str = "append", **options: Any) -> list[dict[str, Any]]:
    graph.load_table("node:Person", rows, mode, options=LoadOptions(build_indexes=False, **options))
    return stored(graph)


class TestPolars:
    @pytest.mark.parametrize("make", [lambda frame: frame, lambda frame: frame.lazy()], ids=["frame", "lazy"])
    def test_a_frame_comes_back_as_it_went_in(self, graph: Graph, make: Callable[[pl.DataFrame], Any]) -> None:
        load(graph, make(FRAME))
        assert graph.query(QUERY).to_polars().equals(FRAME)

    @pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["a", "b"])], ids=["categorical", "enum"])
    def test_words_of_a_dictionary_are_texts(self, graph: Graph, kind: Any) -> None:
        frame = pl.DataFrame({"name": ["b", "a"], "tags": [["b", "a"], None]}, {"name": kind, "tags": pl.List(kind)})
        assert load(graph, frame) == [{"name": "a"}, {"name": "b", "tags": ["b", "a"]}]

    def test_arrays_decimals_and_columns_without_a_value(self, graph: Graph) -> None:
        columns = {
            "name": ["a"],
            "tags": pl.Series([["x", "y"]], dtype=pl.Array(pl.String, 2)),
            "born": [Decimal(7)],
            "ok": [None],
        }
        assert load(graph, pl.DataFrame(columns)) == [{"name": "a", "tags": ["x", "y"], "born": 7}]

    def test_a_frame_may_patch_and_may_change(self, graph: Graph) -> None:
        load(graph, FRAME)
        load(graph, pl.DataFrame({"name": ["a", "b"], "born": [1, None]}), "update", nulls="keep")
        load(graph, pl.DataFrame({"name": ["", "b"], "op": ["d", "u"], "ok": [None, True]}), "changes")
        kept = {"day": 2932896, "at": "9999-12-31T23:59:59.000Z", "score": 5e-324, "tags": [], "ok": False}
        assert stored(graph) == [{"name": "a", "born": 1, **kept}, {"name": "b", "ok": True}]

    def test_bad_rows_have_their_number(self, graph: Graph) -> None:
        with pytest.raises(BadRowsError) as caught:
            load(graph, pl.DataFrame({"name": ["a", None, "c"]}).lazy())
        assert [(row.line, str(row.rule)) for row in caught.value.summary.sample] == [(2, "key_missing")]


class TestPandas:
    def test_floats_that_may_have_been_other_integers_are_none(self, graph: Graph) -> None:
        with pytest.raises(BadRequestError, match="column 'born' is double"):
            load(graph, pd.DataFrame({"name": ["a", "b"], "born": [2.0**53, None]}))
        rows = pd.DataFrame({"name": ["a", "b"], "born": [2.0**53 - 1, None]})
        assert load(graph, rows) == [{"name": "a", "born": 2**53 - 1}, {"name": "b"}]

    def test_a_zero_keeps_its_sign(self, graph: Graph) -> None:
        load(graph, pd.DataFrame({"name": ["a", "b"], "score": [-0.0, None]}))
        assert [str(row.get("score")) for row in stored(graph)] == ["-0.0", "None"]

    def test_of_a_column_without_values_nothing_is_known(self, graph: Graph) -> None:
        missing = float("nan")
        rows = pd.DataFrame({"name": ["a"], "tags": [missing], "born": [missing], "at": [pd.NaT], "ok": [None]})
        assert load(graph, rows) == [{"name": "a"}]
        assert load(graph, pd.DataFrame({"name": [], "born": []})) == [{"name": "a"}]

    @pytest.mark.parametrize(
        "frame",
        [
            pd.DataFrame([["a", "b"]], columns=["name", "name"]),
            pd.DataFrame({"name": ["a\ud800"]}),
            pd.DataFrame({"name": ["a", 1]}),
            pd.DataFrame({"name": ["a"], "born": [1j]}),
            pd.DataFrame({"name": ["a", "b"], "born": pd.arrays.SparseArray([0, 1])}),
        ],
        ids=["a name twice", "half a pair", "mixed", "complex", "sparse"],
    )
    def test_what_arrow_does_not_take_is_refused(self, graph: Graph, frame: pd.DataFrame) -> None:
        with pytest.raises(BadRequestError, match="a DataFrame of pandas is no table of Arrow"):
            load(graph, frame)


class TestBatches:
    def test_tables_in_a_list_are_one(self, graph: Graph) -> None:
        assert load(graph, [pa.table({"name": [name]}) for name in "ab"]) == [{"name": "a"}, {"name": "b"}]

    @pytest.mark.parametrize(
        "other",
        [
            pa.record_batch({"name": ["b"], "born": [1]}),
            pa.record_batch({"name": [5]}),
            pa.table({"born": [1]}),
            "b",
            None,
        ],
        ids=["more", "another type", "other names", "a text", "nothing"],
    )
    def test_one_of_other_columns_is_refused_with_its_place(self, graph: Graph, other: object) -> None:
        with pytest.raises(BadRequestError, match="item 1 of the input"):
            load(graph, iter([pa.record_batch({"name": ["a"]}), other]))
        assert stored(graph) == []

    def test_a_reader_that_breaks_off_loads_nothing(self, graph: Graph) -> None:
        def rows() -> Iterator[pa.RecordBatch]:
            yield pa.record_batch({"name": ["a"]})
            raise KeyError("the source broke")

        schema = pa.schema([("name", pa.string())])
        with pytest.raises(BadRequestError, match=r"input .<table>. broke off while it was read: .*the source broke"):
            load(graph, pa.RecordBatchReader.from_batches(schema, rows()))
        with pytest.raises(KeyError, match="the source broke"):
            load(graph, rows())
        assert stored(graph) == []
        assert graph.store.objects.list("__recovery") == []

    def test_what_was_read_before_empties_no_type(self, graph: Graph) -> None:
        once: list[Any] = [pa.table({"name": ["a"]}).to_reader(), iter([{"name": "a"}]), iter([FRAME.to_arrow()[:0]])]
        for rows in once[:2]:
            load(graph, rows, "overwrite")
            with pytest.raises(BadRequestError, match="an iterator or a reader gives its rows once"):
                load(graph, rows, "overwrite")
            assert load(graph, rows, "merge") == [{"name": "a"}]
        assert load(graph, once[2], "overwrite") == []


class TestDictionaries:
    def test_none_at_all_are_no_mistake(self, graph: Graph) -> None:
        assert load(graph, []) == []
        with pytest.raises(BadRequestError, match="the input has no rows, and an overwrite would empty the type"):
            load(graph, [], "overwrite")

    @pytest.mark.parametrize("text", ["Infinity", "NaN", "1e30000000", "-1e4000"])
    def test_decimals_beyond_all_numbers_are_bad_rows(self, graph: Graph, text: str) -> None:
        with pytest.raises(BadRowsError):
            load(graph, [{"name": "a", "score": Decimal(text)}])

    @pytest.mark.parametrize("text", ["9007199254740993.5", "1e-400", "sNaN"])
    def test_decimals_of_which_a_float_makes_another_number_are_refused(self, graph: Graph, text: str) -> None:
        with pytest.raises(BadRequestError, match="item 0 of the input is no record"):
            load(graph, [{"name": "a", "born": Decimal(text)}])


def test_a_mapping_of_files_is_none_of_rows(graph: Graph) -> None:
    mapping = {"inputs": [{"path": "people.csv", "node": "Person"}]}
    with pytest.raises(BadRequestError, match="the mapping names its inputs by 'path', and rows are given beside it"):
        graph.load(pa.table({"name": ["a"]}), mapping=mapping)
