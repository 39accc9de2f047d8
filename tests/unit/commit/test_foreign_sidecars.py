"""Sidecars as the reference engine leaves them: what each kind of writer is brought to, and what the audit says.

No member of ours (`x_…`) is in them; tables are named by absolute or relative URI, with and without a last slash.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from spark_omnigraph.branch.control import create_branch
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit import sidecar
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from spark_omnigraph.commit.owners import covering
from spark_omnigraph.commit.recovery import Recovered, Scope, recover, recover_for_writing
from spark_omnigraph.errors import InternalError, RecoveryRequiredError
from spark_omnigraph.manifest.branches import Branch, BranchName
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.rows import tombstone_row
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.manifest.commit_log import RecoveryAudit, read_commits, read_recoveries
from spark_omnigraph.storage.manifest.table import publish_rows
from tests.crash.matrix import FIXTURES, RECOVERY_POINTS, crashed

from .builders import SCHEMA, TABLES, heads_equal_pins, leftovers, make_store

A, B = TableKey.node("A"), TableKey.node("B")
DRAFT = BranchName("draft")
OPERATION = "01J0000000000000000000000A"
SOURCE = "01HZZZZZZZZZZZZZZZZZZZZZZZ"
PATHS = {
    "absolute": "{root}/{location}",
    "absolute with a last slash": "{root}/{location}/",
    "relative": "g/{location}",
    "relative with a last slash": "./g/{location}/",
    "of another place": "s3://elsewhere/moved/{location}",
}


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    """Two tables with a row each, published at version 2 by a publish of ours."""
    store = make_store(tmp_path / "g")
    from_pylance(store, A)
    from_pylance(store, B)
    sidecar_of(store, "Mutation", pin(store, A), pin(store, B), operation="00000000000000000000000001")
    realign(store)
    assert heads_equal_pins(store)
    return store


def from_pylance(store: GraphStore, key: str, branch: Branch = None, row_id: str = "new") -> int:
    """An append by another program; the version that it makes."""
    uri = store.table_uri(TABLES[key], branch)
    lance.write_dataset(pa.table({"id": [row_id], "x": [0]}, schema=SCHEMA), uri, mode="append")
    return store.head_version(TABLES[key], branch)


def index(store: GraphStore, key: str) -> int:
    store.open_dataset(TABLES[key]).create_scalar_index("id", "BTREE")
    return store.head_version(TABLES[key], None)


def pin(
    store: GraphStore,
    key: str,
    *,
    expected: int | None = None,
    post: int | None = None,
    confirmed: int | None = None,
    branch: Branch = None,
    path: str = "absolute",
) -> dict[str, Any]:
    """A pin in the order of members that the reference writes; by default of a write of one commit on what is shown."""
    shown = store.snapshot(branch).pin(key) if expected is None else expected
    body: dict[str, Any] = {
        "table_key": key,
        "table_path": PATHS[path].format(root=store.root, location=TABLES[key]),
        "expected_version": shown,
        "post_commit_pin": post if post is not None else shown + 1,
    }
    if confirmed is not None:
        body["confirmed_version"] = confirmed
    if branch is not None:
        body["table_branch"] = branch
    return body


def sidecar_of(
    store: GraphStore,
    kind: str,
    *pins: dict[str, Any],
    version: int = 2,
    branch: Branch = None,
    operation: str = OPERATION,
    name: str | None = None,
    **more: object,
) -> None:
    body = {
        "schema_version": version,
        "operation_id": operation,
        "started_at": "1750000000000000",
        "branch": branch,
        "actor_id": "act-1",
        "writer_kind": kind,
        "tables": list(pins),
        **more,
    }
    store.objects.put(f"__recovery/{name or operation}.json", json.dumps(body, indent=2).encode())


def realign(store: GraphStore, scope: Scope = Scope.FULL) -> list[Recovered]:
    return recover(store, scope)


def audit(store: GraphStore) -> tuple[RecoveryAudit, list[dict[str, Any]]]:
    found = [row for row in read_recoveries(store.location) if row.operation_id == OPERATION]
    assert len(found) == 1
    return found[0], json.loads(found[0].outcomes)


def commit_of(store: GraphStore, row: RecoveryAudit, branch: Branch = None) -> Commit:
    (found,) = [c for c in read_commits(store.location, branch) if c.id == row.commit_id]
    return found


def check(store: GraphStore, kind: str, writer: str, branch: Branch = None) -> list[dict[str, Any]]:
    """What every recovery leaves: one audit row, its commit, nothing pending; the outcomes are returned."""
    row, outcomes = audit(store)
    assert (row.kind, row.for_actor, row.writer_kind) == (kind, "act-1", writer)
    commit = commit_of(store, row, branch)
    assert (commit.actor, commit.branch) == ("omnigraph:recovery", branch)
    assert commit.manifest_version == store.snapshot(branch).version
    assert commit.parent is not None
    assert [name for name in leftovers(store) if name.endswith((".json", ".lease", ".claim"))] == []
    return outcomes


def rows(store: GraphStore, key: str, branch: Branch = None) -> int:
    entry = store.snapshot(branch).entries[key]
    count = int(store.open_table(entry).count_rows())
    assert count == entry.row_count
    return count


@pytest.mark.parametrize("path", PATHS)
def test_a_mutation_that_landed_on_all_tables_is_finished(store: GraphStore, path: str) -> None:
    pins = [pin(store, A, path=path), pin(store, B, path=path)]
    from_pylance(store, A)
    from_pylance(store, B)
    sidecar_of(store, "Mutation", *pins)
    (done,) = realign(store)
    assert (done.operation_id, done.kind.value, done.writer_kind) == (OPERATION, "RolledForward", "Mutation")
    outcomes = check(store, "RolledForward", "Mutation")
    shown = {key: store.snapshot(None).pin(key) for key in (A, B)}
    assert outcomes == [
        {"table_key": p["table_key"], "from_version": p["expected_version"], "to_version": shown[p["table_key"]]}
        for p in pins
    ]
    assert (rows(store, A), rows(store, B), heads_equal_pins(store)) == (2, 2, True)


def test_a_mutation_that_landed_on_one_table_is_undone(store: GraphStore) -> None:
    pins = [pin(store, A), pin(store, B)]
    head = from_pylance(store, A)
    sidecar_of(store, "Mutation", *pins)
    (done,) = realign(store)
    assert done.kind.value == "RolledBack"
    outcomes = check(store, "RolledBack", "Mutation")
    assert outcomes == [{"table_key": A, "from_version": head, "to_version": pins[0]["expected_version"]}]
    assert (rows(store, A), rows(store, B), heads_equal_pins(store)) == (1, 1, True)


def test_a_delete_names_the_version_that_it_reached(store: GraphStore) -> None:
    store.open_dataset(TABLES[A]).delete("id = 'new'")
    head = store.head_version(TABLES[A], None)
    sidecar_of(store, "Mutation", pin(store, A, post=head))
    realign(store)
    check(store, "RolledForward", "Mutation")
    assert rows(store, A) == 0


@pytest.mark.parametrize("version", [1, 2])
def test_a_load_that_built_an_index_after_its_rows_is_undone(store: GraphStore, version: int) -> None:
    """Head is past pin + 1: strict writers are not finished on what they did not name."""
    pins = [pin(store, A)]
    from_pylance(store, A)
    head = index(store, A)
    sidecar_of(store, "Load", *pins, version=version)
    realign(store)
    outcomes = check(store, "RolledBack", "Load")
    assert outcomes == [{"table_key": A, "from_version": head, "to_version": pins[0]["expected_version"]}]
    assert rows(store, A) == 1


@pytest.mark.parametrize("kind", ["Mutation", "Load", "EnsureIndices", "Optimize"])
def test_a_write_that_nothing_proves_published_only_loses_its_sidecar(store: GraphStore, kind: str) -> None:
    """The versions that it meant to publish are published, but a winner of the race would have published the same."""
    shown, commits = store.snapshot(None), read_commits(store.location, None)
    sidecar_of(store, kind, pin(store, A, expected=shown.pin(A) - 1), pin(store, B, expected=shown.pin(B) - 1))
    (done,) = realign(store)
    assert (done.kind.value, done.outcomes) == ("RolledBack", ())
    row, outcomes = audit(store)
    assert (row.kind, row.commit_id, outcomes) == ("RolledBack", commits[-1].id, [])
    assert read_commits(store.location, None) == commits, "nothing is recorded that may never have happened"
    assert (store.snapshot(None).entries, heads_equal_pins(store)) == (shown.entries, True)


@pytest.mark.parametrize("confirmed", [None, 1], ids=["unconfirmed", "another version"])
@pytest.mark.parametrize("version", [1, 2])
def test_a_merge_that_lost_a_race_is_never_recorded(store: GraphStore, confirmed: int | None, version: int) -> None:
    """The winner moved pin and HEAD together; from a merge commit on, the loser's rows would never be merged again."""
    shown, commits = store.snapshot(None), read_commits(store.location, None)
    lost = pin(store, A, expected=shown.pin(A) - 1, confirmed=confirmed)
    sidecar_of(store, "BranchMerge", lost, version=version, merge_source_commit_id=SOURCE)
    (done,) = realign(store)
    assert done.kind.value == "RolledBack"
    assert read_commits(store.location, None) == commits
    assert all(commit.merged_parent is None for commit in read_commits(store.location, None))
    assert (leftovers(store), store.snapshot(None).entries) == ([], shown.entries)


def test_a_merge_that_was_published_and_written_over_is_recorded(store: GraphStore) -> None:
    confirmed = store.snapshot(None).pin(A)
    from_pylance(store, A, row_id="later")
    sidecar_of(store, "Mutation", pin(store, A), operation="00000000000000000000000002")
    realign(store)
    merged = pin(store, A, expected=confirmed - 1, confirmed=confirmed)
    sidecar_of(store, "BranchMerge", merged, merge_source_commit_id=SOURCE)
    realign(store)
    row, _ = audit(store)
    assert (row.kind, commit_of(store, row).merged_parent) == ("RolledForward", SOURCE)


@pytest.mark.parametrize(("kind", "steps"), [("EnsureIndices", 1), ("EnsureIndices", 2), ("Optimize", 3)])
def test_maintenance_of_any_number_of_commits_is_finished(store: GraphStore, kind: str, steps: int) -> None:
    before = pin(store, A)
    store.open_dataset(TABLES[A]).create_scalar_index("id", "BTREE")
    for _ in range(steps - 1):
        store.open_dataset(TABLES[A]).create_scalar_index("id", "BTREE", replace=True)
    sidecar_of(store, kind, before)
    realign(store)
    (outcome,) = check(store, "RolledForward", kind)
    assert (outcome["from_version"], outcome["to_version"]) == (before["expected_version"], store.snapshot(None).pin(A))
    entry = store.snapshot(None).entries[A]
    assert [i.name for i in store.open_table(entry).describe_indices()] == ["id_idx"]
    assert (rows(store, A), heads_equal_pins(store)) == (1, True)


@pytest.mark.parametrize("kind", ["EnsureIndices", "Optimize"])
def test_maintenance_beside_an_unmoved_table_is_undone(store: GraphStore, kind: str) -> None:
    pins = [pin(store, A), pin(store, B)]
    head = index(store, A)
    sidecar_of(store, kind, *pins)
    realign(store)
    outcomes = check(store, "RolledBack", kind)
    assert outcomes == [{"table_key": A, "from_version": head, "to_version": pins[0]["expected_version"]}]
    assert store.open_table(store.snapshot(None).entries[A]).describe_indices() == []


@pytest.mark.parametrize("kind", ["EnsureIndices", "Optimize"])
def test_maintenance_planned_on_another_version_is_undone(store: GraphStore, kind: str) -> None:
    pins = [pin(store, A, expected=store.snapshot(None).pin(A) - 1)]
    index(store, A)
    sidecar_of(store, kind, *pins)
    realign(store)
    check(store, "RolledBack", kind)
    assert heads_equal_pins(store)


def merge(store: GraphStore, confirmed: tuple[int, int] | None, version: int = 2) -> list[int]:
    """A merge of two tables in two commits each, and its sidecar; the versions reached."""
    expected = [store.snapshot(None).pin(key) for key in (A, B)]
    heads = [from_pylance(store, key) and from_pylance(store, key) for key in (A, B)]
    stamps = (None, None) if confirmed is None else confirmed
    pins = [
        pin(store, key, expected=e, confirmed=None if stamp is None else head + stamp)
        for key, e, head, stamp in zip((A, B), expected, heads, stamps, strict=True)
    ]
    sidecar_of(store, "BranchMerge", *pins, version=version, merge_source_commit_id=SOURCE)
    return heads


@pytest.mark.parametrize(("confirmed", "version"), [((0, 0), 2), (None, 1)], ids=["confirmed", "version 1"])
def test_a_merge_that_is_complete_is_finished(
    store: GraphStore, confirmed: tuple[int, int] | None, version: int
) -> None:
    before = store.snapshot(None)
    merge(store, confirmed, version)
    realign(store)
    outcomes = check(store, "RolledForward", "BranchMerge")
    assert outcomes == [
        {"table_key": key, "from_version": before.pin(key), "to_version": store.snapshot(None).pin(key)}
        for key in (A, B)
    ]
    row, _ = audit(store)
    assert commit_of(store, row).merged_parent == SOURCE
    assert (rows(store, A), rows(store, B), heads_equal_pins(store)) == (3, 3, True)


@pytest.mark.parametrize("confirmed", [None, (0, -1), (0, 1)], ids=["unconfirmed", "beyond", "short"])
def test_a_merge_that_is_not_known_to_be_complete_is_undone(
    store: GraphStore, confirmed: tuple[int, int] | None
) -> None:
    before = store.snapshot(None)
    heads = merge(store, confirmed)
    realign(store)
    outcomes = check(store, "RolledBack", "BranchMerge")
    assert outcomes == [
        {"table_key": key, "from_version": head, "to_version": before.pin(key)}
        for key, head in zip((A, B), heads, strict=True)
    ]
    row, _ = audit(store)
    assert commit_of(store, row).merged_parent is None
    assert (rows(store, A), rows(store, B), heads_equal_pins(store)) == (1, 1, True)


@pytest.mark.parametrize("also", [True, False], ids=["a table by pointer", "all tables named"])
def test_a_merge_that_was_to_show_a_table_by_pointer_is_undone(store: GraphStore, also: bool) -> None:
    """The reference engine does not name such a table. Finished without it, no later merge would bring its rows."""
    create_branch(store, DRAFT)
    changed = (A, B) if also else (A,)
    pins = [pin(store, key, branch=DRAFT) for key in changed]
    for key in changed:
        store.open_dataset(TABLES[key]).create_branch(DRAFT, (None, store.snapshot(None).pin(key)))
        from_pylance(store, key, DRAFT, row_id="merged")
    sidecar_of(store, "Mutation", *pins, branch=DRAFT, operation="00000000000000000000000002")
    realign(store)
    (source,) = [commit.id for commit in read_commits(store.location, DRAFT) if commit.branch == DRAFT]
    before = store.snapshot(None)
    merged = pin(store, A, confirmed=before.pin(A) + 1)
    from_pylance(store, A, row_id="merged")
    sidecar_of(store, "BranchMerge", merged, merge_source_commit_id=source)
    realign(store)
    row, _ = audit(store)
    assert row.kind == ("RolledBack" if also else "RolledForward")
    assert commit_of(store, row).merged_parent == (None if also else source)
    assert rows(store, A) == (1 if also else 2)
    assert rows(store, B) == before.entry(B).row_count


def leave(store: GraphStore, fixture: str) -> bool:
    """What a fixture of the matrix leaves behind; whether it is finished."""
    kind, _, detail = fixture.partition(", ")
    if kind == "BranchMerge":
        merge(store, (0, 0) if detail == "confirmed" else None)
        return detail == "confirmed"
    keys, moved = ((A,), 1) if kind in ("EnsureIndices", "Optimize") else ((A, B), 1 if detail else 2)
    pins = [pin(store, key) for key in keys]
    for key in keys[:moved]:
        if len(keys) == 1:
            index(store, key)
        else:
            from_pylance(store, key)
    sidecar_of(store, kind, *pins)
    return moved == len(keys)


@pytest.mark.parametrize("point", RECOVERY_POINTS, ids=lambda p: p.value)
@pytest.mark.parametrize("fixture", FIXTURES)
def test_a_recovery_that_stops_is_recovered(store: GraphStore, fixture: str, point: CrashPoint) -> None:
    before = (rows(store, A), rows(store, B))
    finished = leave(store, fixture)
    with stop_at(point):
        stopped = crashed(lambda: realign(store))
    assert stopped or (point is CrashPoint.RECOVERY_RESTORED and finished), "only a write that is undone restores"
    realign(store)
    kind = fixture.partition(",")[0]
    check(store, "RolledForward" if finished else "RolledBack", kind)
    added = {"BranchMerge": 2, "Mutation": 1, "Load": 1}.get(kind, 0) if finished else 0
    assert (rows(store, A), rows(store, B)) == (before[0] + added, before[1] + added)
    assert heads_equal_pins(store)


def test_a_merge_that_was_published_is_recorded_as_one(store: GraphStore) -> None:
    shown = store.snapshot(None)
    sidecar_of(
        store, "BranchMerge", pin(store, A, expected=shown.pin(A) - 1, confirmed=shown.pin(A)),
        merge_source_commit_id=SOURCE,
    )  # laid out as a table  # fmt: skip
    realign(store)
    check(store, "RolledForward", "BranchMerge")
    row, _ = audit(store)
    assert commit_of(store, row).merged_parent == SOURCE


def test_a_write_on_a_branch_is_finished_there(store: GraphStore) -> None:
    create_branch(store, DRAFT)
    before = store.snapshot(DRAFT).pin(A)
    store.open_dataset(TABLES[A]).create_branch(DRAFT, (None, before))
    from_pylance(store, A, DRAFT)
    sidecar_of(store, "Mutation", pin(store, A, expected=before, branch=DRAFT), branch=DRAFT)
    main = store.snapshot(None)
    realign(store)
    (outcome,) = check(store, "RolledForward", "Mutation", DRAFT)
    entry = store.snapshot(DRAFT).entries[A]
    assert (entry.branch, entry.version) == (DRAFT, outcome["to_version"])
    assert (rows(store, A, DRAFT), store.snapshot(None)) == (2, main)


@pytest.mark.parametrize("kind", ["Mutation", "Load", "EnsureIndices", "BranchMerge"])
def test_a_write_on_a_branch_that_is_gone_is_dropped(store: GraphStore, kind: str) -> None:
    before = store.snapshot(None)
    sidecar_of(
        store, kind, pin(store, A, expected=2, branch=None), branch=BranchName("gone"), merge_source_commit_id=SOURCE
    )
    (done,) = realign(store)
    assert (done.kind.value, done.outcomes) == ("OrphanedBranchDiscarded", ())
    assert check(store, "OrphanedBranchDiscarded", kind) == []
    row, _ = audit(store)
    assert commit_of(store, row).merged_parent is None
    assert store.snapshot(None) == before


def test_a_recovery_of_what_was_recovered_adds_no_row(store: GraphStore) -> None:
    pins = [pin(store, A)]
    from_pylance(store, A)
    sidecar_of(store, "Mutation", *pins)
    realign(store)
    sidecar_of(store, "Mutation", *pins)  # as if its removal had failed
    commits = len(read_commits(store.location, None))
    realign(store)
    assert check(store, "RolledForward", "Mutation")
    assert (len(read_commits(store.location, None)), rows(store, A)) == (commits, 2)


def test_a_schema_change_is_left_to_a_read_write_open_and_bars_no_reader(store: GraphStore) -> None:
    sidecar_of(
        store, "SchemaApply", pin(store, A),
        additional_registrations=[{"table_key": "node:C", "table_path": "nodes/c"}],
        tombstones=[{"table_key": B, "tombstone_version": 9}],
    )  # laid out as a table  # fmt: skip
    assert realign(store, Scope.FORWARD_ONLY) == []
    assert leftovers(store) == [f"{OPERATION}.json"]
    assert (rows(store, A), rows(store, B)) == (1, 1)
    assert read_commits(store.location, None)
    for key in (A, B, "node:C"):
        assert covering(store, None, frozenset({key})) is not None
    assert covering(store, None, frozenset({"node:D"})) is None
    (done,) = realign(store)
    assert done.kind.value == "RolledBack"
    assert check(store, "RolledBack", "SchemaApply") == []
    assert (rows(store, A), rows(store, B), heads_equal_pins(store)) == (1, 1, True)


@pytest.mark.parametrize("path", ["../elsewhere", "nodes/../../c"])
def test_a_schema_change_that_adds_a_table_outside_the_graph_is_refused(store: GraphStore, path: str) -> None:
    sidecar_of(store, "SchemaApply", additional_registrations=[{"table_key": "node:C", "table_path": path}])
    with pytest.raises(RecoveryRequiredError, match="table_path"):
        realign(store)
    assert leftovers(store) == [f"{OPERATION}.json"]


def test_a_table_behind_its_version_is_refused_and_left_by_writers(store: GraphStore) -> None:
    folder = Path(store.root) / TABLES[A] / "_versions"
    (folder / f"{2**64 - 1 - store.snapshot(None).pin(A):020d}.manifest").unlink()
    (folder / "latest_version_hint.json").unlink()
    sidecar_of(store, "Mutation", pin(store, A))
    with pytest.raises(RecoveryRequiredError, match="behind its published version"):
        realign(store)
    assert realign(store, Scope.FORWARD_ONLY) == []
    assert leftovers(store) == [f"{OPERATION}.json"]


GARBLED = {
    "01J0000000000000000000000B.json": b"not json",
    "01J0000000000000000000000C.json": b'{"schema_version": 3, "operation_id": "01J0000000000000000000000C"}',
    "01J0000000000000000000000D.json": b'{"schema_version": 2}',
    "list.json": b"[1, 2]",
    "bytes.json": b"\xff\xfe",
    "empty.json": b"",
    "text.json": b'"schema_version"',
    "notes.json": b'{"todo": "ask somebody"}',
}


def test_unreadable_sidecars_are_all_named_once_the_others_are_done(store: GraphStore) -> None:
    pins = [pin(store, A)]
    from_pylance(store, A)
    sidecar_of(store, "Mutation", *pins, operation="01J0000000000000000000000E")
    for name, content in GARBLED.items():
        store.objects.put(f"__recovery/{name}", content)
    with pytest.raises(RecoveryRequiredError) as refused:
        realign(store)
    assert all(f"__recovery/{name}" in refused.value.message for name in GARBLED)
    assert "version 3, newer than 2: upgrade" in refused.value.message
    assert "move it out of __recovery/" in refused.value.message
    assert leftovers(store) == sorted(GARBLED), "the readable one is recovered, the others stay"
    assert rows(store, A) == 2
    with pytest.raises(RecoveryRequiredError, match=r"notes\.json"):
        covering(store, None, frozenset({B}))


def test_files_that_are_no_sidecars_bar_nobody(store: GraphStore) -> None:
    for name in ("README", "01J0000000000000000000000B.json.bak", "01J0000000000000000000000B.json#3", "x.JSON"):
        (Path(store.root) / "__recovery" / name).write_bytes(b"not json")
    store.objects.put("__recovery/old/01J0000000000000000000000B.json", b"not json")
    assert realign(store) == []
    assert covering(store, None, frozenset({A, B})) is None


@pytest.mark.parametrize("landed", [True, False])
def test_a_sidecar_under_another_name_counts_like_any_other(store: GraphStore, landed: bool) -> None:
    pins = [pin(store, A)]
    if landed:
        from_pylance(store, A)
    sidecar_of(store, "Mutation", *pins, name="copy of a sidecar")
    held = covering(store, None, frozenset({A}))
    assert held is not None
    assert (held.name, held.operation_id) == ("copy of a sidecar", OPERATION)
    assert covering(store, None, frozenset({B})) is None
    (done,) = realign(store)
    assert done.operation_id == OPERATION
    check(store, "RolledForward" if landed else "RolledBack", "Mutation")


def test_a_sidecar_and_its_copy_are_one_write(store: GraphStore) -> None:
    pins = [pin(store, A)]
    from_pylance(store, A)
    sidecar_of(store, "Mutation", *pins)
    sidecar_of(store, "Mutation", *pins, name="01J0000000000000000000000A (1)")
    realign(store)
    check(store, "RolledForward", "Mutation")
    assert (rows(store, A), heads_equal_pins(store)) == (2, True)


def test_a_sidecar_of_another_graph_is_named(store: GraphStore) -> None:
    body = {**pin(store, A), "table_key": "node:Z", "table_path": "/other/graph/nodes/0123456789abcdef"}
    sidecar_of(store, "Mutation", body)
    with pytest.raises(RecoveryRequiredError, match=r"'node:Z' at '/other/graph/nodes/0123456789abcdef'.*no dataset"):
        realign(store)
    assert leftovers(store) == [f"{OPERATION}.json"]


def heads(store: GraphStore) -> list[int]:
    return [store.head_version(TABLES[key], None) for key in (A, B)]


STRANGERS = {
    "a type that the graph does not show": {"table_key": "node:Ghost"},
    "another table's dataset": {"table_key": B},
    "another branch": {"table_branch": DRAFT},
}


@pytest.mark.parametrize("change", STRANGERS.values(), ids=STRANGERS)
def test_a_sidecar_of_a_table_that_is_not_shown_there_moves_nothing(store: GraphStore, change: dict[str, str]) -> None:
    create_branch(store, DRAFT)
    store.open_dataset(TABLES[A]).create_branch(DRAFT, (None, store.snapshot(None).pin(A)))
    body = {**pin(store, A), **change}
    from_pylance(store, B)
    sidecar_of(store, "Mutation", body, operation="00000000000000000000000002")
    sidecar_of(store, "Mutation", pin(store, B, expected=store.snapshot(None).pin(B)))
    before = heads(store)[0]
    for _ in range(3):
        with pytest.raises(RecoveryRequiredError, match=r"00000000000000000000000002\.json covers .*move it out of"):
            realign(store)
        assert heads(store)[0] == before
    assert (rows(store, B), leftovers(store)) == (2, ["00000000000000000000000002.json"]), "the others are recovered"
    assert recover_for_writing(store, Scope.FULL) == []
    barred = change.get("table_key", A)
    assert covering(store, None, frozenset({barred})) is not None
    assert covering(store, None, frozenset({A, B, "node:Ghost"} - {barred})) is None


def test_a_sidecar_of_a_type_that_was_dropped_is_removed(store: GraphStore) -> None:
    before = pin(store, A)
    from_pylance(store, A)
    publish_rows(store.manifest(None), [tombstone_row(A, store.snapshot(None).pin(A))])
    sidecar_of(store, "Mutation", before)
    head = heads(store)[0]
    (done,) = realign(store)
    assert (done.kind.value, done.outcomes, heads(store)[0]) == ("RolledBack", (), head)
    assert leftovers(store) == []


@pytest.mark.parametrize("also", [False, True], ids=["alone", "beside a table that moved"])
def test_a_table_that_was_never_forked_was_never_written(store: GraphStore, also: bool) -> None:
    create_branch(store, DRAFT)
    shown = store.snapshot(DRAFT)
    pins = [pin(store, A, expected=shown.pin(A), branch=DRAFT)]
    if also:
        store.open_dataset(TABLES[B]).create_branch(DRAFT, (None, shown.pin(B)))
        from_pylance(store, B, DRAFT)
        pins.append(pin(store, B, expected=shown.pin(B), branch=DRAFT))
    sidecar_of(store, "BranchMerge", *pins, branch=DRAFT, merge_source_commit_id=SOURCE)
    before = heads(store)
    (done,) = realign(store)
    assert (done.kind.value, [o.table_key for o in done.outcomes]) == ("RolledBack", [B] if also else [])
    assert (rows(store, A, DRAFT), rows(store, B, DRAFT), heads(store)) == (1, 1, before)
    assert leftovers(store) == []


BAD = {
    "a path that leaves the graph": {"table_path": "/srv/../victim"},
    "a branch that leaves the graph": {"table_branch": "../../x"},
    "a version that is none": {"expected_version": -1},
    "a version of many digits": {"post_commit_pin": 10**30},
    "a version that is a text": {"expected_version": "4"},
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD)
def test_a_bad_sidecar_stops_no_other_and_is_named(store: GraphStore, change: dict[str, Any]) -> None:
    sidecar_of(store, "Mutation", {**pin(store, A), **change}, operation="00000000000000000000000002")
    from_pylance(store, B)
    sidecar_of(store, "Mutation", pin(store, B))
    with pytest.raises(RecoveryRequiredError, match=r"__recovery/00000000000000000000000002\.json cannot"):
        realign(store)
    assert (rows(store, B), leftovers(store)) == (2, ["00000000000000000000000002.json"])


@pytest.mark.parametrize(
    "content",
    [b'{"schema_version": Infinity}', b'{"schema_version": 2, "x": ' + b"[" * 50_000, b'{"schema_version": 1e400}'],
)
def test_a_sidecar_that_no_reader_follows_stops_no_other(store: GraphStore, content: bytes) -> None:
    store.objects.put("__recovery/00000000000000000000000002.json", content)
    os.mkfifo(Path(store.root) / "__recovery" / "00000000000000000000000003.json")
    from_pylance(store, B)
    sidecar_of(store, "Mutation", pin(store, B))
    with pytest.raises(RecoveryRequiredError, match=r"0002\.json cannot be read.*0003\.json is no regular file"):
        realign(store)
    assert rows(store, B) == 2


def test_a_table_named_twice_is_refused(store: GraphStore) -> None:
    from_pylance(store, A)
    sidecar_of(store, "Mutation", *[pin(store, A, expected=store.snapshot(None).pin(A))] * 2)
    with pytest.raises(RecoveryRequiredError, match="named twice"):
        realign(store)


def test_what_stops_one_recovery_stops_no_other(store: GraphStore) -> None:
    for key, operation in ((A, "00000000000000000000000002"), (B, OPERATION)):
        sidecar_of(store, "Mutation", pin(store, key), operation=operation)
        from_pylance(store, key)
    (Path(store.root) / TABLES[A] / "_versions").rename(Path(store.root) / TABLES[A] / "_gone")
    with pytest.raises(RecoveryRequiredError, match=r"0002\.json.*no dataset"):
        realign(store)
    assert rows(store, B) == 2
    assert leftovers(store) == ["00000000000000000000000002.json"]


def test_an_operation_id_that_is_a_path_is_refused(store: GraphStore) -> None:
    sidecar_of(store, "Mutation", pin(store, A), operation="../../_schema", name="x")
    with pytest.raises(RecoveryRequiredError, match="operation_id"):
        realign(store)


def test_a_confirmed_write_is_finished(store: GraphStore) -> None:
    heads = merge(store, None)
    before = json.loads(store.objects.get(f"__recovery/{OPERATION}.json") or b"")
    sidecar.confirm(store, OPERATION, dict(zip((A, B), heads, strict=True)))
    after = json.loads(store.objects.get(f"__recovery/{OPERATION}.json") or b"")
    assert [p.pop("confirmed_version") for p in after["tables"]] == heads
    assert (after, list(after)) == (before, list(before)), "the rest of the sidecar stays as it was"
    realign(store)
    check(store, "RolledForward", "BranchMerge")
    assert (rows(store, A), rows(store, B)) == (3, 3)


@pytest.mark.parametrize("versions", [{A: 5}, {A: 5, B: 5, "node:C": 5}, {}])
def test_every_table_must_be_confirmed(store: GraphStore, versions: dict[str, int]) -> None:
    merge(store, None)
    content = store.objects.get(f"__recovery/{OPERATION}.json")
    with pytest.raises(InternalError, match="confirmed"):
        sidecar.confirm(store, OPERATION, versions)
    assert store.objects.get(f"__recovery/{OPERATION}.json") == content


def test_a_write_that_recovery_took_over_cannot_be_confirmed(store: GraphStore) -> None:
    heads = merge(store, None)
    realign(store)
    with pytest.raises(RecoveryRequiredError, match="taken over"):
        sidecar.confirm(store, OPERATION, dict(zip((A, B), heads, strict=True)))
    assert [name for name in leftovers(store) if name.endswith(".json")] == []
