"""A schema change of the reference engine that died after any of its steps (storage format 8.7): the old graph or the
new one, its tables, its schema and its files together, and everybody may write again.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from spark_omnigraph import ConflictError, Graph, SchemaFilesError
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from spark_omnigraph.manifest.rows import table_row, tombstone_row, version_row
from spark_omnigraph.storage.layout import SCHEMA, SCHEMA_APPLY_LOCK
from spark_omnigraph.storage.manifest.table import publish_rows
from tests.crash.matrix import RECOVERY_POINTS, SCHEMA_RECOVERED_AT, SCHEMA_STEPS, crashed

OLD = "node A { k: String @key } node B { k: String @key }"
NEW = "node A { k: String @key  note: String? } node C { k: String @key }"
OPERATION = "01J0000000000000000000000A"
FILES = ("_schema.pg", "_schema.ir.json", "__schema_state.json")
A, B, C = (TableKey.node(name) for name in "ABC")


class Change:
    """The steps of a change from OLD to NEW, in order; `do` runs the first ones and leaves the rest undone."""

    def __init__(self, folder: Path) -> None:
        self.graph = Graph.init(folder / "g", OLD)
        self.graph.load([record("A", "1"), record("B", "1")])
        self.root, self._new = folder / "g", Path(Graph.init(folder / "new", NEW).uri)
        self._entries = self.graph.snapshot().entries
        self._added = Graph.open(self._new).snapshot().entries[C].location
        self.steps: list[Callable[[], object]] = [
            self.lock,
            self.arm,
            lambda: shutil.copytree(self._new / self._added, self.root / self._added),
            self.rewrite,
            *(lambda name=name: shutil.copy(self._new / name, self.root / f"{name}.staging") for name in FILES),
            self.publish,
            *(lambda name=name: (self.root / f"{name}.staging").rename(self.root / name) for name in FILES),
        ]

    def do(self, steps: int) -> None:
        for step in self.steps[:steps]:
            step()

    def lock(self) -> None:
        for path in ("__manifest", "_graph_commits.lance"):
            self.graph.store.open_dataset(path).create_branch(SCHEMA_APPLY_LOCK, None)

    def arm(self) -> None:
        entry = self._entries[A]
        body = {
            "schema_version": 2, "operation_id": OPERATION, "started_at": "1750000000000000", "branch": None,
            "actor_id": None, "writer_kind": "SchemaApply",
            "tables": [{
                "table_key": A, "table_path": f"{self.root}/{entry.location}",
                "expected_version": entry.version, "post_commit_pin": entry.version + 1,
            }],
            "additional_registrations": [{"table_key": C, "table_path": self._added}],
            "tombstones": [{"table_key": B, "tombstone_version": self._entries[B].version + 1}],
        }  # laid out as a table  # fmt: skip
        self.graph.store.objects.put(f"__recovery/{OPERATION}.json", json.dumps(body).encode())

    def rewrite(self) -> None:
        schema = lance.dataset(str(self._new / self._entries[A].location)).schema
        rows = pa.Table.from_pylist([{"id": "1", "k": "1", "note": None}], schema=schema)
        lance.write_dataset(rows, str(self.root / self._entries[A].location), mode="overwrite")

    def publish(self) -> None:
        store = self.graph.store
        rows = [table_row(C, self._added), tombstone_row(B, self._entries[B].version + 1)]
        for key, location, count in ((A, self._entries[A].location, 1), (C, self._added, 0)):
            version = store.head_version(location, None)
            rows.append(version_row(store.table_update(key, location, None, version, count)))
        publish_rows(store.manifest(None), rows)


FINISHED_FROM = 7
"""Steps after which the change is finished and not undone: all its files are staged."""


def record(kind: str, key: str, **more: str) -> str:
    return json.dumps({"type": kind, "data": {"k": key, **more}})


@pytest.fixture
def change(tmp_path: Path) -> Change:
    return Change(tmp_path)


def check(change: Change, finished: bool, audited: bool = True) -> None:
    graph = Graph.open(change.root)
    entries = graph.snapshot().entries
    assert set(entries) == ({A, C} if finished else {A, B})
    assert (change.root / "_schema.pg").read_text() == (NEW if finished else OLD)
    assert graph.entity(A, "1") == {"id": "1", "k": "1", **({"note": None} if finished else {})}
    assert not list(change.root.glob("*.staging"))
    assert not graph.store.has_schema_lock()
    left = [name for name in graph.store.objects.list("__recovery") if name.endswith((".json", ".claim", ".lease"))]
    assert left == []
    for entry in entries.values():
        assert graph.store.head_version(entry.location, None) == entry.version
    kinds = [(audit.kind, audit.writer_kind) for audit in graph.recoveries()]
    assert kinds == ([("RolledForward" if finished else "RolledBack", "SchemaApply")] if audited else [])
    commits = graph.commits()
    assert [c.parent for c in commits[:-1]] == [c.id for c in commits[1:]], "one line of commits"
    graph.load([record("A", "2", note="n"), record("C", "2")] if finished else [record("A", "2"), record("B", "2")])
    assert graph.count(A) == 2


@pytest.mark.parametrize("step", range(len(SCHEMA_STEPS)), ids=lambda step: SCHEMA_STEPS[step][0])
def test_a_change_that_stops(change: Change, step: int) -> None:
    steps = step + 2  # the first row of the table is two steps
    assert len(change.steps) == len(SCHEMA_STEPS) + 1
    change.do(steps)
    reader = Graph.open(change.root, mode="r") if steps <= FINISHED_FROM + 1 else None
    if reader is not None:
        assert reader.count(A) == 1, "a reader needs no recovery"
    check(change, finished=SCHEMA_STEPS[step][1])


@pytest.mark.parametrize("point", RECOVERY_POINTS, ids=lambda p: p.value)
@pytest.mark.parametrize("steps", [number + 1 for number in SCHEMA_RECOVERED_AT])
def test_a_recovery_that_stops_is_recovered(change: Change, steps: int, point: CrashPoint) -> None:
    change.do(steps)
    with stop_at(point):
        crashed(lambda: Graph.open(change.root))
    check(change, finished=steps >= FINISHED_FROM)


def test_a_change_that_only_adds_and_drops_tables(change: Change) -> None:
    """Without pins nothing tells by a version how far it came."""
    change.do(3)
    path = change.root / f"__recovery/{OPERATION}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "tables": []}))
    check(change, finished=False)


@pytest.mark.parametrize("point", RECOVERY_POINTS, ids=lambda p: p.value)
@pytest.mark.parametrize("staged", [True, False])
def test_a_recovery_without_pins_that_stops(tmp_path: Path, staged: bool, point: CrashPoint) -> None:
    graph = Graph.init(tmp_path / "g", OLD)
    graph.load([record("A", "1"), record("B", "1")])
    new = "node A { k: String @key }"
    Graph.init(tmp_path / "new", new)
    pin = graph.snapshot().pin(B)
    body = {
        "schema_version": 2, "operation_id": OPERATION, "started_at": "1750000000000000", "branch": None,
        "actor_id": None, "writer_kind": "SchemaApply", "tables": [],
        "tombstones": [{"table_key": B, "tombstone_version": pin + 1}],
    }  # laid out as a table  # fmt: skip
    graph.store.objects.put(f"__recovery/{OPERATION}.json", json.dumps(body).encode())
    for name in FILES if staged else ():
        shutil.copy(tmp_path / "new" / name, tmp_path / "g" / f"{name}.staging")
    with stop_at(point):
        crashed(lambda: Graph.open(graph.uri))
    again = Graph.open(graph.uri)
    assert set(again.snapshot().entries) == ({A} if staged else {A, B})
    assert (tmp_path / "g" / "_schema.pg").read_text() == (new if staged else OLD)
    assert [audit.kind for audit in again.recoveries()] == ["RolledForward" if staged else "RolledBack"]
    commits = again.commits()
    assert [c.parent for c in commits[:-1]] == [c.id for c in commits[1:]], "one line of commits"
    again.load([record("A", "2")])


def test_staged_files_that_do_not_fit_the_tables_undo_the_change(change: Change) -> None:
    change.do(FINISHED_FROM)
    shutil.copy(change.root / "_schema.ir.json", change.root / "_schema.ir.json.staging")
    check(change, finished=False)


def age(root: Path) -> None:
    for path in root.glob("*.staging"):
        os.utime(path, (time.time() - 3600, time.time() - 3600))


def stage(change: Change, folder: Path, schema: str, names: tuple[str, ...] = FILES) -> None:
    """Files of a change that left no sidecar: it moved no table."""
    other = Path(Graph.init(folder / "other", schema).uri)
    for name in names:
        shutil.copy(other / name, change.root / f"{name}.staging")


def test_staged_files_of_a_running_change_are_left(change: Change, tmp_path: Path) -> None:
    stage(change, tmp_path, NEW)
    Graph.open(change.root)
    assert len(list(change.root.glob("*.staging"))) == 3


def test_staged_files_of_a_schema_whose_tables_are_not_there_go(change: Change, tmp_path: Path) -> None:
    stage(change, tmp_path, NEW)
    age(change.root)
    check(change, finished=False, audited=False)


@pytest.mark.parametrize("name", FILES)
def test_a_staged_file_that_is_no_text_is_named_or_goes(change: Change, tmp_path: Path, name: str) -> None:
    stage(change, tmp_path, NEW)
    (change.root / f"{name}.staging").write_bytes(b"\xff\xfe[")
    age(change.root)
    unclear = pytest.raises(SchemaFilesError, match=r"_schema\.pg\.staging")
    with unclear if name == "_schema.pg" else nullcontext():
        Graph.open(change.root)
    for path in change.root.glob("*.staging"):
        path.unlink()
    check(change, finished=False, audited=False)


def test_staged_files_of_the_same_schema_go(change: Change, tmp_path: Path) -> None:
    stage(change, tmp_path, OLD)
    age(change.root)
    check(change, finished=False, audited=False)


def test_staged_files_of_the_schema_whose_tables_are_there_are_named(change: Change) -> None:
    change.do(8)
    change.graph.store.objects.delete(f"__recovery/{OPERATION}.json")
    change.graph.store.open_dataset("__manifest").branches.delete(SCHEMA_APPLY_LOCK)
    age(change.root)
    check(change, finished=True, audited=False)


def test_naming_that_was_begun_is_finished(change: Change) -> None:
    change.do(9)
    change.graph.store.objects.delete(f"__recovery/{OPERATION}.json")
    change.graph.store.open_dataset("__manifest").branches.delete(SCHEMA_APPLY_LOCK)
    age(change.root)
    check(change, finished=True, audited=False)


def test_a_schema_with_the_same_tables_is_for_a_person_to_decide(change: Change, tmp_path: Path) -> None:
    stage(change, tmp_path, "node A { k: String @key  more: I32? } node B { k: String @key }")
    age(change.root)
    with pytest.raises(SchemaFilesError, match=r"_schema\.pg\.staging.*tables of both schemas"):
        Graph.open(change.root)
    assert Graph.open(change.root, mode="r").count(A) == 1
    for path in change.root.glob("*.staging"):
        path.unlink()
    Graph.open(change.root)


def test_a_lock_of_another_engine_goes_when_somebody_says_so(change: Change) -> None:
    change.lock()
    graph = Graph.open(change.root)
    assert graph.store.has_schema_lock(), "nobody knows whether its owner is alive"
    refused = r"another engine's and stands for \d+ s.*recover --break-lock"
    with pytest.raises(ConflictError, match=refused):
        graph.load([record("A", "2")])
    with pytest.raises(ConflictError, match=refused):
        graph.apply_schema(graph.schema() + "\nnode Other { k: String @key }")
    assert graph.recover() == []
    assert graph.store.has_schema_lock()
    assert graph.recover(break_lock=True) == []
    check(change, finished=False, audited=False)


def test_our_lock_goes_with_its_lease(change: Change) -> None:
    change.lock()
    lease = f"__recovery/{SCHEMA}01J0000000000000000000000B.lease"
    live = {"owner": "somebody", "expires_at": time.time() + 60, "started_at": time.time()}
    change.graph.store.objects.put(lease, json.dumps(live).encode())
    graph = Graph.open(change.root)
    with pytest.raises(ConflictError, match=r"schema change is running, or died.*It is running"):
        graph.load([record("A", "2")])
    change.graph.store.objects.put(lease, json.dumps(live | {"expires_at": 0}).encode())
    died = "It died: a read-write open, or recover, brings it to an end"
    with pytest.raises(ConflictError, match=died):
        graph.load([record("A", "2")])
    with pytest.raises(ConflictError, match=died):
        graph.apply_schema(graph.schema() + "\nnode Other { k: String @key }")
    check(change, finished=False, audited=False)


def test_a_writer_leaves_a_change_to_a_read_write_open(change: Change) -> None:
    change.do(FINISHED_FROM)
    change.graph.store.open_dataset("__manifest").branches.delete(SCHEMA_APPLY_LOCK)
    assert change.graph.refresh() == []
    assert (change.root / f"__recovery/{OPERATION}.json").exists()
    check(change, finished=True)
