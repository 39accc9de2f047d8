"""The notebook about Delta, with tables of the session's own catalog."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from spark_omnigraph import Graph
from tests.support.notebooks import FOLDER, run

SCHEMA = "node Film { name: String @key  year: I32  plot: String? }"


def test_tables_go_in_and_come_out(spark: SparkSession, tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "graph", SCHEMA)
    graph.load([{"type": "Film", "data": {"name": "Heat", "year": 1996}}])
    rows = spark.createDataFrame(
        [("Heat", 1995, None), ("Brazil", 1985, "wings")], "name string, year int, plot string"
    )
    source, target = (f"delta.`{tmp_path / name}`" for name in ("in", "out"))
    rows.write.format("delta").save(str(tmp_path / "in"))
    widgets = {"graph": str(tmp_path / "graph"), "table": source, "target": target}
    assert run(FOLDER / "07_delta.py", spark, widgets) == "2"
    assert graph.entity("node:Film", "Heat") == {"id": "Heat", "name": "Heat", "year": 1995, "plot": None}
    found = spark.read.format("delta").load(str(tmp_path / "out"))
    assert sorted((row["name"], row["year"]) for row in found.collect()) == [("Brazil", 1985), ("Heat", 1995)]
