"""A write that stops anywhere leaves the old graph or the new one, and the next read-write open makes it whole.

The matrix is generated from the crash points and the writers: a new one of either is tested without being asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from lance import LanceDataset

from spark_omnigraph import ConflictError, Graph, RecoveryRequiredError, WriterBusyError
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.commit.owners import await_turn
from spark_omnigraph.commit.process import this_process
from spark_omnigraph.storage.layout import COMMIT_ACTORS
from spark_omnigraph.storage.manifest import commit_log
from spark_omnigraph.storage.tables.commits import append_log_rows
from tests.crash.evolving import check_after_schema_crash, evolve, make_evolving, seen
from tests.crash.matrix import (
    DIED_AT,
    INDEX_ROWS,
    KILLED_AT,
    KILLED_WRITERS,
    OPTIMIZE_ROWS,
    PAGE,
    RECOVERY_POINTS,
    SCHEMA_ROWS,
    UNDO_ROWS,
    WRITE_ROWS,
    Row,
    begin_kept,
    begin_line,
    cases,
    change_kept,
    change_line,
    check_after_crash,
    check_after_index_crash,
    check_after_kept_crash,
    check_after_line_crash,
    check_after_optimize_crash,
    check_stopped_recovery,
    expire_leases,
    kept_cases,
    line_cases,
    render,
    seen_dead,
)
from tests.crash.victim import CONTAINER, kill_at, may_unshare
from tests.crash.worlds import (
    BEFORE,
    PEOPLE,
    PLAIN,
    WRITERS,
    assert_whole,
    make_graph,
    make_untidy,
    people,
    person,
    refused_first_publish,
    run,
    state,
)
from tests.format.second_reader import check_format

LATE_BY_DEFAULT = (CrashPoint.ARMED, CrashPoint.LANDED_ALL, CrashPoint.SCHEMA_STAGED, CrashPoint.PUBLISHED)


@pytest.mark.parametrize(("name", "row"), cases(), ids=lambda v: v if isinstance(v, str) else v.point.value)
def test_a_write_that_stops(tmp_path: Path, name: str, row: Row) -> None:
    graph = make_graph(tmp_path / "g")
    with stop_at(row.point), pytest.raises(Crashed):
        run(graph, WRITERS[name])
    check_after_crash(tmp_path / "g", WRITERS[name], row)


@pytest.mark.parametrize(
    "row", [row for row in WRITE_ROWS if row.point is not CrashPoint.STAGED], ids=lambda r: r.point
)
def test_a_follower_that_stops_goes_on(tmp_path: Path, row: Row) -> None:
    """Whoever comes next applies what the stopped one has not, and nothing twice."""
    graph = make_graph(tmp_path / "g")
    options = replace(PLAIN, max_deletes=1.0)
    place = people(graph, "a", "b", "c", "d")
    graph.sync(place, mapping=PEOPLE, options=options)
    DeltaTable(place).delete("name = 'd'")
    DeltaTable(place).update({"age": "5"}, predicate="name = 'c'")
    DeltaTable(place).update({"name": "'e'"}, predicate="name = 'b'")
    commits = len(graph.commits())
    with stop_at(row.point), pytest.raises(Crashed):
        graph.sync(place, mapping=PEOPLE, options=options)
    expire_leases(graph)
    other = Graph.open(graph.uri)
    done = other.sync(place, mapping=PEOPLE, options=options)
    assert (done.version, done.commit is None) == (3, row.finished)
    assert state(other) == {"Person:a=9", "Person:c=5", "Person:e=9"}, "an edge went with its end"
    made = [commit for commit in other.commits()[:-commits] if commit.facts is not None]
    assert len(made) == 1
    assert_whole(other)


@pytest.mark.parametrize("row", UNDO_ROWS, ids=lambda row: row.point.value)
def test_an_undo_that_stops(tmp_path: Path, row: Row) -> None:
    graph = make_graph(tmp_path / "g")
    with refused_first_publish(), stop_at(row.point), pytest.raises(Crashed):
        run(graph, WRITERS["merge"])
    check_after_crash(tmp_path / "g", WRITERS["merge"], row)


@pytest.mark.parametrize("row", INDEX_ROWS, ids=lambda row: row.point.value)
def test_a_build_of_indexes_that_stops(tmp_path: Path, row: Row) -> None:
    graph = make_graph(tmp_path / "g")
    with stop_at(row.point), pytest.raises(Crashed):
        graph.ensure_indices()
    check_after_index_crash(tmp_path / "g", row)


@pytest.mark.parametrize("row", OPTIMIZE_ROWS, ids=lambda row: row.point.value)
def test_a_compaction_that_stops(tmp_path: Path, row: Row) -> None:
    graph = make_untidy(tmp_path / "g")
    with stop_at(row.point), pytest.raises(Crashed):
        graph.optimize()
    check_after_optimize_crash(tmp_path / "g", row)


@pytest.mark.parametrize("row", SCHEMA_ROWS, ids=lambda row: row.point.value)
def test_a_schema_change_that_stops(tmp_path: Path, row: Row) -> None:
    graph = make_evolving(tmp_path / "g")
    with stop_at(row.point), pytest.raises(Crashed):
        evolve(graph)
    check_after_schema_crash(tmp_path / "g", row)


@pytest.mark.parametrize(
    "row",
    [row if row.point in LATE_BY_DEFAULT else pytest.param(row, marks=pytest.mark.long) for row in SCHEMA_ROWS],
    ids=lambda row: row.point.value,
)
def test_a_schema_change_that_was_taken_for_dead_and_goes_on(tmp_path: Path, row: Row) -> None:
    """Others have brought it to an end and have written since; what it still does changes nothing."""
    graph = make_evolving(tmp_path / "g")

    def bring_to_an_end() -> None:
        expire_leases(graph)
        other = Graph.open(tmp_path / "g")
        record = {"type": "Person", "data": {"name": "z"}} if row.finished else {"type": "Site", "data": {"k": "z"}}
        other.load([json.dumps(record)], options=PLAIN)
        states.append(seen(other))

    states: list[object] = []
    with stop_at(row.point, bring_to_an_end), suppress(ConflictError, RecoveryRequiredError):
        evolve(graph)
    again = Graph.open(tmp_path / "g")
    assert [seen(again)] == states
    assert_whole(again)
    check_format(tmp_path / "g")


@pytest.mark.parametrize(("name", "row"), line_cases(), ids=lambda v: v if isinstance(v, str) else v.point.value)
def test_a_change_of_branches_that_stops(tmp_path: Path, name: str, row: Row) -> None:
    graph = make_graph(tmp_path / "g")
    begin_line(graph, name)
    with stop_at(row.point), pytest.raises(Crashed):
        change_line(graph, name)
    check_after_line_crash(tmp_path / "g", name, row)


@pytest.mark.parametrize(("name", "row"), kept_cases(), ids=lambda v: v if isinstance(v, str) else v.point.value)
def test_a_tag_or_an_expiry_that_stops(tmp_path: Path, name: str, row: Row) -> None:
    graph = make_graph(tmp_path / "g")
    begin_kept(graph, name)
    with stop_at(row.point), pytest.raises(Crashed):
        change_kept(graph, name)
    check_after_kept_crash(tmp_path / "g", name, row)


def kill(root: Path, name: str, row: Row) -> None:
    make_graph(root)
    kill_at(root, name, row.point)
    check_after_crash(root, WRITERS[name], row, end=seen_dead)


@pytest.mark.parametrize("row", [r for r in WRITE_ROWS if r.point in KILLED_AT], ids=lambda row: row.point.value)
@pytest.mark.parametrize("name", KILLED_WRITERS)
def test_a_process_that_is_killed(tmp_path: Path, name: str, row: Row) -> None:
    kill(tmp_path / "g", name, row)


@pytest.mark.skipif(not may_unshare() or this_process() is None, reason="no right to make a process namespace")
def test_a_process_that_is_killed_in_another_container_is_waited_for(tmp_path: Path) -> None:
    """Nobody here can know that it is gone, so its lease has to run out."""
    graph = make_graph(tmp_path / "g")
    kill_at(tmp_path / "g", "merge", CrashPoint.LANDED_ALL, inside=CONTAINER)
    again = Graph.open(tmp_path / "g")
    assert (again.recovered, again.interrupted(), len(again.running())) == ((), [], 1)
    with pytest.raises(WriterBusyError):
        await_turn(graph.store, None, frozenset({"node:Person"}), wait=0)
    row = next(row for row in WRITE_ROWS if row.point is CrashPoint.LANDED_ALL)
    check_after_crash(tmp_path / "g", WRITERS["merge"], row)


@pytest.mark.long
@pytest.mark.parametrize(("name", "row"), cases(), ids=lambda v: v if isinstance(v, str) else v.point.value)
def test_a_process_that_is_killed_anywhere(tmp_path: Path, name: str, row: Row) -> None:
    kill(tmp_path / "g", name, row)


@pytest.mark.long
@pytest.mark.parametrize("row", INDEX_ROWS, ids=lambda row: row.point.value)
def test_a_process_that_is_killed_while_it_builds_indexes(tmp_path: Path, row: Row) -> None:
    make_graph(tmp_path / "g")
    kill_at(tmp_path / "g", "index", row.point)
    check_after_index_crash(tmp_path / "g", row, end=seen_dead)


@pytest.mark.long
@pytest.mark.parametrize("row", SCHEMA_ROWS, ids=lambda row: row.point.value)
def test_a_process_that_is_killed_while_it_changes_the_schema(tmp_path: Path, row: Row) -> None:
    make_evolving(tmp_path / "g")
    kill_at(tmp_path / "g", "schema", row.point)
    check_after_schema_crash(tmp_path / "g", row, end=seen_dead)


@pytest.mark.long
@pytest.mark.parametrize("row", OPTIMIZE_ROWS, ids=lambda row: row.point.value)
def test_a_process_that_is_killed_while_it_compacts(tmp_path: Path, row: Row) -> None:
    make_untidy(tmp_path / "g")
    kill_at(tmp_path / "g", "optimize", row.point)
    check_after_optimize_crash(tmp_path / "g", row, end=seen_dead)


@pytest.mark.long
@pytest.mark.parametrize(("name", "row"), line_cases(), ids=lambda v: v if isinstance(v, str) else v.point.value)
def test_a_process_that_is_killed_while_it_changes_branches(tmp_path: Path, name: str, row: Row) -> None:
    begin_line(make_graph(tmp_path / "g"), name)
    kill_at(tmp_path / "g", name, row.point)
    check_after_line_crash(tmp_path / "g", name, row)


@pytest.mark.long
@pytest.mark.parametrize(("name", "row"), kept_cases(), ids=lambda v: v if isinstance(v, str) else v.point.value)
def test_a_process_that_is_killed_while_it_tags_or_expires(tmp_path: Path, name: str, row: Row) -> None:
    begin_kept(make_graph(tmp_path / "g"), name)
    kill_at(tmp_path / "g", name, row.point)
    check_after_kept_crash(tmp_path / "g", name, row)


@pytest.mark.parametrize("point", RECOVERY_POINTS, ids=lambda p: p.value)
@pytest.mark.parametrize("died_at", DIED_AT, ids=lambda p: p.value)
def test_a_recovery_that_stops_is_recovered(tmp_path: Path, died_at: CrashPoint, point: CrashPoint) -> None:
    check_stopped_recovery(make_graph(tmp_path / "g"), died_at, point)


def test_the_page_of_the_matrix_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run python -m tests.crash.matrix"


def test_a_writer_heals_what_only_lacks_its_publish_and_refuses_what_must_be_undone(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "g")
    with stop_at(CrashPoint.LANDED_ALL), pytest.raises(Crashed):
        run(graph, WRITERS["append"])
    expire_leases(graph)
    graph.load([person("d", 4)])
    assert state(graph) == WRITERS["append"].after | {"Person:d=4"}
    assert [r.kind for r in graph.recoveries()] == ["RolledForward"]

    with stop_at(CrashPoint.LANDED_FIRST), pytest.raises(Crashed):
        run(graph, WRITERS["overwrite"])
    expire_leases(graph)
    with pytest.raises(RecoveryRequiredError, match="recover"):
        graph.load([person("e", 5)])
    assert [r.kind.value for r in graph.recover()] == ["RolledBack"]
    graph.load([person("e", 5)])
    assert_whole(graph)


HEALERS: dict[str, Callable[[Graph], object]] = {
    "load": lambda graph: graph.load([person("d", 4)]),
    "mutate": lambda graph: graph.mutate('query q() { insert Person { name: "d", age: 4 } }'),
    "delete": lambda graph: graph.delete("node:Person", ["d"]),
    "frame": lambda graph: run(graph, WRITERS["frame"]),
    "ensure_indices": lambda graph: graph.ensure_indices(),
    "optimize": lambda graph: graph.optimize(),
    "refresh": lambda graph: graph.refresh(),
}


@pytest.mark.parametrize("name", list(HEALERS))
def test_every_writer_heals_at_its_entry(tmp_path: Path, name: str) -> None:
    graph = make_graph(tmp_path / "g")
    with stop_at(CrashPoint.LANDED_ALL), pytest.raises(Crashed):
        run(graph, WRITERS["append"])
    expire_leases(graph)
    HEALERS[name](graph)
    assert state(graph) >= WRITERS["append"].after - ({"Person:a=1"} if name == "frame" else set())
    assert [r.kind for r in graph.recoveries()] == ["RolledForward"]
    assert_whole(graph)


def die_after_the_commit_row(work: Callable[[], object]) -> None:
    """A process that dies between the row of its commit and that of its actor."""

    def one_row(dataset: LanceDataset, rows: pa.Table) -> int:
        if dataset.uri.endswith(COMMIT_ACTORS):
            raise Crashed
        return append_log_rows(dataset, rows)

    with patch.object(commit_log, "append_log_rows", one_row), pytest.raises(Crashed):
        work()


def test_the_actor_of_a_commit_is_completed(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "g")
    die_after_the_commit_row(lambda: graph.load([person("c", 3)], actor="ada"))
    assert graph.commits()[0].actor is None
    expire_leases(graph)
    again = Graph.open(graph.uri)
    assert again.commits()[0].actor == "ada"
    assert len({c.id for c in again.commits()}) == len(again.commits()) == 3
    assert_whole(again)


def test_the_actor_of_a_recovery_is_completed(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "g")
    with stop_at(CrashPoint.LANDED_ALL), pytest.raises(Crashed):
        graph.load([person("c", 3)], actor="ada")
    expire_leases(graph)
    die_after_the_commit_row(lambda: Graph.open(graph.uri))
    assert graph.commits(actor="omnigraph:recovery") == []
    again = Graph.open(graph.uri)
    (commit,) = again.commits(actor="omnigraph:recovery")
    assert [audit.commit_id for audit in again.recoveries()] == [commit.id]
    assert_whole(again)


def test_the_audit_names_the_writer_its_actor_and_the_tables(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "g")
    pins = {key: entry.version for key, entry in graph.snapshot().entries.items()}
    with stop_at(CrashPoint.LANDED_ALL), pytest.raises(Crashed):
        graph.load([person("c", 3)], actor="ada")
    expire_leases(graph)
    recovered = Graph.open(graph.uri)
    (audit,) = recovered.recoveries()
    assert (audit.kind, audit.for_actor, audit.writer_kind) == ("RolledForward", "ada", "Load")
    outcome = json.loads(audit.outcomes)
    shown = recovered.snapshot().entries["node:Person"].version
    assert outcome == [{"table_key": "node:Person", "from_version": pins["node:Person"], "to_version": shown}]
    (commit,) = recovered.commits(actor="omnigraph:recovery")
    assert commit.id == audit.commit_id
    assert commit.manifest_version == recovered.snapshot().version


def test_a_write_whose_expectations_no_longer_hold_is_undone(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "g")
    with stop_at(CrashPoint.LANDED_ALL), pytest.raises(Crashed):
        graph.load(['{"edge": "Knows", "from": "a", "to": "b", "data": {"id": "late"}}'])
    expire_leases(graph)
    # Another engine, which knows nothing of read expectations, replaces the nodes meanwhile.
    sidecars = {n: graph.store.objects.get(f"__recovery/{n}") for n in graph.store.objects.list("__recovery")}
    for name in sidecars:
        graph.store.objects.delete(f"__recovery/{name}")
    graph.load([person("z", 1)])
    for name, content in sidecars.items():
        graph.store.objects.put(f"__recovery/{name}", content or b"")
    recovered = Graph.open(graph.uri)
    assert state(recovered) == BEFORE | {"Person:z=1"}
    assert [r.kind for r in recovered.recoveries()] == ["RolledBack"]
    assert_whole(recovered)
