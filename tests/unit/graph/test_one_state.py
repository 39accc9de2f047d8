"""A call reads one state of the graph: what others commit while it runs, it shows whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_omnigraph import Graph, LoadOptions, NotFoundError
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.rows import ManifestRow
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore

SCHEMA = "node Film { name: String @key }\nnode Actor { name: String @key }\nedge In: Actor -> Film"
PLAIN = LoadOptions(build_indexes=False)
COUNTS = """query q() { match { $a: Actor  $a in $f } return { count($a) as pairs } }"""


def lines(number: int) -> list[str]:
    """A film, an actor and the edge between them, in one commit."""
    nodes = [json.dumps({"type": t, "data": {"name": f"{t}{number}"}}) for t in ("Film", "Actor")]
    return [*nodes, json.dumps({"edge": "In", "from": f"Actor{number}", "to": f"Film{number}"})]


def described(graph: Graph) -> list[object]:
    found = graph.describe()
    return [each.table and each.table.rows for each in (found.nodes["Film"], found.nodes["Actor"], found.edges["In"])]


CALLS: dict[str, Callable[[Graph], object]] = {
    "query": lambda g: g.query(COUNTS).to_pylist(),
    "export": lambda g: sorted(g.export()),
    "snapshot and its tables": lambda g: [
        g.store.open_table(entry).count_rows() for entry in g.snapshot().entries.values()
    ],
    "describe": described,
    "indexes": lambda g: [(s.table_key, s.total) for s in g.indexes()],
    "diff": lambda g: sorted(str(c.to_dict()) for c in g.diff({"version": 3}).changes),
}


@pytest.fixture
def overtaken(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Graph], list[int]]]:
    """Has another handle commit whenever a newest snapshot was taken; the number of those is returned."""
    real = GraphStore.snapshot_with_rows

    def begin(graph: Graph) -> list[int]:
        other, taken = Graph.open(graph.uri), []

        def overtake(
            store: GraphStore, branch: Branch, version: int | None = None
        ) -> tuple[Snapshot, list[ManifestRow]]:
            found = real(store, branch, version)
            if store is graph.store and version is None:
                taken.append(found[0].version)
                other.load(lines(100 + len(taken)), "merge", options=PLAIN)
            return found

        monkeypatch.setattr(GraphStore, "snapshot_with_rows", overtake)
        return taken

    yield begin
    monkeypatch.setattr(GraphStore, "snapshot_with_rows", real)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_shows_one_state(tmp_path: Path, call: str, overtaken: Callable[[Graph], list[int]]) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load([line for number in range(3) for line in lines(number)], options=PLAIN)
    before = CALLS[call](graph)
    taken = overtaken(graph)
    during = CALLS[call](graph)
    assert during == before
    assert len(taken) == 1, "one snapshot a call"
    assert CALLS[call](graph) != before, "the next call shows what was committed meanwhile"
    assert taken[1] > taken[0]


def test_a_pinned_handle_never_shows_the_graph_that_took_its_place(tmp_path: Path) -> None:
    """Which has a version of that number again."""
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load(lines(1), options=PLAIN)
    pinned = Graph.open(tmp_path / "g", mode="r").at()
    graph.load(lines(2), options=PLAIN)
    assert len(list(pinned.export())) == 3
    anew = Graph.init(tmp_path / "g", SCHEMA, force=True)
    anew.load(lines(3), options=PLAIN)
    anew.load(lines(4), options=PLAIN)
    for read in (lambda: list(pinned.export()), lambda: pinned.count("Film"), lambda: pinned.query(COUNTS)):
        with pytest.raises(NotFoundError, match="is gone: the graph or the branch was made anew"):
            read()
    assert len(list(Graph.open(tmp_path / "g", mode="r").at().export())) == 6
