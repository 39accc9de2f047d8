"""Bad rows and figures of runs in Delta tables: added once for each run, whoever else adds at the same time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_omnigraph import BadRowsError, Graph, LoadOptions
from spark_omnigraph.cli.program import main
from spark_omnigraph.storage.delta_append import append_once
from tests.support.delta_logs import add_feature

SCHEMA = "node Film { title: String @key  year: I32? }"
LINES = [
    json.dumps({"type": "Film", "data": data})
    for data in ({"title": "Heat", "year": 1995}, {"title": "Alien", "year": "x"}, {"titel": 1, "year": 2**40})
]
ROWS = pa.schema([("n", pa.int64())])


def stored(place: object) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.table(DeltaTable(str(place)).to_pyarrow_table()).to_pylist()
    return rows


def one(number: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"n": [number]}, ROWS)


def test_bad_rows_of_a_refused_and_of_a_partial_load(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    report = f"delta:{tmp_path}/bad"
    with pytest.raises(BadRowsError) as refused:
        graph.load(LINES, options=LoadOptions(bad_rows=report))
    assert refused.value.summary.report == report
    graph.load(LINES, options=LoadOptions(bad_rows=report, max_bad_rows=2))
    rows = sorted(stored(tmp_path / "bad"), key=lambda row: (row["loaded_at"], row["line"]))
    assert [(row["line"], row["rule"], row["record_type"]) for row in rows] == [
        (2, "wrong_type", "Film"),
        (3, "unknown_field", "Film"),
    ] * 2
    assert len({row["run_id"] for row in rows}) == 2
    assert {(row["graph"], row["branch"]) for row in rows} == {(str(tmp_path / "g"), "main")}
    assert json.loads(rows[0]["raw"]) == json.loads(LINES[1])
    assert rows[1]["further"][0]["rule"] == "key_missing"


def test_a_job_adds_its_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Graph.init(tmp_path / "g", SCHEMA)
    (tmp_path / "films.jsonl").write_text("\n".join(LINES))
    tables = ["--bad-rows", f"delta:{tmp_path}/bad", "--metrics", f"delta:{tmp_path}/runs"]
    given = ["ingest", "--graph", str(tmp_path / "g"), "--input", str(tmp_path / "films.jsonl"), *tables]
    assert main(given) == 3
    assert main([*given, "--max-bad-rows", "2"]) == 0
    capsys.readouterr()
    runs = sorted(stored(tmp_path / "runs"), key=lambda row: str(row["started_at"]))
    assert [(row["job"], row["exit_code"], row["inserted"], row["bad"]) for row in runs] == [
        ("ingest", 3, None, 2),
        ("ingest", 0, 1, 2),
    ]
    assert {row["run_id"] for row in stored(tmp_path / "bad")} == {row["run_id"] for row in runs}


def test_what_was_added_is_not_added_again(tmp_path: Path) -> None:
    place = f"delta:{tmp_path}/t"
    added = [append_once(place, ROWS, partial(one, n), "app", n, {}) for n in (1, 1, 2, 1)]
    assert added == [True, False, True, False]
    assert append_once(place, ROWS, lambda: one(7), "other", 1, {})
    assert sorted(row["n"] for row in stored(tmp_path / "t")) == [1, 2, 7]


def test_writers_of_one_name_at_once_add_it_once(tmp_path: Path) -> None:
    """Also while the table is made, and while others add theirs."""
    place = f"delta:{tmp_path}/t"
    with ThreadPoolExecutor(6) as pool:
        same = [pool.submit(append_once, place, ROWS, lambda: one(1), "app", 1, {}) for _ in range(3)]
        others = [pool.submit(append_once, place, ROWS, lambda: one(2), f"app-{n}", 1, {}) for n in range(3)]
    assert sorted(each.result() for each in same) == [False, False, True]
    assert all(each.result() for each in others)
    assert sorted(row["n"] for row in stored(tmp_path / "t")) == [1, 2, 2, 2]


def test_a_race_between_the_look_and_the_append(tmp_path: Path) -> None:
    place = f"delta:{tmp_path}/t"
    append_once(place, ROWS, lambda: one(0), "app", 1, {})

    def raced() -> Iterator[pa.RecordBatch]:
        with ThreadPoolExecutor(1) as pool:  # this one belongs to the writer that is asked for rows
            pool.submit(append_once, place, ROWS, lambda: one(2), "app", 2, {}).result()
        yield from one(2)

    assert not append_once(place, ROWS, raced, "app", 2, {})
    assert sorted(row["n"] for row in stored(tmp_path / "t")) == [0, 2]


@pytest.mark.parametrize("option", ["--bad-rows", "--metrics"])
def test_a_table_with_a_feature_that_deltalake_does_not_write(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    (tmp_path / "films.jsonl").write_text(LINES[0])
    append_once(f"delta:{tmp_path}/t", ROWS, lambda: one(1), "app", 1, {})
    add_feature(tmp_path / "t", "rowTracking")
    given = ["ingest", "--graph", str(tmp_path / "g"), "--input", str(tmp_path / "films.jsonl")]
    assert main([*given, option, f"delta:{tmp_path}/t"]) == 2
    assert "'rowTracking'" in capsys.readouterr().err
    assert list(graph.export()) == []
    assert len(list((tmp_path / "t").rglob("*.parquet"))) == 1


@pytest.mark.parametrize("option", ["--bad-rows", "--metrics"])
def test_places_where_no_table_can_be(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    (tmp_path / "films.jsonl").write_text(LINES[0])
    given = ["ingest", "--graph", str(tmp_path / "g"), "--input", str(tmp_path / "films.jsonl")]
    assert main([*given, option, f"delta:{tmp_path}/films.jsonl"]) == 2
    assert "is a file" in capsys.readouterr().err
    assert main([*given, option, f"delta:{tmp_path}/g/bad"]) == 2
    assert "lies inside the graph" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "deltalake", None)
    assert main([*given, option, f"delta:{tmp_path}/t"]) == 2
    assert "spark-omnigraph[delta]" in capsys.readouterr().err
    assert list(graph.export()) == []
