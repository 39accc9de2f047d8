"""A DateTime keeps its time of day at every door, and an instant has one text."""

from __future__ import annotations

import json
import sys
from datetime import date, datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_omnigraph import BadRequestError, Graph
from spark_omnigraph.engine.result import QueryResult

SCHEMA = "node T { k: String @key  at: DateTime? @index  many: [DateTime]?  day: Date? }"
SEVEN, FOURTEEN = "2024-01-01T00:07:00.000Z", "2024-01-01T00:14:00.250Z"
FIRST, LAST = "0001-01-01T00:00:00.001Z", "9999-12-31T23:59:59.999Z"
ROWS: tuple[dict[str, Any], ...] = (
    {"k": "a", "at": "2024-01-01T00:07:00Z", "many": ["2024-01-01T00:07:00Z", None], "day": "2024-01-31"},
    {"k": "b", "at": "2024-01-01T01:14:00.2509+01:00", "many": [], "day": None},
    {"k": "c", "at": FIRST, "many": [LAST], "day": "0001-01-01"},
    {"k": "d", "at": LAST, "many": None, "day": "9999-12-31"},
    {"k": "e", "at": None, "many": None, "day": None},
)
ALL = "query q() { match { $t: T } return { $t.at as at, $t.many as many, $t.day as day } order { $t.k } }"
MOMENT = pa.timestamp("ms", "UTC")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = Graph.init(tmp_path_factory.mktemp("instants") / "g", SCHEMA)
    made.load([json.dumps({"type": "T", "data": row}) for row in ROWS])
    return made


@pytest.fixture(scope="module")
def result(graph: Graph) -> QueryResult:
    return graph.query(ALL)


def test_arrow_streams_and_parquet_have_instants(result: QueryResult, tmp_path: Path) -> None:
    pq.write_table(result.to_arrow(), tmp_path / "rows.parquet")
    for table in (result.to_arrow(), pa.table(result), pq.read_table(tmp_path / "rows.parquet")):
        assert table.schema.field("at").type == MOMENT
        assert table.schema.field("many").type.value_type == MOMENT
        assert table.schema.field("day").type == pa.date32()
        assert table.column("at").to_pylist() == [utc(SEVEN), utc(FOURTEEN), utc(FIRST), utc(LAST), None]
        assert table.column("many").to_pylist() == [[utc(SEVEN), None], [], [utc(LAST)], None, None]
        assert table.column("day").to_pylist()[0] == date(2024, 1, 31)


def test_pandas_holds_every_year(result: QueryResult) -> None:
    frame = result.to_pandas()
    assert str(frame["at"].dtype) == "datetime64[ms, UTC]"
    assert [value.isoformat(timespec="milliseconds") for value in frame["at"][:4]] == [
        text.replace("Z", "+00:00") for text in (SEVEN, FOURTEEN, FIRST, LAST)
    ]
    assert list(frame["many"][2]) == [LAST.rstrip("Z")] or str(frame["many"][2][0]).startswith(
        "9999-12-31T23:59:59.999"
    )
    assert list(frame["day"][[0, 3]]) == [date(2024, 1, 31), date(9999, 12, 31)]


def test_iteration_yields_the_rows_of_to_pylist(result: QueryResult) -> None:
    rows = list(result)
    assert rows == result.to_pylist() == json.loads(result.to_json())["rows"]
    assert [row["at"] for row in rows] == [SEVEN, FOURTEEN, FIRST, LAST, None]
    assert [row["many"] for row in rows] == [[SEVEN, None], [], [LAST], None, None]
    assert (rows[0]["day"], len(result)) == ("2024-01-31", 5)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_package_that_is_missing_is_named(result: QueryResult, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BadRequestError, match=f"'{package}'.*to_arrow"):
        getattr(result, f"to_{package}")()


def test_polars_is_given_the_rows_as_arrow(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(from_arrow=lambda table: ("frame", table.schema.names)))
    assert graph.query(ALL).to_polars() == ("frame", ["at", "many", "day"])
    twice = graph.query("query q() { match { $t: T } return { $t.at as x, $t.day as x } }")
    with pytest.raises(BadRequestError, match="two columns are called 'x'"):
        twice.to_polars()


def test_groups_and_orders_keep_the_time_of_day(graph: Graph) -> None:
    groups = graph.query("query q() { match { $t: T } return { $t.at as at, count($t) as n } order { at desc } }")
    assert [row["at"] for row in groups] == [LAST, FOURTEEN, SEVEN, FIRST, None]
    assert groups.to_arrow().schema.field("at").type == MOMENT


def test_what_comes_out_goes_in_again_as_a_parameter(graph: Graph) -> None:
    text = "query q($at: DateTime) { match { $t: T { at: $at } } return { $t.k, $at as given } }"
    from_arrow = graph.query(ALL).to_arrow().column("at")[1].as_py()
    for value in (from_arrow, FOURTEEN, graph.query(ALL).to_pandas()["at"][1]):
        found = graph.query(text, params={"at": value})
        assert found.to_pylist() == [{"t.k": "b", "given": FOURTEEN}]
        assert found.to_arrow().column("given").to_pylist() == [utc(FOURTEEN)]


def test_records_entities_and_feeds_use_the_same_text(graph: Graph, tmp_path: Path) -> None:
    entity = graph.entity("node:T", "a")
    assert entity is not None
    assert (entity["at"], entity["many"]) == (SEVEN, [SEVEN, None])
    lines = list(graph.export())
    assert [json.loads(line)["data"]["at"] for line in lines] == [SEVEN, FOURTEEN, FIRST, LAST, None]
    again = Graph.init(tmp_path / "g", SCHEMA)
    again.load(lines)
    assert list(again.export()) == lines
    assert again.query(ALL).to_pylist() == graph.query(ALL).to_pylist()


def test_commits_have_a_time_in_utc(graph: Graph) -> None:
    commit, before = graph.commits()
    assert commit.created_at.tzinfo is timezone.utc
    assert before.created_at < commit.created_at <= datetime.now(timezone.utc)
    assert graph.at(as_of=commit.created_at).count("node:T") == len(ROWS)
    assert graph.at(as_of=before.created_at).count("node:T") == 0
