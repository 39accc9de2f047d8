"""What a pending write that cannot be recovered bars, and what it does not."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from spark_omnigraph import Graph, PendingWrite, RecoveryRequiredError, WriterKind
from spark_omnigraph.commit.lease import SKEW, lease_path

OPERATION = "01J0000000000000000000000A"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", "node A { k: String @key } node B { k: String @key }")
    graph.load([record("A", "1"), record("B", "1")])
    return graph


def record(kind: str, key: str) -> str:
    return json.dumps({"type": kind, "data": {"k": key}})


def leave(graph: Graph, content: object) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    graph.store.objects.put(f"__recovery/{OPERATION}.json", text.encode())


def schema_change(graph: Graph) -> dict[str, object]:
    entry = graph.snapshot().entries["node:A"]
    return {
        "schema_version": 2, "operation_id": OPERATION, "started_at": "1750000000000000", "branch": None,
        "actor_id": None, "writer_kind": "SchemaApply",
        "tables": [{
            "table_key": "node:A", "table_path": f"{graph.uri}/{entry.location}",
            "expected_version": entry.version, "post_commit_pin": entry.version + 1,
        }],
        "tombstones": [{"table_key": "node:Z", "tombstone_version": 4}],
    }  # laid out as a table  # fmt: skip


def test_pending_writes_are_read_by_field_and_as_dictionaries(graph: Graph) -> None:
    leave(graph, {**schema_change(graph), "writer_kind": "Vacuum", "branch": "draft"})
    (gone,) = graph.interrupted()
    assert gone == PendingWrite(OPERATION, "Vacuum", "draft", ("node:A", "node:Z"))
    plain = {"operation": OPERATION, "writer": "Vacuum", "branch": "draft", "tables": ["node:A", "node:Z"]}
    assert (dict(gone), gone["tables"], "alive_until" in gone) == (plain, ["node:A", "node:Z"], False)
    leave(graph, schema_change(graph))
    lease = json.dumps({"owner": "elsewhere:1", "expires_at": 4102444800 - SKEW}).encode()
    graph.store.objects.put(lease_path(OPERATION), lease)
    (alive,) = graph.running()
    assert (alive.writer, alive.branch) == (WriterKind.SCHEMA_APPLY, "main")
    assert alive.alive_until == datetime(2100, 1, 1, tzinfo=timezone.utc)
    assert json.dumps({**alive}) == (
        f'{{"operation": "{OPERATION}", "writer": "SchemaApply", "branch": "main", "tables": ["node:A", "node:Z"], '
        '"alive_until": "2100-01-01T00:00:00.000Z"}'
    )


def assert_readable(graph: Graph) -> None:
    reader = Graph.open(graph.uri, mode="r")
    assert (reader.count("node:A"), len(list(reader.export()))) == (1, reader.count("node:A") + reader.count("node:B"))
    assert reader.entity("node:A", "1") == {"id": "1", "k": "1"}
    assert reader.commits()[0].id == graph.commits()[0].id
    assert reader.describe().manifest_version == graph.snapshot().version


def test_a_schema_change_bars_writers_of_its_tables_and_no_reader(graph: Graph) -> None:
    leave(graph, schema_change(graph))
    assert_readable(graph)
    graph.load([record("B", "2")])
    assert graph.count("node:B") == 2
    with pytest.raises(RecoveryRequiredError, match="interrupted SchemaApply"):
        graph.load([record("A", "2")])
    (undone,) = Graph.open(graph.uri).recovered
    assert undone.kind.value == "RolledBack"
    assert graph.store.objects.get(f"__recovery/{OPERATION}.json") is None
    assert graph.load([record("A", "2")]).nodes_loaded == {"A": 1}


def test_a_file_that_cannot_be_read_bars_writers_and_no_reader(graph: Graph) -> None:
    leave(graph, "not json")
    assert_readable(graph)
    for attempt in (lambda: Graph.open(graph.uri), lambda: graph.load([record("B", "2")]), graph.recover):
        with pytest.raises(RecoveryRequiredError, match=rf"{OPERATION}\.json cannot be read.*move it out"):
            attempt()
    graph.store.objects.delete(f"__recovery/{OPERATION}.json")
    Graph.open(graph.uri).load([record("B", "2")])
