"""A `load()` worked out without Spark: pinned, checked, small."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.errors import BadRequestError, EmbeddingConfigError, InputError, NotFoundError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.spark.read.plan import CountTask, ReadPlan, plan_read
from spark_omnigraph.spark.read.reader import FragmentGroup, GraphReader
from spark_omnigraph.spark.types import arrow_target
from spark_omnigraph.storage.tables.scan import TableScan
from tests.spark.graphs import branched_graph, publish
from tests.support.embedding_server import EmbeddingServer
from tests.unit.spark.graph_types import stored_things, things, utc


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return branched_graph(tmp_path_factory.mktemp("graphs") / "g")[0].root


def rows(plan: ReadPlan, user_schema: StructType | None = None) -> list[dict[str, object]]:
    """What the tasks of a plan return, through pickles as between Spark's processes."""
    reader = GraphReader(plan if user_schema is None else plan.for_schema(user_schema))
    found = []
    for partition in reader.partitions():
        shipped, part = pickle.loads(cloudpickle.dumps((reader, partition)))  # as Spark does
        for batch in shipped.read(part):
            assert batch.schema.equals(arrow_target(reader.plan.frame))
            found += batch.to_pylist()
    return found


def test_a_plan_holds_what_tasks_need(uri: str) -> None:
    plan = plan_read({"path": uri, "node": "Thing", "columns": "i32,id", "filter": "i32 >= 0", "limit": "2"})
    assert isinstance(plan.source, TableScan)
    assert plan.source.columns == ("i32", "id")
    assert plan.frame.simpleString() == "struct<i32:int,id:string>"
    assert GraphReader(plan).partitions() == [FragmentGroup()]
    assert [r["i32"] for r in rows(plan)] == [0, 1]


def test_now_is_the_time_of_the_load(uri: str) -> None:
    plan = plan_read({"path": uri, "node": "Thing", "filter": "ts < now()", "columns": "id"}, utc(1960, 1, 1))
    assert [r["id"] for r in rows(plan)] == [things()["id"][2]]


def test_an_empty_table_has_no_partitions(uri: str) -> None:
    plan = plan_read({"path": uri, "node": "Empty"})
    assert GraphReader(plan).partitions() == []
    assert plan.frame.names == ["id", "big", "day", "name", "tags"]


def test_conflicts_are_found_by_a_task(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node Room { name: String @key  size: I32? }")
    graph.create_branch("draft")
    for branch, size in (("draft", 1), ("main", 2)):
        graph.load([f'{{"type": "Room", "data": {{"name": "hall", "size": {size}}}}}'], branch=branch)
    options = {"path": graph.uri, "table": "conflicts", "source": "draft"}
    (found,) = rows(plan_read(options))
    assert [found[name] for name in ("type", "id", "kind", "base")] == ["node:Room", "hall", "divergent_insert", None]
    assert found["message"] == "divergent insert for id 'hall'"
    sizes = [json.loads(str(found[side]))["data"]["size"] for side in ("source", "target")]
    assert (sizes, found["target_commit"]) == ([1, 2], graph.commits()[0].id)
    names = StructType([StructField("kind", StringType()), StructField("id", StringType())])
    assert rows(plan_read(options), names) == [{"kind": "divergent_insert", "id": "hall"}]
    with pytest.raises(NotFoundError, match="did you mean 'draft'"):
        plan_read({**options, "source": "drat"})
    graph.merge_branch("draft", decisions=[{**found, "take": "source"}])
    assert rows(plan_read(options)) == []


def test_counts_come_from_the_manifest_unless_filtered(uri: str) -> None:
    plan = plan_read({"path": uri, "aggregate": "count"})
    assert isinstance(plan.source, bytes)
    assert {r["type"]: r["count"] for r in rows(plan)} == {"node:Thing": 6, "node:Empty": 0, "edge:Link": 2}
    filtered = plan_read({"path": uri, "aggregate": "count", "node": "Thing", "where": '[["b", "=", true]]'})
    assert isinstance(filtered.source, CountTask)
    assert rows(filtered) == [{"type": "node:Thing", "count": 2}]


def test_a_user_schema_prunes_every_kind_of_plan(uri: str) -> None:
    asked = StructType([StructField("i32", IntegerType())])
    assert [r["i32"] for r in rows(plan_read({"path": uri, "node": "Thing"}), asked)] == things()["i32"]
    names = StructType([StructField("type", StringType())])
    assert rows(plan_read({"path": uri, "aggregate": "count", "edge": "Link"}), names) == [{"type": "edge:Link"}]
    assert {r["type"] for r in rows(plan_read({"path": uri, "table": "tables"}), names)} == {"Thing", "Empty", "Link"}
    with pytest.raises(BadRequestError, match="'Thing' has no column 'type'"):
        plan_read({"path": uri, "node": "Thing"}).for_schema(names)


def test_a_plan_outlives_later_commits(tmp_path_factory: pytest.TempPathFactory) -> None:
    store, _ = branched_graph(tmp_path_factory.mktemp("graphs") / "g")
    plan = plan_read({"path": store.root, "node": "Thing", "columns": "id"})
    publish(store, {"node:Thing": stored_things()})
    assert len(rows(plan)) == 6
    assert len(rows(plan_read({"path": store.root, "node": "Thing", "columns": "id"}))) == 12


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"node": "Thing", "columns": "x"}, BadRequestError),
        ({"node": "Thing", "filter": "x = 1"}, BadRequestError),
        ({"node": "Nothing"}, NotFoundError),
        ({"edge": "Thing"}, NotFoundError),
        ({"node": "Thing", "edge": "Link"}, BadRequestError),
        ({"node": "Thing", "snapshot": "nope"}, NotFoundError),
        ({"node": "Thing", "versionAsOf": "77"}, NotFoundError),
        ({"node": "Thing", "branch": "x"}, NotFoundError),
        ({"node": "Thing", "timestampAsOf": "1970-01-01"}, NotFoundError),
        ({"node": "Thing", "timestampAsOf": "soon"}, BadRequestError),
    ],
)
def test_faults_show_before_a_row_is_read(uri: str, options: dict[str, str], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        plan_read({"path": uri, **options})


def test_a_query_is_a_frame_found_by_one_task(uri: str) -> None:
    text = "query q($least: I32) { match { $t: Thing $t.i32 >= $least } return { $t.i32 as n, $t.ts, count($t) as c } }"
    given = {"path": uri, "query": text + " query other() { match { $t: Thing } return { $t } }", "queryName": "q"}
    plan = plan_read({**given, "params": '{"least": 1}'})
    assert plan.frame.simpleString() == "struct<n:int,t.ts:timestamp,c:bigint>"
    assert len(GraphReader(plan).partitions()) == 1
    found = rows(plan)
    assert {r["n"] for r in found} == {n for n in things()["i32"] if n is not None and n >= 1}
    assert all(r["c"] == 1 for r in found)
    pruned = rows(plan, StructType([StructField("c", LongType()), StructField("n", IntegerType())]))
    assert [list(r) for r in pruned] == [["c", "n"]] * len(found)


def test_a_query_is_pinned_when_it_is_planned(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node A { k: String @key  at: DateTime? }")
    graph.load(['{"type":"A","data":{"k":"x","at":"2020-01-01"}}'])
    text = "query q() { match { $a: A $a.at < now() } return { $a.k, now() as at } }"
    plan = plan_read({"path": graph.uri, "query": text}, utc(2021, 1, 1))
    graph.load(['{"type":"A","data":{"k":"y","at":"2020-01-01"}}'])
    assert rows(plan) == [{"a.k": "x", "at": utc(2021, 1, 1)}]
    assert rows(plan_read({"path": graph.uri, "query": text}, utc(2019, 1, 1))) == []
    assert [r["a.k"] for r in rows(plan_read({"path": graph.uri, "query": text, "versionAsOf": "1"}))] == []


NEAR = 'query q() { match { $p: P } return { $p.k } order { nearest($p.v, "wax") } limit 1 }'


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A graph whose vectors are the mock's of their keys."""
    graph = Graph.init(tmp_path_factory.mktemp("pages") / "g", "node P { k: String @key  v: Vector(3)? }")
    keys = ["bees", "wax", "honey"]
    vectors = MockEmbedder().embed(keys, dimension=3, role=Role.DOCUMENT).vectors.tolist()
    graph.load([json.dumps({"type": "P", "data": {"k": key, "v": row}}) for key, row in zip(keys, vectors)])
    return graph.uri


def test_a_text_for_nearest_is_a_vector_before_tasks_see_it(pages: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    plan = plan_read({"path": pages, "query": NEAR})
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK")
    assert rows(plan) == [{"p.k": "wax"}]


def test_a_plan_has_no_key(pages: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddingServer() as server:
        for name, value in server.environ().items():
            monkeypatch.setenv(name, value)
        plan = plan_read({"path": pages, "query": NEAR})
    assert server.asked == ["wax"]
    assert b"sk-test" not in pickle.dumps(plan)


def test_without_a_provider_the_process_is_named_that_needs_it(pages: str) -> None:
    with pytest.raises(
        EmbeddingConfigError, match=r"is required for.*process in which Spark plans.*`read_query` and `Graph.query` ask"
    ):
        plan_read({"path": pages, "query": NEAR})


ALL = "query q() { match { $t: Thing } return { $t } }"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"query": "query q() { match { $t: Thing } return { $t.i32 $t.i32 } }"}, "two columns are called 't.i32'"),
        (
            {"query": "query q() { match { $t: Thing } return { $t.i32 as nn $t.i64 as nN } }"},
            "two columns are called 'nn' and 'nN', which Spark does not tell apart",
        ),
        ({"query": "query q() { match { $t: Nothing } return { $t } }"}, "unknown node type"),
        (
            {"query": ALL, "node": "Thing"},
            "'node' does not go with 'query'",
        ),
        ({"query": ALL, "params": "[1]"}, "must be a JSON object"),
        ({"query": ALL, "params": "{"}, "is not JSON"),
        ({"query": ALL, "queryName": "p"}, "query 'p' not found"),
        ({"node": "Thing", "params": "{}"}, "belongs to the option 'query'"),
    ],
)
def test_queries_that_are_refused(uri: str, given: dict[str, str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        plan_read({"path": uri, **given})
