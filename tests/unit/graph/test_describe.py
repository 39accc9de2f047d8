"""What `describe` tells, by field and as the JSON that its verb prints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.graph.read.describe import StoredIndex, TableUpkeep, describe_graph
from spark_omnigraph.write.indexes import IndexProgress

SCHEMA = """
node Film { name: String @key  year: I32? @index  code: String? @unique  v: Vector(2)? @index }
node Person { name: String }
edge Directed: Person -> Film @card(0..1) { since: Date? }
"""
FILM = (
    '{"key": ["name"], "properties": {"code": "String?", "name": "String", "v": "Vector(2)?", "year": "I32?"}, '
    '"unique": [["code"]], "index": [["v"], ["year"]], '
    '"rows": 1, "version": 3, "table_branch": "main", "path": "nodes/d1f81a84eeb7c29b", '
    '"indexes": {"id_idx": {"columns": ["id"], "kind": "BTree", "rows": 1, "total": 1}, '
    '"name_idx": {"columns": ["name"], "kind": "Inverted", "rows": 1, "total": 1}, '
    '"year_idx": {"columns": ["year"], "kind": "BTree", "rows": 1, "total": 1}}, "indexes_pending": {"v": "deferred"}, '
    '"upkeep": {"files": 1, "files_after": 1, "masked_rows": 0, "unindexed_rows": 0, "pays": false}}'
)
EMPTY = '"version": 1, "table_branch": "main", "path": "%s", "indexes": {}, "indexes_pending": {}, ' + (
    '"upkeep": {"files": 0, "files_after": 0, "masked_rows": 0, "unindexed_rows": 0, "pays": false}}'
)
PERSON = '{"key": null, "properties": {"name": "String"}, "rows": 0, ' + EMPTY % "nodes/40d76f1f51639ec0"
DIRECTED = (
    '{"from": "Person", "to": "Film", "cardinality": "0..1", "properties": {"since": "Date?"}, "rows": 0, '
    + EMPTY % "edges/95ec0272b3336a0d"
)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load([json.dumps({"type": "Film", "data": {"name": "Ran", "year": 1985}})])
    return graph


def test_the_json_form(graph: Graph) -> None:
    assert json.dumps(graph.describe().to_dict()) == (
        f'{{"graph": "{graph.uri}", "branch": "main", "manifest_version": 5, '
        f'"schema_hash": "{graph.catalog().ir_hash}", "branches": ["main"], '
        f'"nodes": {{"Film": {FILM}, "Person": {PERSON}}}, "edges": {{"Directed": {DIRECTED}}}}}'
    )


def test_facts_by_field_and_by_name(graph: Graph) -> None:
    found = graph.describe()
    film, edge = found.nodes["Film"], found.edges["Directed"]
    assert (found.branch, found.branches, film.key, film.unique) == ("main", ("main",), ("name",), (("code",),))
    assert (edge.from_type, edge.to_type, edge.cardinality, edge.key) == ("Person", "Film", "0..1", None)
    assert film.table is not None
    assert (film.table.rows, film.table.branch) == (1, "main")
    assert film.table.indexes["year_idx"] == StoredIndex(("year",), "BTree", 1, 1)
    assert film.table.indexes_pending == {"v": IndexProgress.DEFERRED}
    assert dict(found) == found.to_dict()


def test_upkeep_pays_when_files_are_many_or_rows_masked(graph: Graph) -> None:
    def worn() -> TableUpkeep:
        table = graph.describe().nodes["Person"].table
        assert table is not None
        return table.upkeep

    plain = LoadOptions(build_indexes=False)
    for number in range(16):
        graph.load([json.dumps({"type": "Person", "data": {"id": f"p{number}", "name": "x"}})], options=plain)
    assert worn() == TableUpkeep(16, 1, 0, 0, False)
    graph.load([json.dumps({"type": "Person", "data": {"id": "p16", "name": "x"}})], options=plain)
    assert worn() == TableUpkeep(17, 1, 0, 0, True)
    graph.optimize()
    assert worn() == TableUpkeep(1, 1, 0, 0, False)
    graph.delete("node:Person", ["p1", "p2"])
    assert worn() == TableUpkeep(1, 1, 2, 0, True)


def test_facts_are_those_of_the_json_form(graph: Graph) -> None:
    found = graph.describe()
    assert (found["nodes"], "warnings" in found) == (found.to_dict()["nodes"], False)


def test_a_state_before_there_was_a_table(graph: Graph) -> None:
    before = replace(graph.snapshot(), entries={})
    found = describe_graph(graph.store, graph.catalog(), before, ("old",))
    assert (found.nodes["Film"].table, found["warnings"]) == (None, ["old"])
    assert found.nodes["Person"].to_dict() == {"key": None, "properties": {"name": "String"}}
