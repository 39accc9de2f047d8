"""Writing frames: what a load does with lines it does with rows, and retried tasks change nothing."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.functions import lit
from pyspark.sql.types import StructType

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.errors import BadRequestError, BadRowsError, NotFoundError, TooManyDeletesError
from spark_omnigraph.spark.errors import translate, typed_errors
from spark_omnigraph.spark.executor import SparkExecutor
from spark_omnigraph.spark.source import OmnigraphDataSource
from spark_omnigraph.spark.write.writer import GraphWriter

SCHEMA = """
node Person {
  name: String @key
  big: U64?
  blob: Blob?
  born: Date?
  kind: enum(x, y)?
  seen: DateTime?
  small: U32?
  tags: [String]?
  vec: Vector(2)?
}
node Mail { address: String @key  owner: String? @unique }
edge Knows: Person -> Person { since: Date? }
"""
PERSON = (
    "tags array<string>, name string, vec array<double>, seen timestamp, small bigint, big decimal(20,0), blob binary, "
    "born date, kind string"
)
SEEN = dt.datetime(2020, 1, 31, 5, 0, 0, 123999, tzinfo=dt.timezone.utc)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", SCHEMA)


def save(frame: DataFrame, graph: Graph, mode: str = "append", **options: str) -> None:
    with typed_errors():
        frame.write.format("omnigraph").mode(mode).options(**options).save(graph.uri)


def rows(graph: Graph, type_: str) -> list[dict[str, object]]:
    found = [json.loads(line) for line in graph.export(types=[type_])]
    return [
        {k: v for k, v in (record["data"] | record).items() if k not in ("data", "type", "edge")} for record in found
    ]


def distinct(graph: Graph, key: str) -> int:
    """How many different ids a table has."""
    table = graph.store.open_table(graph.snapshot().entries[key]).to_table(columns=["id"])
    return len(table["id"].unique())


def data_files(graph: Graph) -> int:
    return len(list(Path(graph.uri).glob("**/data/*.lance")))


def test_all_types_come_back(spark: SparkSession, graph: Graph) -> None:
    people = [
        (["q", None], "Ada", [1.0, 2.0], SEEN, 2**32 - 1, Decimal(2**64 - 1), b"1", dt.date(1815, 12, 10), "x"),
        (None, "Bob", None, None, None, None, None, None, None),
    ]
    save(spark.createDataFrame(people, PERSON), graph, node="Person", actor="eve")
    ada, bob = rows(graph, "Person")
    assert ada == {
        "id": "Ada",
        "name": "Ada",
        "big": 2**64 - 1,
        "blob": "base64:MQ==",
        "born": (dt.date(1815, 12, 10) - dt.date(1970, 1, 1)).days,
        "kind": "x",
        "seen": "2020-01-31T05:00:00.123Z",
        "small": 2**32 - 1,
        "tags": ["q", None],
        "vec": [1.0, 2.0],
    }
    assert {k for k, v in bob.items() if v is not None} == {"id", "name"}
    assert graph.commits()[0].actor == "eve"
    read = spark.read.format("omnigraph").option("node", "Person").load(graph.uri)
    save(read, graph, "overwrite", node="Person")
    assert rows(graph, "Person") == [ada, bob]
    save(spark.createDataFrame([("Ada", "Bob")], "from string, dst string"), graph, edge="Knows")
    assert graph.count("edge:Knows") == 1


def test_patches(spark: SparkSession, graph: Graph, tmp_path: Path) -> None:
    """A column sets its property, also to null; blobs and what has no column stay."""
    people = [("Ada", bytearray(b"1"), [1.0, 2.0], ["q"]), ("Bob", None, None, None)]
    save(
        spark.createDataFrame(people, "name string, blob binary, vec array<double>, tags array<string>"),
        graph,
        node="Person",
    )
    ada, bob = rows(graph, "Person")
    frame = spark.createDataFrame(
        [("Ada", 7, None), ("Bob", None, ["r"])], "name string, small bigint, tags array<string>"
    )
    save(frame.repartition(2), graph, node="Person", loadMode="update")
    assert rows(graph, "Person") == [ada | {"small": 7, "tags": None}, bob | {"tags": ["r"]}]
    save(frame.select("name", "tags"), graph, node="Person", loadMode="update", nulls="keep")
    assert rows(graph, "Person") == [ada | {"small": 7, "tags": None}, bob | {"tags": ["r"]}]
    new = spark.createDataFrame([("Cy", 1), ("Ada", 2), ("Ada", 3)], "name string, small bigint")
    with pytest.raises(BadRowsError) as caught:
        save(new, graph, node="Person", loadMode="update")
    assert caught.value.summary.per_rule == {"key_duplicate": 1, "not_stored": 1}
    save(new.limit(1), graph, node="Person", loadMode="update", missing="insert")
    assert [(row["id"], row["small"]) for row in rows(graph, "Person")] == [("Ada", 7), ("Bob", None), ("Cy", 1)]
    with pytest.raises(BadRequestError, match="'missing' belongs to mode update, and the mode is merge"):
        save(new, graph, node="Person", loadMode="merge", missing="insert")
    lines = tmp_path / "patches.jsonl"
    records = [{"type": "Person", "data": {"name": name, "small": 9}} for name in ("Ada", "Bob")]
    lines.write_text("".join(json.dumps(record) + "\n" for record in records))
    options = LoadOptions(executor=SparkExecutor(spark), build_indexes=False)
    assert graph.load(str(lines), "update", options=options).tables["node:Person"].updated == 2
    assert rows(graph, "Person")[:2] == [ada | {"small": 9, "tags": None}, bob | {"small": 9, "tags": ["r"]}]


def test_modes(spark: SparkSession, graph: Graph) -> None:
    mails = spark.createDataFrame([("a", "1"), ("b", "2")], "address string, owner string")
    save(mails, graph, node="Mail")
    with pytest.raises(BadRowsError, match="2 key_conflict") as caught:
        save(mails, graph, node="Mail")
    assert caught.value.summary.per_rule == {"key_conflict": 2}
    save(mails.filter("owner = '2'").withColumn("owner", lit("3")), graph, node="Mail", loadMode="merge")
    assert {r["id"]: r["owner"] for r in rows(graph, "Mail")} == {"a": "1", "b": "3"}
    save(mails.limit(1), graph, "overwrite", node="Mail")
    assert graph.count("node:Mail") == 1
    save(mails.limit(0), graph, "overwrite", node="Mail")
    assert graph.count("node:Mail") == 0
    graph.create_branch("dev")
    save(mails, graph, node="Mail", branch="dev")
    assert (graph.count("node:Mail"), graph.count("node:Mail", branch="dev")) == (0, 2)


def test_refusals(spark: SparkSession, graph: Graph, tmp_path: Path) -> None:
    before = (graph.snapshot(), data_files(graph))
    mails = spark.createDataFrame([("a", "1"), ("a", "2"), (None, "3"), ("c", "1")], "address string, owner string")
    with pytest.raises(BadRowsError) as caught:
        save(mails.repartition(2), graph, node="Mail")
    assert caught.value.summary.per_rule == {"key_duplicate": 1, "key_missing": 1, "unique": 1}
    for given, error, text in [
        ({"node": "Mial"}, BadRequestError, "did you mean 'Mail'"),
        ({"node": "Person"}, BadRequestError, "column 'name' is missing"),
        ({"node": "Mail", "loadmod": "merge"}, BadRequestError, "did you mean 'loadMode'"),
        ({"node": "Mail", "onDuplicate": "last"}, BadRequestError, "a frame has none"),
        ({"node": "Mail", "branch": "nope"}, NotFoundError, "branch 'nope' not found"),
        ({}, BadRequestError, "no column 'address'"),
    ]:
        with pytest.raises(error, match=text):
            save(mails, graph, **given)
    assert (graph.snapshot(), data_files(graph)) == before
    report = tmp_path / "bad.jsonl"
    save(mails.repartition(2), graph, node="Mail", maxBadRows="3", badRowsPath=str(report))
    assert graph.count("node:Mail") == 1
    assert {json.loads(line)["rule"] for line in report.read_text().splitlines()} == {
        "key_duplicate",
        "key_missing",
        "unique",
    }


def test_records_of_many_types_are_one_commit(spark: SparkSession, graph: Graph) -> None:
    records = [
        ("Person", None, None, None, '{"name": "Ada",\n "small": 1}'),
        ("Person", None, None, None, '{"name": "Bob"}'),
        ("Mail", None, None, None, '{"address": "m"}'),
        (None, "Knows", "Ada", "Bob", None),
    ]
    frame = spark.createDataFrame(records, "type string, edge string, from string, to string, data string")
    commits = len(graph.commits())
    save(frame.repartition(3), graph)
    assert len(graph.commits()) == commits + 1
    assert {key: graph.count(key) for key in graph.snapshot().entries} == {
        "node:Person": 2,
        "node:Mail": 1,
        "edge:Knows": 1,
    }
    odd = spark.createDataFrame([("Mail", '{"address": "n"}, "type": "Person"')], "type string, data string")
    with pytest.raises(BadRowsError, match="invalid_json"):
        save(odd, graph)


def test_retried_tasks_lose_and_double_nothing(spark: SparkSession, graph: Graph) -> None:
    def fail_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # runs in a worker
        for number, batch in enumerate(batches):
            yield batch
            task = TaskContext.get()
            assert task is not None
            if number == 0 and task.partitionId() == 1 and task.attemptNumber() == 0:
                raise OSError("worker lost")

    frame = spark.range(0, 40_000, 1, 3).selectExpr("cast(id as string) as address")
    save(frame.mapInArrow(fail_once, frame.schema), graph, node="Mail")
    assert distinct(graph, "node:Mail") == graph.count("node:Mail") == 40_000


def test_an_attempt_that_dies_after_it_staged_loses_and_doubles_nothing(spark: SparkSession, graph: Graph) -> None:
    class Dying(GraphWriter):
        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # runs in a worker
            message = super().write(iterator)
            task = TaskContext.get()
            assert task is not None
            if task.partitionId() == 1 and task.attemptNumber() == 0:
                os.kill(os.getpid(), signal.SIGKILL)  # its files are staged, and nobody hears of them
            return message

    class Source(OmnigraphDataSource):
        @classmethod
        def name(cls) -> str:
            return "omnigraph_dying"

        def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
            sound = super().writer(schema, overwrite)
            assert isinstance(sound, GraphWriter)
            return Dying(sound.write_options, sound.plan, sound.stage)

    spark.dataSource.register(Source)
    frame = spark.range(0, 300, 1, 3).selectExpr("cast(id as string) as address")
    frame.write.format("omnigraph_dying").mode("append").option("node", "Mail").save(graph.uri)
    assert distinct(graph, "node:Mail") == graph.count("node:Mail") == 300
    staged = {item.path for item in graph.cleanup(dt.timedelta(0)).items if item.path.startswith("nodes/")}
    assert len(staged) == 1  # the file of the attempt that died, which the next clean-up takes
    assert len(graph.commits()) == 2


def test_a_job_that_fails_leaves_the_graph_alone(spark: SparkSession, graph: Graph) -> None:
    before = graph.snapshot()
    frame = spark.range(0, 10, 1, 1).selectExpr(
        "assert_true(id < 5, 'too large') as x", "cast(id as string) as address"
    )
    with pytest.raises(PySparkException) as caught:
        save(frame.filter("x is null").select("address"), graph, node="Mail")
    assert translate(caught.value) is None
    assert graph.snapshot() == before


def test_a_write_that_lost_a_race_is_tried_again(spark: SparkSession, graph: Graph) -> None:
    uri = graph.uri

    def move_the_table(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # runs in a worker
        for batch in batches:
            Graph.open(uri).load(['{"type": "Mail", "data": {"address": "other"}}'])
            yield batch

    frame = spark.createDataFrame([("a",)], "address string").coalesce(1)
    save(frame.mapInArrow(move_the_table, frame.schema), graph, node="Mail")
    assert sorted(str(r["id"]) for r in rows(graph, "Mail")) == ["a", "other"]


def test_rows_go_by_id_and_nodes_take_their_edges_along(spark: SparkSession, graph: Graph) -> None:
    people = [{"type": "Person", "data": {"name": name}} for name in "abc"]
    edges = [{"edge": "Knows", "from": "a", "to": "b"}, {"edge": "Knows", "from": "b", "to": "c"}]
    graph.load([json.dumps(record) for record in people + edges])
    frame = spark.createDataFrame([("a", 1), ("a", 2), ("nobody", 3)], "id string, other int")
    save(frame, graph, node="Person", loadMode="delete", actor="eve")
    assert sorted(str(r["id"]) for r in rows(graph, "Person")) == ["b", "c"]
    assert [(r["from"], r["to"]) for r in rows(graph, "Knows")] == [("b", "c")]
    assert graph.commits()[0].actor == "eve"
    with pytest.raises(BadRequestError, match="1 row of the frame to delete has no id"):
        save(spark.createDataFrame([(None,), ("b",)], "id string"), graph, node="Person", loadMode="delete")
    with pytest.raises(BadRequestError, match="needs a string column 'id', which is missing"):
        save(spark.createDataFrame([("b",)], "name string"), graph, node="Person", loadMode="delete")
    with pytest.raises(BadRequestError, match="takes ids of one type, named by"):
        save(frame, graph, loadMode="delete")
    with pytest.raises(BadRequestError, match="contradict each other"):
        save(frame, graph, "overwrite", node="Person", loadMode="delete")
    assert graph.count("node:Person") == 2


def test_frames_of_changes_and_edges_known_by_their_ends(spark: SparkSession, graph: Graph) -> None:
    graph.load([json.dumps({"type": "Mail", "data": {"address": address}}) for address in "abc"])
    told = "address string, _change_type string, _commit_version bigint"
    changes = [("a", "delete", 3), ("a", "insert", 2), ("b", "update_preimage", 4), ("b", "update_postimage", 4)]
    frame = spark.createDataFrame([*changes, ("d", "insert", 4), ("c", "delete", 5)], told).repartition(3)
    with pytest.raises(TooManyDeletesError, match="2 stored rows would be deleted"):
        save(frame, graph, node="Mail", loadMode="changes", maxDeletes="1")
    save(frame, graph, node="Mail", loadMode="changes", maxDeletes="67%")
    assert sorted(str(r["id"]) for r in rows(graph, "Mail")) == ["b", "d"]
    graph.load([json.dumps({"type": "Person", "data": {"name": name}}) for name in "bd"])
    edges = spark.createDataFrame([("b", "d"), ("d", "b")], "src string, dst string")
    for _ in range(2):
        save(edges, graph, edge="Knows", loadMode="merge", edgeId="ends")
    assert sorted(str(r["id"]) for r in rows(graph, "Knows")) == ['["b","d"]', '["d","b"]']
    graph.load([json.dumps({"edge": "Knows", "from": "b", "to": "b", "data": {"id": "k"}})])
    gone = spark.createDataFrame([("d", "b", "d"), ("b", "b", "d")], "src string, dst string, op string")
    save(gone, graph, edge="Knows", loadMode="changes", edgeId="ends", adoptEdges="true")
    assert [str(r["id"]) for r in rows(graph, "Knows")] == ['["b","d"]']


def test_ids_of_many_types_go_in_one_commit(spark: SparkSession, graph: Graph) -> None:
    records: list[dict[str, object]] = [{"type": "Person", "data": {"name": name}} for name in "abc"]
    records += [{"type": "Mail", "data": {"address": name}} for name in "ab"]
    records += [{"edge": "Knows", "from": "b", "to": "c", "data": {"id": f"k{i}"}} for i in (1, 2)]
    graph.load([json.dumps(record) for record in records])
    commits = len(graph.commits())
    gone = [("Person", None, "a", 1.5), ("Mail", None, "b", None), (None, "Knows", "k1", 2.5), ("Mail", None, "b", 0.0)]
    frame = spark.createDataFrame(gone, "type string, edge string, id string, other double")
    save(frame, graph, loadMode="delete", actor="eve")
    assert {key: [r["id"] for r in rows(graph, key)] for key in ("Person", "Mail", "Knows")} == {
        "Person": ["b", "c"],
        "Mail": ["a"],
        "Knows": ["k2"],
    }
    assert (len(graph.commits()), graph.commits()[0].actor) == (commits + 1, "eve")
