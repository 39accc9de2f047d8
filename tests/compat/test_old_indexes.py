"""Two engines keep up the indexes of one graph in turns: ours, and the Lance of the reference engine (7.0.0)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.storage.tables.index import coverage
from tests.compat.test_old_lance import old_python, under_old_lance
from tests.format.sample import node
from tests.support.cases import Json

__all__ = ["old_python"]

SCHEMA = """
node Doc { slug: String @key  title: String @index  size: I32 @index  kind: enum(a, b) @index  v: Vector(2)? @index }
"""
KINDS = {"id": "BTREE", "size": "BTREE", "kind": "BTREE", "slug": "INVERTED", "title": "INVERTED", "v": "IVF_FLAT"}
PLAIN = LoadOptions(build_indexes=False)
DOC = "node:Doc"
QUESTIONS = (
    "query q() { match { $d: Doc { size: 3 } } return { $d.slug } }",
    "query q() { match { $d: Doc { size: 5000 } } return { $d.slug } }",
    'query q() { match { $d: Doc { kind: "b" } } return { $d.slug } order { $d.size desc } limit 2 }',
    'query q() { match { $d: Doc { slug: "d3" } } return { $d.slug, $d.size } }',
    'query q() { match { $d: Doc search($d.title, "walking3") } return { $d.slug } }',
    'query q() { match { $d: Doc search($d.title, "anew") } return { $d.slug } }',
    "query q() { match { $d: Doc } return { $d.slug } order { nearest($d.v, [4.2, 1.0]) } limit 3 }",
)


def row(number: int, **changed: Json) -> dict[str, Json]:
    data = {"slug": f"d{number}", "title": f"walking{number} shared", "size": number, "kind": "ab"[number % 2]}
    return {**data, "v": [float(number), 1.0], **changed}


def doc(number: int, **changed: Json) -> str:
    return node("Doc", **row(number, **changed))


Old = Callable[..., list[dict[str, Json]]]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load([doc(i) for i in range(40)], options=PLAIN)
    return graph


@pytest.fixture
def old(graph: Graph, old_python: Path) -> Old:
    """Steps of the other engine on the table; what it commits is published as the way out says."""

    def steps(*asked: dict[str, Json]) -> list[dict[str, Json]]:
        path = graph.store.table_uri(graph.snapshot().entries[DOC].location, None)
        answered = under_old_lance(old_python, *({**step, "path": path} for step in asked))
        graph.repair(confirm=True, force=True)
        return answered

    return steps


def answers(graph: Graph) -> list[object]:
    return [graph.query(question).to_pylist() for question in QUESTIONS]


def changed(graph: Graph) -> list[object]:
    """Loads rows and updates, without indexes; what the graph answers then, judged without any index."""
    report = graph.load([doc(3, title="told anew", size=5000), doc(100), doc(101)], "merge", options=PLAIN)
    assert report.warnings == ()
    expected = [
        [],
        [{"d.slug": "d3"}],
        [{"d.slug": "d3"}, {"d.slug": "d101"}],
        [{"d.slug": "d3", "d.size": 5000}],
        [],
        [{"d.slug": "d3"}],
        [{"d.slug": f"d{n}"} for n in (4, 5, 3)],
    ]
    assert answers(graph) == expected
    return expected


def assert_whole(graph: Graph) -> None:
    found = {i.columns[0]: i for i in coverage(graph.store.open_table(graph.snapshot().entries[DOC]))}
    assert {column: index.kind.upper() for column, index in found.items()} == KINDS
    assert {(len(i.segments), i.uncovered) for i in found.values()} == {(1, ())}
    assert graph.ensure_indices() == []


def test_indexes_that_old_lance_built_are_kept_up(graph: Graph, old: Old) -> None:
    old({"do": "index", "columns": KINDS})
    expected = changed(graph)
    built = graph.ensure_indices()
    assert (set(built), built.warnings) == ({f"{DOC}.{column}" for column in KINDS}, ())
    assert answers(graph) == expected
    assert graph.optimize().tables[DOC].files_after == 1
    assert answers(graph) == expected
    assert_whole(graph)


def test_complete_indexes_of_old_lance_outlive_a_compaction(graph: Graph, old: Old) -> None:
    expected = changed(graph)
    old({"do": "index", "columns": KINDS})
    assert answers(graph) == expected
    report = graph.optimize()
    assert (report.tables[DOC].files_after, report.indexes, report.warnings) == (1, (), ())
    assert answers(graph) == expected
    graph.load([doc(3, title="told anew", size=5000), doc(102)], "merge")
    assert answers(graph) == expected
    graph.optimize()
    assert_whole(graph)
    assert answers(graph) == expected


def test_indexes_that_were_built_in_turns_are_kept_up(graph: Graph, old: Old) -> None:
    """Ours, extended and compacted by the other engine, which rebuilds what it does not know; then ours again."""
    graph.ensure_indices()
    fresh = {**row(200), "id": "d200"}
    moved = old({"do": "append", "rows": [fresh]}, {"do": "optimize_indices"})[1]
    missing = {column: kind for column, kind in KINDS.items() if f"{column}_idx" not in moved["indexes"]}
    old({"do": "index", "columns": missing})
    expected = changed(graph)
    graph.ensure_indices()
    assert answers(graph) == expected
    searched, _ = old({"do": "search", "column": "title", "text": "anew"}, {"do": "compact"})
    assert searched["rows"] == ["d3"]
    graph.load([doc(98)])
    report = graph.optimize()
    assert (report.tables[DOC].files_after, report.warnings) == (1, ())
    assert answers(graph) == expected
    assert_whole(graph)


def test_an_index_of_another_distance_is_built_anew(graph: Graph, old: Old) -> None:
    old({"do": "index", "columns": {"v": "IVF_FLAT"}, "metric": "cosine"})
    expected = changed(graph)
    assert f"{DOC}.v" in graph.ensure_indices()
    assert answers(graph) == expected
    assert_whole(graph)
