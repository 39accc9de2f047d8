"""Copies: the same graph elsewhere, whole or not at all, whatever others do meanwhile."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from spark_omnigraph import Graph
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.errors import (
    AlreadyInitializedError,
    BadRequestError,
    ConflictError,
    NotFoundError,
    OmnigraphError,
    StorageError,
)
from spark_omnigraph.graph.copy import captured, copy
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.objects import transfer as transfers
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.rebase import rebased
from spark_omnigraph.storage.uri import Location
from tests.crash.matrix import give_up
from tests.crash.worlds import assert_whole
from tests.support.later import fingerprint

SCHEMA = "node P { s: String @key  n: I32?  b: Blob? }\nedge K: P -> P"
P = "node:P"


def row(name: str, number: int, blob: str | None = None) -> str:
    return json.dumps({"type": "P", "data": {"s": name, "n": number, "b": blob}})


def edge(start: str, end: str) -> str:
    return json.dumps({"edge": "K", "from": start, "to": end, "data": {"id": f"{start}-{end}"}})


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A branch of a branch, both with rows of their own, a tag, a blob outside of its row, a branch without rows."""
    graph = Graph.init(tmp_path_factory.mktemp("grown") / "g", SCHEMA)
    graph.load([row("a", 1), row("b", 2, "base64:" + "QUFB" * 50_000), edge("a", "b")])
    graph.create_branch("x")
    graph.load([row("c", 3)], "merge", branch="x")
    graph.create_branch("x2", "x")
    graph.load([row("d", 4), row("a", 40)], "merge", branch="x2")
    graph.create_branch("empty")
    graph.tag("first")
    graph.load([row("a", 9)], "merge")
    graph.delete(P, ["b"])
    return Path(graph.uri)


@pytest.fixture
def source(grown: Path, tmp_path: Path) -> Graph:
    """The same in another place: forks of a moved folder lead back to where they were made."""
    Graph.open(grown, mode="r").copy(tmp_path / "g")
    return Graph.open(tmp_path / "g")


def rows(graph: Graph, **where: Any) -> list[str]:
    return sorted(graph.export(**where))


def everything(graph: Graph) -> dict[str, list[str]]:
    return {branch: rows(graph, branch=branch) for branch in graph.branches()}


def test_all_branches_with_their_history_stand_on_their_own(source: Graph, tmp_path: Path) -> None:
    before, history = everything(source), source.commits(branch="x2")
    tagged, version = rows(source, tag="first"), source.snapshot().version
    report = source.copy(tmp_path / "c")
    shutil.rmtree(source.uri)
    made = Graph.open(tmp_path / "c")
    assert everything(made) == before
    assert (made.commits(branch="x2"), rows(made, tag="first")) == (history, tagged)
    assert (report.all_branches, report.branches["main"], report.rows) == (True, version + 1, 13)
    assert (report.sent, report.sent > 50) == (report.files, True)
    assert_whole(made)
    origin = made.describe().copy_of
    assert origin is not None
    assert (origin.graph, origin.branch, origin.manifest_version, origin.is_whole) == (
        source.uri,
        "main",
        version,
        True,
    )


def test_a_copy_is_written_merged_kept_up_and_cleaned(source: Graph, tmp_path: Path) -> None:
    expected = rows(source, branch="x2")
    source.copy(tmp_path / "c")
    shutil.rmtree(source.uri)
    made = Graph.open(tmp_path / "c")
    made.load([row("z", 1)], "merge", branch="x2")
    made.optimize(branch="x2")
    made.delete_tag("first")
    made.cleanup(timedelta(0), keep=1, confirm=True, force=True)
    assert rows(made, branch="x2") == sorted([*expected, *(r for r in rows(made, branch="x2") if '"z"' in r)])
    made.merge_branch("x2", into="x")
    assert rows(made, branch="x") == rows(made, branch="x2")
    assert_whole(made)


@pytest.mark.parametrize(
    ("where", "branch"), [({"tag": "first"}, "main"), ({"branch": "x2"}, "x2")], ids=["tag", "branch"]
)
def test_one_state_is_the_main_of_a_new_graph(
    source: Graph, tmp_path: Path, where: dict[str, str], branch: str
) -> None:
    expected, ids = rows(source, **where), source.snapshot(branch=where.get("branch"), tag=where.get("tag"))
    report = source.copy(tmp_path / "c", branch=where.get("branch"), tag=where.get("tag"))
    shutil.rmtree(source.uri)
    made = Graph.open(tmp_path / "c")
    assert (made.branches(), rows(made), len(made.commits())) == (["main"], expected, 1)
    assert (report.all_branches, report.rows) == (False, len(expected))
    origin = made.describe().copy_of
    assert origin is not None
    assert (origin.branch, origin.manifest_version, origin.is_whole) == (branch, ids.version, False)
    made.load([row("z", 1)], "merge")
    made.optimize()
    assert made.count(P) == len([r for r in expected if '"type"' in r]) + 1
    assert_whole(made)


def test_a_fork_of_a_fork_becomes_a_dataset_by_itself(tmp_path: Path) -> None:
    """Files of three lines, masked rows, an index that is inherited: all of it is the copy's own."""
    graph = Graph.init(tmp_path / "g", SCHEMA.replace("n: I32?", "n: I32? @index"))
    graph.load([row(name, number, "base64:" + "QUFB" * 50_000) for number, name in enumerate("abcd")])
    graph.create_branch("x")
    graph.load([row("e", 5), row("a", 10)], "merge", branch="x")
    graph.delete(P, ["b"], branch="x")
    graph.create_branch("x2", "x")
    graph.load([row("f", 6), row("c", 30)], "merge", branch="x2")
    expected, entry = rows(graph, branch="x2"), graph.snapshot(branch="x2").entry(P)
    planned = graph.copy(tmp_path / "c", branch="x2", dry_run=True)
    done = graph.copy(tmp_path / "c", branch="x2")
    assert (planned.bytes, planned.files) == (done.bytes, done.files)
    again = graph.store.open_table(entry)
    ids = {r["id"]: r["_rowid"] for r in again.to_table(columns=["id"], with_row_id=True).to_pylist()}
    shutil.rmtree(graph.uri)
    made = Graph.open(tmp_path / "c")
    dataset = made.store.open_table(made.snapshot().entry(P))
    assert (dataset.base_paths(), dataset.branches.list()) == ({}, {})
    assert {f.base_id for fragment in dataset.get_fragments() for f in fragment.data_files()} == {None}
    dataset.validate()
    assert {r["id"]: r["_rowid"] for r in dataset.to_table(columns=["id"], with_row_id=True).to_pylist()} == ids
    assert rows(made) == expected
    found = made.query("query q() { match { $p: P  $p.n = 30 } return { $p.s as s } }").to_pylist()
    assert found == [{"s": "c"}]
    made.cleanup(timedelta(0), keep=1, confirm=True, force=True)
    assert rows(made) == expected, "clean-up finds every file named"
    made.load([row("g", 7)], "merge")
    made.optimize()
    made.cleanup(timedelta(0), keep=1, confirm=True, force=True)
    made.copy(tmp_path / "d")
    assert rows(Graph.open(tmp_path / "d")) == rows(made)
    assert len(rows(made)) == len(expected) + 1
    assert_whole(made)


@pytest.mark.parametrize("point", [p for p in CrashPoint if p.name.startswith("COPY_")], ids=lambda p: str(p.value))
@pytest.mark.parametrize("tag", [None, "first"], ids=["all", "one"])
def test_a_stopped_copy_opens_nowhere_and_goes_on(
    source: Graph, tmp_path: Path, point: CrashPoint, tag: str | None
) -> None:
    with stop_at(point), pytest.raises(Crashed):
        source.copy(tmp_path / "c", tag=tag)
    if point is CrashPoint.COPY_SHOWN:
        assert rows(Graph.open(tmp_path / "c", mode="r")) == rows(source, tag=tag)
    else:
        with pytest.raises(NotFoundError, match="a copy to it is under way, or did not end"):
            Graph.open(tmp_path / "c")
        with pytest.raises(ConflictError, match="or did not end"):
            Graph.init(tmp_path / "c", SCHEMA)
    location = Location(str(tmp_path / "c"))
    give_up(Graph(GraphStore(location, Objects(location))))
    with pytest.raises(OmnigraphError, match=r"did not end|initiali[sz]ed"):
        Graph.open(source.uri).copy(tmp_path / "c", branch="empty")
    report = source.copy(tmp_path / "c", tag=tag)
    assert rows(Graph.open(tmp_path / "c")) == rows(source, tag=tag)
    assert report.sent < report.files or point is CrashPoint.COPY_STARTED
    assert_whole(Graph.open(tmp_path / "c"))


def test_where_something_is_no_copy_is_made(source: Graph, tmp_path: Path) -> None:
    source.copy(tmp_path / "c")
    with pytest.raises(AlreadyInitializedError):
        source.copy(tmp_path / "c")
    with pytest.raises(BadRequestError, match="lie in each other"):
        source.copy(Path(source.uri) / "nodes" / "c")
    (tmp_path / "c" / "_schema.pg").unlink()
    with pytest.raises(BadRequestError, match="parts of a graph are at"):
        source.copy(tmp_path / "c")


def test_a_dry_run_counts_and_writes_nothing(source: Graph, tmp_path: Path) -> None:
    planned = source.copy(tmp_path / "c", dry_run=True)
    assert not (tmp_path / "c").exists()
    done = source.copy(tmp_path / "c")
    assert (planned.files, planned.rows, planned.sent) == (done.files, done.rows, 0)


def test_bytes_that_arrive_changed_make_no_graph(source: Graph, tmp_path: Path) -> None:
    honest: Callable[..., tuple[str, int]] = transfers.digest
    lies = iter([True])

    def digest(objects: Any, path: str) -> tuple[str, int]:
        if objects.location.root.endswith("/c") and "/data/" in path and next(lies, False):
            return "0" * 64, 1
        return honest(objects, path)

    once = patch.object(copy, "_ATTEMPTS", 1)
    refused = pytest.raises(StorageError, match="holds other bytes than were copied")
    with patch.object(transfers, "digest", digest), once, refused:
        source.copy(tmp_path / "c")
    with pytest.raises(NotFoundError):
        Graph.open(tmp_path / "c")
    source.copy(tmp_path / "c")
    assert everything(Graph.open(tmp_path / "c")) == everything(source)


def test_what_others_do_meanwhile_is_in_it_whole_or_not_at_all(source: Graph, tmp_path: Path) -> None:
    """After the states were looked at: loads, a merge, a deleted branch, a new one, a compaction, an expiry."""
    before = everything(source)
    other, list_files = Graph.open(source.uri), captured.files_of
    rounds = iter([True])

    def write_first(*arguments: Any) -> dict[str, int]:
        if next(rounds, False):
            other.load([row("late", 1)], "merge")
            other.load([row("late", 1)], "merge", branch="x2")
            other.merge_branch("x")
            other.create_branch("later")
            other.load([row("later", 1)], "merge", branch="later")
            other.optimize(branch="x2")
        return list_files(*arguments)

    with patch.object(copy, "files_of", write_first):
        source.copy(tmp_path / "c")
    made = Graph.open(tmp_path / "c")
    assert everything(made) == before
    assert_whole(made)
    assert "later" in source.branches()


def test_a_branch_that_is_deleted_and_states_that_expire_meanwhile(source: Graph, tmp_path: Path) -> None:
    other, list_files = Graph.open(source.uri), captured.files_of
    rounds = iter([True])

    def delete_then(*arguments: Any) -> dict[str, int]:
        files = list_files(*arguments)
        if next(rounds, False):
            other.delete_branch("x2")
            for number in range(3):
                other.load([row("a", number)], "merge")
            other.cleanup(timedelta(0), keep=1, confirm=True, force=True)
        return files

    with patch.object(copy, "files_of", delete_then):
        source.copy(tmp_path / "c")
    made = Graph.open(tmp_path / "c")
    assert made.branches() == ["main", "empty", "x"]
    assert everything(made) == everything(source)
    assert_whole(made)


def test_a_branch_that_goes_while_it_is_looked_at(source: Graph, tmp_path: Path) -> None:
    other, children_first = Graph.open(source.uri), captured.children_first
    rounds = iter([True])

    def delete_then(store: GraphStore) -> list[Any]:
        found = children_first(store)
        if next(rounds, False):
            other.delete_branch("x2")
        return found

    with patch.object(captured, "children_first", delete_then):
        source.copy(tmp_path / "c")
    assert everything(Graph.open(tmp_path / "c")) == everything(source)
    assert "x2" not in source.branches()


@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize("inside", ["", "data"])
def test_a_graph_with_links_is_not_copied_without_what_lies_behind(
    source: Graph, tmp_path: Path, inside: str, one: bool
) -> None:
    folder = Path(source.uri, source.snapshot().entry(P).location, inside)
    shutil.move(folder, tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadRequestError, match="has symbolic links"):
        source.copy(tmp_path / "c", branch="main" if one else None)
    assert not (tmp_path / "c").exists()


TIGHTER = SCHEMA.replace("b: Blob? }", "b: Blob? @range(n, 0..100) }")


@pytest.mark.parametrize(
    ("schema", "words"),
    [(TIGHTER, r"add @range\(n, 0..100\) to P"), (f"{SCHEMA}\nnode Q {{ s: String @key }}", "add node type 'Q'")],
)
def test_a_state_of_another_schema_is_no_main_of_a_new_graph(tmp_path: Path, schema: str, words: str) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load([row("a", -1)])
    graph.tag("then")
    graph.load([row("a", 1)], "merge")
    graph.apply_schema(schema)
    with pytest.raises(BadRequestError, match=words):
        graph.copy(tmp_path / "c", tag="then")
    graph.copy(tmp_path / "c")
    assert rows(Graph.open(tmp_path / "c"), tag="then") == rows(graph, tag="then")


def test_a_type_that_was_dropped_for_good_stays_so_in_a_copy(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", f"{SCHEMA}\nnode Q {{ s: String @key }}")
    graph.load([row("a", 1), json.dumps({"type": "Q", "data": {"s": "q"}})])
    graph.apply_schema(SCHEMA, allow_data_loss=True)
    graph.copy(tmp_path / "c")
    made = Graph.open(tmp_path / "c")
    assert made.cleanup(timedelta(0), keep=1, confirm=True, force=True).kept == ()
    made.apply_schema(f"{SCHEMA}\nnode Q {{ s: String @key }}")
    assert (made.count("node:Q"), made.count(P)) == (0, 1)
    assert_whole(made)


def test_places_where_forks_begin_are_all_that_changes(source: Graph) -> None:
    location = next(e.location for e in source.snapshot(branch="x2").entries.values() if e.table_key == P)
    files = sorted(Path(source.uri, location, "tree", "x2", "_versions").glob("*.manifest"))
    content = files[0].read_bytes()
    moved = rebased(content, location, "s3://bucket/a-longer-root/than/before")
    assert moved != content
    assert rebased(moved, location, source.uri) == content
    with pytest.raises(StorageError, match="cannot be copied"):
        rebased(content[:-3], location, source.uri)
    with pytest.raises(StorageError, match="is not below"):
        rebased(content, "nodes/0000000000000000", source.uri)


def test_a_source_that_cannot_be_written_is_copied_with_a_warning(
    source: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written there, not even to keep clean-up away."""
    before, create = fingerprint(Path(source.uri)), Objects.create

    def refused(objects: Objects, path: str, content: bytes) -> bool:
        if objects.location.root == source.uri:
            raise StorageError("storage: Permission denied")
        return create(objects, path, content)

    monkeypatch.setattr(Objects, "create", refused)
    report = Graph.open(source.uri, mode="r").copy(tmp_path / "c")
    assert "cannot be written" in report.warnings[0]
    assert fingerprint(Path(source.uri)) == before
    assert everything(Graph.open(tmp_path / "c", mode="r")) == everything(source)
    monkeypatch.undo()
    assert source.copy(tmp_path / "d").warnings == ()


def test_branches_that_are_called_like_folders_of_a_dataset_are_copied(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load([row("a", 1), row("b", 2)])
    for name in ("data", "_versions", "x/_indices", "tree/_deletions"):
        graph.create_branch(name)
        graph.load([row("a", 9), row(name, 3, "base64:" + "QUFB" * 50_000)], "merge", branch=name)
        graph.delete(P, ["b"], branch=name)
    before = everything(graph)
    graph.copy(tmp_path / "c")
    for number, name in enumerate(graph.branches()):
        graph.copy(tmp_path / f"state{number}", branch=name)
        assert rows(Graph.open(tmp_path / f"state{number}")) == before[name]
    assert everything(Graph.open(tmp_path / "c")) == before
    assert_whole(Graph.open(tmp_path / "c"))
