"""Indexes are derived: which there are, what they cover, and that no answer depends on them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import lance
import pytest

from spark_omnigraph import BadRowsError, Graph, LoadOptions
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.graph.read.describe import StoredIndex
from spark_omnigraph.storage.tables import index as storage_index
from spark_omnigraph.storage.tables.index import (
    FALLEN_BEHIND,
    IndexCoverage,
    IndexSegment,
    Upkeep,
    WantedIndex,
    is_behind,
)
from spark_omnigraph.write.indexes import IndexProgress, IndexStatus, ensure_indices

SCHEMA = """
node Doc {
  slug: String @key
  title: String @index
  size: I32 @index
  kind: enum(a, b) @index
  v: Vector(2)? @index
  note: String?
}
edge Cites: Doc -> Doc
"""
DOC, CITES = TableKey.node("Doc"), TableKey.edge("Cites")
PLAIN = LoadOptions(build_indexes=False)


def doc(number: int, vector: list[float] | None = None) -> str:
    data = {"slug": f"d{number}", "title": f"word{number} shared", "size": number, "kind": "ab"[number % 2]}
    return json.dumps({"type": "Doc", "data": data | ({"v": vector} if vector is not None else {})})


def cites(source: int, target: int) -> str:
    return json.dumps({"edge": "Cites", "from": f"d{source}", "to": f"d{target}"})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load([*(doc(i) for i in range(10)), cites(0, 1)], options=PLAIN)
    return graph


def by_column(graph: Graph, table: str = DOC) -> dict[str, IndexStatus]:
    return {s.column: s for s in graph.indexes() if s.table_key == table}


def opened(graph: Graph, table: str = DOC) -> lance.LanceDataset:
    return graph.store.open_table(graph.snapshot().entries[table])


def test_the_kind_of_an_index_follows_the_type_of_its_column(graph: Graph) -> None:
    kinds = {s.column: s.kind for s in graph.indexes() if s.table_key == DOC}
    assert kinds == {
        "id": "BTREE", "slug": "INVERTED", "title": "INVERTED", "size": "BTREE", "kind": "BTREE", "v": "IVF_FLAT",
    }  # laid out as a table  # fmt: skip
    assert {s.column: s.kind for s in graph.indexes() if s.table_key == CITES} == dict.fromkeys(
        ("id", "src", "dst"), "BTREE"
    )


def test_missing_indexes_are_built_and_an_empty_vector_column_waits(graph: Graph) -> None:
    assert {s.progress for s in graph.indexes()} == {IndexProgress.MISSING, IndexProgress.DEFERRED}
    before, commits = graph.snapshot(), len(graph.commits())
    built = graph.ensure_indices()
    wanted = {CITES: ("id", "src", "dst"), DOC: ("id", "slug", "title", "size", "kind")}
    assert sorted(built) == sorted(f"{table}.{column}" for table, columns in wanted.items() for column in columns)
    found = by_column(graph)
    assert found["v"] == IndexStatus(DOC, "v", "IVF_FLAT", None, 0, 10, IndexProgress.DEFERRED)
    assert found["id"] == IndexStatus(DOC, "id", "BTREE", "id_idx", 10, 10, IndexProgress.COMPLETE)
    assert graph.snapshot().version == before.version + 1, "one publish for all tables"
    assert {k: graph.snapshot().pin(k) for k in (DOC, CITES)} == {k: before.pin(k) + 1 for k in (DOC, CITES)}
    assert len(graph.commits()) == commits, "maintenance is no commit"
    assert graph.ensure_indices() == []
    assert graph.store.objects.list("__recovery") == ["x_published~main"]


def test_new_rows_are_added_to_indexes_that_are_there(graph: Graph) -> None:
    graph.ensure_indices()
    graph.load([doc(10, [1.0, 2.0]), doc(3)], "merge", options=PLAIN)
    assert {column: (s.rows, s.total, s.progress) for column, s in by_column(graph).items()} == {
        **dict.fromkeys(("id", "slug", "title", "size", "kind"), (9, 11, IndexProgress.PARTIAL)),
        "v": (0, 11, IndexProgress.MISSING),
    }
    assert sorted(graph.ensure_indices()) == [f"{DOC}.{c}" for c in ("id", "kind", "size", "slug", "title", "v")]
    assert {(s.progress, s.total) for s in by_column(graph).values()} == {(IndexProgress.COMPLETE, 11)}
    plan = opened(graph).scanner(filter="id = 'd10'").explain_plan()
    assert "ScalarIndexQuery" in plan


def test_no_answer_depends_on_coverage(graph: Graph) -> None:
    def answers() -> list[object]:
        table = opened(graph)
        text = {"columns": ["title"], "query": "word11"}
        near = {"column": "v", "q": [11.0, 0.0], "k": 1}
        return [
            sorted(table.to_table(filter="size >= 9", columns=["id"])["id"].to_pylist()),
            table.to_table(filter="id = 'd11'").num_rows,
            table.scanner(full_text_query=text, columns=["id", "_score"]).to_table()["id"].to_pylist(),
            table.to_table(nearest=near, columns=["id", "_distance"])["id"].to_pylist(),
        ]

    graph.load([doc(10, [10.0, 0.0])], options=PLAIN)
    graph.ensure_indices()
    graph.load([doc(11, [11.0, 0.0])], options=PLAIN)
    expected = [["d10", "d11", "d9"], 1, ["d11"], ["d11"]]
    assert answers() == expected
    graph.ensure_indices()
    assert answers() == expected


def test_an_index_of_many_segments_becomes_one(graph: Graph) -> None:
    found = []
    for number in range(10, 15):
        graph.load([doc(number, [float(number), 0.0])], options=PLAIN)
        ensure_indices(graph.store, None, upkeep=Upkeep(3))
        found.append({i.name: len(i.segments) for i in storage_index.coverage(opened(graph))}["id_idx"])
    assert found == [1, 2, 3, 1, 2]
    assert {s.progress for s in by_column(graph).values()} == {IndexProgress.COMPLETE}
    assert opened(graph).to_table(filter="id IN ('d0', 'd10', 'd14')").num_rows == 3
    assert opened(graph).to_table(nearest={"column": "v", "q": [14.0, 0.0], "k": 9}).num_rows == 5


def test_an_index_of_another_kind_under_the_same_name_gives_way(graph: Graph) -> None:
    dataset = lance.dataset(opened(graph).uri)
    dataset.create_scalar_index("size", "BITMAP")
    graph.repair(confirm=True, force=True)
    assert by_column(graph)["size"].progress is IndexProgress.MISSING
    assert f"{DOC}.size" in graph.ensure_indices()
    kinds = {i.name: i.kind for i in storage_index.coverage(opened(graph))}
    assert kinds["size_idx"] == "BTree"


def test_a_branch_indexes_the_tables_that_it_owns(graph: Graph) -> None:
    graph.create_branch("draft")
    assert graph.ensure_indices(branch="draft") == []
    graph.load([doc(20)], branch="draft", options=PLAIN)
    assert f"{DOC}.id" in graph.ensure_indices(branch="draft")
    assert by_column(graph)["id"].progress is IndexProgress.MISSING, "main is as it was"


def test_describe_tells_the_coverage(graph: Graph) -> None:
    graph.ensure_indices()
    graph.load([doc(10)], options=PLAIN)
    table = graph.describe().nodes["Doc"].table
    assert table is not None
    assert table.indexes["size_idx"] == StoredIndex(("size",), "BTree", 10, 11)
    assert table.indexes_pending == {"v": IndexProgress.DEFERRED}


def test_a_load_extends_indexes_of_ids_that_small_loads_left_behind(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_index, "FALLEN_BEHIND", 3)
    for number in range(10, 13):
        graph.load([doc(number)])
    assert [by_column(graph)[name].rows for name in ("id", "title")] == [11, 11]
    graph.load([doc(13)])
    found = by_column(graph)
    assert (found["id"].rows, found["id"].progress, found["title"].rows) == (14, IndexProgress.COMPLETE, 11)
    before = opened(graph).version
    graph.load([doc(14)])
    assert (by_column(graph)["id"].rows, opened(graph).version) == (14, before + 1)
    with pytest.raises(BadRowsError, match="'d12' exists"):
        graph.load([doc(12)])


@pytest.mark.parametrize(
    ("segments", "covered", "total", "behind"),
    [
        (1, 10, 74, True),
        (1, 10, 1_000_010, True),
        (1, 10, 1_000_011, False),
        (8, 10, 74, True),
        (8, 10, 1_000_001, False),
    ],
)
def test_what_a_write_makes_up_for_is_bounded(segments: int, covered: int, total: int, behind: bool) -> None:
    parts = tuple(IndexSegment(f"u{number}", frozenset({number}), 1, 1) for number in range(segments))
    missed = tuple(range(100, 100 + FALLEN_BEHIND))
    found = IndexCoverage("id_idx", ("id",), "BTree", covered, parts, missed)
    assert is_behind(WantedIndex("id", "BTREE"), [found], total) is behind
    assert not is_behind(WantedIndex("id", "BTREE"), [replace(found, uncovered=missed[1:])], total)
    assert not is_behind(WantedIndex("title", "INVERTED"), [replace(found, columns=("title",), kind="Inverted")], total)
    assert not is_behind(WantedIndex("src", "BTREE"), [found], total)
