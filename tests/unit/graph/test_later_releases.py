"""Graphs of later releases: everything that reads works on them as the engine that wrote them tells, nothing writes."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from spark_omnigraph import Graph, NotFoundError
from spark_omnigraph.errors import DamagedError, QueryTypeError, SchemaFilesError, UnsupportedFormatError
from spark_omnigraph.graph.states import READS
from spark_omnigraph.manifest.facts import CommitOrigin
from spark_omnigraph.spark.errors import CodedError
from spark_omnigraph.spark.read.feed import FeedPartition, plan_feed_frame
from spark_omnigraph.spark.read.plan import plan_read
from spark_omnigraph.spark.write.writer import plan_stream_write, plan_write
from tests.support.feed_streams import HAS_STREAMS, feed_stream
from tests.support.graph_files import internal
from tests.support.later import (
    RELEASES,
    fingerprint,
    made_over,
    recorded_commits,
    records,
    sample,
    table_id,
    write_documents,
    write_manifest,
)

STATES: dict[str, tuple[dict[str, object], str]] = {
    "main": ({}, "export-4-main.jsonl"),
    "quiet": ({"branch": "quiet"}, "export-5-quiet.jsonl"),
    "busy": ({"branch": "busy"}, "export-6-busy.jsonl"),
    "after the first load": ({"version": 4}, "export-1-main.jsonl"),
    "after the merge": ({"version": 6}, "export-3-main.jsonl"),
}


@pytest.fixture(scope="module", params=RELEASES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample(tmp_path_factory.mktemp("sample"), str(request.param))


@pytest.fixture(scope="module")
def graph(folder: Path) -> Graph:
    return Graph.open(folder / "graph", mode="r")


@pytest.mark.parametrize("state", STATES)
def test_exports_are_those_of_the_engine(folder: Path, graph: Graph, state: str) -> None:
    where, file = STATES[state]
    assert records(graph.export(**where)) == records((folder / file).read_text().splitlines())  # type: ignore[arg-type]  # states by their names


@pytest.mark.parametrize("branch", ["main", "quiet", "busy"])
def test_histories_are_those_of_the_engine(folder: Path, graph: Graph, branch: str) -> None:
    told = recorded_commits(folder, branch)
    assert graph.commits(branch=branch) == told[::-1]
    merge = next(c for c in told if c.merged_parent is not None)
    assert graph.commit(merge.id) == merge
    for commit in told[1:]:
        before = graph.at(branch=branch, as_of=commit.created_at)
        assert before.snapshot().version == graph.at(snapshot=commit.id).snapshot().version == commit.manifest_version


def test_what_a_branch_is_to_main(folder: Path, graph: Graph) -> None:
    ahead = {info.name: (info.parent, info.head, info.ahead) for info in graph.branch_infos()}
    heads = {branch: recorded_commits(folder, branch)[-1].id for branch in ahead}
    assert ahead == {
        "main": (None, heads["main"], 0),
        "busy": ("main", heads["busy"], 1),
        "quiet": ("main", heads["quiet"], 0),
    }
    busy = next(info for info in graph.branch_infos() if info.name == "busy")
    assert busy.own_tables == ("node:Vessel",)


def test_types_have_the_names_and_properties_of_their_time(graph: Graph) -> None:
    assert sorted(graph.catalog().nodes)[-1] == "Vessel"
    old = graph.at(version=4)
    assert sorted(old.catalog().nodes) == ["Boat", "Crane", "Harbour"]
    assert [p.name for p in old.catalog().nodes["Crane"].properties] == ["load", "serial"]
    assert old.catalog().edges["Moors"].from_type == "Boat"
    assert old.entity("node:Boat", "Alba") == {"id": "Alba", "built": 1971, "name": "Alba"}
    moored = 'query q() { match { $b: Boat { name: "Alba" } $b moors $h } return { $h.name as at } }'
    assert old.query(moored).to_pylist() == [{"at": "North"}]
    assert "name: String" in old.schema()
    with pytest.raises(NotFoundError):
        graph.at(version=4).count("node:Vessel")


QUERIES: dict[str, list[dict[str, object]]] = {
    "query q() { match { $v: Vessel $v moors $h } return { $v.name as v, $h.title as h } order { $v.name } }": [
        {"v": "Alba", "h": "North"},
        {"v": "Brise", "h": "East"},
    ],
    "query q() { match { $h: Harbour $h <ferry> $o } return { $h.code as h, $o.code as o } order { $h.code } }": [
        {"h": "h1", "o": "h2"},
        {"h": "h2", "o": "h1"},
        {"h": "h2", "o": "h2"},
    ],
    "query q() { match { $h: Harbour } return { $h.code as c } order { nearest($h.vec, [0.9, 0.1, 0.0]) } limit 1 }": [
        {"c": "h3"}
    ],
    'query q() { match { $h: Harbour search($h.title, "south") } return { $h.code as c } }': [{"c": "h2"}],
    'query q() { match { $h: Harbour $h.title starts_with "No" } return { count($h) as n } }': [{"n": 1}],
}


@pytest.mark.parametrize("text", QUERIES)
def test_queries_and_searches(graph: Graph, text: str) -> None:
    assert graph.query(text).to_pylist() == QUERIES[text]


def test_a_type_that_was_made_again_shows_one_life(tmp_path: Path) -> None:
    graph = Graph.open(sample(tmp_path, "0.9.0") / "graph", mode="r")
    assert graph.count("node:Crane") == 1
    assert graph.entity("node:Crane", "c-1") == {"id": "c-1", "height": 3.5, "serial": "c-1"}
    again = [(c.op, c.id) for c in graph.diff(4, 11).changes if c.type_name == "Crane"]
    assert again == [("delete", "c-1"), ("insert", "c-1")]
    plan = plan_feed_frame({"path": graph.uri, "table": "changes", "node": "Crane"})
    parts = plan.partitions(1, 14)
    rows = [r for part in parts if isinstance(part, FeedPartition) for b in plan.read(part) for r in b.to_pylist()]
    assert [(r["_change_type"], r["_commit_version"], r["serial"], r["height"]) for r in rows] == [
        ("insert", 4, "c-1", None),
        ("delete", 8, "c-1", None),
        ("insert", 11, "c-1", 3.5),
    ]


def test_a_rename_changes_no_row(tmp_path: Path) -> None:
    graph = Graph.open(sample(tmp_path, "0.9.0") / "graph", mode="r")
    assert graph.diff(8, 9).changes == ()
    assert {c.type_name for c in graph.diff(5, 6).changes} == {"Harbour", "Moors", "Boat"}


def test_describe_says_what_the_graph_is(graph: Graph) -> None:
    told = graph.describe().to_dict()
    stamp = graph.store.form().stamp
    assert told["branches"] == ["main", "busy", "quiet"]
    assert told["nodes"]["Vessel"]["rows"] == 2  # type: ignore[index]  # the values of JSON
    assert told["warnings"] == [graph.store.form().note]
    assert f"internal schema version {stamp}" in graph.store.form().note
    assert {status.progress for status in graph.indexes()} == {"complete"} or stamp == 4
    assert (graph.tags(), graph.consumers(), graph.recoveries(), graph.interrupted()) == ([], [], [], [])


SOURCES: dict[str, dict[str, str]] = {
    "type": {"node": "Harbour"},
    "type of then": {"node": "Boat", "versionAsOf": "4"},
    "branch": {"node": "Vessel", "branch": "busy", "filter": "built = 2001"},
    "count": {"node": "Harbour", "aggregate": "count"},
    "query": {"query": next(iter(QUERIES))},
    "commits": {"table": "commits"},
    "branches": {"table": "branches"},
    "tables": {"table": "tables"},
    "tags": {"table": "tags"},
    "recoveries": {"table": "recoveries"},
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_data_source_plans_every_read(graph: Graph, name: str) -> None:
    assert plan_read({"path": graph.uri, **SOURCES[name]}).frame.fields


def test_the_change_feed_begins_and_goes_on(folder: Path, graph: Graph) -> None:
    stream = feed_stream({"path": graph.uri, "table": "changes"})
    told = [commit.manifest_version for commit in recorded_commits(folder, "main")]
    assert stream.initialOffset() == {"version": told[0]}
    assert stream.latestOffset({"version": told[0]}, stream.getDefaultReadLimit()) == {"version": told[-1]}
    rows = [
        row
        for part in stream.partitions({"version": 4}, {"version": 6})
        for batch in stream.read(part)
        for row in batch.to_pylist()
    ]
    harbours = [r for r in rows if r["table"] == "node:Harbour"]
    assert sorted((r["_commit_version"], r["_change_type"], r["id"]) for r in harbours) == [
        (5, "insert", "h9"),
        (6, "insert", "h4"),
    ]


ARGUMENTS: dict[str, tuple[object, ...]] = {
    "apply_schema": ("node A { k: String @key }",),
    "plan_schema": ("node A { k: String @key }",),
    "load": (['{"type": "Vessel", "data": {"name": "x"}}'],),
    "ingest": (['{"type": "Vessel", "data": {"name": "x"}}'], "new"),
    "load_table": ("node:Vessel", [{"name": "x"}]),
    "delete": ("node:Vessel", ["Alba"]),
    "mutate": ('query m() { insert Vessel { name: "x" } }',),
    "create_branch": ("new",),
    "merge_branch": ("busy",),
    "delete_branch": ("busy",),
    "tag": ("t",),
    "delete_tag": ("t",),
    "delete_consumer": ("c",),
    "erase": ("node:Vessel", "Alba"),
    "copy": ("elsewhere",),
}
NOT_CALLED = {"init", "open", "snapshot"} | READS
WRITES = [
    name
    for name, member in inspect.getmembers(Graph, inspect.isfunction)
    if not name.startswith("_") and name not in NOT_CALLED
]


def test_every_method_that_is_not_known_to_read_is_refused(graph: Graph) -> None:
    before = fingerprint(Path(graph.uri))
    assert {"load", "optimize", "recover", "apply_schema", "copy"} <= set(WRITES)
    for name in WRITES:
        with pytest.raises(UnsupportedFormatError, match=r"only reads.*convert"):
            getattr(graph, name)(*ARGUMENTS.get(name, ()))
    assert fingerprint(Path(graph.uri)) == before


def frame() -> StructType:
    return StructType([StructField("name", StringType())])


OTHERS: dict[str, Callable[[Graph], object]] = {
    "open": lambda g: Graph.open(g.uri),
    "open of a branch": lambda g: Graph.open(g.uri, branch="busy"),
    "init by force": lambda g: Graph.init(g.uri, "node A { k: String @key }", force=True),
    "write": lambda g: plan_write({"path": g.uri, "node": "Vessel"}, frame(), False),
    "delete of a frame": lambda g: plan_write({"path": g.uri, "node": "Vessel", "loadMode": "delete"}, frame(), False),
    "stream": lambda g: plan_stream_write({"path": g.uri, "node": "Vessel"}, frame(), False),
    "conflicts": lambda g: plan_read({"path": g.uri, "table": "conflicts", "source": "busy", "into": "main"}),
    "a read-write handle": lambda g: Graph(g.store).with_origin(CommitOrigin()).refresh(),
}
if HAS_STREAMS:
    OTHERS["consumer"] = lambda g: feed_stream({"path": g.uri, "table": "changes", "consumer": "c"}).initialOffset()


def test_every_other_door_to_a_write_is_refused(graph: Graph) -> None:
    before = fingerprint(Path(graph.uri))
    for call in OTHERS.values():
        with pytest.raises((UnsupportedFormatError, CodedError), match=r"only reads.*convert"):
            call(graph)
    assert fingerprint(Path(graph.uri)) == before


SCHEMA = "node P { k: String @key  n: I32? }\nedge K: P -> P"


@pytest.fixture(params=[4, 5, 6])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load(['{"type": "P", "data": {"k": "a", "n": 1}}'], actor="ada")
    graph.mutate('query m() { update P set { n: 2 } where k = "a" }', actor="grace")
    return Graph.open(made_over(tmp_path / "g", int(request.param)), mode="r")


def test_actors_and_old_states_of_every_stamp(made: Graph) -> None:
    assert [c.actor for c in made.commits()] == ["grace", "ada", None]
    assert [c.id for c in made.commits(actor="ada")] == [made.commits()[1].id]
    loaded = made.commits()[1].manifest_version
    assert made.at(version=loaded).entity("node:P", "a") == {"id": "a", "k": "a", "n": 1}
    assert made.entity("node:P", "a") == {"id": "a", "k": "a", "n": 2}
    assert [(c.op, c.id) for c in made.diff(loaded).changes] == [("update", "a")]
    assert made.at(version=1).count("node:P") == 0


def rows_of(graph: Graph) -> list[dict[str, object]]:
    found: list[dict[str, object]] = internal(Path(graph.uri), "__manifest").to_table().to_pylist()
    return found


@pytest.fixture
def later(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load(['{"type": "P", "data": {"k": "a", "n": 1}}'])
    return Graph.open(made_over(tmp_path / "g", 6), mode="r")


def test_ids_of_zero_and_none_are_damage(later: Graph) -> None:
    rows = rows_of(later)
    for value in (0, None):
        write_manifest(Path(later.uri), [{**row, "table_incarnation_id": value} for row in rows], 6)
        with pytest.raises(DamagedError, match="no ids, or one that is 0"):
            later.count("node:P")


def test_two_tables_of_one_name_are_damage(later: Graph) -> None:
    rows = rows_of(later)
    pair = (77, 78)
    again = [
        {
            **row,
            "object_id": table_id(str(row["object_type"]), pair, row["table_version"]),  # type: ignore[arg-type]  # a number, or None
            "stable_table_id": pair[0],
            "table_incarnation_id": pair[1],
            "location": row["location"] and f"nodes/{pair[0]:016x}-{pair[1]:016x}",
        }
        for row in rows
        if row["table_key"] == "node:P"
    ]
    write_manifest(Path(later.uri), [*rows, *again], 6)
    with pytest.raises(DamagedError, match="a second table 'node:P'"):
        later.count("node:P")


def test_a_table_that_stands_elsewhere_is_damage(later: Graph) -> None:
    rows = [{**row, "location": row["location"] and "nodes/40d76f1f51639ec0"} for row in rows_of(later)]
    write_manifest(Path(later.uri), rows, 6)
    with pytest.raises(DamagedError, match="places its table at"):
        later.count("node:P")


@pytest.mark.parametrize("stamp", [None, "", "old", "3", "4", "7"])
def test_a_torn_stamp_is_no_format(later: Graph, stamp: str | None) -> None:
    write_manifest(Path(later.uri), rows_of(later), stamp)
    with pytest.raises(UnsupportedFormatError):
        later.count("node:P")
    with pytest.raises(UnsupportedFormatError):
        Graph.open(later.uri, mode="r").count("node:P")


def test_a_stamp_with_columns_of_an_earlier_one_is_no_format(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    internal(tmp_path / "g", "__manifest").update_schema_metadata({"omnigraph:internal_schema_version": "6"})
    with pytest.raises(UnsupportedFormatError, match="lacks stable_table_id"):
        Graph.open(graph.uri, mode="r")


def document(graph: Graph) -> dict[str, object]:
    found: dict[str, object] = json.loads((Path(graph.uri) / "_schema.ir.json").read_text())
    return found


def other_ids(found: dict[str, object]) -> dict[str, object]:
    nodes = [{**node, "type_id": 999} for node in found["nodes"]]  # type: ignore[attr-defined]  # the values of JSON
    return {**found, "nodes": nodes}


@pytest.mark.parametrize(
    ("change", "state", "message"),
    [
        (lambda d: {**d, "schema_identity_domain": "01M8HAXTNZN7AA51TCEE3KGMC1"}, {}, "identity domains differ"),
        (lambda d: {**d, "ir_version": 3}, {}, "version 3, not 2"),
        (lambda d: d, {"schema_ir_hash": "sha256:00"}, "not the document that was accepted"),
        (lambda d: {**d, "nodes": []}, {}, "does not have the types"),
        (lambda d: d, {"format_version": 3}, "has format 3, not 2"),
        (other_ids, {}, "of other tables"),
    ],
)
def test_documents_that_do_not_belong_to_the_graph(
    later: Graph, change: Callable[[object], object], state: dict[str, object], message: str
) -> None:
    write_documents(Path(later.uri), change(document(later)), **state)
    with pytest.raises(SchemaFilesError, match=message):
        later.entity("node:P", "a")


def test_documents_of_an_earlier_format_do_not_go_with_a_later_stamp(later: Graph, tmp_path: Path) -> None:
    Graph.init(tmp_path / "other", SCHEMA)
    for name in ("_schema.ir.json", "__schema_state.json"):
        (Path(later.uri) / name).write_bytes((tmp_path / "other" / name).read_bytes())
    with pytest.raises(SchemaFilesError, match="of other tables"):
        later.entity("node:P", "a")


@pytest.mark.parametrize("stamp", [4, 6])
def test_an_edge_type_that_is_gone_is_exported_and_not_walked(tmp_path: Path, stamp: int) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    edge = '{"edge": "K", "from": "a", "to": "a", "data": {"id": "e"}}'
    graph.load(['{"type": "P", "data": {"k": "a", "n": 1}}', edge])
    then, told = graph.snapshot().version, list(graph.export())
    graph.apply_schema("node P { k: String @key  n: I32? }", allow_data_loss=False)
    made = Graph.open(made_over(tmp_path / "g", stamp), mode="r")
    assert list(made.catalog().edges) == []
    old = made.at(version=then)
    assert list(old.export()) == told
    assert old.count("edge:K") == 1
    assert old.entity("edge:K", "e") == {"id": "e", "src": "a", "dst": "a"}
    with pytest.raises(QueryTypeError, match="T4: nothing tells any more which types edge K"):
        old.query("query q() { match { $a: P $a k $b } return { $b.k } }")


def test_types_are_exported_as_tables(graph: Graph, tmp_path: Path) -> None:
    graph.export_tables(str(tmp_path / "out"), format="parquet", branch="busy")
    names = pq.read_table(next((tmp_path / "out").rglob("*Vessel*"))).column("name").to_pylist()
    assert sorted(names) == ["Alba", "Brise"]


def test_sql(graph: Graph) -> None:
    pytest.importorskip("datafusion")
    found = graph.sql('SELECT title FROM "Harbour" ORDER BY title LIMIT 2', branch="busy")
    assert found.to_pylist() == [{"title": "East"}, {"title": "North"}]
