"""A session without Delta: what reads or writes a Delta table says so before anything runs, with the way out."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from spark_omnigraph import BadRequestError, Graph, SparkExecutor
from spark_omnigraph.cli.program import main
from spark_omnigraph.spark.delta_session import has_delta, require_delta
from spark_omnigraph.spark.rows import delta_rows

SCHEMA = "node Film { name: String @key }"
WAY_OUT = r"this session has no Delta.*--packages io\.delta:delta-spark.*--executor local.*spark-omnigraph\[delta\]"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load(['{"type": "Film", "data": {"name": "a"}}'])
    return graph


def test_it_is_refused_and_nothing_is_written(spark: SparkSession, graph: Graph, tmp_path: Path) -> None:
    place = str(tmp_path / "films")
    write_deltalake(place, pa.table({"name": ["b"]}))
    assert not has_delta(spark)
    with pytest.raises(BadRequestError, match=rf"input 'delta:.*{WAY_OUT}"):
        delta_rows(spark, f"delta:{place}", None)
    with pytest.raises(BadRequestError, match=WAY_OUT):
        require_delta(spark, "'delta:films'", str(tmp_path / "none"))
    with pytest.raises(BadRequestError, match=rf"nodes/Film.*{WAY_OUT}"):
        graph.export_tables(str(tmp_path / "out"), executor=SparkExecutor(spark))
    assert not (tmp_path / "out").exists()
    assert graph.count("node:Film") == 1


def test_the_verbs_say_it_and_auto_goes_on_without_spark(
    spark: SparkSession, graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "films"
    write_deltalake(str(place), pa.table({"name": ["b"]}))
    load = ["ingest", "--graph", graph.uri, "--input", f"delta:{place}", "--node", "Film"]
    export = ["export", "--graph", graph.uri, "--format", "delta", "--output", str(tmp_path / "out")]
    for given in (load, export):
        assert main([*given, "--executor", "spark"]) == 3
        assert "this session has no Delta" in capsys.readouterr().err
    assert main(export) == 0
    assert (tmp_path / "out/nodes/Film/_delta_log").is_dir()


def test_the_wheel_alone_is_not_enough(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta/__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BadRequestError, match="the wheel delta-spark is here, and has no jars"):
        require_delta(spark, "'delta:films'", str(tmp_path / "none"))
