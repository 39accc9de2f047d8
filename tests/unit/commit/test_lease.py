"""Leases: a live one is waited for, one that ran out stops writers and read-write opens, readers never care."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from spark_omnigraph import Graph, RecoveryRequiredError, StorageError, WriterBusyError
from spark_omnigraph.commit import lease as lease_room
from spark_omnigraph.commit import sidecar
from spark_omnigraph.commit.announced import announced
from spark_omnigraph.commit.claim import claimed
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from spark_omnigraph.commit.lease import SKEW, TERM, Lease, LeaseFacts, lease_path, read_lease
from spark_omnigraph.commit.owners import await_turn
from spark_omnigraph.commit.plan import PreparedCommit
from spark_omnigraph.commit.stage import close_stage, has_ended, open_stage
from spark_omnigraph.manifest.branches import BranchName
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.objects.small import Objects

from .builders import leftovers, make_store, prepared, staged_write

TABLES = frozenset({"node:A"})


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    return make_store(tmp_path / "g")


def arm_with_lease(store: GraphStore, expires_at: float) -> PreparedCommit:
    write = prepared(staged_write(store, "node:A", ["dead"]))
    sidecar.arm(store, write)
    content = json.dumps({"owner": "elsewhere:1", "expires_at": expires_at}).encode()
    store.objects.put(lease_path(write.identity.operation_id), content)
    return write


def test_a_lease_is_live_until_its_term_and_the_skew_are_past() -> None:
    facts = LeaseFacts("host:1", 1000.0)
    assert facts.is_live(1000.0 + SKEW - 1)
    assert not facts.is_live(1000.0 + SKEW + 1)


def test_an_acquired_lease_names_its_owner_and_runs_one_term_ahead(store: GraphStore) -> None:
    lease = Lease(store, "op")
    before = time.time()
    with lease:
        lease.acquire()
        facts = read_lease(store, "op")
        assert facts is not None
        assert before + TERM <= facts.expires_at <= time.time() + TERM
        lease.release()
    assert leftovers(store) == []


def test_a_lease_left_behind_stays_for_recovery_to_see(store: GraphStore) -> None:
    with Lease(store, "op") as lease:
        lease.acquire()
    assert [name for name in leftovers(store) if name.endswith(".lease")] == ["op.lease"]
    facts = read_lease(store, "op")
    assert facts is not None
    assert not facts.is_live(time.time() + 1), "it is given up: nobody has to wait for its term"


def test_a_heartbeat_brings_no_lease_back(store: GraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever took the owner for dead relies on it."""
    monkeypatch.setattr(lease_room, "TERM", 0.03)
    with Lease(store, "op") as lease, stop_at(CrashPoint.HEARTBEAT, lambda: store.objects.delete(lease_path("op"))):
        lease.acquire()
        thread = lease._thread
        assert thread is not None
        thread.join(60)
        assert not thread.is_alive()
        assert lease.may_be_taken()
    assert read_lease(store, "op") is None


def test_a_heartbeat_goes_on_after_a_lost_answer(store: GraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_room, "TERM", 0.03)
    plain, third, told = Objects.swap, Event(), []

    def swap(self: Objects, path: str, expected: bytes, content: bytes) -> bool:
        told.append(plain(self, path, expected, content))
        if len(told) == 1:
            raise StorageError("storage: no answer")
        if told.count(True) == 3:
            third.set()
        return told[-1]

    monkeypatch.setattr(Objects, "swap", swap)
    with Lease(store, "op") as lease:
        lease.acquire()
        assert third.wait(60)
        lease.release()
    assert told[:3] == [True, False, True], "what it wrote without an answer is its own"


def test_a_shared_stage_begins_with_its_first_process_and_anew_when_it_ran_out(store: GraphStore) -> None:
    name = open_stage(store, shared="q-7")
    first = read_lease(store, name)
    assert (open_stage(store, shared="q-7"), open_stage(store, shared="q-8") == name) == (name, False)
    assert read_lease(store, name) == first
    store.objects.put(lease_path(name), json.dumps({"owner": "x", "expires_at": 1.0, "started_at": 0.0}).encode())
    later = open_stage(store, shared="q-7")
    again = read_lease(store, later)
    assert first is not None
    assert again is not None
    assert again.started_at > first.started_at
    assert has_ended(store, [name, later]) is False, "until clean-up has looked"
    assert len({open_stage(store), open_stage(store)}) == 2
    close_stage(store, name)
    close_stage(store, name)
    assert (read_lease(store, name), read_lease(store, later)) == (None, None), "all of one write end together"
    assert [n[: len("x_stage~q-")] for n in announced(store).stages].count("x_stage~q-") == 1, "that of q-8 goes on"


def test_a_stage_that_ended_is_not_taken_for_the_next_one_of_its_write(store: GraphStore) -> None:
    """A task staged under the first; by the time of the commit clean-up may have removed its files."""
    first = open_stage(store, shared="q-7")
    store.objects.delete(lease_path(first))
    later = open_stage(store, shared="q-7")
    assert later != first
    assert has_ended(store, [first, later])
    assert not has_ended(store, [later])


def test_a_repeated_batch_keeps_the_begin_of_its_stage_and_gets_time_again(store: GraphStore) -> None:
    name = open_stage(store, shared="q-7")
    late = json.dumps({"owner": "x", "expires_at": time.time() + 1, "started_at": 5.0}).encode()
    store.objects.put(lease_path(name), late)
    before = time.time()
    again = read_lease(store, open_stage(store, term=1000.0, shared="q-7"))
    assert again is not None
    assert (again.started_at, again.expires_at >= before + 1000.0) == (5.0, True)


def test_a_live_writer_is_waited_for_and_then_reported(store: GraphStore) -> None:
    write = arm_with_lease(store, time.time() + TERM)
    with pytest.raises(WriterBusyError, match=rf"{write.identity.operation_id}.* counts as dead from 20\d\d-.* UTC on"):
        await_turn(store, None, TABLES, wait=0)
    await_turn(store, None, frozenset({"node:B"}), wait=0)
    await_turn(store, BranchName("draft"), TABLES, wait=0)


def test_a_writer_whose_lease_ran_out_needs_recovery(store: GraphStore) -> None:
    arm_with_lease(store, time.time() - SKEW - 1)
    with pytest.raises(RecoveryRequiredError):
        await_turn(store, None, TABLES, wait=0)


@pytest.mark.parametrize("maintenance", [False, True])
def test_a_sidecar_without_a_lease_needs_recovery(store: GraphStore, maintenance: bool) -> None:
    """At once, whoever of this library wrote it: only other engines have no leases."""
    write = prepared(staged_write(store, "node:A", ["dead"]))
    if maintenance:
        write = replace(write, identity=replace(write.identity, commit_id=None))
    sidecar.arm(store, write)
    with pytest.raises(RecoveryRequiredError):
        await_turn(store, None, TABLES, wait=0)


def test_a_claim_that_is_kept_says_until_when(store: GraphStore) -> None:
    with (
        claimed(store, "step"),
        pytest.raises(WriterBusyError, match=r"x_claim~step.claim .* counts as dead from 20\d\d-.* UTC on"),
        claimed(store, "step", wait=0),
    ):
        pass
    assert leftovers(store) == []


def test_opening_leaves_live_writers_alone(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node A { k: String @key }")
    graph.load(['{"type": "A", "data": {"k": "1"}}'])
    write = arm_with_lease_on(graph, time.time() + TERM)
    Graph.open(graph.uri)
    assert leftovers(graph.store) == [f"{write}.json", f"{write}.lease"]
    assert Graph.open(graph.uri, mode="r").count("node:A") == 1


def arm_with_lease_on(graph: Graph, expires_at: float) -> str:
    body = {
        "schema_version": 2,
        "operation_id": "01J0000000000000000000000A",
        "branch": None,
        "writer_kind": "Load",
        "started_at": "1750000000000000",
        "tables": [{"table_key": "node:A", "table_path": "/g/nodes/a", "expected_version": 1, "post_commit_pin": 2}],
    }
    graph.store.objects.put("__recovery/01J0000000000000000000000A.json", json.dumps(body).encode())
    lease = json.dumps({"owner": "x", "expires_at": expires_at}).encode()
    graph.store.objects.put(lease_path("01J0000000000000000000000A"), lease)
    return "01J0000000000000000000000A"
