"""Erasing: afterwards no byte of the row is in any file of the graph."""

from __future__ import annotations

import json
import shutil
import struct
from datetime import timedelta
from pathlib import Path

import lance
import pytest

from spark_omnigraph import FromColumn, Graph
from spark_omnigraph.branch.consumers import take_consumer
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.commit.stage import staging
from spark_omnigraph.errors import NotFoundError
from spark_omnigraph.storage.manifest.commit_log import read_commits
from tests.crash.matrix import give_up
from tests.crash.worlds import assert_whole

SCHEMA = """
node P { s: String @key  t: String? @index  v: Vector(2)? @index  b: Blob? }
node Q { s: String @key }
edge K: P -> P
edge L: Q -> P
"""
ID, TEXT = "zebrasecret77", "quaggatext88"
BLOB = "Z3V0ZW50YWc="


def row(name: str, text: str = "plain words", **more: object) -> str:
    return json.dumps({"type": "P", "data": {"s": name, "t": text, "v": [1.0, 2.0], **more}})


def edge(kind: str, start: str, end: str) -> str:
    return json.dumps({"edge": kind, "from": start, "to": end})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A row with former values, in files beside others, with edges from two types."""
    graph = Graph.init(tmp_path / "g", SCHEMA)
    lines = [
        row("a"),
        row(ID, f"{TEXT} old", b=f"base64:{BLOB}"),
        row("b"),
        json.dumps({"type": "Q", "data": {"s": "q"}}),
    ]
    graph.load([*lines, edge("K", "a", ID), edge("K", "a", "b"), edge("L", "q", ID)])
    graph.load([row(ID, f"{TEXT} new"), row("c")], "merge")
    return graph


def files_with_it(graph: Graph) -> list[str]:
    """Every file under the root that has the id, the text or the blob of the row in it."""
    marks = (ID.encode(), TEXT.encode(), b"gutentag")
    files = (path for path in Path(graph.uri).rglob("*") if path.is_file())
    return [str(path.relative_to(graph.uri)) for path in files if any(mark in path.read_bytes() for mark in marks)]


def test_no_byte_of_the_row_is_left(graph: Graph) -> None:
    assert len(files_with_it(graph)) > 5
    others = sorted(line for line in graph.export() if ID not in line)
    report = graph.erase("P", ID, confirm=True)
    assert (report.done, report.held, report.blocked_by) == (True, (), ())
    assert report.deleted == {"main": {"node:P": 1, "edge:K": 1, "edge:L": 1}}
    assert files_with_it(graph) == []
    assert sorted(graph.export()) == others
    assert any(graph.uri in place for place in report.outside)
    assert {index.progress for index in graph.indexes()} == {"complete"}
    assert_whole(graph)
    graph.load([row("d")], "merge")
    assert graph.count("node:P") == 4


def test_without_confirm_it_is_only_looked_for(graph: Graph) -> None:
    version = graph.snapshot().version
    report = graph.erase("node:P", ID)
    assert (report.done, report.deleted) == (False, {"main": {"node:P": 1, "edge:K": 1, "edge:L": 1}})
    assert {held.table for held in report.held} == {"node:P", "edge:K", "edge:L"}
    assert (graph.snapshot().version, graph.count("node:P")) == (version, 4)
    assert graph.erase("P", "nobody", confirm=True).done
    assert graph.snapshot().version == version, "nothing expires for a row that is nowhere"
    with pytest.raises(NotFoundError):
        graph.erase("R", ID)


def test_a_row_that_was_deleted_before_is_erased_too(graph: Graph) -> None:
    graph.delete("node:P", [ID])
    assert graph.erase("P", ID).deleted == {}
    assert graph.erase("P", ID, confirm=True).done
    assert files_with_it(graph) == []


def test_an_edge_goes_alone(graph: Graph) -> None:
    (found,) = (json.loads(line)["data"]["id"] for line in graph.export() if '"L"' in line)
    assert graph.erase("L", found, confirm=True).done
    assert (graph.count("edge:L"), graph.count("edge:K"), graph.count("node:P")) == (0, 2, 4)
    assert not [p for p in Path(graph.uri).rglob("*") if p.is_file() and found.encode() in p.read_bytes()]


def test_who_keeps_it_is_named_and_another_run_ends_the_work(graph: Graph) -> None:
    graph.create_branch("x")
    graph.load([row("w")], "merge", branch="x")
    graph.tag("old")
    commits = read_commits(graph.store.location, None)
    take_consumer(graph.store, "reader", None, commits, graph.snapshot().version)
    report = graph.erase("P", ID, confirm=True)
    assert (report.done, set(report.deleted)) == (False, {"main", "x"})
    assert [text.partition(":")[0] for text in report.blocked_by] == ["tag old", "consumer reader", "branch x"]
    assert report.held
    assert graph.count("node:P", tag="old") == 4, "what is promised stays"
    assert [graph.entity("node:P", ID, branch=branch) for branch in ("main", "x")] == [None, None]
    graph.merge_branch("x")
    graph.delete_branch("x")
    graph.delete_tag("old")
    graph.delete_consumer("reader")
    assert graph.erase("P", ID, confirm=True).done
    assert files_with_it(graph) == []
    assert_whole(graph)


CHANGES = {
    "a type is renamed": SCHEMA.replace("node P {", 'node R @rename_from("P") {')
    .replace("P -> P", "R -> R")
    .replace("Q -> P", "Q -> R"),
    "a type of edges is dropped": SCHEMA.replace("edge K: P -> P\n", ""),
}


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_types_of_before_a_change_of_the_schema_held_it_too(graph: Graph, change: str) -> None:
    graph.apply_schema(CHANGES[change])
    report = graph.erase("R" if "renamed" in change else "P", ID, confirm=True)
    assert (report.done, report.held, report.blocked_by) == (True, (), ())
    assert files_with_it(graph) == []
    assert_whole(graph)
    if "dropped" in change:
        graph.apply_schema(SCHEMA)
        graph.load([edge("K", "a", "b")])
        assert graph.count("edge:K") == 1
        assert_whole(graph)


def test_a_column_like_one_that_held_it_held_it_too(graph: Graph) -> None:
    changed = SCHEMA.replace("edge K: P -> P", "edge K: P -> P { seen: String? }")
    graph.apply_schema(changed, values={"K.seen": FromColumn("dst")})
    assert graph.erase("P", ID, confirm=True).done
    assert files_with_it(graph) == []
    assert_whole(graph)


def test_files_of_a_schema_change_that_died_go(graph: Graph) -> None:
    with stop_at(CrashPoint.STAGED), pytest.raises(Crashed):
        graph.apply_schema(CHANGES["a type is renamed"])
    give_up(graph)
    again = Graph.open(graph.uri)
    again.recover()
    found = again.cleanup(timedelta(0)).by_reason()
    assert found["unpublished_table"][0] > 0
    assert again.erase("P", ID, confirm=True).done
    assert files_with_it(again) == []
    again.apply_schema(CHANGES["a type is renamed"])
    assert again.count("node:R") == 3
    assert_whole(again)


def test_an_index_that_still_knows_the_id_is_built_anew(graph: Graph) -> None:
    graph.delete("node:P", [ID])
    for number in range(2):
        graph.optimize()
        graph.load([row(f"n{number}")], "merge")
        graph.cleanup(timedelta(0), keep=1, confirm=True, force=True)
    left = files_with_it(graph)
    assert left
    assert all("/_indices/" in path for path in left), "no file of rows holds it any more"
    report = graph.erase("P", ID, confirm=True)
    assert (report.done, report.deleted) == (True, {})
    assert files_with_it(graph) == []


def test_an_index_that_cannot_be_built_anew_goes(tmp_path: Path) -> None:
    """The row was the only one with a vector, and the only one with a note that another program has indexed."""
    graph = Graph.init(tmp_path / "g", "node P { s: String @key  v: Vector(2)? @index  t: String? }")
    graph.load([json.dumps({"type": "P", "data": {"s": name}}) for name in "ab"])
    graph.load([json.dumps({"type": "P", "data": {"s": ID, "v": [0.1234567, 7.654321], "t": TEXT}})], "merge")
    entry = graph.snapshot().entry("node:P")
    lance.dataset(graph.store.table_uri(entry.location, None)).create_scalar_index("t", "BTREE", name="theirs")
    Graph.open(graph.uri).repair(confirm=True, force=True)
    again = Graph.open(graph.uri)
    vector = struct.pack("<2f", 0.1234567, 7.654321)
    files = [path for path in Path(graph.uri).rglob("*") if path.is_file()]
    assert any(vector in path.read_bytes() for path in files if "_indices" in str(path))
    assert again.erase("P", ID, confirm=True).done
    assert [path for path in Path(graph.uri).rglob("*") if path.is_file() and vector in path.read_bytes()] == []
    assert files_with_it(again) == []
    again.load([json.dumps({"type": "P", "data": {"s": "c", "v": [1.0, 2.0]}})], "merge")
    again.ensure_indices()
    assert {(index.column, str(index.progress)) for index in again.indexes()} == {
        (column, "complete") for column in ("id", "s", "v")
    }
    assert_whole(again)


def test_an_index_of_vectors_that_alone_has_something_of_the_row_is_built_anew(tmp_path: Path) -> None:
    """Indexes of ids have forgotten it, and so have those of texts."""
    graph = Graph.init(tmp_path / "g", "node P { s: String @key  v: Vector(2)? @index }")
    given = [json.dumps({"type": "P", "data": {"s": n, "v": v}}) for n, v in (("a", [1, 2]), (ID, [0.1234567, 7.654]))]
    graph.load(given)
    graph.delete("node:P", [ID])
    graph.optimize()
    graph.load([json.dumps({"type": "P", "data": {"s": "b", "v": [1, 2]}})], "merge")
    graph.cleanup(timedelta(0), keep=1, confirm=True, force=True)
    vector = struct.pack("<2f", 0.1234567, 7.654)

    def left() -> list[Path]:
        return [path for path in Path(graph.uri).rglob("*") if path.is_file() and vector in path.read_bytes()]

    assert [path.name for path in left()] == ["auxiliary.idx"]
    assert files_with_it(graph) == []
    assert graph.erase("P", ID).held
    report = graph.erase("P", ID, confirm=True)
    assert (report.done, report.held, left()) == (True, (), [])
    assert {index.progress for index in graph.indexes()} == {"complete"}
    version = graph.snapshot().version
    assert graph.erase("P", ID, confirm=True).done
    assert graph.snapshot().version == version
    assert_whole(graph)


def test_rows_that_were_deleted_do_not_count_as_another_one(graph: Graph) -> None:
    """Indexes of texts and vectors know their row ids, and the index of ids whose they are."""
    graph.delete("node:P", ["b", "c"])
    version = graph.snapshot().version
    assert graph.erase("P", "nobody", confirm=True).done
    graph.optimize()
    compacted = graph.snapshot().version
    assert graph.erase("P", "nobody", confirm=True).done
    assert graph.snapshot().version == compacted > version


def test_branches_that_never_showed_it_keep_their_states(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    for name in "abc":
        graph.load([row(name)], "merge")
    graph.create_branch("x")
    graph.load([row(ID, TEXT)], "merge", branch="x")
    tagged, version = [commit.id for commit in graph.commits()], graph.snapshot().version
    graph.tag("clean")
    report = graph.erase("P", ID, confirm=True)
    assert (report.done, report.deleted) == (True, {"x": {"node:P": 1}})
    assert files_with_it(graph) == []
    assert [graph.at(snapshot=commit).count("node:P") for commit in tagged] == [3, 2, 1, 0][: len(tagged)]
    assert graph.snapshot().version >= version
    graph.merge_branch("x")
    assert_whole(graph)


def test_what_a_writer_under_way_keeps_is_not_called_done(graph: Graph) -> None:
    location = graph.snapshot().entry("node:P").location
    with staging(graph.store):
        report = graph.erase("P", ID, confirm=True)
        assert not report.done
        assert report.held
        (why,) = (text for text in report.blocked_by if text.startswith("a write"))
        assert "under way or interrupted" in why
        staged = Path(graph.uri, location, "data", "staged.lance")
        staged.write_text(ID)
        unnamed = graph.erase("P", "nobody", confirm=True)
        assert not unnamed.done
        assert set(unnamed.held) < set(report.held), "one state's indexes know a row id that may be anybody's"
        assert any("staged.lance" in text for text in unnamed.blocked_by)
    assert graph.erase("P", ID, confirm=True).done
    assert files_with_it(graph) == []


@pytest.mark.parametrize("keeper", ["tag", "link"])
def test_what_other_programs_keep_is_named(graph: Graph, keeper: str) -> None:
    entry = graph.snapshot().entry("node:P")
    folder = Path(graph.uri, entry.location)
    if keeper == "tag":
        lance.dataset(str(folder)).tags.create("theirs", entry.version)
    else:
        shutil.move(folder, f"{graph.uri}-moved")
        folder.symlink_to(f"{graph.uri}-moved")
    report = graph.erase("P", ID, confirm=True)
    assert not report.done
    assert {held.table for held in report.held} == {"node:P"}
    (why,) = report.blocked_by
    assert entry.location in why
    assert ("tag theirs" if keeper == "tag" else "symbolic link") in why


@pytest.mark.parametrize("point", [p for p in CrashPoint if p.name.startswith("ERASE_")], ids=lambda p: str(p.value))
def test_a_stopped_erasure_goes_on(graph: Graph, point: CrashPoint) -> None:
    with stop_at(point), pytest.raises(Crashed):
        graph.erase("P", ID, confirm=True)
    again = Graph.open(graph.uri)
    give_up(again)
    assert again.entity("node:P", ID) is None
    assert again.erase("P", ID, confirm=True).done
    assert files_with_it(again) == []
    assert_whole(again)
