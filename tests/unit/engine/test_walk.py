"""Walks against a walk of one node at a time, over random edges: loops, parallel edges, ends that are not stored."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.engine.adjacency import Compressed, EdgeTables, Ends
from spark_omnigraph.engine.bindings import crossed, scanned
from spark_omnigraph.engine.costs import Costs, Strategy
from spark_omnigraph.engine.expand import connect, expand
from spark_omnigraph.engine.select import select
from spark_omnigraph.engine.source import EngineSource
from spark_omnigraph.engine.walk import Reached
from spark_omnigraph.errors import QueryEngineError
from spark_omnigraph.lang.gq.plan import Connect, Direction, Expand, Hops, OuterRows
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.memory import Memory
from spark_omnigraph.storage.tables.reader import ReadCache, TableReader
from spark_omnigraph.storage.tables.scan import PinnedTable

SCHEMA = "node N { k: String @key } node M { k: String @key } edge Same: N -> N edge Other: N -> M"
Edges = list[tuple[str, str]]


def write(folder: Path, table: pa.Table) -> PinnedTable:
    dataset = lance.write_dataset(table, str(folder), enable_stable_row_ids=True)
    return PinnedTable(str(folder), dataset.version)


def world(folder: Path, nodes: Iterable[str], edges: Edges) -> EngineSource:
    """Nodes of both types have the same ids; both edge types hold the same edges."""
    ids = list(nodes)
    pins = {f"node:{t}": write(folder / t, pa.table({"id": ids, "k": ids})) for t in "NM"}
    table = pa.table(
        {"id": [f"e{i}" for i in range(len(edges))], "src": [a for a, _ in edges], "dst": [b for _, b in edges]},
        schema=pa.schema([pa.field(n, pa.string(), nullable=False) for n in ("id", "src", "dst")]),
    )
    pins |= {f"edge:{t}": write(folder / t, table) for t in ("Same", "Other")}
    return EngineSource(catalog(), pins.get)


def catalog() -> Catalog:
    return compile_schema(SCHEMA)


def steps_of(direction: Direction, edges: Edges) -> dict[str, list[tuple[str, int]]]:
    """The other end and the number of each edge at a node."""
    steps: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for number, (a, b) in enumerate(edges):
        if direction in (Direction.OUT, Direction.BOTH):
            steps[a].append((b, number))
        if direction is Direction.IN or (direction is Direction.BOTH and a != b):
            steps[b].append((a, number))
    return steps


def plain(hops: Hops, edges: Edges, start: str, stored: set[str], same_type: bool) -> list[tuple[str, int | None]]:
    """What a walk from one node reaches, as the plan says it: (id, number of the edge)."""
    steps = steps_of(hops.direction, edges)
    if hops.edge_variable is not None:
        return sorted((b, number) for b, number in steps[start] if b in stored)
    if not same_type:
        return sorted((b, None) for b in {b for b, _ in steps[start]} & stored) if hops.min_hops == 1 else []
    emitted: set[str] = set()
    met, frontier = {start}, [start]
    for hop in range(1, hops.max_hops + 1):
        reached = [(node, other) for node in frontier for other, _ in steps[node]]
        frontier = sorted({other for _, other in reached} - met)
        met.update(frontier)
        if hop >= hops.min_hops:
            emitted.update(frontier, (node for node, other in reached if node == other))
    return sorted((b, None) for b in emitted & stored)


CASES = [
    Hops("Same", direction, low, high)
    for direction in Direction
    for low, high in [(1, 1), (1, 2), (2, 2), (1, 4), (2, 3), (3, 9)]
] + [
    *(Hops("Same", direction, edge_variable="w") for direction in Direction),
    *(Hops("Other", direction, edge_variable="w") for direction in (Direction.OUT, Direction.IN)),
    *(Hops("Other", direction, low, 3) for direction in (Direction.OUT, Direction.IN) for low in (1, 2)),
]


@pytest.mark.parametrize("seed", range(6))
def test_both_ways_walk_like_one_node_at_a_time(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    ids = [f"n{i}" for i in range(chance.randint(1, 9))]
    ends = [*ids, "gone", "lost"]
    edges = [(chance.choice(ends), chance.choice(ends)) for _ in range(chance.randint(0, 24))]
    base = world(tmp_path, ids, edges)
    for hops in CASES:
        same = hops.edge_type == "Same"
        types = ("M", "N") if not same and hops.direction is Direction.IN else ("N", "N" if same else "M")
        expected = sorted((a, *found) for a in ids for found in plain(hops, edges, a, set(ids), same))
        by_lance = Costs(Strategy.LOOKUP, column_share=1 << 50)
        for way in (Costs(Strategy.ADJACENCY), Costs(Strategy.LOOKUP), by_lance, Costs(Strategy.BY_COST)):
            source = replace(base, costs=way)
            table = source.table(TableKey.node(types[0]))
            start = scanned("a", table, select(table, ()))
            found = expand(Expand(OuterRows(), "a", "b", types[1], hops), start, source)
            columns = [found.column("a", "id").to_pylist(), found.column("b", "id").to_pylist()]
            columns.append(found.variables["w"].positions().tolist() if hops.edge_variable else [None] * found.count)
            assert sorted(zip(*columns, strict=True)) == expected, (hops, way, edges)
            other = source.table(TableKey.node(types[1]))
            pairs = crossed(start, scanned("b", other, select(other, ())))
            kept = connect(Connect(OuterRows(), "a", "b", hops), pairs, source)
            columns = [kept.column("a", "id").to_pylist(), kept.column("b", "id").to_pylist()]
            columns.append(kept.variables["w"].positions().tolist() if hops.edge_variable else [None] * kept.count)
            assert sorted(zip(*columns, strict=True)) == expected, (hops, way, edges)


def test_an_index_is_kept_for_its_state_and_within_its_memory(tmp_path: Path) -> None:
    source = world(tmp_path, ["a", "b"], [("a", "b")])
    edges, nodes = source.table(TableKey.edge("Same")).reader, source.table(TableKey.node("N")).reader
    assert edges is not None
    assert nodes is not None
    tables = EdgeTables(edges, nodes, nodes)
    made = tables.compressed(Direction.OUT, False)
    assert tables.compressed(Direction.OUT, False) is made
    assert tables.compressed(Direction.IN, False) is not made
    kept = [edges.memory.get(Compressed, (*tables.key, way, False)) for way in (Direction.OUT, Direction.IN)]
    ends = edges.memory.get(Ends, tables.key)
    assert ends is not None
    assert edges.memory.bytes >= sum(one.bytes for one in kept if one is not None) + ends.bytes
    tiny = EdgeTables(TableReader(edges.table, Memory(0)), nodes, nodes)
    assert tiny.compressed(Direction.OUT, False).nodes.tolist() == made.nodes.tolist()
    assert tiny.edges.memory.bytes == 0
    anew = world(tmp_path / "anew", ["a", "b"], [("b", "a")]).table(TableKey.edge("Same")).reader
    assert anew is not None
    assert anew.identity != edges.identity
    assert edges.memory.budget == 2 << 30


def test_a_step_from_all_nodes_is_kept_by_direction_and_with_edges_apart(tmp_path: Path) -> None:
    ids = ["a", "b", "c"]
    source = world(tmp_path, ids, [("a", "b"), ("a", "b"), ("b", "gone"), ("c", "a")])
    source = replace(source, costs=Costs(Strategy.ADJACENCY))
    table, edges = source.table(TableKey.node("N")), source.table(TableKey.edge("Same")).reader
    assert edges is not None
    assert table.reader is not None
    everybody = scanned("a", table, select(table, ()))
    found: dict[tuple[Direction, str | None], list[tuple[str, str]]] = {
        (Direction.OUT, None): [("a", "b"), ("c", "a")],
        (Direction.IN, None): [("a", "c"), ("b", "a")],
        (Direction.OUT, "w"): [("a", "b"), ("a", "b"), ("c", "a")],
    }
    for _ in range(2):
        for (way, edge), pairs in found.items():
            rows = expand(Expand(OuterRows(), "a", "b", "N", Hops("Same", way, edge_variable=edge)), everybody, source)
            assert list(zip(*(rows.column(v, "id").to_pylist() for v in "ab"), strict=True)) == pairs
    tables = EdgeTables(edges, table.reader, table.reader)
    kept = [edges.memory.get(Reached, (*tables.key, way, edge is not None)) for way, edge in found]
    assert [reached is not None and not any(one.flags.writeable for one in reached.arrays) for reached in kept] == [
        True,
        True,
        True,
    ]
    assert edges.memory.get(Reached, (*tables.key, Direction.BOTH, False)) is None
    few = scanned("a", table, select(table, ())[:1])
    rows = expand(Expand(OuterRows(), "a", "b", "N", Hops("Same", Direction.OUT)), few, source)
    assert rows.column("b", "id").to_pylist() == ["b"]


def test_a_node_of_many_edges_is_not_looked_up_edge_by_edge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [f"n{i}" for i in range(300)]
    source = world(tmp_path, ids, [("n0", other) for other in ids])
    compressed: list[Direction] = []
    plainly = EdgeTables.compressed

    def recorded(tables: EdgeTables, direction: Direction, with_edges: bool) -> Compressed:
        compressed.append(direction)
        return plainly(tables, direction, with_edges)

    monkeypatch.setattr(EdgeTables, "compressed", recorded)
    table = source.table(TableKey.node("N"))
    operator = Expand(OuterRows(), "a", "b", "N", Hops("Same", Direction.OUT))
    one = scanned("a", table, select(table, ())[:1])
    assert expand(operator, one, source).count == 300
    assert compressed == []
    assert expand(operator, one, replace(source, costs=Costs(lookup_nodes=4))).count == 300
    assert compressed == [Direction.OUT]


def test_a_walk_that_reaches_too_much_is_refused(tmp_path: Path) -> None:
    ids = [f"n{i}" for i in range(4)]
    source = world(tmp_path, ids, [(a, b) for a in ids for b in ids])
    source = replace(source, costs=Costs(Strategy.ADJACENCY, most_rows=15))
    table = source.table(TableKey.node("N"))
    start = scanned("a", table, select(table, ()))
    for high in (1, 3):
        with pytest.raises(QueryEngineError, match="walk less far"):
            expand(
                Expand(OuterRows(), "a", "b", "N", Hops("Same", Direction.OUT, 1, high)),
                start,
                source,
            )


def test_few_nodes_of_a_large_table_are_looked_up_and_many_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [f"n{i}" for i in range(300)]
    source = world(tmp_path, ids, [(ids[i], ids[(i + 1) % 300]) for i in range(300)])
    monkeypatch.setattr(EdgeTables, "compressed", lambda *_: pytest.fail("not needed"))
    table = source.table(TableKey.node("N"))
    one = scanned("a", table, select(table, ())[:1])
    operator = Expand(OuterRows(), "a", "b", "N", Hops("Same", Direction.OUT, 1, 3))
    assert expand(operator, one, source).column("b", "id").to_pylist() == ["n1", "n2", "n3"]
    with pytest.raises(pytest.fail.Exception):
        expand(operator, scanned("a", table, select(table, ())), source)


def test_an_index_is_built_once_look_ups_have_cost_as_much_but_none_of_a_large_type(tmp_path: Path) -> None:
    ids = [f"n{i}" for i in range(300)]
    source = world(tmp_path, ids, [(ids[i], ids[(i + 1) % 300]) for i in range(300)])
    memory = Memory()
    table = source.table(TableKey.node("N"))
    operator = Expand(OuterRows(), "a", "b", "N", Hops("Same", Direction.OUT))

    def walked(index_entries: int) -> bool:
        costs = Costs(walk_entries=200, index_entries=index_entries)
        asked = replace(source, cache=ReadCache(memory), costs=costs, _tables={})
        found = expand(operator, scanned("a", table, select(table, ())[5:6]), asked)
        assert (found.column("b", "id").to_pylist(), found.column("b", "k").to_pylist()) == (["n6"], ["n6"])
        edges, nodes = asked.table(TableKey.edge("Same")).reader, asked.table(TableKey.node("N")).reader
        assert edges is not None
        assert nodes is not None
        return memory.has(Ends, EdgeTables(edges, nodes, nodes).key)

    assert [walked(599) for _ in range(5)] == [False] * 5
    assert [walked(600) for _ in range(5)] == [False, False, False, True, True]
