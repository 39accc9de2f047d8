"""A session's own Delta reads the tables; tasks stage their rows, the driver commits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession

from spark_omnigraph import BadRowsError, Graph, NotFoundError
from spark_omnigraph.cli.program import main
from spark_omnigraph.spark.api import read_nodes
from spark_omnigraph.spark.rows import delta_rows

SCHEMA = "node Film { name: String @key  age: I32?  at: DateTime? }"


def films(graph: Graph, name: str) -> list[tuple[Any, ...]]:
    rows = [json.loads(line)["data"] for line in graph.export()]
    return sorted((row["name"], row[name]) for row in rows)


@pytest.mark.parametrize(
    ("name", "column", "expected"),
    [
        ("masked", "age", [("a", 1), ("c", 3), ("d", 4)]),
        ("masked_far", "at", [("a", "9999-12-31T23:59:59.999Z"), ("b", None)]),
        ("far", "at", [("a", "9999-12-31T23:59:59.999Z"), ("b", "0001-01-01T00:00:00.000Z"), ("c", None)]),
        ("renamed", "age", [("a", 1), ("b", 2)]),
    ],
)
def test_tables_with_what_only_spark_reads(
    spark: SparkSession, tables: Path, tmp_path: Path, name: str, column: str, expected: list[tuple[Any, ...]]
) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    report = graph.load(delta_rows(spark, f"delta:{tables / name}", None), node="Film")
    assert (report.tables["node:Film"].inserted, report.bad_rows.total) == (len(expected), 0)
    assert films(graph, column) == expected
    shown = ["name", f"cast({column} AS string) AS {column}"]  # Python has no instant before the year 1 of its own zone
    ours = read_nodes(spark, str(tmp_path / "g"), "Film").selectExpr(*shown)
    theirs = spark.read.format("delta").load(str(tables / name)).selectExpr(*shown)
    assert_df_equality(ours, theirs, ignore_row_order=True, ignore_nullable=True)


def test_a_job_reads_a_version(
    spark: SparkSession, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Graph.init(tmp_path / "g", SCHEMA)
    given = ["--graph", str(tmp_path / "g"), "--input", f"delta:{tables / 'masked'}", "--node", "Film"]
    assert main(["ingest", *given, "--executor", "spark", "--version-as-of", "1"]) == 0
    body = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert body["result"]["executor"] == "spark"
    assert body["tables"]["node:Film"]["inserted"] == 4
    assert main(["merge", *given, "--executor", "spark", "--version-as-of", "9"]) == 6
    assert "has no version 9" in json.dumps(json.loads(capsys.readouterr().out.splitlines()[-1])["error"])


def test_repeated_ids_are_bad_rows_and_nothing_is_loaded(spark: SparkSession, tables: Path, tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node Film { year: I32 @key  name: String? }")
    mapping = {"node": "Film", "constants": {"year": 5}, "ignore": ["age"]}
    with pytest.raises(BadRowsError) as refused:
        graph.load(delta_rows(spark, str(tables / "masked"), None), "merge", mapping=mapping)
    assert refused.value.summary.per_rule == {"key_duplicate": 2}
    assert list(graph.export()) == []


def test_a_table_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no Delta table"):
        delta_rows(spark, f"delta:{tmp_path}/none", None)
