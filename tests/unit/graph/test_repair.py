"""Repair: what another program committed past the manifest is told apart, and published only as far as asked."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from spark_omnigraph import BadRequestError, ConflictError, Graph, LoadOptions, RecoveryRequiredError, WriterBusyError
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.commit.lease import TERM, lease_path
from spark_omnigraph.commit.publisher import publish
from spark_omnigraph.errors import DamagedError, ExpectedVersionMismatch, StorageError
from spark_omnigraph.graph.maintain import repair as repair_room
from spark_omnigraph.graph.maintain.repair import Verdict
from spark_omnigraph.storage.tables.commits import FENCE_KEY
from tests.support.graph_files import commit_rows, pins

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge Lives: Person -> City
"""
PLAIN = LoadOptions(build_indexes=False)
PERSON, CITY = "node:Person", "node:City"


def person(name: str, age: int = 1) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age}})


def city(name: str) -> str:
    return json.dumps({"type": "City", "data": {"name": name}})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Two files for each node type, so that there is something to compact."""
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load([person("a"), city("x")], options=PLAIN)
    graph.load([person("b"), city("y")], options=PLAIN)
    return graph


def dataset(graph: Graph, table: str, branch: str | None = None) -> lance.LanceDataset:
    return pins(Path(graph.uri), branch)[table].head(Path(graph.uri))


def append_past_the_manifest(graph: Graph, table: str, row_id: str, branch: str | None = None) -> None:
    head = dataset(graph, table, branch)
    row = {field.name: (row_id if field.type == pa.string() else None) for field in head.schema}
    lance.write_dataset(pa.Table.from_pylist([row], schema=head.schema), head.uri, mode="append")


def compact_past_the_manifest(graph: Graph, table: str) -> None:
    before = dataset(graph, table).version
    dataset(graph, table).optimize.compact_files()
    assert dataset(graph, table).version == before + 2


def names(graph: Graph, branch: str = "main") -> set[str]:
    return {json.loads(line)["data"]["name"] for line in graph.export(branch=branch)}


def heads_are_published(graph: Graph) -> bool:
    root = Path(graph.uri)
    return all(pin.head(root).version == pin.version for pin in pins(root).values())


def test_a_whole_graph_has_nothing_to_repair(graph: Graph) -> None:
    before = graph.snapshot().version
    for confirm in (False, True):
        report = graph.repair(confirm=confirm, force=confirm)
        assert (report.drifts, report.repaired, report.commit, report.manifest_version) == ((), (), None, before)
    assert graph.snapshot().version == before


def test_compaction_is_verified_and_published_with_a_commit(graph: Graph) -> None:
    compact_past_the_manifest(graph, PERSON)
    before = graph.snapshot()
    (drift,) = graph.repair().drifts
    assert (drift.table_key, drift.published, drift.head) == (PERSON, 3, 5)
    assert (drift.verdict, drift.operations) == ("verified_maintenance", ("ReserveFragments", "Rewrite"))
    assert (drift.rows_published, drift.rows_head) == (2, 2)
    assert "--confirm" in drift.advice
    assert "--force" not in drift.advice
    assert graph.snapshot() == before, "a dry run publishes nothing"

    report = graph.repair(confirm=True)
    assert (report.repaired, report.manifest_version) == ((PERSON,), before.version + 1)
    assert graph.snapshot().pin(PERSON) == 5
    newest = commit_rows(Path(graph.uri))[-1]
    assert (newest["graph_commit_id"], newest["manifest_version"]) == (report.commit, before.version + 1)
    assert newest["parent_commit_id"] == commit_rows(Path(graph.uri))[-2]["graph_commit_id"]
    assert [c.id for c in graph.commits(actor="omnigraph:repair")] == [report.commit]
    assert heads_are_published(graph)
    graph.load([person("c")])
    assert names(graph) == {"a", "b", "c", "x", "y"}


def test_changed_rows_are_suspicious_and_left_without_force(graph: Graph) -> None:
    append_past_the_manifest(graph, PERSON, "ghost")
    compact_past_the_manifest(graph, PERSON)
    compact_past_the_manifest(graph, CITY)
    by_table = {str(d.table_key): d for d in graph.repair().drifts}
    assert (by_table[PERSON].verdict, by_table[CITY].verdict) == ("suspicious", "verified_maintenance")
    assert by_table[PERSON].operations == ("Append", "ReserveFragments", "Rewrite")
    assert (by_table[PERSON].rows_published, by_table[PERSON].rows_head) == (2, 3)
    assert "--force" in by_table[PERSON].advice
    assert by_table[PERSON].folder in by_table[PERSON].advice

    report = graph.repair(confirm=True)
    assert report.repaired == (CITY,)
    assert (graph.snapshot().pin(PERSON), graph.snapshot().pin(CITY)) == (3, 5)
    assert names(graph) == {"a", "b", "x", "y"}

    report = graph.repair(confirm=True, force=True)
    assert report.repaired == (PERSON,)
    assert [c.id for c in graph.commits(actor="omnigraph:repair:force")] == [report.commit]
    assert graph.count(PERSON) == 3
    assert heads_are_published(graph)


def test_several_tables_are_published_at_once(graph: Graph) -> None:
    append_past_the_manifest(graph, PERSON, "ghost")
    append_past_the_manifest(graph, CITY, "ghost town")
    before = graph.snapshot().version
    report = graph.repair(confirm=True, force=True)
    assert report.repaired == (CITY, PERSON)
    assert (report.manifest_version, graph.snapshot().version) == (before + 1, before + 1)
    assert len(graph.commits(actor="omnigraph:repair:force")) == 1


@pytest.mark.parametrize("change", ["delete", "update", "index", "config", "restore", "columns"])
def test_anything_but_compaction_is_suspicious(graph: Graph, change: str) -> None:
    head = dataset(graph, PERSON)
    match change:
        case "delete":
            head.delete("id = 'nobody'")
        case "update":
            head.update({"age": "2"})
        case "index":
            head.create_scalar_index("age", "BTREE")
        case "config":
            head.update_config({"a": "b"})
        case "restore":
            head.checkout_version(2).restore()
        case "columns":
            head.add_columns({"extra": "age + 1"})
    (drift,) = graph.repair().drifts
    assert drift.verdict is Verdict.SUSPICIOUS


def test_a_transaction_that_cannot_be_read_is_unverifiable(graph: Graph) -> None:
    compact_past_the_manifest(graph, PERSON)
    folder = Path(graph.uri) / pins(Path(graph.uri))[PERSON].location
    rewrite = max((folder / "_transactions").glob("3-*.txn"), key=lambda file: file.stat().st_size)
    rewrite.unlink()
    (drift,) = graph.repair().drifts
    assert (drift.verdict, drift.operations) == ("unverifiable", ("ReserveFragments", "unreadable"))
    assert "cannot be read" in drift.advice
    assert graph.repair(confirm=True).repaired == ()
    assert graph.repair(confirm=True, force=True).repaired == (PERSON,)


def test_a_table_behind_its_published_version_is_explained(graph: Graph) -> None:
    folder = Path(graph.uri) / pins(Path(graph.uri))[PERSON].location
    for file in (folder / "_versions").glob("*.manifest"):
        if int(file.stem) == 2**64 - 1 - 3:
            file.unlink()
    (folder / "_versions" / "latest_version_hint.json").unlink()
    with pytest.raises(DamagedError, match=r"'node:Person' shows version 3.* ends at 2.*backup"):
        graph.repair()


@pytest.mark.parametrize("confirm", [False, True])
def test_a_pending_write_refuses_a_repair(graph: Graph, confirm: bool) -> None:
    compact_past_the_manifest(graph, PERSON)
    operation = "01J0000000000000000000000A"
    body = {
        "schema_version": 2, "operation_id": operation, "started_at": "1750000000000000", "branch": "elsewhere",
        "actor_id": None, "writer_kind": "Load",
        "tables": [{"table_key": CITY, "table_path": "/g/nodes/c", "expected_version": 1, "post_commit_pin": 2}],
    }  # laid out as a table  # fmt: skip
    graph.store.objects.put(f"__recovery/{operation}.json", json.dumps(body).encode())
    with pytest.raises(RecoveryRequiredError, match=operation):
        graph.repair(confirm=confirm, force=confirm)
    lease = json.dumps({"owner": "x", "expires_at": time.time() + TERM}).encode()
    graph.store.objects.put(lease_path(operation), lease)
    with pytest.raises(WriterBusyError, match=rf"{operation}.* counts as dead from 20\d\d-"):
        graph.repair(confirm=confirm, force=confirm)
    assert graph.snapshot().pin(PERSON) == 3


def test_a_schema_change_refuses_a_repair(graph: Graph) -> None:
    graph.store.manifest(None).create_branch("__schema_apply_lock__", None)
    with pytest.raises(ConflictError, match="schema change"):
        graph.repair()


def test_a_write_that_lands_while_tables_are_looked_at_is_no_drift(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = repair_room._drifts
    times: list[int] = []

    def overtaken(*args: Any) -> object:
        times.append(1)
        if len(times) == 1:
            Graph.open(graph.uri).load([person("c")], options=PLAIN)  # after the snapshot, before HEADs are read
        return real(*args)

    monkeypatch.setattr(repair_room, "_drifts", overtaken)
    assert graph.repair(confirm=True, force=True).drifts == ()
    assert len(times) == 2


def test_a_graph_that_never_rests_is_given_up(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    real = repair_room._drifts

    def overtaken(*args: Any) -> object:
        Graph.open(graph.uri).load([person("c")], "merge", options=PLAIN)
        return real(*args)

    monkeypatch.setattr(repair_room, "_drifts", overtaken)
    with pytest.raises(ConflictError, match="kept changing"):
        graph.repair()


def test_a_version_that_comes_after_the_look_is_not_published(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    compact_past_the_manifest(graph, PERSON)

    def later(*args: Any) -> object:
        append_past_the_manifest(graph, PERSON, "ghost")
        return publish(*args)

    monkeypatch.setattr(repair_room, "publish", later)
    assert graph.repair(confirm=True).repaired == (PERSON,)
    assert (graph.snapshot().pin(PERSON), graph.count(PERSON)) == (5, 2)
    (drift,) = graph.repair().drifts
    assert (drift.published, drift.head, drift.verdict) == (5, 6, "suspicious")


def test_two_repairs_publish_once(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    compact_past_the_manifest(graph, PERSON)

    def overtaken(*args: Any) -> object:
        monkeypatch.setattr(repair_room, "publish", publish)
        assert Graph.open(graph.uri).repair(confirm=True).repaired == (PERSON,)
        return publish(*args)

    monkeypatch.setattr(repair_room, "publish", overtaken)
    with pytest.raises(ExpectedVersionMismatch):
        graph.repair(confirm=True)
    assert len(graph.commits(actor="omnigraph:repair")) == 1


def test_steps_of_a_stopped_recovery_are_taken_back_not_published(graph: Graph) -> None:
    """HEAD has older content under our own fence: publishing it, even by force, would lose rows."""
    table = dataset(graph, PERSON)
    properties = {FENCE_KEY: "t", "omnigraph:content": "2"}
    restore = lance.Transaction(table.version, lance.LanceOperation.Restore(2), transaction_properties=properties)
    lance.LanceDataset.commit(table, restore, max_retries=0)
    assert dataset(graph, PERSON).count_rows() == 1
    (drift,) = graph.repair().drifts
    assert drift.verdict is Verdict.OWN_STEPS
    report = graph.repair(confirm=True, force=True)
    assert (report.repaired, report.commit) == ((PERSON,), None)
    assert (names(graph), heads_are_published(graph)) == ({"a", "b", "x", "y"}, True)


def test_a_branch_is_repaired_by_itself(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.load([person("c")], branch="draft", options=PLAIN)
    append_past_the_manifest(graph, PERSON, "ghost", "draft")
    append_past_the_manifest(graph, CITY, "ghost town")
    assert [d.table_key for d in graph.repair().drifts] == [CITY]
    (drift,) = graph.repair(branch="draft").drifts
    assert drift.folder.endswith("/tree/draft")
    report = graph.repair(branch="draft", confirm=True, force=True)
    assert [c.branch for c in graph.commits(branch="draft", actor="omnigraph:repair:force")] == ["draft"]
    assert (report.repaired, graph.count(PERSON, branch="draft"), graph.count(PERSON)) == ((PERSON,), 4, 2)
    assert [d.table_key for d in graph.repair().drifts] == [CITY]


def test_a_writer_that_meets_drift_is_sent_to_repair(graph: Graph) -> None:
    append_past_the_manifest(graph, PERSON, "ghost")
    with pytest.raises(ConflictError, match=r"'node:Person' is at version 4 but version 3 is published.*Run repair"):
        graph.load([person("c")])
    graph.repair(confirm=True, force=True)
    graph.load([person("c")])
    assert graph.count(PERSON) == 4


def test_a_repair_whose_commit_row_fails_stands_with_a_warning(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    compact_past_the_manifest(graph, PERSON)

    def full(*_: object) -> None:
        raise StorageError("storage: disk full")

    monkeypatch.setattr(repair_room, "append_commit", full)
    report = graph.repair(confirm=True)
    assert (report.repaired, graph.snapshot().pin(PERSON)) == ((PERSON,), 5)
    assert "disk full" in report.warnings[0]


def test_a_read_only_handle_may_look_but_not_repair(graph: Graph) -> None:
    compact_past_the_manifest(graph, PERSON)
    reader = Graph.open(graph.uri, mode="r")
    assert len(reader.repair().drifts) == 1
    with pytest.raises(BadRequestError, match="read-only"):
        reader.repair(confirm=True)


def test_a_crashed_writer_is_not_drift(graph: Graph) -> None:
    with stop_at(CrashPoint.LANDED_FIRST), pytest.raises(Crashed):
        graph.load([person("c"), city("z")], options=PLAIN)
    with pytest.raises((RecoveryRequiredError, WriterBusyError)):
        graph.repair(confirm=True, force=True)
