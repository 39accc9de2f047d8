"""The change feed as a frame and as a stream, and the frames about the graph itself."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_omnigraph.errors import BadRequestError, NotFoundError, VersionExpiredError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.spark.api import is_remote, register
from spark_omnigraph.spark.errors import translate, typed_errors
from tests.support.feed_streams import HAS_STREAMS, needs_streams

SCHEMA = """
node Lamp { tag: String @key  watt: I32?  made: Date? }
node Room { name: String @key }
edge In: Lamp -> Room { since: Date? }
"""


def lamp(tag: str, watt: int, **more: object) -> str:
    return json.dumps({"type": "Lamp", "data": {"tag": tag, "watt": watt, **more}})


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Three commits: two lamps, a room and an edge; one lamp updated and one added; all lamps overwritten."""
    g = Graph.init(tmp_path_factory.mktemp("g") / "g", SCHEMA)
    edge = {"edge": "In", "from": "a", "to": "r", "data": {"id": "i1"}}
    g.load([lamp("a", 1, made="2020-02-03"), lamp("b", 2), '{"type": "Room", "data": {"name": "r"}}', json.dumps(edge)])
    g.load([lamp("b", 75), lamp("c", 3)], mode="merge", actor="ada")
    g.load([lamp("a", 9)], mode="overwrite")
    return g


@pytest.fixture
def versions(graph: Graph) -> list[int]:
    return [c.manifest_version for c in graph.commits()[-2::-1]]


def feed(spark: SparkSession, graph: Graph, **options: object) -> DataFrame:
    register(spark)
    reader = spark.read.format("omnigraph").option("table", "changes")
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(graph.uri)


def of_lamps(frame: DataFrame) -> list[tuple[object, ...]]:
    rows = frame.select("_commit_version", "_change_type", "id", "watt").collect()
    return sorted(tuple(row) for row in rows)


def test_a_type_has_its_columns_and_the_commit(spark: SparkSession, graph: Graph, versions: list[int]) -> None:
    frame = feed(spark, graph, node="Lamp")
    assert frame.dtypes == [
        ("id", "string"),
        ("made", "date"),
        ("tag", "string"),
        ("watt", "int"),
        ("_change_type", "string"),
        ("_commit_version", "bigint"),
        ("_commit_id", "string"),
        ("_commit_timestamp", "timestamp"),
    ]
    one, two, three = versions
    assert of_lamps(frame) == [
        (one, "insert", "a", 1),
        (one, "insert", "b", 2),
        (two, "insert", "c", 3),
        (two, "update_postimage", "b", 75),
        (two, "update_preimage", "b", 2),
        (three, "delete", "b", 75),
        (three, "delete", "c", 3),
        (three, "update_postimage", "a", 9),
        (three, "update_preimage", "a", 1),
    ]
    commits = {row["_commit_version"]: row["_commit_id"] for row in frame.collect()}
    assert commits == {c.manifest_version: c.id for c in graph.commits()[:-1]}
    (inserted,) = frame.where("id = 'a'").where("_change_type = 'insert'").head(1)
    assert inserted["made"] == date(2020, 2, 3)


def test_a_range_of_versions_includes_both_ends(spark: SparkSession, graph: Graph, versions: list[int]) -> None:
    frame = feed(spark, graph, node="Lamp", startingVersion=versions[1], endingVersion=versions[1])
    assert {row[0] for row in of_lamps(frame)} == {versions[1]}
    assert of_lamps(feed(spark, graph, node="Lamp", startingVersion="latest")) == []


def test_all_types_together(spark: SparkSession, graph: Graph, versions: list[int]) -> None:
    frame = feed(spark, graph, endingVersion=versions[0])
    found = {row["table"]: row for row in frame.where("id in ('a', 'r', 'i1')").collect()}
    assert json.loads(found["node:Lamp"]["data"]) == {"id": "a", "made": 18295, "tag": "a", "watt": 1}
    assert json.loads(found["node:Room"]["data"]) == {"id": "r", "name": "r"}
    edge = found["edge:In"]
    assert (edge["src"], edge["dst"], json.loads(edge["data"])) == ("a", "r", {"id": "i1", "since": None})
    assert (found["node:Lamp"]["src"], found["node:Lamp"]["dst"]) == (None, None)


def test_what_cannot_be_read_is_refused(spark: SparkSession, graph: Graph, versions: list[int]) -> None:
    with (
        pytest.raises(NotFoundError, match="version 999 does not exist yet: the newest is"),
        typed_errors(),
    ):
        feed(spark, graph, startingVersion=999).collect()
    with pytest.raises(BadRequestError, match="lies before startingVersion"), typed_errors():
        feed(spark, graph, startingVersion=versions[1], endingVersion=versions[0]).collect()
    with pytest.raises(BadRequestError, match="'startingVersion' belongs to the option 'table'"), typed_errors():
        spark.read.format("omnigraph").option("node", "Lamp").option("startingVersion", "1").load(graph.uri).collect()
    with pytest.raises(NotFoundError, match="node type 'Lamb' is not in the schema"), typed_errors():
        feed(spark, graph, node="Lamb").collect()


def test_a_feed_is_one_state_and_names_its_columns_once(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph.init(tmp_path / "g", "node Lamp { tag: String @key  watt: I32?  _commit_id: I32? }")
    g.load([lamp("a", 1, _commit_id=7)])
    frame = feed(spark, g)
    pinned = frame.count()
    g.load([lamp("b", 2)])
    # Over Connect the server may keep what it worked out, or do it anew.
    assert (pinned, feed(spark, g).count()) == (1, 2)
    assert frame.count() in ((1, 2) if is_remote(spark) else (1,))
    assert json.loads(frame.head(1)[0]["data"])["_commit_id"] == 7
    with pytest.raises(BadRequestError, match="'Lamp' has a property '_commit_id'"), typed_errors():
        feed(spark, g, node="Lamp").collect()


def test_versions_that_are_gone_are_said_by_frames_and_streams(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph.init(tmp_path / "g", SCHEMA)
    for number in range(3):
        g.load([lamp("l", number)], mode="merge")
    entry = g.snapshot().entries["node:Lamp"]
    table = lance.dataset(g.store.table_uri(entry.location, None))
    table.cleanup_old_versions(older_than=timedelta(0), retain_versions=2)
    newest = g.commits()[0].manifest_version
    says = f"the change feed can start at version {newest}"
    with pytest.raises(NotFoundError, match=says), typed_errors():
        feed(spark, g, node="Lamp").collect()
    assert len(of_lamps(feed(spark, g, node="Lamp", startingVersion=newest))) == 2
    with pytest.raises(NotFoundError, match=says), typed_errors():
        stream(spark, g.uri, tmp_path, "gone")
    (rows,) = stream(spark, g.uri, tmp_path / "again", "later", startingVersion=newest)
    assert [row["_change_type"] for row in rows] == ["update_preimage", "update_postimage"]


@needs_streams
def test_a_stream_that_cannot_be_says_so_and_nothing_else(spark: SparkSession, graph: Graph, tmp_path: Path) -> None:
    register(spark)
    rows = spark.readStream.format("omnigraph").option("node", "Lamp").load(graph.uri).writeStream.format("noop")
    query = rows.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    with pytest.raises(PySparkException) as caught:
        query.awaitTermination(60)
    assert "UnboundLocalError" not in str(caught.value)
    found = translate(caught.value)
    assert type(found) is BadRequestError
    assert found.message == "only the change feed can be read as a stream: add .option('table', 'changes')"


def test_a_stream_from_now_on(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph.init(tmp_path / "g", SCHEMA)
    g.load([lamp("a", 1)])
    assert stream(spark, g.uri, tmp_path, "none", startingVersion="latest") == []
    g.load([lamp("b", 2)])
    (rows,) = stream(spark, g.uri, tmp_path, "one", startingVersion="latest")
    assert [(row["id"], row["_change_type"]) for row in rows] == [("b", "insert")]


def test_a_stream_starts_at_the_version_that_comes_next(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph.init(tmp_path / "g", SCHEMA)
    g.load([lamp("a", 1)])
    start = g.snapshot().version + 1
    assert stream(spark, g.uri, tmp_path, "none", startingVersion=start) == []
    g.load([lamp("b", 2)])
    (rows,) = stream(spark, g.uri, tmp_path, "one", startingVersion=start)
    assert [row["id"] for row in rows] == ["b"]


def stream(spark: SparkSession, uri: str, folder: Path, name: str, **options: object) -> list[list[dict[str, Any]]]:
    """Runs the feed of lamps until nothing is left; the rows of each batch that has some.

    They come through files, since over Connect the function of a batch runs on the server.
    """
    if not HAS_STREAMS:
        pytest.skip("streams of changes need Spark 4.2")
    register(spark)
    reader = spark.readStream.format("omnigraph").option("table", "changes").option("node", "Lamp")
    for option, value in options.items():
        reader = reader.option(option, str(value))
    found = folder / name

    def keep(frame: DataFrame, number: int) -> None:
        frame.coalesce(1).write.json(f"{found}/{number:03d}")

    query = (
        reader.load(uri)
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    batches = sorted(found.iterdir()) if found.exists() else []
    texts = ["".join(file.read_text() for file in batch.glob("*.json")) for batch in batches]
    return [[json.loads(line) for line in text.splitlines()] for text in texts if text]


def test_a_stream_goes_on_where_it_stopped(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph.init(tmp_path / "g", SCHEMA)
    for number in range(3):
        g.load([lamp(f"l{number}", number)])
    batches = stream(spark, g.uri, tmp_path, "first", maxCommitsPerTrigger=2)
    assert [sorted(row["id"] for row in rows) for rows in batches] == [["l0", "l1"], ["l2"]]
    g.load([lamp("l1", 11)], mode="merge")
    later = stream(spark, g.uri, tmp_path, "later", maxCommitsPerTrigger=2)
    assert [[(row["_change_type"], row["watt"]) for row in rows] for rows in later] == [
        [("update_preimage", 1), ("update_postimage", 11)]
    ]


def test_the_frames_about_the_graph(spark: SparkSession, graph: Graph) -> None:
    register(spark)
    tables = spark.read.format("omnigraph").option("table", "tables").load(graph.uri)
    (lamps,) = tables.where("type = 'Lamp'").head(1)
    assert (lamps["rows"], lamps["fragments"], lamps["indexes"], lamps["indexes_complete"]) == (1, 1, 2, 2)
    assert lamps["bytes"] > 0
    recoveries = spark.read.format("omnigraph").option("table", "recoveries").load(graph.uri)
    assert recoveries.columns == ["commit", "kind", "for_actor", "operation", "writer", "outcomes", "created_at"]
    assert recoveries.count() == 0


def test_expiry_waits_for_a_stream_with_a_name_and_tags_are_read(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph.init(tmp_path / "g", SCHEMA)
    for number in range(3):
        g.load([lamp(f"l{number}", number)])
    g.tag("three")
    stream(spark, g.uri, tmp_path, "first", consumer="search")
    read = g.snapshot(snapshot=g.commits()[0].id).version
    assert [(each.name, each.version) for each in g.consumers()] == [("search", read)]
    for number in range(3, 6):
        g.load([lamp(f"l{number}", number)])
    g.cleanup(timedelta(0), keep=1, confirm=True, force=True)
    (rows,) = stream(spark, g.uri, tmp_path, "later", consumer="search")
    assert sorted(row["id"] for row in rows) == ["l3", "l4", "l5"]
    register(spark)
    source = spark.read.format("omnigraph")
    (told,) = source.option("table", "consumers").load(g.uri).collect()
    assert (told["consumer"], told["branch"]) == ("search", "main")
    assert told["manifest_version"] == g.commits()[0].manifest_version
    (tag,) = spark.read.format("omnigraph").option("table", "tags").load(g.uri).collect()
    assert (tag["tag"], tag["manifest_version"]) == ("three", g.tags()[0].manifest_version)
    assert spark.read.format("omnigraph").option("node", "Lamp").option("tag", "three").load(g.uri).count() == 3
    g.cleanup(timedelta(0), keep=1, confirm=True, force=True)
    with pytest.raises(VersionExpiredError, match="the change feed can start at version"), typed_errors():
        feed(spark, g, node="Lamp", consumer="late").collect()
    assert feed(spark, g, node="Lamp", consumer="nightly", startingVersion=told["manifest_version"] + 1).count() == 0
    assert [each.name for each in g.consumers()] == ["nightly", "search"]


def test_a_graph_follows_another_by_its_feed(spark: SparkSession, graph: Graph, tmp_path: Path) -> None:
    """Each commit of a stream nets what happened to a row since the last one, and counts once."""
    follower = Graph.init(tmp_path / "follower", SCHEMA)
    register(spark)

    def follow(checkpoint: str, kind: dict[str, str]) -> None:
        read = {**kind, "table": "changes", "startingVersion": "0"}
        query = (
            spark.readStream.format("omnigraph")
            .options(**read)
            .load(graph.uri)
            .writeStream.format("omnigraph")
            .options(**kind, loadMode="changes", txnAppId="follow", checkpointLocation=str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .start(follower.uri)
        )
        with typed_errors():
            assert query.awaitTermination(200)

    follow("one", {"node": "Lamp"})
    lamps = ["Lamp"]
    assert list(follower.export(lamps)) == list(graph.export(lamps))
    commits = len(follower.commits())
    follow("two", {"node": "Lamp"})  # a lost checkpoint repeats nothing
    assert (list(follower.export(lamps)), len(follower.commits())) == (list(graph.export(lamps)), commits)
