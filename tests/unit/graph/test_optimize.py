"""Optimize: fewer files, whole indexes, and not one row that looks changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lance
import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.commit import landing, protocol
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.commit.publisher import publish
from spark_omnigraph.errors import ConflictError, RecoveryRequiredError, StorageError
from spark_omnigraph.graph.maintain import optimize as optimize_module
from spark_omnigraph.graph.maintain.optimize import OptimizeRequest, optimize
from spark_omnigraph.storage.faults import CommitFailed, Outcome
from spark_omnigraph.storage.tables.commits import commit_compaction
from spark_omnigraph.storage.tables.compaction import stage_compaction
from spark_omnigraph.storage.tables.index import Upkeep
from spark_omnigraph.write.attempts import ATTEMPTS
from spark_omnigraph.write.indexes import IndexProgress, ensure_indices
from tests.crash.matrix import expire_leases
from tests.crash.worlds import assert_whole

SCHEMA = """
node Doc { slug: String @key  title: String @index  size: I32? @index  v: Vector(2)? @index  body: Blob? }
edge Cites: Doc -> Doc
"""
DOC, CITES = "node:Doc", "edge:Cites"
PLAIN = LoadOptions(build_indexes=False)


def doc(number: int) -> str:
    data = {
        "slug": f"d{number}",
        "title": f"word{number}",
        "size": number,
        "v": [number, 1.0],
        "body": "base64:aGVsbG8=",
    }
    return json.dumps({"type": "Doc", "data": data})


@pytest.fixture
def graph(worn: Path, tmp_path: Path) -> Graph:
    """A copy that the test may change."""
    return Graph.open(shutil.copytree(worn, tmp_path / "g"))


@pytest.fixture(scope="module")
def worn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five files of documents, one with a replaced row, one with a deleted one, and three of edges."""
    graph = Graph.init(tmp_path_factory.mktemp("worn") / "g", SCHEMA)
    for part in range(4):
        lines = [doc(10 * part + i) for i in range(10)]
        lines += [json.dumps({"edge": "Cites", "from": f"d{10 * part}", "to": "d1", "data": {"id": f"e{part}"}})]
        graph.load(lines, options=LoadOptions(build_indexes=part < 2))
    graph.load([doc(3)], "merge", options=PLAIN)
    graph.mutate('query q() { delete Doc where slug = "d30" }')
    return Path(graph.uri)


def files(graph: Graph, table: str) -> int:
    return len(opened(graph, table).get_fragments())


def opened(graph: Graph, table: str = DOC) -> lance.LanceDataset:
    return graph.store.open_table(graph.snapshot().entries[table])


def physical(graph: Graph) -> dict[str, list[object]]:
    """Stable row ids and version columns of every row."""
    versions = ["id", "_row_created_at_version", "_row_last_updated_at_version"]
    return {
        table: sorted(opened(graph, table).scanner(columns=versions, with_row_id=True).to_table().to_pylist(), key=str)
        for table in (DOC, CITES)
    }


def test_files_are_joined_and_no_row_looks_changed(graph: Graph) -> None:
    rows, before, commits = sorted(graph.export()), physical(graph), graph.commits()
    assert (files(graph, DOC), files(graph, CITES)) == (5, 3)
    report = graph.optimize()
    assert {key: (t.files_before, t.files_after, t.left) for key, t in report.tables.items()} == {
        DOC: (5, 1, None), CITES: (3, 1, None),
    }  # laid out as a table  # fmt: skip
    assert (files(graph, DOC), files(graph, CITES)) == (1, 1)
    assert sorted(graph.export()) == rows
    assert physical(graph) == before
    made = graph.commits()[0]
    assert (graph.commits()[1:], made.id, made.actor) == (commits, report.commit, None)
    assert made.facts is not None
    assert (made.facts.operation, made.facts.tables) == ("optimize", {})
    assert list(graph.diff({"snapshot": commits[0].id}).changes) == []
    assert opened(graph).get_fragments()[0].num_deletions == 0
    assert_whole(graph)


def test_indexes_are_whole_afterwards_and_used(graph: Graph) -> None:
    assert {s.progress for s in graph.indexes()} >= {IndexProgress.PARTIAL}
    report = graph.optimize()
    assert {s.progress for s in graph.indexes()} == {IndexProgress.COMPLETE}
    assert f"{DOC}.title" in report.indexes
    table = opened(graph)
    assert {len(index.segments) for index in table.describe_indices()} == {1}
    assert "ScalarIndexQuery" in table.scanner(filter="size = 25").explain_plan()
    assert table.to_table(filter="size = 25", columns=["id"])["id"].to_pylist() == ["d25"]
    text = {"columns": ["title"], "query": "word33"}
    assert table.scanner(full_text_query=text, columns=["id", "_score"]).to_table()["id"].to_pylist() == ["d33"]
    assert (graph.entity(DOC, "d3") or {})["body"] == "base64:aGVsbG8="


def test_nothing_to_gain_is_no_version(graph: Graph) -> None:
    graph.optimize()
    pins = {key: entry.version for key, entry in graph.snapshot().entries.items()}
    report = graph.optimize()
    assert {key: (t.files_before, t.files_after) for key, t in report.tables.items()} == {DOC: (1, 1), CITES: (1, 1)}
    assert (report.indexes, report.commit) == ((), None)
    assert {key: entry.version for key, entry in graph.snapshot().entries.items()} == pins


def test_a_dry_run_counts(graph: Graph) -> None:
    version = graph.snapshot().version
    report = graph.optimize(dry_run=True)
    assert report.tables[DOC].files_before == 5
    assert (graph.snapshot().version, files(graph, DOC)) == (version, 5)


def test_internal_datasets_are_joined_too(graph: Graph) -> None:
    report = graph.optimize()
    assert report.internal.keys() >= {"__manifest", "_graph_commits.lance"}
    assert len(graph.store.manifest(None).get_fragments()) == 1
    assert len(graph.commits()) == 8
    graph.load([doc(99)], options=PLAIN)
    assert graph.count(DOC) == 40


def test_a_branch_compacts_what_it_owns(graph: Graph) -> None:
    graph.create_branch("draft")
    assert graph.optimize(branch="draft").tables == {}
    for number in (50, 51):
        graph.load([doc(number)], branch="draft", options=PLAIN)
    rows = sorted(graph.export(branch="draft"))
    report = graph.optimize(branch="draft")
    assert {key: (t.files_before, t.files_after) for key, t in report.tables.items()} == {DOC: (7, 1)}
    assert sorted(graph.export(branch="draft")) == rows
    assert files(graph, DOC) == 5, "main is as it was"
    graph.load([doc(52)], branch="draft", options=PLAIN)
    assert graph.count(DOC, branch="draft") == 42


def test_a_table_that_others_move_is_left(graph: Graph) -> None:
    other, loaded = Graph.open(graph.uri), iter(range(100, 200))

    def plan_and_lose(*arguments: Any) -> object:
        other.load([doc(next(loaded))], options=PLAIN)
        raise ConflictError("lost")

    with patch.object(optimize_module, "stage_compaction", plan_and_lose):
        report = graph.optimize()
    assert {t.left for t in report.tables.values()} == {"other writers kept moving it"}
    assert graph.count(DOC) == 39 + ATTEMPTS


def test_a_table_that_one_writer_keeps_moving_does_not_hold_up_the_others(graph: Graph) -> None:
    graph.ensure_indices()
    other, loaded = Graph.open(graph.uri), iter(range(100, 200))

    def stage_and_be_late(dataset: lance.LanceDataset, *arguments: Any) -> object:
        staged = stage_compaction(dataset, *arguments)
        if len(dataset.schema) > 5:
            other.load([doc(next(loaded))], options=PLAIN)
        return staged

    with patch.object(optimize_module, "stage_compaction", stage_and_be_late):
        report = graph.optimize()
    assert (report.tables[DOC].left, report.tables[CITES].left) == ("other writers kept moving it", None)
    assert (files(graph, CITES), graph.count(DOC)) == (1, 41)


def test_a_load_that_comes_first_is_not_lost(graph: Graph) -> None:
    graph.ensure_indices()
    other, first = Graph.open(graph.uri), iter([70])

    def stage_and_be_late(*arguments: Any) -> object:
        staged = stage_compaction(*arguments)
        for number in first:
            other.load([doc(number), json.dumps({"edge": "Cites", "from": "d1", "to": "d2"})], options=PLAIN)
        return staged

    with patch.object(optimize_module, "stage_compaction", stage_and_be_late):
        report = graph.optimize()
    assert (graph.count(DOC), graph.count(CITES)) == (40, 4)
    assert report.tables[CITES].left is None
    assert_whole(graph)


POINTS = (
    (CrashPoint.ARMED, "RolledBack"),
    (CrashPoint.LANDED_ALL, "RolledForward"),
    (CrashPoint.PUBLISHED, "RolledForward"),
)


@pytest.mark.parametrize(("point", "kind"), POINTS, ids=lambda v: v if isinstance(v, str) else v.value)
def test_a_stopped_compaction_is_brought_to_its_end(graph: Graph, point: CrashPoint, kind: str) -> None:
    ensure_indices(graph.store, None, upkeep=Upkeep(1))
    rows, before = sorted(graph.export()), physical(graph)
    with stop_at(point), pytest.raises(Crashed):
        optimize(graph.store, OptimizeRequest(None))
    (name,) = [n for n in graph.store.objects.list("__recovery") if n.endswith(".json")]
    sidecar = json.loads(graph.store.objects.get(f"__recovery/{name}") or b"")
    steps = [pin["post_commit_pin"] - pin["expected_version"] for pin in sidecar["tables"]]
    assert (sidecar["writer_kind"], steps) == ("Optimize", [2, 2])
    assert sorted(graph.export()) == rows
    expire_leases(graph)
    again = Graph.open(graph.uri)
    assert [r.kind for r in again.recoveries()] == [kind]
    assert sorted(again.export()) == rows
    assert physical(again) == before
    assert_whole(again)
    again.optimize()
    assert (files(again, DOC), files(again, CITES)) == (1, 1)


@contextmanager
def compaction_that(landed: bool, outcome: Outcome) -> Iterator[None]:

    def fail(dataset: lance.LanceDataset, rewrites: Any) -> lance.LanceDataset:
        if landed:
            commit_compaction(dataset, rewrites)
        raise CommitFailed(outcome, "refused by the test")

    with patch.object(landing, "commit_compaction", fail):
        yield


def test_a_compaction_that_the_store_refused_changes_nothing(graph: Graph) -> None:
    graph.ensure_indices()
    rows = sorted(graph.export())
    with compaction_that(landed=False, outcome=Outcome.LOST), pytest.raises(StorageError, match="refused by the test"):
        graph.optimize()
    assert sorted(graph.export()) == rows
    assert files(graph, DOC) == 5
    assert_whole(graph)


def test_an_answer_that_was_lost_is_left_to_recovery(graph: Graph) -> None:
    graph.ensure_indices()
    rows = sorted(graph.export())
    with compaction_that(landed=True, outcome=Outcome.UNKNOWN), pytest.raises(RecoveryRequiredError):
        graph.optimize()
    assert sorted(graph.export()) == rows
    again = Graph.open(graph.uri)
    assert sorted(again.export()) == rows
    assert ([r.kind for r in again.recoveries()], files(again, CITES)) == (["RolledBack"], 3), "all tables or none"
    assert_whole(again)


def test_a_publish_that_was_lost_is_undone(graph: Graph) -> None:
    ensure_indices(graph.store, None, upkeep=Upkeep(1))
    rows, before = sorted(graph.export()), physical(graph)
    refusals = iter([StorageError("storage: refused by the test")])

    def refuse(*arguments: Any) -> object:
        for refusal in refusals:
            raise refusal
        return publish(*arguments)

    with patch.object(protocol, "publish", refuse), pytest.raises(StorageError):
        graph.optimize()
    assert sorted(graph.export()) == rows
    assert physical(graph) == before
    assert_whole(graph)


def test_an_empty_blob_stays_one_when_its_file_is_written_anew(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node File { name: String @key  size: I32?  body: Blob? }")
    lines = [
        json.dumps({"type": "File", "data": {"name": name, "body": body}})
        for name, body in (("a", "base64:aGk="), ("b", "base64:"), ("c", None), ("d", "base64:"))
    ]
    graph.load(lines, options=PLAIN)
    graph.delete("node:File", ["a"])
    graph.optimize()
    graph.mutate('query set_size() { update File set { size: 1 } where name = "d" }')
    graph.mutate('query set_size() { update File set { size: 1 } where name = "c" }')
    assert graph.optimize().tables["node:File"].files_before == 3
    bodies = {row["id"]: row["body"] for row in (json.loads(line)["data"] for line in graph.export())}
    assert bodies == {"b": "base64:", "c": None, "d": "base64:"}


def test_a_table_with_nulls_that_would_become_empty_blobs_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    for number in range(2):
        graph.load([doc(number)], options=PLAIN)
    monkeypatch.setattr("spark_omnigraph.storage.tables.blobs.hides_nulls", lambda *_: True)
    left = graph.optimize().tables[DOC]
    assert (left.files_before, left.files_after) == (2, 2)
    assert left.left is not None
    assert "nulls of 'body' that would become empty blobs" in left.left
