"""A branch is deleted, and maybe made anew under its name, while a writer is between its look at it and its sidecar:
nothing lands on a branch that is not the one it was planned on, and nothing is left for recovery.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from spark_omnigraph import ConflictError, Graph, LoadOptions, NotFoundError, WriterBusyError
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from spark_omnigraph.embed.embedder import Embedded, Role
from spark_omnigraph.embed.mock import MockEmbedder
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
    "embed": lambda g: g.embed(embedder=MockEmbedder("m"), branch="draft"),
}


def fill(graph: Graph, name: str, age: int) -> None:
    """Both tables of the branch come to the same versions whoever does it."""
    graph.load([person(name, age), knows(name, name, f"k{name}")], "merge", branch="draft", options=PLAIN)


def take_away(graph: Graph, anew: bool) -> None:
    """Somebody else deletes the branch, and makes it anew if that is wanted."""
    other = Graph.open(graph.uri)
    other.delete_branch("draft")
    if anew:
        other.create_branch("draft")
        fill(other, "y", 2)


def _ended(name: str, anew: bool) -> AbstractContextManager[object]:
    if not anew:
        return pytest.raises(NotFoundError, match="'draft'")
    # Indexes are begun again by themselves, on what is there then.
    return nullcontext() if name == "index" else pytest.raises(ConflictError, match="made anew")


@dataclass
class Meanwhile:
    """The mock, before whose first answer something happens."""

    happens: Callable[[], None]
    model: str = "m"
    identity: str = "meanwhile"
    asked: int = 0

    def embed(self, texts: Sequence[str], *, dimension: int, role: Role) -> Embedded:
        self.asked += 1
        if self.asked == 1:
            self.happens()
        return MockEmbedder().embed(texts, dimension=dimension, role=role)


@pytest.mark.parametrize("commit_every", [None, 1])
@pytest.mark.parametrize("anew", [False, True], ids=["deleted", "made-anew"])
def test_a_branch_goes_while_texts_are_asked_for(tmp_path: Path, anew: bool, commit_every: int | None) -> None:
    graph = make_graph(tmp_path / "g")
    fill(graph, "z", 1)

    meanwhile = Meanwhile(lambda: take_away(graph, anew))
    lost = pytest.raises(ConflictError, match="made anew") if anew else pytest.raises(NotFoundError, match="'draft'")
    with lost:
        graph.embed("Person", embedder=meanwhile, branch="draft", commit_every=commit_every)
    assert meanwhile.asked == 1
    again = Graph.open(graph.uri)
    assert again.recovered == ()
    assert_whole(again)
    if anew:
        assert state(again, "draft") == BEFORE | NEW  # and nobody has a vector


def test_a_graph_is_made_anew_while_texts_are_asked_for(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "g")
    schema = graph.schema()

    def replace() -> None:
        other = Graph.init(graph.uri, schema, force=True)
        other.load([person("v"), person("w"), knows("v", "w", "kv")], options=PLAIN)

    with pytest.raises(ConflictError, match="made anew"):
        graph.embed("Person", embedder=Meanwhile(replace))
    assert state(Graph.open(graph.uri)) == {"Person:v=0", "Person:w=0", "Knows:kv"}


@pytest.mark.parametrize("anew", [False, True], ids=["deleted", "made-anew"])
@pytest.mark.parametrize("name", WRITERS)
def test_a_writer_whose_branch_goes(tmp_path: Path, name: str, anew: bool) -> None:
    graph = make_graph(tmp_path / "g")
    fill(graph, "z", 1)
    assert state(graph, "draft") == BEFORE | LOST

    with stop_at(CrashPoint.BOUND, lambda: take_away(graph, anew)), _ended(name, anew):
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
