"""Types pinned to a snapshot, and the lists that a graph keeps of itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.commit.contract import read_catalog
from spark_omnigraph.errors import NotFoundError
from spark_omnigraph.graph.read.history import ReadTarget, resolve
from spark_omnigraph.graph.read.scan import branches_table, commits_table, recoveries_table, tables_table, type_at
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.storage.graph_store import GraphStore
from tests.spark.graphs import SCHEMA, branched_graph


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> GraphStore:
    return branched_graph(tmp_path_factory.mktemp("graphs") / "g")[0]


def test_a_type_is_pinned_to_its_own_branch_and_version(store: GraphStore) -> None:
    catalog = read_catalog(store)
    snapshot = resolve(store, ReadTarget("dev/one"))
    links = type_at(store, catalog, snapshot, "edge:Link")
    assert links.table.uri.endswith("/tree/dev/one")
    assert (links.rows, links.columns) == (5, ("id", "src", "dst", "since"))
    things = type_at(store, catalog, snapshot, "node:Thing")
    assert "/tree/" not in things.table.uri
    assert (things.rows, things.table.version) == (6, 2)


def test_properties_that_a_version_does_not_store_are_left_out(store: GraphStore) -> None:
    newer = compile_schema(SCHEMA.replace("since: Date?", "since: Date?\n  until: Date?"))
    links = type_at(store, newer, resolve(store, ReadTarget()), "edge:Link")
    assert links.columns == ("id", "src", "dst", "since")


def test_types_that_are_not_there(store: GraphStore) -> None:
    snapshot = resolve(store, ReadTarget())
    with pytest.raises(NotFoundError, match=r"'Lnk' is not in the schema; did you mean 'Link'\?"):
        type_at(store, read_catalog(store), snapshot, "edge:Lnk")
    newer = compile_schema(f"{SCHEMA}\nnode Other {{ a: String? }}")
    with pytest.raises(NotFoundError, match="node type 'Other' does not exist at manifest version 5"):
        type_at(store, newer, snapshot, "node:Other")


def test_commits_are_those_a_branch_sees(store: GraphStore) -> None:
    assert commits_table(store, None).column("branch").to_pylist() == ["main"] * 3
    rows = commits_table(store, "dev/one").to_pylist()
    assert [(r["branch"], r["manifest_version"], r["actor"]) for r in rows] == [
        ("dev/one", 6, "dev"),
        ("main", 5, "a"),
        ("main", 4, "a"),
        ("main", 3, None),
    ]
    with pytest.raises(NotFoundError, match="branch 'nope' not found"):
        commits_table(store, "nope")


def test_branches_name_their_heads(store: GraphStore) -> None:
    heads = {r["branch"]: r for r in branches_table(store).to_pylist()}
    assert list(heads) == ["main", "dev/one"]
    assert heads["dev/one"] == {
        "branch": "dev/one",
        "parent": "main",
        "manifest_version": 6,
        "head": commits_table(store, "dev/one").column("commit").to_pylist()[0],
        "own_tables": ["edge:Link"],
        "ahead": 1,
        "behind": 0,
        "merged_into": [],
    }
    assert heads["main"]["parent"] is None


def test_tables_list_nodes_first(store: GraphStore) -> None:
    rows = tables_table(store, resolve(store, ReadTarget("dev/one"))).to_pylist()
    assert [(r["table"], r["kind"], r["type"], r["rows"], r["table_branch"]) for r in rows] == [
        ("node:Empty", "node", "Empty", 0, "main"),
        ("node:Thing", "node", "Thing", 6, "main"),
        ("edge:Link", "edge", "Link", 5, "dev/one"),
    ]


def test_indexes_are_complete_when_they_cover_every_row(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node A { k: String @key  n: I32? @index }  node B { k: String @key }")

    def coverage(version: int | None = None) -> dict[str, tuple[object, ...]]:
        rows = tables_table(graph.store, graph.snapshot(version=version)).to_pylist()
        assert all(r["bytes"] > 0 for r in rows if r["fragments"])
        return {r["type"]: (r["rows"], r["fragments"], r["indexes"], r["indexes_complete"]) for r in rows}

    graph.load(['{"type": "A", "data": {"k": "x", "n": 1}}'])
    indexed = graph.snapshot().version
    assert coverage() == {"A": (1, 1, 3, 3), "B": (0, 0, 2, 2)}
    graph.load(['{"type": "A", "data": {"k": "y", "n": 2}}'], options=LoadOptions(build_indexes=False))
    assert coverage() == {"A": (2, 2, 3, 0), "B": (0, 0, 2, 2)}
    assert coverage(indexed)["A"] == (1, 1, 3, 3)
    graph.ensure_indices()
    assert coverage()["A"] == (2, 2, 3, 3)


def test_a_recovery_is_a_row(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node A { k: String @key }")
    assert recoveries_table(graph.store).num_rows == 0
    entry = graph.snapshot().entries["node:A"]
    table = {"table_key": "node:A", "table_path": f"{graph.uri}/{entry.location}"}
    pins = {"expected_version": entry.version, "post_commit_pin": entry.version + 1}
    operation = "01J0000000000000000000000A"
    sidecar = {
        "schema_version": 2, "operation_id": operation, "started_at": "1750000000000000", "branch": None,
        "actor_id": "eve", "writer_kind": "Load", "tables": [{**table, **pins}],
    }  # laid out as a table  # fmt: skip
    graph.store.objects.put(f"__recovery/{operation}.json", json.dumps(sidecar).encode())
    Graph.open(graph.uri)
    (row,) = recoveries_table(graph.store).to_pylist()
    assert (row["for_actor"], row["operation"], row["writer"]) == ("eve", operation, "Load")
    assert row["kind"] == "RolledBack"
    assert json.loads(row["outcomes"]) == [], "no table had moved"


def test_a_graph_is_found_by_its_schema_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        GraphStore.open(str(tmp_path))
