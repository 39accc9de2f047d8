"""A write that stops anywhere leaves the old graph or the new one, and the next read-write open makes it whole.

The matrix is generated from the crash points and the writers: a new one of either is tested without being asked for.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spark_omnigraph import Graph, RecoveryRequiredError
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.commit.lease import SKEW
from spark_omnigraph.graph.handle import Graph as Handle
from tests.crash.worlds import BEFORE, WRITERS, Writer, assert_whole, make_graph, person, run, state

WRITE_POINTS = [
    CrashPoint.STAGED,
    CrashPoint.CHECKED,
    CrashPoint.BOUND,
    CrashPoint.LEASED,
    CrashPoint.ARMED,
    CrashPoint.LANDED_FIRST,
    CrashPoint.LANDED_ALL,
    CrashPoint.PUBLISHED,
    CrashPoint.RECORDED,
    CrashPoint.DISARMED,
]
VISIBLE_AFTER = {CrashPoint.PUBLISHED, CrashPoint.RECORDED, CrashPoint.DISARMED}
FINISHED_AFTER = VISIBLE_AFTER | {CrashPoint.LANDED_ALL}
ARMED_AT = FINISHED_AFTER - {CrashPoint.DISARMED} | {CrashPoint.ARMED, CrashPoint.LANDED_FIRST}


def expire_leases(graph: Handle) -> None:
    """The owner is gone for longer than its lease ran: what waiting would show, without waiting."""
    for name in graph.store.objects.list("__recovery"):
        if name.endswith(".lease"):
            content = json.dumps({"owner": "gone:1", "expires_at": time.time() - SKEW - 1}).encode()
            graph.store.objects.put(f"__recovery/{name}", content)


def check_after_crash(root: Path, writer: Writer, point: CrashPoint) -> None:
    reader = Graph.open(root, mode="r")
    seen = state(reader, writer.branch)
    assert seen == (writer.after if point in VISIBLE_AFTER else BEFORE), "readers see one state, before any recovery"
    expire_leases(reader)
    graph = Graph.open(root)
    expected = writer.after if point in FINISHED_AFTER else BEFORE
    assert state(graph, writer.branch) == expected
    assert_whole(graph)
    assert len(graph.recoveries()) == (1 if point in ARMED_AT else 0)
    commits = [c.id for c in graph.commits(branch=writer.branch)]
    assert len(commits) == len(set(commits))
    graph.load([person("later", 1)], "merge", branch=writer.branch)
    assert state(graph, writer.branch) == expected | {"Person:later=1"}
    assert_whole(graph)


@pytest.mark.parametrize("point", WRITE_POINTS, ids=lambda p: p.value)
@pytest.mark.parametrize("name", list(WRITERS))
def test_a_write_that_stops(tmp_path: Path, name: str, point: CrashPoint) -> None:
    graph = make_graph(tmp_path / "g")
    with stop_at(point), pytest.raises(Crashed):
        run(graph, WRITERS[name])
    check_after_crash(tmp_path / "g", WRITERS[name], point)


@pytest.mark.parametrize(
    "point", [CrashPoint.ARMED, CrashPoint.LANDED_FIRST, CrashPoint.LANDED_ALL, CrashPoint.PUBLISHED]
)
@pytest.mark.parametrize("name", ["append", "merge", "overwrite"])
def test_a_process_that_is_killed(tmp_path: Path, name: str, point: CrashPoint) -> None:
    make_graph(tmp_path / "g")
    command = [sys.executable, "-m", "tests.crash.victim", str(tmp_path / "g"), name, point.value]
    assert subprocess.run(command, check=False, timeout=120).returncode == -9
    check_after_crash(tmp_path / "g", WRITERS[name], point)


RECOVERY_POINTS = [p for p in CrashPoint if p.name.startswith("RECOVERY_")]


@pytest.mark.parametrize("point", RECOVERY_POINTS, ids=lambda p: p.value)
@pytest.mark.parametrize(
    "died_at", [CrashPoint.LANDED_FIRST, CrashPoint.LANDED_ALL, CrashPoint.ARMED], ids=lambda p: p.value
)
def test_a_recovery_that_stops_is_recovered(tmp_path: Path, died_at: CrashPoint, point: CrashPoint) -> None:
    graph = make_graph(tmp_path / "g")
    writer = WRITERS["merge"]
    with stop_at(died_at), pytest.raises(Crashed):
        run(graph, writer)
    expire_leases(graph)
    stopped = False
    with stop_at(point):
        try:
            Graph.open(graph.uri)
        except Crashed:
            stopped = True
    assert stopped or point is CrashPoint.RECOVERY_RESTORED, "only a write that is undone restores"
    again = Graph.open(graph.uri)
    assert state(again) == (writer.after if died_at is CrashPoint.LANDED_ALL else BEFORE)
    assert_whole(again)
    assert len(again.recoveries()) == 1


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
