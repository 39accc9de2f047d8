"""A graph of a later release through Spark, classic and Connect: read as frames and streams, written by nobody."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph import Graph, read_query
from spark_omnigraph.cli import main
from spark_omnigraph.errors import UnsupportedFormatError
from spark_omnigraph.spark.api import create_views, read_edges, read_nodes, register
from spark_omnigraph.spark.errors import typed_errors
from spark_omnigraph.spark.writes import write_nodes
from tests.support.feed_streams import needs_streams
from tests.support.later import RELEASES, fingerprint, recorded_commits, sample


@pytest.fixture(scope="module", params=RELEASES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample(tmp_path_factory.mktemp("sample"), str(request.param))


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample(tmp_path_factory.mktemp("newest"), RELEASES[-1]) / "graph"


def test_frames_of_types_branches_and_old_states(spark: SparkSession, folder: Path) -> None:
    root = str(folder / "graph")
    vessels = read_nodes(spark, root, "Vessel", branch="busy").orderBy("id").collect()
    assert [(row["name"], row["built"]) for row in vessels] == [("Alba", 1972), ("Brise", 2001)]
    assert read_nodes(spark, root, "Boat", version=4).where("built = 1971").count() == 1
    ends = read_edges(spark, root, "Moors").orderBy("src").collect()
    assert [(row["src"], row["dst"]) for row in ends] == [("Alba", "h1"), ("Brise", "h4")]
    create_views(spark, root, replace=True)
    at = spark.sql("SELECT h.title FROM Moors m JOIN Harbour h ON h.id = m.dst ORDER BY h.title").collect()
    assert [row["title"] for row in at] == ["East", "North"]


def test_both_engines_answer(spark: SparkSession, folder: Path) -> None:
    root = str(folder / "graph")
    text = "query q() { match { $v: Vessel $v moors $h } return { $v.name as v, $h.title as h } order { $v.name } }"
    for engine in ("embedded", "spark"):
        rows = read_query(spark, root, text, engine=engine).collect()
        assert [tuple(row) for row in rows] == [("Alba", "North"), ("Brise", "East")], engine
    old = 'query q() { match { $b: Boat { name: "Alba" } $b moors $h } return { $h.name as at } }'
    assert [tuple(row) for row in read_query(spark, root, old, engine="spark", version=4).collect()] == [("North",)]


@needs_streams
@pytest.mark.timeout(300)
def test_history_and_the_change_feed(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    root = str(folder / "graph")
    register(spark)
    source = spark.read.format("omnigraph")
    told = recorded_commits(folder, "main")
    commits = source.option("table", "commits").load(root).orderBy("manifest_version").collect()
    assert [(c["commit"], c["merged_parent"]) for c in commits] == [(c.id, c.merged_parent) for c in told]
    feed = spark.readStream.format("omnigraph").option("table", "changes").option("node", "Harbour")
    stream = feed.option("startingVersion", "6").load(root)  # each version is a task, and each task starts a process
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "seen"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(240)
    changes = spark.read.parquet(str(tmp_path / "out"))
    gone = changes.where("_change_type = 'delete'").select("code", "_commit_version").collect()
    assert [tuple(row) for row in gone] == [("h9", 7)]


def test_frames_are_not_written_to_it(spark: SparkSession, newest: Path) -> None:
    root, before = newest, fingerprint(newest)
    frame = spark.createDataFrame([("Nova",)], "name string")
    with pytest.raises(UnsupportedFormatError, match=r"only reads.*convert"):
        write_nodes(frame, str(root), "Vessel")
    with pytest.raises(UnsupportedFormatError, match="convert"), typed_errors():
        frame.write.format("omnigraph").option("node", "Vessel").mode("overwrite").save(str(root))
    assert fingerprint(root) == before


def test_a_converted_graph_is_written_to(spark: SparkSession, newest: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    target = str(tmp_path / "g")
    assert main(["convert", str(newest), target, "--all-branches", "--summary", str(summary)]) == 0
    told = json.loads(summary.read_text())["result"]
    assert sorted(told["branches"]) == ["busy", "main", "quiet"]
    frame = spark.createDataFrame([("Nova",)], "name string")
    commit = write_nodes(frame, target, "Vessel", branch="busy")
    assert commit is not None
    assert Graph.open(target, mode="r").count("node:Vessel", branch="busy") == 3
    assert read_nodes(spark, target, "Vessel").count() == 2
