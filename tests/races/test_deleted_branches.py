"""A branch is deleted, and maybe made anew under its name, while a writer is between its look at it and its sidecar:
nothing lands on a branch that is not the one it was planned on, and nothing is left for recovery.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from spark_omnigraph import ConflictError, Graph, LoadOptions, NotFoundError, WriterBusyError
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from spark_omnigraph.storage.layout import RECOVERY
from tests.crash.worlds import BEFORE, assert_whole, knows, make_graph, person, state

PLAIN = LoadOptions(build_indexes=False)
LOST = frozenset({"Person:z=1", "Knows:kz"})
NEW = frozenset({"Person:y=2", "Knows:ky"})
WRITERS: dict[str, Callable[[Graph], object]] = {
    "load": lambda g: g.load([person("w"), knows("w", "w", "kw")], "merge", branch="draft", options=PLAIN),
    "mutation": lambda g: g.mutate('query q() { delete Person where name = "a" }', branch="draft"),
    "merge": lambda g: g.merge_branch("review", "draft"),
    "index": lambda g: g.ensure_indices(branch="draft"),
}


def fill(graph: Graph, name: str, age: int) -> None:
    """Both tables of the branch come to the same versions whoever does it."""
    graph.load([person(name, age), knows(name, name, f"k{name}")], "merge", branch="draft", options=PLAIN)


def _ended(name: str, anew: bool) -> AbstractContextManager[object]:
    if not anew:
        return pytest.raises(NotFoundError, match="'draft'")
    # Indexes are begun again by themselves, on what is there then.
    return nullcontext() if name == "index" else pytest.raises(ConflictError, match="made anew")


@pytest.mark.parametrize("anew", [False, True], ids=["deleted", "made-anew"])
@pytest.mark.parametrize("name", WRITERS)
def test_a_writer_whose_branch_goes(tmp_path: Path, name: str, anew: bool) -> None:
    graph = make_graph(tmp_path / "g")
    fill(graph, "z", 1)
    assert state(graph, "draft") == BEFORE | LOST

    def replace() -> None:
        other = Graph.open(graph.uri)
        other.delete_branch("draft")
        if anew:
            other.create_branch("draft")
            fill(other, "y", 2)

    with stop_at(CrashPoint.BOUND, replace), _ended(name, anew):
        WRITERS[name](graph)
    again = Graph.open(graph.uri)
    assert again.recovered == ()
    assert_whole(again)
    if not anew:
        again.create_branch("draft")
    assert state(again, "draft") == (BEFORE | NEW if anew else BEFORE)
    fill(again, "x", 3)
    assert state(again, "draft") >= {"Person:x=3", "Knows:kx"}
    assert_whole(again)


def give_up(graph: Graph) -> None:
    """All claims run out, as those of a process that stands still for longer than their term."""
    objects = graph.store.objects
    for name in objects.list(RECOVERY):
        if name.endswith(".claim"):
            objects.put(f"{RECOVERY}/{name}", json.dumps({"owner": "still:0", "token": "x", "expires_at": 0}).encode())


@pytest.mark.parametrize("point", [CrashPoint.BRANCH_FREE, CrashPoint.BRANCH_GONE])
def test_a_deletion_that_stood_still_leaves_the_branch_that_was_made_meanwhile(
    tmp_path: Path, point: CrashPoint
) -> None:
    graph = make_graph(tmp_path / "g")
    fill(graph, "z", 1)

    def meanwhile() -> None:
        give_up(graph)
        other = Graph.open(graph.uri)
        if point is CrashPoint.BRANCH_FREE:
            other.delete_branch("draft")
        other.create_branch("draft")
        fill(other, "y", 2)

    with stop_at(point, meanwhile), pytest.raises(WriterBusyError, match="stood still"):
        graph.delete_branch("draft")
    again = Graph.open(graph.uri)
    assert state(again, "draft") == BEFORE | NEW
    assert [commit.branch for commit in again.commits(branch="draft", limit=1)] == ["draft"]
    fill(again, "x", 3)
    assert_whole(again)


def test_a_creation_that_stood_still_leaves_the_branch_that_was_made_meanwhile(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "g")

    def meanwhile() -> None:
        give_up(graph)
        other = Graph.open(graph.uri)
        other.create_branch("late")
        other.load([person("y", 2)], "merge", branch="late", options=PLAIN)
        other.delete_branch("late")

    with stop_at(CrashPoint.BRANCH_LOGGED, meanwhile), pytest.raises(WriterBusyError, match="stood still"):
        graph.create_branch("late")
    again = Graph.open(graph.uri)
    assert "late" not in again.branches()
    again.create_branch("late")
    assert state(again, "late") == BEFORE
    assert_whole(again)
