"""Who is alive here: one answer for whoever waits, recovers, repairs or cleans up. Time stands still in these tests."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph import RecoveryRequiredError, WriterBusyError
from spark_omnigraph.commit import sidecar as sidecars
from spark_omnigraph.commit.lease import SKEW, TERM, Lease, lease_facts, lease_path, read_lease
from spark_omnigraph.commit.owners import (
    await_turn,
    end_lease,
    find_owners,
    is_live,
    lease_end,
    lost_leases,
    remove_orphans,
)
from spark_omnigraph.commit.process import Process, this_process
from spark_omnigraph.commit.sidecar import Sidecar
from spark_omnigraph.commit.stage import close_stage, open_stage, staging
from spark_omnigraph.graph.maintain.repair import refuse_pending
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.objects import local_swap
from tests.unit.commit.builders import make_store, prepared, staged_write
from tests.unit.commit.test_process import gone

NOW = 1_750_000_000.0
FAR = NOW + 10 * 365 * 86400
TABLES = frozenset({"node:A"})
known = pytest.mark.skipif(this_process() is None, reason="this system does not say which process is which")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GraphStore:
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    return make_store(tmp_path / "g")


def put_lease(store: GraphStore, name: str, process: Process | None, expires_at: float = FAR) -> str:
    facts: dict[str, object] = {"owner": "h:1", "expires_at": expires_at, "started_at": NOW - 5}
    if process is not None:
        facts["process"] = process.to_json()
    store.objects.put(lease_path(name), json.dumps(facts).encode())
    return lease_path(name)


def arm(store: GraphStore, process: Process | None, expires_at: float = FAR) -> Sidecar:
    write = prepared(staged_write(store, "node:A", ["x"]))
    sidecars.arm(store, write)
    put_lease(store, write.identity.operation_id, process, expires_at)
    found = sidecars.read(store, write.identity.operation_id)
    assert found is not None
    return found


def assert_alive(store: GraphStore, sidecar: Sidecar) -> None:
    """The same is said everywhere."""
    assert is_live(store, sidecar)
    assert (find_owners(store).alive, find_owners(store).since) == (1, min(NOW - 5, sidecar.started_at / 1e6))
    assert lost_leases(store) == []
    with pytest.raises(WriterBusyError):
        await_turn(store, None, TABLES, wait=0)
    with pytest.raises(WriterBusyError):
        refuse_pending(store)


def assert_dead(store: GraphStore, sidecar: Sidecar) -> None:
    assert not is_live(store, sidecar)
    assert find_owners(store).alive == 0
    with pytest.raises(RecoveryRequiredError):
        await_turn(store, None, TABLES)
    with pytest.raises(RecoveryRequiredError):
        refuse_pending(store)


@known
def test_a_writer_that_was_killed_here_is_dead_whatever_its_term(store: GraphStore) -> None:
    assert_dead(store, arm(store, gone()))


@known
def test_a_process_id_that_was_used_again_does_not_keep_a_lease(store: GraphStore) -> None:
    here = this_process()
    assert here is not None
    assert_dead(store, arm(store, replace(here, start=here.start - 1)))


@known
def test_a_writer_that_lives_here_is_alive(store: GraphStore) -> None:
    assert_alive(store, arm(store, this_process()))


def test_a_lease_without_a_process_lives_by_its_term(store: GraphStore) -> None:
    """As those of earlier releases do, and of handed-over stages."""
    assert_alive(store, arm(store, None))


def test_a_lease_without_a_process_dies_with_its_term(store: GraphStore) -> None:
    assert_dead(store, arm(store, None, NOW - SKEW - 1))


@known
@pytest.mark.parametrize(
    "other",
    [{"namespace": "pid:[1]"}, {"host": "clone"}, {"machine": "0" * 32}, {"boot_id": "b"}],
    ids=lambda other: next(iter(other)),
)
def test_a_writer_of_another_container_or_clone_is_waited_for(store: GraphStore, other: dict[str, Any]) -> None:
    assert_alive(store, arm(store, replace(gone(), **other)))


def test_a_lease_that_cannot_be_read_counts_for_its_term_from_when_it_was_written(
    store: GraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sidecar = arm(store, None)
    path = lease_path(sidecar.operation_id)
    store.objects.put(path, b"{")
    written = store.objects.modified(path)
    assert written is not None
    monkeypatch.setattr(time, "time", lambda: written.timestamp() + TERM + SKEW - 1)
    assert is_live(store, sidecar)
    assert (find_owners(store).alive, find_owners(store).since) == (1, 0.0)
    assert lease_end(store, sidecar) == written.timestamp() + TERM + SKEW
    monkeypatch.setattr(time, "time", lambda: written.timestamp() + TERM + SKEW + 1)
    assert_dead(store, sidecar)
    sidecars.disarm(store, sidecar.name)
    assert lost_leases(store) == [path]
    remove_orphans(store)
    assert store.objects.get(path) is None


@known
def test_a_lease_with_a_heartbeat_names_its_process_and_a_handed_over_stage_does_not(store: GraphStore) -> None:
    here, lease = this_process(), Lease(store, "op")
    with lease, staging(store) as stage:
        lease.acquire()
        own, of_stage = read_lease(store, "op"), read_lease(store, stage)
        assert own is not None
        assert of_stage is not None
        assert own.process == of_stage.process == here
        lease.release()
    for name in (open_stage(store), open_stage(store, shared="q-1"), open_stage(store, shared="q-1")):
        handed_over = read_lease(store, name)
        assert handed_over is not None
        assert handed_over.process is None
        assert handed_over.is_live(NOW)


def test_earlier_releases_read_the_lease_that_names_a_process(store: GraphStore) -> None:
    with Lease(store, "op") as lease:
        lease.acquire()
        raw = json.loads(store.objects.get(lease_path("op")) or b"")
        lease.release()
    assert {name: type(raw[name]) for name in ("owner", "expires_at", "started_at")} == {
        "owner": str, "expires_at": float, "started_at": float
    }  # laid out as a table  # fmt: skip


@pytest.mark.parametrize("process", [None, 7, [], {}, {"pid": -1}, {"pid": 1, "start": 1}])
def test_a_lease_whose_process_makes_no_sense_lives_by_its_term(process: object) -> None:
    content = {"owner": "h:1", "expires_at": NOW, "process": process}
    facts = lease_facts(json.dumps(content).encode())
    assert facts is not None
    assert (facts.process, facts.is_live(NOW), facts.is_live(NOW + SKEW + 1)) == (None, True, False)


def test_a_lost_lease_that_was_renewed_since_it_was_found_stays(
    store: GraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, late = put_lease(store, "dead", None, NOW - SKEW - 1), put_lease(store, "late", None, NOW - SKEW - 1)
    assert lost_leases(store) == [dead, late]
    plain = local_swap.remove_file

    def renew_first(path: str, expected: bytes | None, wait: float | None) -> bool:
        if path.endswith("late.lease"):
            put_lease(store, "late", None, NOW)
        return plain(path, expected, wait)

    monkeypatch.setattr("spark_omnigraph.storage.objects.small.remove_file", renew_first)
    assert [end_lease(store, path) for path in (dead, late)] == [True, False]
    assert store.objects.get(dead) is None
    assert store.objects.get(late) is not None
    assert not end_lease(store, late), "it is alive"


def test_a_stage_that_is_begun_anew_is_not_removed_as_the_one_before(store: GraphStore) -> None:
    """The task of a repeated batch and a clean-up meet at the stage of the batch that died."""
    path = put_lease(store, "x_stage~q-1~a", None, NOW - SKEW - 1)
    begun = open_stage(store, shared="q-1")
    assert end_lease(store, path)
    facts = read_lease(store, begun)
    assert facts is not None
    assert facts.started_at == NOW
    close_stage(store, begun)
    assert read_lease(store, begun) is None
