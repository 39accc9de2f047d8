"""A read that is under way while a graph or a branch is made anew in its place shows one of the two, or is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import lance
import pytest

from spark_omnigraph import ConflictError, Graph, LoadOptions
from spark_omnigraph.graph.read.query import bound_plan, prepare, query_task
from spark_omnigraph.graph.read.scan import pin
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.rows import ManifestRow
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.scan import TableScan, count_rows, fragment_sizes, read_batches

SCHEMA = "node Film { name: String @key }\nnode Actor { name: String @key }\nedge In: Actor -> Film"
PLAIN = LoadOptions(build_indexes=False)
NAMES = "query q() { match { $a: Actor  $a in $f } return { $a.name as actor, $f.name as film } }"


def lines(name: str) -> list[str]:
    nodes = [json.dumps({"type": t, "data": {"name": f"{t} {name}"}}) for t in ("Film", "Actor")]
    return [*nodes, json.dumps({"edge": "In", "from": f"Actor {name}", "to": f"Film {name}"})]


def make(root: Path, name: str) -> Graph:
    graph = Graph.init(root, SCHEMA, force=True)
    graph.load(lines(name), options=PLAIN)
    return graph


READS: dict[str, Callable[[Graph], object]] = {
    "query": lambda g: g.query(NAMES).to_pylist(),
    "export": lambda g: list(g.export()),
    "entity": lambda g: g.entity("node:Film", "Film new"),
    "describe": lambda g: g.describe().to_dict(),
    "indexes": lambda g: g.indexes(),
    "diff": lambda g: [c.to_dict() for c in g.diff({"version": 3}).changes],
    "snapshot and its tables": lambda g: [g.store.open_table(e).to_table() for e in g.snapshot().entries.values()],
}


@pytest.fixture
def after_snapshot(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Graph, Callable[[], object]], None]]:
    """Has something happen right after a handle has taken its next snapshot of the newest state."""
    real = GraphStore.snapshot_with_rows

    def begin(graph: Graph, work: Callable[[], object]) -> None:
        def snapshot(
            store: GraphStore, branch: Branch, version: int | None = None
        ) -> tuple[Snapshot, list[ManifestRow]]:
            found = real(store, branch, version)
            if store is graph.store and version is None:
                monkeypatch.setattr(GraphStore, "snapshot_with_rows", real)
                work()
            return found

        monkeypatch.setattr(GraphStore, "snapshot_with_rows", snapshot)

    yield begin
    monkeypatch.setattr(GraphStore, "snapshot_with_rows", real)


@pytest.mark.parametrize("read", READS)
def test_a_read_never_mixes_two_graphs(
    tmp_path: Path, read: str, after_snapshot: Callable[[Graph, Callable[[], object]], None]
) -> None:
    make(tmp_path / "g", "old")
    graph = Graph.open(tmp_path / "g", mode="r")
    after_snapshot(graph, lambda: make(tmp_path / "g", "new"))
    with pytest.raises(ConflictError, match="was made anew meanwhile: read it again"):
        READS[read](graph)
    assert READS[read](graph) == READS[read](Graph.open(tmp_path / "g", mode="r"))


def test_tables_that_were_open_before_show_the_graph_that_they_are_of(
    tmp_path: Path, after_snapshot: Callable[[Graph, Callable[[], object]], None]
) -> None:
    make(tmp_path / "g", "old")
    graph = Graph.open(tmp_path / "g", mode="r")
    assert graph.query(NAMES).to_pylist() == [{"actor": "Actor old", "film": "Film old"}]
    after_snapshot(graph, lambda: make(tmp_path / "g", "new"))
    assert graph.query(NAMES).to_pylist() == [{"actor": "Actor old", "film": "Film old"}]
    assert graph.query(NAMES).to_pylist() == [{"actor": "Actor new", "film": "Film new"}]


def test_an_export_under_way_ends_at_the_first_table_of_another_graph(tmp_path: Path) -> None:
    graph = make(tmp_path / "g", "old")
    rows = graph.export()
    assert json.loads(next(rows))["from"] == "Actor old"
    make(tmp_path / "g", "new")
    with pytest.raises(ConflictError, match="made anew"):
        list(rows)


def test_a_task_refuses_the_table_of_another_graph(tmp_path: Path) -> None:
    """What a driver of Spark has planned before, tasks open by themselves."""
    graph = make(tmp_path / "g", "old")
    film = pin(graph.store, graph.snapshot().entries["node:Film"])
    catalog = graph.catalog()
    task = query_task(graph.store, catalog, graph.snapshot(), bound_plan(prepare(catalog, NAMES), None))
    works: list[Callable[[], object]] = [
        lambda: list(read_batches(TableScan(film, ("id",)))),
        lambda: count_rows(film, None),
        lambda: fragment_sizes(film),
        task.run,
    ]
    for work in works:
        work()
    make(tmp_path / "g", "new")
    for work in works:
        with pytest.raises(ConflictError, match="made anew"):
            work()


def test_a_branch_that_is_made_anew_is_another_one(
    tmp_path: Path, after_snapshot: Callable[[Graph, Callable[[], object]], None]
) -> None:
    graph = make(tmp_path / "g", "main")

    def branch(name: str) -> None:
        graph.create_branch("draft")
        graph.load(lines(name), branch="draft", options=PLAIN)

    def anew() -> None:
        other = Graph.open(tmp_path / "g")
        other.delete_branch("draft")
        branch("new")

    branch("old")
    reader = Graph.open(tmp_path / "g", mode="r", branch="draft")
    after_snapshot(reader, anew)
    with pytest.raises(ConflictError, match="or the branch that is read, was made anew"):
        list(reader.export())
    assert "Film new" in "".join(reader.export())


def test_a_manifest_that_was_compacted_and_cleaned_up_is_the_same_graph(tmp_path: Path) -> None:
    graph = make(tmp_path / "g", "old")
    entry = graph.snapshot().entries["node:Film"]
    manifest = graph.store.manifest(None)
    manifest.optimize.compact_files()
    lance.dataset(manifest.uri).cleanup_old_versions(retain_versions=1)
    assert entry.origin is not None
    assert not (tmp_path / "g" / entry.origin.file).exists()
    assert graph.store.open_table(entry).count_rows() == 1
    assert next(read_batches(TableScan(pin(graph.store, entry), ("id",)))).num_rows == 1


def test_a_manifest_that_was_compacted_since_is_of_the_same_graph(tmp_path: Path) -> None:
    """Also for a state of before the first publish: it names no commit by itself, but the log has one."""
    graph = Graph.init(tmp_path / "g", SCHEMA)
    entry = graph.snapshot().entry("node:Actor")
    assert entry.origin is not None
    assert entry.origin.commit == graph.commits()[-1].id
    for name in ("a", "b"):
        graph.load([json.dumps({"type": "Film", "data": {"name": name}})], options=PLAIN)
        graph.optimize()
        graph.cleanup(timedelta(0), keep=1, confirm=True, force=True)
    assert graph.store.objects.modified(entry.origin.file) is None
    assert graph.store.open_table(entry).version == entry.version
    Graph.init(tmp_path / "g", SCHEMA, force=True)
    with pytest.raises(ConflictError, match="was made anew meanwhile"):
        graph.store.open_table(entry)
