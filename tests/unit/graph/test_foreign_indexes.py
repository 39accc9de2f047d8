"""Indexes that another engine, release or hand left: upkeep builds them anew, and never fails because of them."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest
from lance import LanceDataset, LanceOperation, Transaction

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.commit.plan import PreparedCommit
from spark_omnigraph.commit.protocol import commit
from spark_omnigraph.errors import StorageError
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables import index as storage_index
from spark_omnigraph.write import staged_files

SCHEMA = """
node Doc { slug: String @key  title: String @index  size: I32 @index  v: Vector(2)? @index }
"""
DOC = "node:Doc"
PLAIN = LoadOptions(build_indexes=False)
COLUMNS = {"id", "slug", "title", "size", "v"}
QUESTIONS = (
    "query q() { match { $d: Doc { size: 3 } } return { $d.slug } }",
    "query q() { match { $d: Doc { size: 5000 } } return { $d.slug } }",
    'query q() { match { $d: Doc { slug: "d3" } } return { $d.slug, $d.size } }',
    'query q() { match { $d: Doc search($d.title, "walking3") } return { $d.slug } }',
    'query q() { match { $d: Doc search($d.title, "anew") } return { $d.slug } }',
    "query q() { match { $d: Doc } return { $d.slug } order { nearest($d.v, [4.2, 1.0]) } limit 3 }",
)
ANSWERS = [
    [],
    [{"d.slug": "d3"}],
    [{"d.slug": "d3", "d.size": 5000}],
    [],
    [{"d.slug": "d3"}],
    [{"d.slug": f"d{n}"} for n in (4, 5, 3)],
]


def doc(number: int, **changed: Any) -> str:
    data = {"slug": f"d{number}", "title": f"walking{number} shared", "size": number, "v": [float(number), 1.0]}
    return json.dumps({"type": "Doc", "data": {**data, **changed}})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load([doc(i) for i in range(8)], options=PLAIN)
    return graph


def opened(graph: Graph) -> LanceDataset:
    return lance.dataset(graph.store.table_uri(graph.snapshot().entries[DOC].location, None))


def indexes(graph: Graph) -> dict[str, storage_index.IndexCoverage]:
    return {index.columns[0]: index for index in storage_index.coverage(opened(graph))}


def answers(graph: Graph) -> list[object]:
    return [graph.query(question).to_pylist() for question in QUESTIONS]


def plant(graph: Graph, column: str, kind: str, **changed: Any) -> None:
    """Commits an index as a program of another kind would, with what its record says changed."""
    dataset = opened(graph)
    built = dataset.create_index_uncommitted(
        column, index_type=kind, name=f"{column}_idx", fragment_ids=[0], replace=True, num_partitions=1
    )
    if kind == "INVERTED":
        built = dataset.merge_existing_index_segments([built])
    planted = LanceOperation.CreateIndex([dataclasses.replace(built, **changed)], [])
    LanceDataset.commit(dataset, Transaction(dataset.version, planted), max_retries=0)


FOREIGN: dict[str, tuple[str, Callable[[Graph], object]]] = {
    "rows named by their ids": ("size", lambda g: plant(g, "size", "BTREE", index_version=0)),
    "keys named by their ids": ("id", lambda g: plant(g, "id", "BTREE", index_version=0)),
    "texts of an older release": ("title", lambda g: plant(g, "title", "INVERTED", index_version=1)),
    "a newer release": ("size", lambda g: plant(g, "size", "BTREE", index_version=99)),
    "a type nobody knows": (
        "size",
        lambda g: plant(g, "size", "BTREE", index_details=("/lance.table.QuantumIndexDetails", b"")),
    ),
    "another kind": ("size", lambda g: opened(g).create_scalar_index("size", "BITMAP")),
    "words told otherwise": ("title", lambda g: opened(g).create_scalar_index("title", "INVERTED", stem=False)),
    "another distance": (
        "v",
        lambda g: opened(g).create_index("v", "IVF_FLAT", num_partitions=1, metric="cosine"),
    ),
    "vectors quantised": (
        "v",
        lambda g: opened(g).create_index("v", "IVF_SQ", num_partitions=1, metric="L2"),
    ),
}


OPTIMIZED_FIRST = ("keys named by their ids", "texts of an older release", "a type nobody knows")
BY_VERB = [*((kind, "ensure_indices") for kind in FOREIGN), *((kind, "optimize") for kind in OPTIMIZED_FIRST)]


@pytest.mark.parametrize(("kind", "verb"), BY_VERB)
def test_a_foreign_index_is_built_anew_in_one_write(graph: Graph, kind: str, verb: str) -> None:
    column, build = FOREIGN[kind]
    build(graph)
    graph.repair(confirm=True, force=True)
    report = graph.load([doc(3, title="changed anew", size=5000), doc(9)], "merge")
    assert report.warnings == ()
    assert answers(graph) == ANSWERS
    before = graph.snapshot().pin(DOC)
    getattr(graph, verb)()
    found = indexes(graph)
    assert found.keys() == COLUMNS
    assert {(len(i.segments), i.uncovered, i.rows) for i in found.values()} == {(1, (), 9)}
    ours = {"id": "BTREE", "slug": "INVERTED", "title": "INVERTED", "size": "BTREE", "v": "IVF_FLAT"}
    assert {name: index.kind.upper() for name, index in found.items()} == ours
    assert storage_index.has_settings(found["title"], storage_index.TEXT_SETTINGS)
    assert storage_index.has_settings(found["v"], storage_index.VECTOR_SETTINGS)
    assert answers(graph) == ANSWERS
    if verb == "ensure_indices":
        assert graph.snapshot().pin(DOC) == before + (1 if column in _left(kind, column) else 0)
    assert graph.optimize().tables[DOC].files_after == 1, "nothing keeps files apart any more"
    assert graph.ensure_indices() == []
    assert answers(graph) == ANSWERS


def _left(kind: str, column: str) -> set[str]:
    """Columns whose index the load could not make whole: one that Lance does not list is missing to it."""
    return set() if kind in ("a newer release", "a type nobody knows", "another kind") else {column}


@pytest.mark.parametrize(
    ("lost", "verb"), [("the folders", "ensure_indices"), ("one file", "optimize"), ("half a file", "ensure_indices")]
)
def test_an_index_whose_files_are_lost_is_built_anew(graph: Graph, lost: str, verb: str) -> None:
    graph.ensure_indices()
    for folder in Path(opened(graph).uri, "_indices").iterdir():
        largest = max(filter(Path.is_file, folder.iterdir()), key=lambda file: file.stat().st_size)
        if lost == "the folders":
            shutil.rmtree(folder)
        elif lost == "one file":
            largest.unlink()
        else:
            largest.write_bytes(largest.read_bytes()[: largest.stat().st_size // 2])
    before = {index.segments[0].uuid for index in indexes(graph).values()}
    getattr(graph, verb)()
    assert not before & {index.segments[0].uuid for index in indexes(graph).values()}
    graph.load([doc(3, title="changed anew", size=5000), doc(9)], "merge", options=PLAIN)
    assert answers(graph) == ANSWERS


def test_a_fork_knows_the_index_files_that_it_shares(graph: Graph) -> None:
    graph.ensure_indices()
    graph.create_branch("draft")
    graph.load([doc(9)], branch="draft", options=PLAIN)
    built = graph.ensure_indices(branch="draft")
    assert len(built) == len(COLUMNS)
    dataset = graph.store.open_table(graph.snapshot(branch="draft").entries[DOC])
    assert {len(index.segments) for index in storage_index.coverage(dataset)} == {2}, "extended, not lost"
    assert graph.ensure_indices(branch="draft") == []
    shutil.rmtree(Path(opened(graph).uri, "_indices"))
    assert len(graph.ensure_indices(branch="draft")) == len(COLUMNS)


def test_an_index_that_cannot_be_built_holds_up_no_other(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    real = storage_index._segment

    def refuse(dataset: LanceDataset, want: storage_index.WantedIndex, *rest: Any) -> object:
        if want.column == "title":
            raise OSError("refused by the test")
        return real(dataset, want, *rest)

    monkeypatch.setattr(storage_index, "_segment", refuse)
    report = graph.load([doc(9)])
    assert [w for w in report.warnings if "node:Doc.title" in w and "refused by the test" in w and "run index" in w]
    assert indexes(graph).keys() == COLUMNS - {"title"}
    built = graph.ensure_indices()
    assert (built, len(built.warnings)) == ([], 1)
    optimized = graph.optimize()
    assert (optimized.tables[DOC].files_after, len(optimized.warnings)) == (1, 1)
    monkeypatch.undo()
    assert graph.ensure_indices() == [f"{DOC}.title"]


def test_what_lance_refuses_in_one_write_is_built_one_by_one(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(store: GraphStore, prepared: PreparedCommit) -> object:
        segments = [s for write in prepared.writes for s in write.change.segments]
        if any(segment.name == "size_idx" for segment in segments):
            raise StorageError("storage: refused by the test")
        return commit(store, prepared)

    monkeypatch.setattr(staged_files, "commit", refuse)
    built = graph.ensure_indices()
    assert sorted(built) == sorted(f"{DOC}.{column}" for column in COLUMNS - {"size"})
    assert [w for w in built.warnings if "'node:Doc.size'" in w]
    assert graph.snapshot().pin(DOC) == opened(graph).version


def test_the_settings_that_are_asked_for_are_those_of_our_indexes(graph: Graph) -> None:
    graph.ensure_indices()
    found = indexes(graph)
    assert storage_index.TEXT_SETTINGS.items() <= found["title"].settings.items()
    assert storage_index.VECTOR_SETTINGS.items() <= found["v"].settings.items()
