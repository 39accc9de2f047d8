"""`spark.read.format("omnigraph")`, end to end."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from spark_omnigraph import Graph
from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.errors import BadRequestError, NotFoundError, OmnigraphError
from spark_omnigraph.spark.api import create_views, read_edges, read_nodes, register
from spark_omnigraph.spark.errors import translate, typed_errors
from tests.spark.graphs import SCHEMA, branched_graph, new_graph, publish
from tests.support.embedding_server import EmbeddingServer, refusal
from tests.unit.spark.graph_types import BLOB, MOMENTS, millis, stored_things, things, utc


def load(spark: SparkSession, uri: str, **options: str) -> DataFrame:
    return spark.read.format("omnigraph").options(**options).load(uri)


def ids(frame: DataFrame) -> set[str]:
    return {row["id"] for row in frame.select("id").collect()}


def test_nothing_is_imported_or_registered_for_the_first_read(spark: SparkSession, graph: str) -> None:
    assert load(spark, graph, edge="Link").count() == 2


def test_every_type_arrives_whole(spark: SparkSession, graph: str) -> None:
    frame = load(spark, graph, node="Thing")
    stored = things()
    names = [n for n in stored if n not in ("ts", "times", "u64")]
    rows = {row["id"]: row for row in frame.select(*names, "u64", "blob").collect()}
    assert len(rows) == 6
    for place, id_ in enumerate(stored["id"]):
        row = rows[str(id_)]
        for name in names:
            assert row[name] == stored[name][place], name
        wanted = stored["u64"][place]
        assert row["u64"] == (None if wanted is None else Decimal(wanted))
        assert row["blob"] is None


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/New_York"])
def test_instants_are_the_same_in_every_session_zone(spark: SparkSession, graph: str, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = load(spark, graph, node="Thing")
        rows = frame.select(
            "id", sf.unix_millis("ts").alias("ts"), sf.unix_millis(sf.get("times", sf.lit(0))).alias("t0")
        )
        found = {row["id"]: (row["ts"], row["t0"]) for row in rows.collect()}
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    stored = things()
    for id_, ts, times in zip(stored["id"], stored["ts"], stored["times"]):
        first = times[0] if times else None
        assert found[str(id_)] == tuple(None if m is None else millis(m) for m in (ts, first))


def test_an_empty_table_has_the_schema_of_the_catalog(spark: SparkSession, graph: str) -> None:
    frame = load(spark, graph, node="Empty")
    assert frame.schema.simpleString() == (
        "struct<id:string,big:decimal(20,0),day:date,name:string,tags:array<string>>"
    )
    assert [f.nullable for f in frame.schema.fields] == [False, True, True, False, True]
    assert frame.collect() == []
    assert frame.count() == 0


def test_columns_without_values_have_their_types(spark: SparkSession, tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load(['{"type": "Empty", "data": {"name": "a"}}', '{"type": "Empty", "data": {"name": "b"}}'])
    frame = load(spark, graph.uri, node="Empty")
    assert frame.schema.simpleString() == (
        "struct<id:string,big:decimal(20,0),day:date,name:string,tags:array<string>>"
    )
    assert {tuple(r) for r in frame.collect()} == {("a", None, None, "a", None), ("b", None, None, "b", None)}
    assert ids(load(spark, graph.uri, node="Empty", where='[["big", "is null"], ["tags", "is null"]]')) == {"a", "b"}
    assert load(spark, graph.uri, node="Empty", where='[["big", "!=", 1]]').count() == 0


ZONES = ("Asia/Kolkata", "America/St_Johns")
INSTANTS = [
    *(utc(1, 1, 1), utc(1, 1, 2, 3, 4, 5, 6000), utc(1582, 10, 4, 23), utc(1582, 10, 15), utc(1883, 11, 18, 17)),
    *(
        utc(1899, 12, 31, 23, 59, 59, 999000),
        utc(1906, 1, 1),
        utc(1935, 3, 30, 3),
        utc(1969, 12, 31, 23, 59, 59, 999000),
    ),
    *(utc(1970, 1, 1), utc(2024, 3, 10, 5, 29, 59, 999000), utc(2024, 11, 3, 4, 30), utc(2024, 11, 3, 5, 30)),
    *(utc(2262, 4, 12), utc(9999, 12, 31, 23, 59, 59, 999000)),
]
"""Years 1 to 9999, changes of calendars and of clocks, and the hour that St. John's has twice."""


def test_instants_are_written_and_read_alike_in_every_session_zone(spark: SparkSession, tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node At { k: String @key  t: DateTime  ts: [DateTime]? }")
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        for zone in ZONES:
            spark.conf.set("spark.sql.session.timeZone", zone)
            numbers = spark.createDataFrame(
                [(f"{zone}{n}", millis(t)) for n, t in enumerate(INSTANTS)], "k string, m long"
            )
            frame = numbers.selectExpr("k", "timestamp_millis(m) as t", "array(timestamp_millis(m), null) as ts")
            with typed_errors():
                frame.write.format("omnigraph").mode("append").option("node", "At").save(graph.uri)
        graph.load(
            [json.dumps({"type": "At", "data": {"k": f"json{n}", "t": _iso(t)}}) for n, t in enumerate(INSTANTS)]
        )
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        rows = (
            load(spark, graph.uri, node="At")
            .selectExpr("k", "unix_millis(t) as t", "unix_millis(ts[0]) as first")
            .collect()
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    found = {row["k"]: (row["t"], row["first"]) for row in rows}
    wanted = {f"{zone}{n}": (millis(t), millis(t)) for zone in ZONES for n, t in enumerate(INSTANTS)}
    assert found == wanted | {f"json{n}": (millis(t), None) for n, t in enumerate(INSTANTS)}


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def test_branches_and_times(spark: SparkSession, tmp_path: Path) -> None:
    store, commits = branched_graph(tmp_path / "g")
    uri = store.root
    assert load(spark, uri, edge="Link", branch="dev/one").count() == 5
    assert load(spark, uri, edge="Link", branch="main").count() == 2
    assert load(spark, uri, node="Thing", branch="dev/one").count() == 6
    assert load(spark, uri, edge="Link", versionAsOf=str(commits[0].manifest_version)).count() == 0
    assert load(spark, uri, edge="Link", snapshot=commits[2].id).count() == 5
    third = publish(store, {"edge:Link": pa.table({"id": ["x"], "src": ["a"], "dst": ["b"]})})
    assert third.parent == commits[1].id
    moment = MOMENTS[0]
    assert moment is not None
    between = "1970-01-01T00:00:00Z"
    with pytest.raises(NotFoundError), typed_errors():
        load(spark, uri, edge="Link", timestampAsOf=between).collect()
    micros = commits[1].created_micros + 1
    text = (moment - timedelta(seconds=moment.timestamp()) + timedelta(microseconds=micros)).isoformat()
    assert load(spark, uri, edge="Link", timestampAsOf=text).count() == 2


@pytest.mark.classic  # over Connect only the helpers pin a snapshot; tests/spark/connect shows both
def test_a_load_is_a_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    store = new_graph(tmp_path / "g")
    publish(store, {"node:Thing": stored_things()})
    frame = load(spark, store.root, node="Thing")
    pruned = spark.read.schema("i32 int").format("omnigraph").option("node", "Thing").load(store.root)
    publish(store, {"node:Thing": stored_things()})
    assert frame.count() == 6
    assert pruned.count() == 12, "with a schema of the user Spark asks nobody before the first action"
    publish(store, {"node:Thing": stored_things()})
    assert frame.filter("b").count() == 2
    assert frame.union(frame).count() == 12
    assert pruned.count() == 12
    assert load(spark, store.root, node="Thing").count() == 18


def test_a_cached_frame_is_of_one_snapshot_and_no_other_frame_is(spark: SparkSession, tmp_path: Path) -> None:
    store = new_graph(tmp_path / "g")
    publish(store, {"node:Thing": stored_things()})
    frame = read_nodes(spark, store.root, "Thing").cache()
    try:
        assert frame.count() == 6
        publish(store, {"node:Thing": stored_things()})
        assert frame.count() == 6
        assert frame.filter("b").count() == 2
        assert read_nodes(spark, store.root, "Thing").count() == 12
    finally:
        frame.unpersist()
    assert frame.count() == 6
    assert frame.union(read_nodes(spark, store.root, "Thing")).count() == 18


def test_options_that_narrow(spark: SparkSession, graph: str) -> None:
    frame = load(spark, graph, node="Thing", columns="ts, id", filter="ts > timestamp '2020-01-01 05:00:00'")
    assert frame.columns == ["ts", "id"]
    assert ids(frame) == {"a\\b", "%_"}
    assert ids(load(spark, graph, node="Thing", filter="b", where='[["i32", ">", 0]]')) == {'q"`'}
    limited = load(spark, graph, node="Thing", limit="2")
    assert limited.count() == 2
    assert limited.select(sf.spark_partition_id()).distinct().count() == 1
    assert load(spark, graph, node="Thing", limit="0").count() == 0
    assert ids(frame.filter("id = '%_'")) == {"%_"}


def test_a_schema_of_the_user_prunes_and_is_verified(spark: SparkSession, graph: str) -> None:
    def read(schema: str) -> DataFrame:
        return spark.read.schema(schema).format("omnigraph").option("node", "Thing").load(graph)

    assert read("u64 decimal(20,0), id string").columns == ["u64", "id"]
    assert {r["i32"] for r in read("i32 int").collect()} == set(things()["i32"])
    wide = read("i32 bigint, u32 decimal(19,0), v array<double>").orderBy("i32").collect()
    assert [r["i32"] for r in wide] == sorted(things()["i32"], key=lambda n: (n is not None, n))
    assert {r["u32"] for r in wide} == set(things()["u32"])
    assert [3.0, 4.0] in [r["v"] for r in wide]
    for schema in ("i64 int", "nope int", "ts timestamp_ntz"):
        with pytest.raises(BadRequestError), typed_errors():
            read(schema).collect()


def test_counts(spark: SparkSession, graph: str) -> None:
    assert {tuple(r) for r in load(spark, graph, aggregate="count").collect()} == {
        ("node:Thing", 6),
        ("node:Empty", 0),
        ("edge:Link", 2),
    }
    assert load(spark, graph, aggregate="count", edge="Link", branch="dev/one").collect() == [("edge:Link", 5)]
    assert load(spark, graph, aggregate="count", node="Thing", filter="i32 < 0").collect() == [("node:Thing", 2)]


def test_what_a_graph_knows_about_itself(spark: SparkSession, graph: str) -> None:
    commits = load(spark, graph, table="commits", branch="dev/one").collect()
    assert [(c["branch"], c["actor"]) for c in commits] == [
        ("dev/one", "dev"),
        ("main", "a"),
        ("main", "a"),
        ("main", None),
    ]
    assert [c["parent"] for c in commits[:-1]] == [c["commit"] for c in commits[1:]]
    assert [tuple(b)[:3] for b in load(spark, graph, table="branches").collect()] == [
        ("main", None, 5),
        ("dev/one", "main", 6),
    ]
    tables = {r["table"]: r for r in load(spark, graph, table="tables", branch="dev/one").collect()}
    assert list(tables) == ["node:Empty", "node:Thing", "edge:Link"]
    link = tables["edge:Link"]
    assert (link["rows"], link["branch"], link["manifest_version"], link["table_branch"]) == (
        5,
        "dev/one",
        6,
        "dev/one",
    )
    assert tables["node:Thing"]["table_branch"] == "main"


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"node": "Thing", "columns": "nope"}, BadRequestError, "'Thing' has no column 'nope'"),
        ({"node": "Thing", "filter": "agee > 3"}, BadRequestError, "No field named agee"),
        ({"node": "Thing", "limits": "3"}, BadRequestError, "did you mean 'limit'?"),
        ({"node": "Things"}, NotFoundError, "did you mean 'Thing'?"),
    ],
)
def test_load_refuses_at_once_and_typed(
    spark: SparkSession, graph: str, options: dict[str, str], kind: type[OmnigraphError], message: str
) -> None:
    """One of each kind: Spark starts a new Python worker after every error. The others are tried without it."""
    with pytest.raises(PySparkException) as caught:
        _ = load(spark, graph, **options).schema  # over Connect nothing is sent before the schema is asked for
    assert f"OMNIGRAPH_{kind.kind.upper()}: " in str(caught.value)
    found = translate(caught.value)
    assert type(found) is kind
    assert found is not None
    assert message in found.message
    assert "Traceback" not in found.message


def test_a_missing_graph(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no graph at"):
        read_nodes(spark, str(tmp_path / "nope"), "Thing")
    with pytest.raises(NotFoundError, match="no graph at"), typed_errors():
        spark.read.schema("id string").format("omnigraph").option("node", "T").load(str(tmp_path / "nope")).collect()


def test_errors_of_tasks_are_ours_too(spark: SparkSession, graph: str) -> None:
    frame = load(spark, graph, node="Thing", filter="1 / i32 > 0")
    with pytest.raises(BadRequestError, match="fails on a stored value"), typed_errors():
        frame.collect()


def test_two_settings_leave_one_line_of_an_error(spark: SparkSession, graph: str) -> None:
    """As the page on reading says; without them Spark adds tracebacks of Python, and over Connect its own stack."""
    conf = {
        "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true",
        "spark.sql.connect.serverStacktrace.enabled": "false",
    }
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        for options, says in [
            ({"node": "Nothing"}, "OMNIGRAPH_NOT_FOUND: node type 'Nothing' is not in the schema"),
            ({"node": "Thing", "filter": "1 / i32 > 0"}, "OMNIGRAPH_BAD_REQUEST: filter fails on a stored value"),
        ]:
            with pytest.raises(PySparkException) as caught:
                load(spark, graph, **options).collect()
            assert says in str(caught.value)
            assert len(str(caught.value).strip().splitlines()) <= 3
            assert translate(caught.value) is not None
    finally:
        for key in conf:
            spark.conf.unset(key)


def test_blobs(spark: SparkSession, tmp_path: Path) -> None:
    store = new_graph(tmp_path / "g")
    outside = tmp_path / "outside.bin"
    blobs: list[dict[str, object] | None] = [{"data": b"abc", "uri": None}, {"data": b"more", "uri": None}]
    publish(store, {"node:Thing": stored_things([*blobs, None, None, None, None])})
    rows = load(spark, store.root, node="Thing", columns="id,blob").collect()
    assert [None if r["blob"] is None else bytes(r["blob"]) for r in rows] == [b"abc", b"more", *[None] * 4]
    outside.write_bytes(b"secret")
    publish(store, {"node:Thing": stored_things([{"data": None, "uri": f"file://{outside}"}, *[None] * 5])})
    with pytest.raises(BadRequestError, match="a file of this machine, which is not read"), typed_errors():
        load(spark, store.root, node="Thing", columns="blob").collect()
    assert BLOB.num_fields == 2


def test_helpers(spark: SparkSession, graph: str) -> None:
    register(spark)
    register(spark)
    frame = read_nodes(
        spark, graph, "Thing", columns=["id", "d"], where=[("d", "<", date(1600, 1, 1)), ("ts", "is not null")]
    )
    assert frame.columns == ["id", "d"]
    assert ids(frame) == {"it's", 'q"`'}
    assert ids(read_nodes(spark, graph, "Thing", where="s = 'it''s'", limit=5)) == {"it's"}
    assert ids(read_edges(spark, graph, "Link", where=[("src", "in", ["c", "d"])], branch="dev/one")) == {"c-d", "d-e"}
    assert read_edges(spark, graph, "Link", version=4).count() == 0
    with pytest.raises(BadRequestError, match="no column 'x'"):
        read_nodes(spark, graph, "Thing", where=[("x", "=", 1)])
    with pytest.raises(BadRequestError, match="columns is a list of names"):
        read_nodes(spark, graph, "Thing", columns="id")


def test_views_are_of_one_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    store, _ = branched_graph(tmp_path / "g")
    views = create_views(spark, store.root, branch="dev/one", prefix="g_")
    assert views == {"node:Empty": "g_Empty", "node:Thing": "g_Thing", "edge:Link": "g_Link"}
    publish(store, {"node:Thing": stored_things()}, branch="dev/one")
    query = "SELECT count(*) AS n FROM g_Thing CROSS JOIN g_Link"
    assert spark.sql(query).collect() == [Row(n=30)]
    with pytest.raises(BadRequestError, match="a view or table 'g_Thing' exists already"):
        create_views(spark, store.root, branch="dev/one", prefix="g_", types=["Thing"])
    assert spark.sql(query).collect() == [Row(n=30)]
    create_views(spark, store.root, branch="dev/one", prefix="g_", types=["Thing"], replace=True)
    assert spark.sql(query).collect() == [Row(n=60)]


def test_views_of_the_user_stay(spark: SparkSession, tmp_path: Path) -> None:
    store, _ = branched_graph(tmp_path / "g")
    spark.range(3).createOrReplaceTempView("mine_thing")
    with pytest.raises(BadRequestError, match="'mine_Thing' exists already: give a prefix, or replace=True"):
        create_views(spark, store.root, prefix="mine_")
    assert spark.table("mine_thing").columns == ["id"]
    assert not spark.catalog.tableExists("mine_Empty")


def test_sql_views_carry_options(spark: SparkSession, graph: str) -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW v USING omnigraph OPTIONS (path '{graph}', node 'Thing', "
        "columns 'id,i32', where '[[\"i32\", \">=\", 0]]')"
    )
    assert spark.sql("SELECT id FROM v WHERE i32 < 2").count() == 2


def test_a_question_by_meaning_asks_the_provider_of_where_spark_plans(
    spark: SparkSession, provider: EmbeddingServer, tmp_path: Path
) -> None:
    graph = Graph.init(tmp_path / "g", "node P { k: String @key  v: Vector(4)? }")
    vectors = MockEmbedder().embed(["wax", "tin"], dimension=4, role=Role.QUERY).vectors.tolist()
    rows = [{"k": k, "v": v} for k, v in zip(["wax", "tin"], vectors, strict=True)]
    graph.load([json.dumps({"type": "P", "data": row}) for row in rows])
    text = 'query q() { match { $p: P } return { $p.k } order { nearest($p.v, "wax") } limit 1 }'
    assert [row["p.k"] for row in load(spark, graph.uri, query=text).collect()] == ["wax"]
    provider.script.extend([refusal(401)] * 8)
    with pytest.raises(PySparkException, match="OPENAI_API_KEY"):
        load(spark, graph.uri, query=text).collect()
    provider.script.clear()


def test_a_query_is_a_frame(spark: SparkSession, graph: str) -> None:
    text = "query q($least: I32) { match { $t: Thing $t.i32 >= $least } return { $t as id, $t.i32, $t.u64, $t.ts} }"
    frame = load(spark, graph, query=text, params='{"least": 1}')
    stored = things()
    wanted = {
        str(id_): Decimal(u64) if u64 is not None else None  # integers and nulls
        for id_, i32, u64 in zip(stored["id"], stored["i32"], stored["u64"], strict=True)
        if i32 is not None and i32 >= 1  # integers
    }
    assert {row["id"]: row["t.u64"] for row in frame.select("id", "`t.u64`").collect()} == wanted
    assert frame.where("`t.i32` < 0").count() == 0
    with pytest.raises(PySparkException, match="unknown node type"):
        load(spark, graph, query="query q() { match { $t: Nothing } return { $t } }").collect()
