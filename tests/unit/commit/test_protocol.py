"""The commit protocol: whole or not at all, a loser undoes itself, nothing is left behind."""

from __future__ import annotations

import itertools
import json
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any
from unittest.mock import patch

import pytest

from spark_omnigraph.commit import protocol, sidecar
from spark_omnigraph.commit.lease import Lease, lease_path
from spark_omnigraph.commit.plan import PreparedCommit
from spark_omnigraph.commit.protocol import RULES, Action, Observation, Phase, commit, observe
from spark_omnigraph.commit.sidecar import sidecar_path
from spark_omnigraph.errors import (
    ConflictError,
    DriftError,
    ExpectedVersionMismatch,
    OmnigraphError,
    RecoveryRequiredError,
    StorageError,
    TransactionCommittedError,
)
from spark_omnigraph.manifest.lineage import head, in_order
from spark_omnigraph.manifest.rows import Transaction, last_transaction, sentinel_facts
from spark_omnigraph.storage.faults import CommitFailed, Outcome
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import RECOVERY
from spark_omnigraph.storage.manifest.commit_log import read_commits
from spark_omnigraph.storage.manifest.table import read_rows

from .builders import (
    foreign_append,
    heads_equal_pins,
    hooks,
    ids,
    leftovers,
    make_store,
    prepared,
    staged_write,
)


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    return make_store(tmp_path / "g")


def test_every_failure_has_a_rule() -> None:
    assert set(RULES) == set(itertools.product(Phase, Observation))


STEPS = {
    Phase.BIND: (protocol, "await_turn"),
    Phase.NAME: (protocol, "publish"),
    Phase.ARM: (protocol, "covering"),
    Phase.LAND: (protocol, "land"),
    Phase.PUBLISH: (protocol, "publish"),
    Phase.RECORD: (protocol, "append_commit"),
    Phase.CLEAN: (sidecar, "disarm"),
}
"""Phase → a step of it that a test lets fail; landing fails at the second table."""


def failing(phase: Phase, failure: Exception) -> AbstractContextManager[object]:
    """Lets a step fail in the middle: once, for what is done about it may take the same step."""
    owner, name = STEPS[phase]
    real, failures = getattr(owner, name), iter([failure])

    def step(*arguments: Any, **named: Any) -> object:
        if phase is not Phase.LAND or arguments[0].write.table_key == "node:B":
            for each in failures:
                raise each
        return real(*arguments, **named)

    return patch.object(owner, name, step)


@pytest.mark.parametrize(("phase", "observation"), sorted(RULES, key=str), ids=lambda each: each.value)
def test_a_failure_of_any_step_is_dealt_with_by_its_rule(
    store: GraphStore, phase: Phase, observation: Observation
) -> None:
    lost = observation is Observation.FAILED
    failure = ConflictError("refused") if lost else RecoveryRequiredError("who knows")
    assert observe(phase, failure) is observation
    tables = () if phase is Phase.NAME else tuple(staged_write(store, key, ["x"]) for key in ("node:A", "node:B"))
    write, before = replace(prepared(*tables), transaction=Transaction("job", 1)), store.snapshot(None)
    action, raised, warnings = RULES[phase, observation], None, ""
    with failing(phase, failure):
        try:
            warnings = " ".join(commit(store, write).warnings)
        except OmnigraphError as error:
            raised = error
    own = write.identity.operation_id
    left = {Action.RECOVER: [f"{own}.json", f"{own}.lease"]}
    left[Action.STAND] = left[Action.RECOVER]
    landed = {"node:A", "node:B"} if phase is Phase.PUBLISH else {"node:A"} if phase is Phase.LAND else set()
    moved = {Action.UNDO: (True, landed), Action.RECOVER: (False, set()), Action.STAND: (True, {"node:A", "node:B"})}
    is_level, advanced = moved.get(action, (True, set()))
    assert leftovers(store) == left.get(action, [])
    assert heads_equal_pins(store) == is_level
    after = store.snapshot(None)
    assert {key for key in after.entries if after.pin(key) > before.pin(key)} == advanced
    assert ids(store, "node:A") == (["x"] if action is Action.STAND else [])
    nothing_landed = action in (Action.REFUSE, Action.ABORT)
    assert {Path(file.uri).exists() for file in write.staged} == ({not nothing_landed} if tables else set())
    assert getattr(raised, "nothing_landed", False) == nothing_landed
    assert ("recovery completes it" in warnings) == (action is Action.STAND)
    assert (raised is None) == (action is Action.STAND)
    if action is Action.RECOVER:
        assert isinstance(raised, RecoveryRequiredError)
    elif phase is Phase.NAME and not lost:
        assert isinstance(raised, StorageError)
    elif raised is not None:
        assert raised is failure


@pytest.mark.parametrize("phase", Phase)
def test_what_is_not_proven_is_unknown(phase: Phase) -> None:
    read_back = phase in (Phase.NAME, Phase.PUBLISH)
    expected = Observation.FAILED if read_back else Observation.UNKNOWN
    assert observe(phase, StorageError("storage: no answer")) is expected
    assert observe(phase, CommitFailed(Outcome.UNKNOWN, "no answer")) is Observation.UNKNOWN
    assert observe(phase, CommitFailed(Outcome.LOST, "a race")) is Observation.FAILED


def test_two_tables_become_visible_in_one_manifest_version(store: GraphStore) -> None:
    write = prepared(staged_write(store, "node:A", ["a1", "a2"]), staged_write(store, "node:B", ["b1"]), actor="ada")
    published = commit(store, write)
    assert published.manifest_version == 4
    assert published.versions == {"node:A": 2, "node:B": 2}
    assert ids(store, "node:A") == ["a1", "a2"]
    assert ids(store, "node:B") == ["b1"]
    assert store.snapshot(None).entries["node:A"].row_count == 2
    assert leftovers(store) == []
    assert heads_equal_pins(store)
    newest = head(read_commits(store.location, None))
    assert newest is not None
    assert (newest.id, newest.actor, newest.manifest_version) == (write.identity.commit_id, "ada", 4)
    assert newest.parent == in_order(read_commits(store.location, None))[0].id


def test_the_sentinel_names_the_publish(store: GraphStore) -> None:
    write = prepared(staged_write(store, "node:A", ["a"]), actor="ada")
    commit(store, write)
    facts = sentinel_facts(read_rows(store.manifest(None)))
    assert facts is not None
    assert (facts.operation, facts.commit, facts.actor, facts.base) == (
        write.identity.operation_id,
        write.identity.commit_id,
        "ada",
        3,
    )


def test_the_sidecar_says_what_the_format_asks_for_while_it_is_armed(store: GraphStore) -> None:
    write = prepared(staged_write(store, "node:A", ["a"]), reads={"node:B": 1}, actor="ada")
    operation = write.identity.operation_id
    seen: dict[str, object] = {}

    def look() -> None:
        seen.update(json.loads(store.objects.get(sidecar_path(operation)) or b"{}"))
        seen["lease"] = store.objects.get(lease_path(operation)) is not None

    hooks(store).after_create[f"{operation}.json"] = look
    commit(store, write)
    keys = ["schema_version", "operation_id", "started_at", "branch", "actor_id", "writer_kind", "tables"]
    assert list(seen)[: len(keys)] == keys
    assert seen["schema_version"] == 2
    assert seen["writer_kind"] == "Load"
    assert seen["tables"] == [
        {
            "table_key": "node:A",
            "table_path": f"{store.root}/nodes/a",
            "expected_version": 1,
            "post_commit_pin": 2,
        }
    ]
    assert seen["x_read_expectations"] == {"node:B": 1}
    assert seen["lease"] is True


def test_a_moved_table_is_a_mismatch_with_its_numbers_and_staged_files_may_go(store: GraphStore) -> None:
    late = prepared(staged_write(store, "node:A", ["late"]))
    commit(store, prepared(staged_write(store, "node:A", ["first"])))
    with pytest.raises(ExpectedVersionMismatch) as caught:
        commit(store, late)
    assert (caught.value.table_key, caught.value.expected, caught.value.actual) == ("node:A", 1, 2)
    assert caught.value.to_dict()["manifest_conflict"] == {"table_key": "node:A", "expected": 1, "actual": 2}
    assert (caught.value.nothing_landed, [Path(file.uri).exists() for file in late.staged]) == (True, [False])
    assert ids(store, "node:A") == ["first"]
    assert leftovers(store) == []


def test_files_that_another_attempt_reads_stay_when_nothing_landed(store: GraphStore) -> None:
    late = replace(prepared(staged_write(store, "node:A", ["late"])), keeps_files=True)
    commit(store, prepared(staged_write(store, "node:A", ["first"])))
    with pytest.raises(ExpectedVersionMismatch) as caught:
        commit(store, late)
    assert (caught.value.nothing_landed, [Path(file.uri).exists() for file in late.staged]) == (True, [True])


def test_a_table_that_was_only_read_must_not_have_moved(store: GraphStore) -> None:
    late = prepared(staged_write(store, "node:A", ["a"]), reads={"node:B": 1})
    commit(store, prepared(staged_write(store, "node:B", ["b"])))
    with pytest.raises(ExpectedVersionMismatch, match="node:B"):
        commit(store, late)
    assert ids(store, "node:A") == []


def named(reads: dict[str, int]) -> PreparedCommit:
    """A write that changes no table and has a name."""
    return replace(prepared(reads=reads, actor="ada"), transaction=Transaction("job", 7))


def test_a_name_without_tables_is_published_without_a_commit(store: GraphStore) -> None:
    commit(store, prepared(staged_write(store, "node:B", ["b"])))
    before, commits = store.snapshot(None), read_commits(store.location, None)
    published = commit(store, named({"node:B": 2}))
    assert (published.commit_id, published.manifest_version) == (None, before.version + 1)
    assert (store.snapshot(None).entries, read_commits(store.location, None)) == (before.entries, commits)
    assert (leftovers(store), last_transaction(read_rows(store.manifest(None)), "job")) == ([], 7)
    with pytest.raises(TransactionCommittedError):
        commit(store, replace(named({}), writes=(staged_write(store, "node:A", ["a"]),)))
    assert (ids(store, "node:A"), heads_equal_pins(store)) == ([], True)
    after = commit(store, prepared(staged_write(store, "node:A", ["a"])))
    assert after.parent == commits[-1].id


def test_a_name_is_not_published_when_what_it_looked_at_moved(store: GraphStore) -> None:
    late = named({"node:B": 1})
    commit(store, prepared(staged_write(store, "node:B", ["b"])))
    with pytest.raises(ExpectedVersionMismatch, match="node:B"):
        commit(store, late)
    assert last_transaction(read_rows(store.manifest(None)), "job") is None


def test_a_name_whose_publish_has_no_known_outcome_is_safe_to_publish_again(
    store: GraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> None:
        raise RecoveryRequiredError("the outcome of publish X is unknown")

    monkeypatch.setattr(protocol, "publish", lost)
    with pytest.raises(StorageError, match=r"publish X is unknown\); it had nothing else to write, so run it again"):
        commit(store, named({}))
    assert leftovers(store) == []


def test_no_name_is_published_while_the_schema_changes(store: GraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GraphStore, "has_schema_lock", lambda _: True)
    with pytest.raises(ConflictError, match="a schema change is running, or died"):
        commit(store, named({}))
    assert last_transaction(read_rows(store.manifest(None)), "job") is None


def test_a_table_neither_written_nor_read_may_move(store: GraphStore) -> None:
    late = prepared(staged_write(store, "node:A", ["a"]))
    commit(store, prepared(staged_write(store, "node:B", ["b"])))
    commit(store, late)
    assert ids(store, "node:A") == ["a"]


def test_a_changed_schema_refuses_the_write(store: GraphStore) -> None:
    with pytest.raises(ConflictError, match="schema changed"):
        commit(store, replace(prepared(staged_write(store, "node:A", ["a"])), schema_hash="sha256:other"))
    assert leftovers(store) == []


def test_a_head_past_its_pin_is_refused_before_anything_is_armed(store: GraphStore) -> None:
    write = prepared(staged_write(store, "node:A", ["a"]))
    foreign_append(store, "node:A", "foreign")
    with pytest.raises(DriftError, match="past the manifest") as caught:
        commit(store, write)
    assert (caught.value.kind, caught.value.exit_code) == ("drift", 5), "to run it again does not help"
    assert leftovers(store) == []


def test_a_loss_at_the_second_table_undoes_the_first(store: GraphStore) -> None:
    commit(store, prepared(staged_write(store, "node:A", ["a"]), staged_write(store, "node:B", ["b"])))
    write = prepared(staged_write(store, "node:A", ["a2"]), staged_write(store, "node:B", ["b2"], replace_all=True))
    armed = f"{write.identity.operation_id}.json"
    hooks(store).after_create[armed] = lambda: foreign_append(store, "node:B", "foreign")
    with pytest.raises(ExpectedVersionMismatch) as caught:
        commit(store, write)
    assert caught.value.table_key == "node:B"
    assert ids(store, "node:A") == ["a"]
    assert ids(store, "node:B") == ["b"]
    entry = store.snapshot(None).entries["node:A"]
    assert (entry.version, entry.row_count) == (4, 1), "landed at 3, restored as 4, published"
    assert store.head_version("nodes/a", None) == 4
    assert leftovers(store) == []


def test_landing_over_a_foreign_commit_is_a_loss_that_keeps_theirs(store: GraphStore) -> None:
    commit(store, prepared(staged_write(store, "node:A", ["a"])))
    write = prepared(staged_write(store, "node:A", ["ours"]))
    hooks(store).after_create[f"{write.identity.operation_id}.json"] = lambda: foreign_append(store, "node:A", "theirs")
    with pytest.raises(ExpectedVersionMismatch):
        commit(store, write)
    newest = store.open_dataset("nodes/a").to_table(columns=["id"]).column("id").to_pylist()
    assert sorted(newest) == ["a", "theirs"]
    assert ids(store, "node:A") == ["a"]


def test_a_writer_that_meets_another_right_after_arming_steps_back_and_waits(store: GraphStore) -> None:
    ours = prepared(staged_write(store, "node:A", ["ours"]))
    theirs = prepared(staged_write(store, "node:A", ["theirs"]))
    other = Lease(store, theirs.identity.operation_id)
    turns: list[list[str]] = []

    def another_arms() -> None:
        other.acquire()
        sidecar.arm(store, theirs)
        hooks(store).after_create[f"{ours.identity.operation_id}.json"] = lambda: turns.append(leftovers(store))
        Timer(0.1, another_leaves).start()

    def another_leaves() -> None:
        sidecar.disarm(store, theirs.identity.operation_id)
        other.release()

    hooks(store).after_create[f"{ours.identity.operation_id}.json"] = another_arms
    commit(store, ours)
    assert ids(store, "node:A") == ["ours"]
    own = ours.identity.operation_id
    assert turns == [[f"{own}.json", f"{own}.lease"]], "armed a second time, after the other had left"
    assert leftovers(store) == []


def test_an_interrupted_write_refuses_others_and_is_kept(store: GraphStore) -> None:
    dead = prepared(staged_write(store, "node:A", ["dead"]))
    sidecar.arm(store, dead)
    with pytest.raises(RecoveryRequiredError, match=dead.identity.operation_id):
        commit(store, prepared(staged_write(store, "node:A", ["a"])))
    assert leftovers(store) == [f"{dead.identity.operation_id}.json"]


def test_an_interrupted_write_on_other_tables_does_not_block(store: GraphStore) -> None:
    sidecar.arm(store, prepared(staged_write(store, "node:B", ["dead"])))
    commit(store, prepared(staged_write(store, "node:A", ["a"])))
    assert ids(store, "node:A") == ["a"]


def test_an_unreadable_sidecar_is_named_and_kept(store: GraphStore) -> None:
    store.objects.put(f"{RECOVERY}/broken.json", b"{")
    with pytest.raises(RecoveryRequiredError, match=r"broken\.json"):
        commit(store, prepared(staged_write(store, "node:A", ["a"])))
    assert leftovers(store) == ["broken.json"]


def test_foreign_files_beside_sidecars_do_not_block(store: GraphStore) -> None:
    store.objects.put(f"{RECOVERY}/notes.txt", b"hello")
    commit(store, prepared(staged_write(store, "node:A", ["a"])))
    assert ids(store, "node:A") == ["a"]
