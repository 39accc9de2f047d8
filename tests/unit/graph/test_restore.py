"""Restores: an old state as a new commit, by the difference."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from spark_omnigraph import BadRequestError, Graph, LoadOptions, NotFoundError, TransactionCommittedError
from spark_omnigraph.commit.contract import read_contract
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.errors import ExpectedVersionMismatch
from spark_omnigraph.graph.changes.feed import feed_tasks, first_parents, read_envelopes
from spark_omnigraph.graph.delete.by_id import DeleteRequest, delete_ids
from spark_omnigraph.graph.merge.rows import MergedTable
from spark_omnigraph.graph.schema.since import changed_tables, refuse_another_schema
from spark_omnigraph.manifest.rows import Transaction, last_transactions
from tests.crash.matrix import expire_leases
from tests.support.graph_files import pins

SCHEMA = "node Boat { name: String @key  crew: I32? }\nnode Port { code: String @key }\nedge Docks: Boat -> Port"
PLAIN = LoadOptions(build_indexes=False)


def boat(name: str, crew: int) -> str:
    return json.dumps({"type": "Boat", "data": {"name": name, "crew": crew}})


def docks(name: str, code: str) -> str:
    return json.dumps({"edge": "Docks", "from": name, "to": code, "data": {"id": f"{name}-{code}"}})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = Graph.init(tmp_path / "g", SCHEMA)
    port = json.dumps({"type": "Port", "data": {"code": "kiel"}})
    made.load([*(boat(name, 1) for name in "abc"), port, docks("a", "kiel")], options=PLAIN)
    made.tag("then")
    return made


def sail(graph: Graph, branch: str | None = None) -> None:
    """One boat changes, one goes with its edge, one comes with an edge."""
    graph.delete("node:Boat", ["a"], branch=branch)
    graph.load([boat("b", 9), boat("d", 4), docks("d", "kiel")], "merge", branch=branch, options=PLAIN)


def changes(graph: Graph) -> set[tuple[str, str]]:
    """What the feed has of the newest commit: image and id."""
    line = first_parents(graph.store, None)
    newest = line[-1].manifest_version
    tasks = feed_tasks(graph.store, graph.catalog(), line, newest, newest, None)
    rows = [row for task in tasks for batch in read_envelopes(task) for row in batch.to_pylist()]
    return {(row["_change_type"], row["id"]) for row in rows}


def test_the_rows_are_the_old_ones_and_only_what_differs_is_written(graph: Graph) -> None:
    then = sorted(graph.export())
    sail(graph)
    before = pins(Path(graph.uri))
    report = graph.restore(tag="then", actor="ada")
    assert sorted(graph.export()) == then
    assert report.tables == {
        "edge:Docks": MergedTable(appended=1, deleted=1),
        "node:Boat": MergedTable(appended=1, updated=1, deleted=1),
    }
    assert changes(graph) == {
        ("insert", "a"),
        ("update_preimage", "b"),
        ("update_postimage", "b"),
        ("delete", "d"),
        ("insert", "a-kiel"),
        ("delete", "d-kiel"),
    }
    after = pins(Path(graph.uri))
    assert after["node:Port"] == before["node:Port"], "a table that is the same is not written"
    newest = graph.commits()[0]
    assert (newest.id, newest.actor, newest.merged_parent) == (report.commit, "ada", None)
    assert newest.facts is not None
    assert newest.facts.operation == "restore"


def test_what_was_restored_can_be_undone(graph: Graph) -> None:
    sail(graph)
    undone, state = graph.commits()[0].id, sorted(graph.export())
    graph.restore(tag="then")
    graph.restore(snapshot=undone)
    assert sorted(graph.export()) == state


def test_a_dry_run_counts_and_writes_nothing(graph: Graph) -> None:
    sail(graph)
    before, commits = sorted(graph.export()), len(graph.commits())
    report = graph.restore(tag="then", dry_run=True)
    assert report.commit is None
    assert report.tables["node:Boat"] == MergedTable(appended=1, updated=1, deleted=1)
    assert (sorted(graph.export()), len(graph.commits())) == (before, commits)
    assert graph.cleanup(confirm=True).younger == 0, "what was staged is gone"


def test_a_state_that_is_shown_already_makes_no_commit(graph: Graph) -> None:
    commits = len(graph.commits())
    assert graph.restore(tag="then").commit is None
    graph.optimize()
    assert graph.restore(tag="then").commit is None
    assert len(graph.commits()) == commits


def test_a_branch_is_restored_alone(graph: Graph) -> None:
    then = sorted(graph.export())
    graph.create_branch("dev")
    sail(graph, "dev")
    sail(graph)
    now = sorted(graph.export())
    graph.restore(branch="dev", tag="then")
    assert (sorted(graph.export(branch="dev")), sorted(graph.export())) == (then, now)


@pytest.mark.parametrize(
    ("choices", "error", "words"),
    [
        ({}, BadRequestError, "say what to restore"),
        ({"tga": "then"}, BadRequestError, "takes no 'tga'; did you mean 'tag'"),
        ({"tag": "then", "version": 3}, BadRequestError, "give one of"),
        ({"version": 99}, NotFoundError, "manifest version 99 not found"),
    ],
)
def test_what_names_no_state_is_refused(
    graph: Graph, choices: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        graph.restore(**choices)  # type: ignore[arg-type]  # what is refused


def test_a_state_of_another_schema_is_refused_by_what_changed(graph: Graph) -> None:
    sail(graph)
    now = graph.snapshot()
    dataset = graph.store.open_table(now.entries["node:Boat"])
    dataset.add_columns(pa.field("flag", pa.string()))
    moved = replace(now.entries["node:Boat"], version=int(dataset.version))
    state = graph.snapshot(tag="then")
    newer = replace(now, entries={**now.entries, "node:Boat": moved})
    assert changed_tables(graph.store, graph.catalog(), newer, state) == ["'node:Boat' has a new property 'flag'"]
    older = replace(state, entries={**state.entries, "node:Buoy": state.entries["node:Port"]})
    del older.entries["edge:Docks"]  # type: ignore[attr-defined]  # a dictionary here
    present = read_contract(graph.store)
    with pytest.raises(BadRequestError, match=r"edge type 'Docks' was added; 'node:Buoy' was dropped. Go back"):
        refuse_another_schema(graph.store, present, now, older, "Go back")


def test_a_rule_that_came_since_bars_a_restore_and_is_named(graph: Graph) -> None:
    graph.load([boat("b", -5)], "merge", options=PLAIN)
    graph.tag("before")
    graph.load([boat("b", 5)], "merge", options=PLAIN)
    graph.apply_schema(SCHEMA.replace("crew: I32? }", "crew: I32? @range(crew, 0..9) }"))
    for dry_run in (True, False):
        with pytest.raises(BadRequestError, match=r"add @range\(crew, 0..9\) to Boat. Choose a later state"):
            graph.restore(tag="before", dry_run=dry_run)
    version = graph.snapshot().version
    graph.load([boat("b", 6)], "merge", options=PLAIN)
    graph.apply_schema(graph.schema().replace("node Port", 'node Port @description("a place")'))
    assert graph.restore(version=version).tables["node:Boat"].updated == 1, "a description is of no row"


def test_whoever_wrote_meanwhile_wins(graph: Graph) -> None:
    sail(graph)

    def intrude() -> None:
        graph.load([boat("z", 1)], options=PLAIN)

    with stop_at(CrashPoint.PLANNED, intrude), pytest.raises(ExpectedVersionMismatch):
        graph.restore(tag="then")
    assert graph.count("node:Boat") == 4
    assert graph.entity("node:Boat", "z") == {"id": "z", "name": "z", "crew": 1}


def named(graph: Graph, number: int, name: str = "etl") -> None:
    delete_ids(graph.store, DeleteRequest({"node:Boat": pa.array(["c"])}, transaction=Transaction(name, number)))


def applications(graph: Graph) -> dict[str, int]:
    return last_transactions(graph.store.manifest_rows(graph.store.manifest(None)))


@pytest.fixture
def numbered(graph: Graph) -> Graph:
    """`etl` had committed 1 by the state `one`, and 2 since; `new` came later; `old` has done nothing since."""
    named(graph, 5, "old")
    named(graph, 1)
    graph.tag("one")
    named(graph, 2)
    named(graph, 0, "new")
    sail(graph)
    return graph


def test_applications_that_committed_since_bar_a_restore(numbered: Graph) -> None:
    with pytest.raises(BadRequestError, match=r"'etl' \(last 2, by then 1\), 'new' \(last 0, by then None\)") as caught:
        numbered.restore(tag="one")
    assert "--rewind-apps" in caught.value.message
    assert [app.app_id for app in numbered.restore(tag="one", dry_run=True).applications] == ["etl", "new"]


def test_applications_are_left_when_that_is_confirmed(numbered: Graph) -> None:
    assert numbered.restore(tag="one", confirm=True).commit is not None
    assert applications(numbered) == {"etl": 2, "new": 0, "old": 5}


def test_applications_are_set_back_and_write_again(numbered: Graph) -> None:
    assert numbered.restore(tag="one", rewind_apps=True).commit is not None
    assert applications(numbered) == {"etl": 1, "old": 5}
    with pytest.raises(TransactionCommittedError):
        named(numbered, 1)
    named(numbered, 2)
    named(numbered, 0, "new")
    assert applications(numbered) == {"etl": 2, "new": 0, "old": 5}


def test_a_restore_that_died_sets_applications_back_when_it_is_finished(numbered: Graph) -> None:
    with stop_at(CrashPoint.LANDED_ALL), pytest.raises(Crashed):
        numbered.restore(tag="one", rewind_apps=True)
    assert applications(numbered) == {"etl": 2, "new": 0, "old": 5}
    expire_leases(numbered)
    assert [recovered.kind.value for recovered in numbered.recover()] == ["RolledForward"]
    assert applications(numbered) == {"etl": 1, "old": 5}
