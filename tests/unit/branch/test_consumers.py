"""Consumers: where readers of the change feed stand, moved by compare-and-swap."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph import BadRequestError, ConflictError, Graph, LoadOptions, NotFoundError
from spark_omnigraph.branch.consumers import Consumer, list_consumers, move_consumer, needed_from, take_consumer
from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.errors import DamagedError
from spark_omnigraph.graph.changes.feed import first_parents


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = Graph.init(tmp_path / "g", "node Boat { name: String @key }")
    for name in ("ada", "bo"):
        load(made, name)
    return made


def load(graph: Graph, name: str, branch: str | None = None) -> None:
    lines = [json.dumps({"type": "Boat", "data": {"name": name}})]
    graph.load(lines, branch=branch, options=LoadOptions(build_indexes=False))


def take(graph: Graph, name: str, version: int, branch: str = "main") -> Consumer:
    line = parse_branch(branch)
    return take_consumer(graph.store, name, line, first_parents(graph.store, line), version)


def test_a_consumer_is_listed_moves_and_is_forgotten(graph: Graph) -> None:
    taken = take(graph, "search", 3)
    assert [(c.name, c.branch, c.version) for c in graph.consumers()] == [("search", None, 3)]
    moved = move_consumer(graph.store, taken, 5)
    assert list_consumers(graph.store) == [moved]
    assert graph.delete_consumer("search") == moved
    assert graph.consumers() == []


def test_who_comes_later_takes_the_name_over(graph: Graph) -> None:
    first = take(graph, "search", 3)
    second = take(graph, "search", 4)
    with pytest.raises(ConflictError, match="another reader took over its name"):
        move_consumer(graph.store, first, 5)
    assert graph.consumers() == [second]
    assert move_consumer(graph.store, second, 5).version == 5


def test_one_that_was_deleted_does_not_come_back(graph: Graph) -> None:
    taken = take(graph, "search", 3)
    graph.delete_consumer("search")
    with pytest.raises(ConflictError, match="was deleted"):
        move_consumer(graph.store, taken, 5)
    assert graph.consumers() == []


def test_names_are_checked_and_the_nearest_is_named(graph: Graph) -> None:
    take(graph, "search", 3)
    with pytest.raises(BadRequestError, match="consumer name"):
        take(graph, "a/b", 3)
    with pytest.raises(NotFoundError, match="did you mean 'search'"):
        graph.delete_consumer("serach")


def test_a_damaged_consumer_is_named(graph: Graph) -> None:
    graph.store.objects.put("__recovery/x_consumer~search", b"{")
    with pytest.raises(DamagedError, match="consumer 'search'"):
        graph.consumers()


def test_a_feed_of_a_branch_needs_the_branch_that_it_comes_from(graph: Graph) -> None:
    graph.create_branch("dev")
    load(graph, "cy", "dev")
    line = first_parents(graph.store, parse_branch("dev"))
    genesis, ada, bo, cy = (commit.manifest_version for commit in line)
    assert needed_from(line, genesis) == {None: genesis, "dev": cy}
    assert needed_from(line, bo - 1) == {None: ada, "dev": cy}
    assert needed_from(line, bo) == {None: bo, "dev": cy}
    assert needed_from(line, cy) == {"dev": cy}
