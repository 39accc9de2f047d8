"""Cost grows with the input, not with the number of types."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.write.executor import LocalExecutor
from tests.support.executors import CountingExecutor
from tests.support.graph_files import pins, recovery_files

ROWS = 700


def schema(node_types: int, edge_types: int) -> str:
    nodes = [f"node N{i} {{ code: String @key  x: I32? @index  w: String? @unique }}" for i in range(node_types)]
    ends = [(i % node_types, (i + 1) % node_types) for i in range(edge_types)]
    edges = [f"edge E{i}: N{a} -> N{b} @card(0..400) {{ since: Date? }}" for i, (a, b) in enumerate(ends)]
    return "\n".join(nodes + edges)


def records(node_types: int, edge_types: int) -> list[str]:
    """`ROWS` lines spread evenly over all types; an edge ends at two nodes of the input."""
    lines = []
    half = ROWS // 2
    for n in range(half):
        kind, number = n % node_types, n // node_types
        lines.append(json.dumps({"type": f"N{kind}", "data": {"code": f"k{number}", "x": n, "w": f"w{n}"}}))
    for n in range(half, ROWS):
        kind = n % edge_types
        ends = {"from": "k0", "to": "k0"}
        lines.append(json.dumps({"edge": f"E{kind}", **ends, "data": {"id": f"e{n}", "since": n}}))
    return lines


def loaded(root: Path, node_types: int, edge_types: int) -> tuple[Graph, list[int], int]:
    """The graph, the sizes of all executor calls, and how many manifest versions the load published."""
    g = Graph.init(str(root), schema(node_types, edge_types))
    executor = CountingExecutor(LocalExecutor(1))
    before = g.commits()[0].manifest_version
    report = g.load(records(node_types, edge_types), options=LoadOptions(executor=executor))
    assert sum(report.nodes_loaded.values()) + sum(report.edges_loaded.values()) == ROWS
    return g, executor.calls, report.manifest_version - before


@pytest.mark.timeout(120)
def test_eighty_four_types_load_in_one_commit_and_one_executor_call(tmp_path: Path) -> None:
    _, few_calls, few_publishes = loaded(tmp_path / "few", 2, 40)
    g, calls, publishes = loaded(tmp_path / "many", 42, 42)
    assert calls == few_calls
    assert len(calls) == 1, "one pass stages all types"
    assert publishes == few_publishes
    assert len(g.commits()) == 2
    assert sum(pin.row_count for pin in pins(tmp_path / "many").values()) == ROWS
    assert recovery_files(tmp_path / "many") == []


@pytest.mark.timeout(120)
def test_a_type_that_the_input_does_not_mention_costs_nothing(tmp_path: Path) -> None:
    g = Graph.init(str(tmp_path / "graph"), schema(42, 42))
    before = pins(tmp_path / "graph")
    g.load([json.dumps({"type": "N7", "data": {"code": "only"}})])
    after = pins(tmp_path / "graph")
    assert [key for key in after if after[key] != before[key]] == ["node:N7"]
    assert all(pin.head(tmp_path / "graph").version == pin.version for pin in after.values())
