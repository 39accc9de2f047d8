"""A merge whose rows are decided and staged by Spark tasks, and what Spark shows of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession, functions

from spark_omnigraph import Graph, LoadOptions, MergeConflictsError, SparkExecutor
from spark_omnigraph.graph.merge import rows

NO_INDEX = LoadOptions(build_indexes=False)


def room(name: str, size: int) -> str:
    return json.dumps({"type": "Room", "data": {"name": name, "size": size}})


def test_tasks_decide_and_stage_rows(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "SLICE_ROWS", 3)  # several tasks
    graph = Graph.init(tmp_path / "g", "node Room { name: String @key  size: I32? }")
    graph.load([room(f"r{i}", i) for i in range(10)], options=NO_INDEX)
    graph.create_branch("draft")
    graph.load([room(f"r{i}", 100 + i) for i in range(4, 14)], "merge", branch="draft", options=NO_INDEX)
    graph.delete("node:Room", ["r0", "r1"], branch="draft")
    graph.load([room("r3", 7)], "merge", options=NO_INDEX)

    executor = SparkExecutor(spark)
    report = graph.merge_branch("draft", dry_run=True, executor=executor)
    assert report.commit is None
    report = graph.merge_branch("draft", executor=executor)
    counts = report.tables["node:Room"]
    assert (counts.appended, counts.updated, counts.deleted) == (4, 6, 2)
    frame = spark.read.format("omnigraph").option("node", "Room").load(graph.uri)
    assert {row["name"]: row["size"] for row in frame.collect()} == {
        "r2": 2, "r3": 7, **{f"r{i}": 100 + i for i in range(4, 14)},
    }  # laid out as a table  # fmt: skip
    branches = spark.read.format("omnigraph").option("table", "branches").load(graph.uri).collect()
    assert [(b["branch"], list(b["merged_into"])) for b in branches] == [("main", []), ("draft", ["main"])]
    newest = spark.read.format("omnigraph").option("table", "commits").load(graph.uri).first()
    assert newest is not None
    assert newest["merged_parent"] == report.source_commit

    graph.load([room("r2", 1)], "merge", branch="draft", options=NO_INDEX)
    graph.load([room("r2", 3)], "merge", options=NO_INDEX)
    with pytest.raises(MergeConflictsError) as caught:
        graph.merge_branch("draft", executor=executor)
    assert [(c.row_id, c.kind) for c in caught.value.conflicts] == [("r2", "divergent_update")]

    source = spark.read.format("omnigraph").option("table", "conflicts").option("source", "draft")
    frame = source.load(graph.uri).withColumn("take", functions.lit("source"))
    assert graph.merge_branch("draft", decisions=frame, dry_run=True).tables["node:Room"].updated == 1
    with pytest.raises(Exception, match="distinct source and target"):
        _ = source.option("into", "draft").load(graph.uri).schema
    source = spark.read.format("omnigraph").option("table", "conflicts").option("source", "draft")
    report = graph.merge_branch("draft", decisions=frame.toPandas(), executor=executor)
    assert (report.tables["node:Room"].updated, graph.entity("node:Room", "r2")) == (
        1,
        {"id": "r2", "name": "r2", "size": 1},
    )
    assert source.load(graph.uri).count() == 0
