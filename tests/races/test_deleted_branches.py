"""A branch is deleted, and maybe made anew under its name, while a writer is between its look at it and its sidecar:
nothing lands on a branch that is not the one it was planned on, and nothing is left for recovery.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from spark_omnigraph import ConflictError, Graph, LoadOptions, NotFoundError
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
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
