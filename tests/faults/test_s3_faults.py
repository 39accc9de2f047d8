"""Requests to S3 get lost before or after their effect, or are throttled; Lance and obstore ask again by themselves.

What a client does of its own accord is part of what is tested here: after a lost answer it repeats the request, and a
conditional one is then refused by its own success. Every few requests are tried by default, `-m long` tries all.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_omnigraph import Graph, LoadOptions, OmnigraphError
from tests.crash.worlds import BEFORE, assert_whole, knows, person, state
from tests.faults.proxy import Fault, Proxy, often, once

pytestmark = [pytest.mark.s3, pytest.mark.timeout(600)]

STEP = 32
UNCHANGED = {"conflict", "expected_version_mismatch", "writer_busy", "bad_rows", "storage"}
OPTIONS = LoadOptions(build_indexes=False)


def rows(number: int) -> tuple[list[str], frozenset[str]]:
    """A node and an edge that no other number makes: the input, and how a state shows it."""
    name = f"p{number}"
    shown = frozenset({f"Person:{name}={number}", f"Knows:k{name}"})
    return [person(name, number), knows(name, name, f"k{name}")], shown


class World:
    """One graph that is written again and again through faults, and what it must show."""

    def __init__(self, graph: Graph, proxy: Proxy, branch: str | None = None) -> None:
        self.graph, self.proxy, self.branch = graph, proxy, branch
        self.expected = BEFORE
        self._number = 0

    def requests_of_a_write(self) -> int:
        """Requests of a write that nothing happens to."""
        self.write(lambda n, method, path: None)
        return self.count

    def write(self, plan: Callable[[int, str, str], Fault | None]) -> str:
        """One write through faults, then without them the look of readers, an open, and the whole graph."""
        self._number += 1
        lines, shown = rows(self._number)
        self.proxy.reset(plan)
        try:
            self.graph.load(lines, "merge", branch=self.branch, options=OPTIONS)
            outcome = "returned"
        except OmnigraphError as error:
            outcome = error.kind
        self.count = len(self.proxy.requests)
        self.proxy.reset()
        self.check(outcome, shown)
        return outcome

    def check(self, outcome: str, shown: frozenset[str]) -> None:
        options = self.graph.store.storage_options
        old, new = self.expected, self.expected | shown
        seen = state(Graph.open(self.graph.uri, mode="r", storage_options=options), self.branch)
        graph = Graph.open(self.graph.uri, storage_options=options)
        found = state(graph, self.branch)
        if outcome == "returned":
            assert seen == found == new
        elif outcome == "recovery_required":
            assert found in (old, new)
            assert seen in (old, found)
        else:
            assert outcome in UNCHANGED, outcome
            assert seen == found == old
        assert_whole(graph)
        commits = graph.commits(branch=self.branch)
        assert [c.parent for c in commits[:-1]] == [c.id for c in commits[1:]], "one line of commits"
        self.expected = found


@pytest.mark.parametrize("fault", list(Fault), ids=lambda f: f.value)
def test_some_requests_get_lost(graph: Graph, proxy: Proxy, fault: Fault) -> None:
    world = World(graph, proxy)
    first = 4 * list(Fault).index(fault)
    for number in range(world.requests_of_a_write())[first::STEP]:
        assert world.write(once(number, fault)) == "returned", "the client asks again by itself"


@pytest.mark.long
@pytest.mark.parametrize("branch", [None, "draft"], ids=["main", "branch"])
@pytest.mark.parametrize("fault", list(Fault), ids=lambda f: f.value)
def test_each_request_gets_lost(graph: Graph, proxy: Proxy, fault: Fault, branch: str | None) -> None:
    world = World(graph, proxy, branch)
    for number in range(world.requests_of_a_write()):
        assert world.write(once(number, fault)) == "returned", "the client asks again by itself"


def test_a_store_that_throttles_a_third_of_all_requests(graph: Graph, proxy: Proxy) -> None:
    World(graph, proxy).write(often(0.3, 1))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
def test_a_store_that_throttles_for_long(graph: Graph, proxy: Proxy, seed: int) -> None:
    world = World(graph, proxy)
    for number in range(3):
        world.write(often(0.3, 100 * seed + number))


def publishes(fault: Fault) -> Callable[[int, str, str], Fault | None]:
    """A plan by which no version of the manifest is ever confirmed."""
    return lambda n, method, path: fault if method == "PUT" and "/__manifest/_versions/" in path else None


def test_a_publish_whose_answer_never_comes_is_read_back(graph: Graph, proxy: Proxy) -> None:
    assert World(graph, proxy).write(publishes(Fault.ERROR_AFTER)) == "returned"


@pytest.mark.long
def test_a_publish_that_never_gets_through_ends_with_an_error(graph: Graph, proxy: Proxy) -> None:
    world = World(graph, proxy)
    assert world.write(publishes(Fault.THROTTLED)) in {"storage", "recovery_required"}
    assert world.write(lambda n, method, path: None) == "returned"
