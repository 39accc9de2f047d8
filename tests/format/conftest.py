"""One graph that our code wrote in all modes, for tests that look at it with pylance alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_omnigraph.graph.handle import Graph
from tests.format.sample import APPENDIX_SCHEMA, GAUGE, WIDE_SCHEMA, edge, node


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph of the specification's Appendix A right after init."""
    root = tmp_path_factory.mktemp("fresh") / "graph"
    Graph.init(str(root), APPENDIX_SCHEMA)
    return root


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Appends, merges and overwrites on main, then a branch with a load of its own."""
    root = tmp_path_factory.mktemp("loaded") / "graph"
    g = Graph.init(str(root), WIDE_SCHEMA)
    people = [node("Person", name=f"p{i}", age=i) for i in range(4)]
    g.load([*people, node("Gauge", **GAUGE), node("Gauge", tag="g2", must=2)], actor="act-one")
    g.load([node("Note", id="n1", text="x"), node("Lot", num=7, area="n"), edge("Wrote", "p0", "n1")])
    g.load([edge("Knows", "p0", "p1", id="k1", since="2024-01-02"), edge("Knows", "p1", "p2", id="k2")])
    g.load([node("Person", name="p1", age=11), node("Person", name="p9")], mode="merge", actor="act-two")
    g.load([node("Note", id="n2", text="y"), edge("Wrote", "p1", "n2")], mode="overwrite")
    g.ingest([node("Person", name="only-draft")], branch="team/draft", base="main", mode="append")
    return root
