"""Conversions: a graph of any readable format as one of ours, row by row the same, whole or not at all."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest

from spark_omnigraph import Graph
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.errors import AlreadyInitializedError, BadRequestError, ConflictError, NotFoundError, StorageError
from spark_omnigraph.graph.convert import tables
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.graph.read.history import Where
from spark_omnigraph.manifest.formats.stamps import WRITTEN
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.tables.commits import create_dataset
from spark_omnigraph.storage.uri import Location
from tests.crash.matrix import expire_leases
from tests.spark import type_matrix
from tests.support.later import RELEASES, fingerprint, made_over, sample

SCHEMA = "node P { k: String @key  n: I32?  b: Blob? }\nedge K: P -> P { w: F64? }"


def person(name: str, number: int) -> str:
    return json.dumps({"type": "P", "data": {"k": name, "n": number, "b": "base64:QUFB"}})


def grown(root: Path) -> Graph:
    graph = Graph.init(root, SCHEMA)
    edge = {"edge": "K", "from": "a", "to": "b", "data": {"id": "e", "w": 0.5}}
    graph.load([person("a", 1), person("b", 2), json.dumps(edge)], actor="ada")
    return graph


def stopped(graph: Graph, target: Path, point: CrashPoint) -> None:
    with pytest.raises(Crashed), stop_at(point):
        graph.convert(target)
    place = Location(str(target))
    expire_leases(Graph(GraphStore(place, Objects(place))))


@pytest.mark.parametrize("release", RELEASES)
def test_samples_become_graphs_of_ours(tmp_path: Path, release: str) -> None:
    source = Graph.open(sample(tmp_path / "s", release) / "graph", mode="r")
    before = fingerprint(Path(source.uri))
    report = source.convert(tmp_path / "g", all_branches=True)
    made = Graph.open(tmp_path / "g")
    assert made.store.form().stamp == WRITTEN
    assert made.branches() == source.branches() == ["main", "busy", "quiet"]
    for branch in made.branches():
        assert list(made.export(branch=branch)) == list(source.export(branch=branch))
        exported = [json.loads(line) for line in made.export(branch=branch)]
        told = {key: each["rows"] for key, each in report.tables[branch].items()}
        assert sum(map(int, map(str, told.values()))) == len(exported)
        assert told["node:Harbour"] == 4
    assert made.schema() == source.schema()
    assert [(info.name, info.parent, info.ahead) for info in made.branch_infos()] == [
        ("main", None, 0),
        ("busy", "main", 1),
        ("quiet", "main", 0),
    ]
    assert {status.progress for status in made.indexes()} == {"complete"}
    assert fingerprint(Path(source.uri)) == before
    assert report.left_behind["commits"] == {b: len(source.commits(branch=b)) for b in ("main", "quiet", "busy")}
    assert "history is left behind" in report.warnings[0]
    made.mutate('query m() { insert Vessel { name: "Nova" } }', branch="busy")
    assert made.merge_branch("busy").commit is not None
    assert made.entity("node:Vessel", "Brise") == {"id": "Brise", "built": 2001, "name": "Brise"}


@pytest.mark.parametrize("stamp", [4, 6])
def test_every_value_of_every_type_arrives(tmp_path: Path, stamp: int) -> None:
    graph = Graph.init(tmp_path / "s", type_matrix.SCHEMA)
    numbered = list(type_matrix.records())
    options = LoadOptions(max_bad_rows=len(numbered), bad_rows=str(tmp_path / "bad.jsonl"))
    graph.load([text for _, text in numbered], options=options)
    told = list(graph.export())
    source = Graph.open(made_over(tmp_path / "s", stamp), mode="r")
    assert list(source.export()) == told
    source.convert(tmp_path / "g")
    assert list(Graph.open(tmp_path / "g").export()) == told
    assert len(told) > 60


def test_main_alone_says_what_stays_behind(tmp_path: Path) -> None:
    graph = grown(tmp_path / "s")
    graph.create_branch("draft")
    graph.tag("first")
    report = graph.convert(tmp_path / "g")
    assert Graph.open(tmp_path / "g").branches() == ["main"]
    assert report.left_behind == {"commits": {"main": 2}, "branches": ["draft"], "tags": ["first"]}
    assert report.warnings[1:] == ("branches are left behind: draft", "tags are left behind: first")


def test_branches_of_branches_and_what_they_lost(tmp_path: Path) -> None:
    graph = grown(tmp_path / "s")
    graph.create_branch("x")
    graph.load([person("c", 3)], "merge", branch="x")
    graph.create_branch("x2", "x")
    graph.delete("node:P", ["a", "b"], branch="x2")
    graph.load([person("c", 30)], "merge", branch="x2")
    graph.create_branch("a/empty", "x2")
    graph.delete("node:P", ["c"], branch="a/empty")
    graph.convert(tmp_path / "g", all_branches=True)
    made = Graph.open(tmp_path / "g")
    for branch in graph.branches():
        assert list(made.export(branch=branch)) == list(graph.export(branch=branch)), branch
    assert made.count("node:P", branch="a/empty") == 0
    assert {i.name: i.parent for i in made.branch_infos()} == {i.name: i.parent for i in graph.branch_infos()}


def test_a_dry_run_counts_and_makes_nothing(tmp_path: Path) -> None:
    report = grown(tmp_path / "s").convert(tmp_path / "g", dry_run=True)
    assert not (tmp_path / "g").exists()
    assert report.tables == {"main": {"edge:K": {"rows": 1, "digest": None}, "node:P": {"rows": 2, "digest": None}}}
    assert (report.rows, report.branches) == (3, {"main": None})


def test_digests_are_those_of_the_rows(tmp_path: Path) -> None:
    graph = grown(tmp_path / "s")
    first = graph.convert(tmp_path / "one").tables["main"]
    graph.delete("node:P", ["b"])
    graph.load([person("b", 2)])
    again = graph.convert(tmp_path / "two").tables["main"]
    graph.load([person("b", 3)], "merge")
    other = graph.convert(tmp_path / "three").tables["main"]
    assert first["node:P"] == again["node:P"] != other["node:P"]
    assert other["node:P"]["rows"] == 2


def test_half_a_conversion_is_no_graph_and_goes_on(tmp_path: Path) -> None:
    graph = grown(tmp_path / "s")
    stopped(graph, tmp_path / "g", CrashPoint.CONVERT_TABLE)
    with pytest.raises(NotFoundError, match="did not end"):
        Graph.open(tmp_path / "g", mode="r")
    graph.load([person("later", 9)])
    report = graph.convert(tmp_path / "g")
    assert report.written == 1, "the table that was there stays"
    assert Graph.open(tmp_path / "g").count("node:P") == 2, "the state is the one that was begun with"


def test_one_that_died_at_its_end_is_ended_whatever_was_written_since(tmp_path: Path) -> None:
    graph = grown(tmp_path / "s")
    stopped(graph, tmp_path / "g", CrashPoint.CONVERT_SHOWN)
    Graph.open(tmp_path / "g").load([person("since", 5)])
    report = graph.convert(tmp_path / "g")
    assert (report.written, report.tables["main"]["node:P"]) == (0, {"rows": 2, "digest": None})
    assert Graph.open(tmp_path / "g").count("node:P") == 3
    with pytest.raises(AlreadyInitializedError):
        graph.convert(tmp_path / "g")


def test_another_conversion_does_not_go_on_with_it(tmp_path: Path) -> None:
    graph = grown(tmp_path / "s")
    graph.create_branch("draft")
    stopped(graph, tmp_path / "g", CrashPoint.CONVERT_MAIN)
    for work in (
        lambda: graph.convert(tmp_path / "g", all_branches=True),
        lambda: graph.copy(tmp_path / "g"),
        lambda: grown(tmp_path / "other").convert(tmp_path / "g"),
    ):
        with pytest.raises(BadRequestError, match=r"a conversion of .* did not end"):
            work()
    graph.convert(tmp_path / "g")
    assert Graph.open(tmp_path / "g").count("node:P") == 2


def test_places_that_are_not_empty_are_left_alone(tmp_path: Path) -> None:
    graph = grown(tmp_path / "s")
    grown(tmp_path / "there")
    before = fingerprint(tmp_path / "there")
    with pytest.raises(AlreadyInitializedError):
        graph.convert(tmp_path / "there")
    assert fingerprint(tmp_path / "there") == before
    (tmp_path / "part" / "nodes").mkdir(parents=True)
    (tmp_path / "part" / "nodes" / "x").write_bytes(b"x")
    with pytest.raises(BadRequestError, match="parts of a graph"):
        graph.convert(tmp_path / "part")
    with pytest.raises(BadRequestError, match="lie in each other"):
        graph.convert(tmp_path / "s" / "inside")


def test_rows_that_arrive_otherwise_make_no_graph(tmp_path: Path) -> None:
    graph = grown(tmp_path / "s")
    real = create_dataset

    def without_a_row(uri: str, schema: object, rows: object, options: object) -> object:
        table = rows.read_all()  # type: ignore[attr-defined]  # a reader of batches
        return real(uri, schema, table.slice(1), options)  # type: ignore[arg-type]  # what came is passed on

    with patch.object(tables, "create_dataset", without_a_row), pytest.raises(StorageError, match="rows of digest"):
        graph.convert(tmp_path / "g")
    with pytest.raises(NotFoundError):
        Graph.open(tmp_path / "g", mode="r")
    graph.convert(tmp_path / "g")
    assert list(Graph.open(tmp_path / "g").export()) == list(graph.export())


def test_ids_of_composite_keys_stay_and_are_told(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "s", "node L { a: String  b: I32  @key(a, b) }")
    graph.load(['{"type": "L", "data": {"a": "x", "b": 1}}'])
    source = Graph.open(made_over(tmp_path / "s", 4), mode="r")
    report = source.convert(tmp_path / "g")
    assert "ids of L stay as they are stored" in report.warnings[-1]
    assert list(Graph.open(tmp_path / "g").export()) == list(source.export())


@pytest.mark.parametrize("where", [{"version": 3}, {"branch": "draft"}], ids=["state", "branch"])
def test_a_handle_on_another_state_or_branch_converts_nothing(tmp_path: Path, where: Where) -> None:
    """It would be given the newest state of main instead of what it shows."""
    graph = grown(tmp_path / "s")
    graph.create_branch("draft")
    for handle in (graph.at(**where), *([Graph.open(graph.uri, "r", "draft")] if "branch" in where else [])):
        with pytest.raises(BadRequestError, match="convert takes the newest state of main"):
            handle.convert(tmp_path / "g", all_branches=True)
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize("verb", ["convert", "copy"])
def test_a_file_is_no_place_for_a_graph(tmp_path: Path, verb: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BadRequestError, match="is a file; a graph needs a folder"):
        getattr(grown(tmp_path / "s"), verb)(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_who_writes_compacts_and_cleans_up_meanwhile_changes_nothing(tmp_path: Path) -> None:
    """The state that was begun with is read, whatever becomes of the source."""
    graph = grown(tmp_path / "s")
    graph.create_branch("x")
    graph.load([person("c", 3)], "merge", branch="x")
    before = {branch: sorted(graph.export(branch=branch)) for branch in graph.branches()}

    def meanwhile() -> None:
        other = Graph.open(graph.uri)
        other.load([person("d", 4), person("a", 9)], "merge")
        other.delete("node:P", ["b"])
        other.load([person("c", 30)], "merge", branch="x")
        other.optimize()
        other.cleanup(timedelta(0), confirm=True)

    with stop_at(CrashPoint.CONVERT_TABLE, meanwhile):
        graph.convert(tmp_path / "g", all_branches=True)
    made = Graph.open(tmp_path / "g")
    assert {branch: sorted(made.export(branch=branch)) for branch in made.branches()} == before
    assert sorted(graph.export()) != before["main"]


def test_of_two_conversions_to_one_place_one_is_made(tmp_path: Path) -> None:
    graph = grown(tmp_path / "s")

    def second() -> None:
        with pytest.raises(ConflictError):
            Graph.open(graph.uri, mode="r").convert(tmp_path / "g")

    with stop_at(CrashPoint.CONVERT_TABLE, second):
        graph.convert(tmp_path / "g")
    assert list(Graph.open(tmp_path / "g").export()) == list(graph.export())
