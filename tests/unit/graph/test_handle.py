"""Which state a handle shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.handle import Graph

SCHEMA = "node Lamp { tag: String @key }"


def lamp(tag: str) -> str:
    return json.dumps({"type": "Lamp", "data": {"tag": tag}})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    g = Graph.init(tmp_path / "g", SCHEMA)
    g.load([lamp("a")])
    return g


def test_a_pinned_handle_shows_one_state_and_no_other(graph: Graph) -> None:
    graph.create_branch("draft")
    then = graph.at()
    graph.load([lamp("b")])
    graph.load([lamp("c"), lamp("d")], branch="draft")
    assert (then.count("node:Lamp"), graph.count("node:Lamp")) == (1, 2)
    assert graph.count("node:Lamp", branch="draft") == 3
    assert graph.at(branch="draft").count("node:Lamp") == 3
    version = then.snapshot().version
    for where in ({"branch": "draft"}, {"version": 1}, {"snapshot": graph.commits()[0].id}, {"as_of": "2030-01-01"}):
        with pytest.raises(BadRequestError, match=f"pinned to version {version} of 'main', so '{next(iter(where))}'"):
            then.count("node:Lamp", **where)
    assert then.count("node:Lamp", branch=None, version=None) == 1


def test_a_branch_without_a_name_is_refused_and_not_taken_for_the_own_one(graph: Graph) -> None:
    with pytest.raises(BadRequestError, match="branch name cannot be empty"):
        graph.at(branch="")
    with pytest.raises(BadRequestError, match="branch name cannot be empty"):
        graph.count("node:Lamp", branch="")
