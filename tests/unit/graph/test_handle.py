"""Which state a handle shows."""

from __future__ import annotations

import json
import pickle
import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import lance
import pytest

from spark_omnigraph.errors import BadRequestError, NotFoundError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.graph.read.arguments import time_micros
from spark_omnigraph.graph.read.history import Where
from spark_omnigraph.storage.layout import SCHEMA_IR, SCHEMA_SOURCE, SCHEMA_STATE

SCHEMA = "node Lamp { tag: String @key }"


def lamp(tag: str) -> str:
    return json.dumps({"type": "Lamp", "data": {"tag": tag}})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    g = Graph.init(tmp_path / "g", SCHEMA)
    g.load([lamp("a")])
    return g


def test_a_pinned_handle_shows_one_state_and_no_other(graph: Graph) -> None:
    graph.create_branch("draft")
    then = graph.at()
    graph.load([lamp("b")])
    graph.load([lamp("c"), lamp("d")], branch="draft")
    assert (then.count("node:Lamp"), graph.count("node:Lamp")) == (1, 2)
    assert graph.count("node:Lamp", branch="draft") == 3
    assert graph.at(branch="draft").count("node:Lamp") == 3
    version = then.snapshot().version
    for where in ({"branch": "draft"}, {"version": 1}, {"snapshot": graph.commits()[-1].id}, {"as_of": "2030-01-01"}):
        with pytest.raises(BadRequestError, match=f"pinned to version {version} of 'main', so '{next(iter(where))}'"):
            then.count("node:Lamp", **where)
    assert then.count("node:Lamp", branch=None, version=None) == 1


def test_a_handle_arrives_in_another_process_with_its_state(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.load([lamp("b")], branch="draft")
    handles = graph, graph.at(branch="draft"), Graph.open(graph.uri, branch="draft")
    assert [each.count("node:Lamp") for each in handles] == [1, 2, 2]  # what a handle keeps in memory stays behind
    sent = pickle.dumps(handles)
    graph.load([lamp("c"), lamp("d")], branch="draft")
    main, pinned, draft = pickle.loads(sent)
    assert [each.count("node:Lamp") for each in (main, pinned, draft)] == [1, 2, 4]
    main.load([lamp("e")])
    assert graph.count("node:Lamp") == 2
    with pytest.raises(BadRequestError, match="read"):
        pinned.load([lamp("f")])
    shutil.rmtree(graph.uri)
    with pytest.raises(NotFoundError, match=f"no graph at '{graph.uri}'"):
        pickle.loads(sent)


@pytest.mark.parametrize("how", ["newest", "version", "branch"])
def test_a_handle_shows_the_graph_that_was_made_anew_in_its_place(tmp_path: Path, how: str) -> None:
    names = "query names() { match { $l: Lamp } return { $l.tag } }"
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load([lamp("old")])
    assert graph.query(names).to_pylist() == [{"l.tag": "old"}]
    version = graph.snapshot().version
    other = Graph.init(tmp_path / "g", SCHEMA, force=True)
    other.load([lamp("new")])
    assert other.snapshot().version == version
    other.create_branch("draft")
    where = {"newest": Where(), "version": Where(version=version), "branch": Where(branch="draft")}[how]
    assert graph.query(names, **where).to_pylist() == [{"l.tag": "new"}]


def test_a_handle_shows_the_branch_that_was_made_anew_under_its_name(graph: Graph) -> None:
    names = "query names() { match { $l: Lamp } return { $l.tag } }"
    seen = []
    for tag in ("old", "new"):
        graph.create_branch("draft")
        Graph.open(graph.uri).load([lamp(tag)], branch="draft")
        seen.append((graph.query(names, branch="draft").to_pylist()[-1], graph.snapshot(branch="draft").version))
        # What another engine does to delete a branch.
        for path in ("__manifest", graph.snapshot().entries["node:Lamp"].location, "_graph_commits.lance"):
            lance.dataset(f"{graph.uri}/{path}").branches.delete("draft")
    assert [tag for tag, _ in seen] == [{"l.tag": "old"}, {"l.tag": "new"}]
    assert seen[0][1] == seen[1][1]


def test_a_type_that_the_manifest_has_no_table_for_is_named(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load([lamp("a")])
    Graph.init(tmp_path / "h", SCHEMA + " node Shade { tag: String @key } edge Has: Lamp -> Shade")
    for name in (SCHEMA_SOURCE, SCHEMA_IR, SCHEMA_STATE):
        shutil.copy(tmp_path / "h" / name, tmp_path / "g" / name)
    shade = json.dumps({"type": "Shade", "data": {"tag": "x"}})
    for mode in ("append", "merge", "overwrite"):
        with pytest.raises(NotFoundError, match="node type 'Shade' is in the schema, but the manifest has no table"):
            graph.load([shade], mode)
    with pytest.raises(NotFoundError, match="node type 'Shade' is in the schema, but the manifest has no table"):
        graph.mutate('query add() { insert Shade { tag: "x" } }')
    with pytest.raises(NotFoundError, match="edge type 'Has' is in the schema, but the manifest has no table"):
        graph.mutate('query add() { insert Has { from: "a", to: "x" } }')
    graph.load([lamp("b")])
    assert graph.count("node:Lamp") == 2


def test_a_branch_without_a_name_is_refused_and_not_taken_for_the_own_one(graph: Graph) -> None:
    with pytest.raises(BadRequestError, match="branch name cannot be empty"):
        graph.at(branch="")
    with pytest.raises(BadRequestError, match="branch name cannot be empty"):
        graph.count("node:Lamp", branch="")


def test_what_is_no_graph_is_called_what_it_is(tmp_path: Path) -> None:
    file = tmp_path / "films.jsonl"
    file.write_text("{}")
    for root, why in [
        (file, "it is a file, not a folder"),
        (tmp_path / "gone", "there is no such folder; init makes a new graph"),
        (tmp_path, "no _schema.pg is there; init makes a graph"),
    ]:
        with pytest.raises(NotFoundError) as caught:
            Graph.open(root)
        assert caught.value.message == f"no graph at '{root}': {why}"


def test_states_that_are_not_there_say_which_are(graph: Graph) -> None:
    graph.load([lamp("b")])
    newest = graph.commits()[0]
    with pytest.raises(
        NotFoundError, match=rf"commit 'abc' not found on any branch of .*; the newest .* is {newest.id}"
    ):
        graph.count("node:Lamp", snapshot="abc")
    with pytest.raises(NotFoundError, match=r"version 99 not found on branch 'main' of .*: there are 1 to \d+$"):
        graph.count("node:Lamp", version=99)
    with pytest.raises(NotFoundError, match=r"no commit at or before 1999-01-01; the first is of 20\d\d-\d\d-\d\dT"):
        graph.count("node:Lamp", as_of="1999-01-01")


def test_places_of_this_machine_may_be_uris(graph: Graph, tmp_path: Path) -> None:
    lines = tmp_path / "more lamps.jsonl"
    lines.write_text(lamp("b") + "\n{\n")
    again = Graph.open(f"file://{graph.uri}")
    assert again.uri == graph.uri
    report = f"file://{tmp_path}/bad%20rows.jsonl"
    options = LoadOptions(max_bad_rows=1, bad_rows=report)
    assert again.load(f"file:{tmp_path}/more%20lamps.jsonl", options=options).nodes_loaded == {"Lamp": 1}
    assert [json.loads(line)["line"] for line in (tmp_path / "bad rows.jsonl").read_text().splitlines()] == [2]
    assert Graph.init(f"file:{tmp_path}/h", SCHEMA).uri == f"{tmp_path}/h"


def test_other_stores_are_refused_by_name(graph: Graph) -> None:
    with pytest.raises(BadRequestError, match="input 'abfss://c@a/f' has an unsupported scheme: input is read"):
        graph.load("abfss://c@a/f")
    with pytest.raises(BadRequestError, match=r"'gs://b/bad\.jsonl' has an unsupported scheme"):
        graph.load([lamp("b")], options=LoadOptions(bad_rows="gs://b/bad.jsonl"))


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-02", 86_400_000_000),
        ("1970-01-01T00:01Z", 60_000_000),
        ("1970-01-01 00:00:01.5", 1_500_000),
        ("1970-01-01T00:00:00.123456789z", 123_456),
        ("1970-01-01T01:00:00+0100", 0),
        ("1970-01-01T01:00:00.25+01:00", 250_000),
    ],
)
def test_a_time_is_read_alike_by_every_python(text: str, micros: int) -> None:
    assert time_micros(text) == micros


def test_a_state_of_a_diff_may_be_one_value(graph: Graph) -> None:
    before = graph.snapshot().version
    commit = graph.load([lamp("new")]).commit
    graph.create_branch("review")
    graph.load([lamp("later")], branch="review")
    assert commit is not None
    moment = datetime.now(timezone.utc)
    for states, ids in (
        ((before,), {"new"}),
        ((str(before),), {"new"}),
        ((commit, {"branch": "review"}), {"later"}),
        (("main", "review"), {"later"}),
        ((moment,), set()),
        ((moment.isoformat(), "review"), {"later"}),
    ):
        assert {change.id for change in graph.diff(*states).changes} == ids, states
    refused: tuple[Any, ...] = (None, 1.5, True, ["main"])
    for wrong in refused:
        with pytest.raises(BadRequestError, match="a state is a version, a commit id, a time, a branch or a tag"):
            graph.diff(wrong)
    with pytest.raises(NotFoundError, match=r"branch 'reviw' not found.*did you mean 'review'"):
        graph.diff("reviw")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("Lamp", "table 'Lamp' is not in the schema; write 'node:Lamp'"),
        ("lamp", "table 'lamp' is not in the schema; did you mean 'Lamp'?"),
        ("node:lamp", "node type 'lamp' is not in the schema; did you mean 'Lamp'?"),
        ("edge:Lamp", "edge type 'Lamp' is not in the schema; there is 'node:Lamp'"),
        ("?", "a table is 'node:' or 'edge:' with the name of a type"),
    ],
)
def test_a_table_that_is_not_there_says_which_is(graph: Graph, table: str, message: str) -> None:
    for call in (graph.count, lambda name: graph.delete(name, ["x"])):
        with pytest.raises(NotFoundError) as caught:
            call(table)
        assert message in caught.value.message


def test_commits_come_newest_first(graph: Graph) -> None:
    made = [graph.load([lamp(name)], actor=name).commit for name in ("x", "y")]
    newest = made[::-1]
    assert [c.id for c in graph.commits()][:2] == newest
    assert graph.commits()[-1].parent is None
    assert [c.id for c in graph.commits(limit=1)] == newest[:1]
    assert [c.id for c in graph.commits(limit=1, actor="x")] == made[:1]
    assert graph.commits(limit=0) == []
