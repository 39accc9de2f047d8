"""A merge that stands at one of its steps while another writer comes and goes: both are right, or one is refused whole.

What meets whom is given: the other writer runs to its end where the first one stands, in the same process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path

import pytest

from spark_omnigraph import ConflictError, Graph, LoadOptions, MergeConflictsError, NotFoundError
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from tests.crash.worlds import BEFORE, assert_whole, knows, make_graph, person, state

PLAIN = LoadOptions(build_indexes=False)
MERGED = frozenset({"Person:a=9", "Person:b=2", "Person:c=3", "Knows:k", "Knows:k2"})
"""What main shows once `review` is merged."""
POINTS = [CrashPoint.STAGED, CrashPoint.CHECKED, CrashPoint.BOUND]
STEPS = pytest.mark.parametrize("point", POINTS, ids=lambda point: point.value)
LAST = pytest.mark.parametrize("point", POINTS[-1:], ids=lambda point: point.value)
"""The last step at which others need not wait."""


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    """What each test leaves is whole, and each commit of each branch can be read."""
    graph = make_graph(tmp_path / "g")
    yield graph
    assert_whole(Graph.open(graph.uri))
    for branch in graph.branches():
        commits = graph.commits(branch=branch)
        assert [c.parent for c in commits[:-1]] == [c.id for c in commits[1:]], "one line of commits"
        for commit in commits:
            list(graph.export(snapshot=commit.id))


def add(graph: Graph, branch: str, *lines: str) -> None:
    """A branch of main with some rows of its own."""
    graph.create_branch(branch)
    graph.load(list(lines), "merge", branch=branch, options=PLAIN)


def meanwhile(graph: Graph, point: CrashPoint, work: Callable[[Graph], object]) -> AbstractContextManager[None]:
    """Somebody else's work, in full, where a writer comes to a point."""
    done: list[object] = []
    return stop_at(point, lambda: done.append(work(Graph.open(graph.uri))))


def merged_heads(graph: Graph, branch: str = "main") -> list[str]:
    """Second parents of a branch's commits, newest first."""
    return [c.merged_parent for c in graph.commits(branch=branch) if c.merged_parent is not None]


def head(graph: Graph, branch: str) -> str:
    return graph.commits(branch=branch)[0].id


def conflicts(error: MergeConflictsError) -> set[tuple[str, str | None, str]]:
    return {(c.table_key, c.row_id, c.kind) for c in error.conflicts}


@STEPS
def test_two_merges_into_one_branch_are_both_there(graph: Graph, point: CrashPoint) -> None:
    add(graph, "other", person("d", 4), knows("d", "b", "k3"))
    with meanwhile(graph, point, lambda g: g.merge_branch("other")):
        report = graph.merge_branch("review")
    assert state(graph) == MERGED | {"Person:d=4", "Knows:k3"}
    assert merged_heads(graph) == [head(graph, "review"), head(graph, "other")]
    assert (str(report.outcome), report.target_commit) == ("merged", graph.commits()[1].id)


@LAST
def test_a_merge_reports_the_commit_that_it_stands_on(graph: Graph, point: CrashPoint) -> None:
    """Others may write tables that the merge does not look at; then it is no fast-forward any more."""
    add(graph, "people", person("d", 4))
    with meanwhile(graph, point, lambda g: g.load([knows("a", "b", "k7")], "append", options=PLAIN)):
        report = graph.merge_branch("people")
    merge, load = graph.commits()[:2]
    assert load.facts is not None
    assert load.facts.operation == "load"
    assert (str(report.outcome), report.commit, report.target_commit) == ("merged", merge.id, load.id)
    assert state(graph) == BEFORE | {"Person:d=4", "Knows:k7"}


@LAST
def test_the_later_of_two_merges_that_differ_is_refused(graph: Graph, point: CrashPoint) -> None:
    add(graph, "other", person("a", 7), person("d", 4))
    with (
        meanwhile(graph, point, lambda g: g.merge_branch("other")),
        pytest.raises(MergeConflictsError) as refused,
    ):
        graph.merge_branch("review")
    assert conflicts(refused.value) == {("node:Person", "a", "divergent_update")}
    assert state(graph) == (BEFORE - {"Person:a=1"}) | {"Person:a=7", "Person:d=4"}
    assert merged_heads(graph) == [head(graph, "other")]


@LAST
def test_merges_of_two_branches_into_each_other(graph: Graph, point: CrashPoint) -> None:
    graph.load([person("x", 5)], "merge", options=PLAIN)
    heads = head(graph, "review"), head(graph, "main")
    with meanwhile(graph, point, lambda g: g.merge_branch("main", "review")):
        graph.merge_branch("review")
    both = MERGED | {"Person:x=5"}
    assert (state(graph), state(graph, "review")) == (both, both)
    assert (merged_heads(graph)[:1], merged_heads(graph, "review")[:1]) == ([heads[0]], [heads[1]])
    report = graph.merge_branch("review")  # there are two bases now
    assert (set(report.bases), dict(report.tables)) == (set(heads), {})
    assert state(graph) == both


@STEPS
def test_an_edge_whose_end_is_deleted_meanwhile_is_not_merged(graph: Graph, point: CrashPoint) -> None:
    """The merge writes no node; what it relies on is looked at again."""
    add(graph, "edges", knows("a", "b", "k9"))
    with (
        meanwhile(graph, point, lambda g: g.delete("node:Person", ["b"])),
        pytest.raises(MergeConflictsError) as refused,
    ):
        graph.merge_branch("edges")
    assert conflicts(refused.value) == {("edge:Knows", "k9", "orphan_edge")}
    assert state(graph) == {"Person:a=1"}


@pytest.mark.parametrize("point", [CrashPoint.CHECKED, CrashPoint.BOUND], ids=lambda p: p.value)
def test_a_delete_takes_edges_along_that_are_merged_meanwhile(graph: Graph, point: CrashPoint) -> None:
    add(graph, "edges", knows("a", "b", "k9"))
    with meanwhile(graph, point, lambda g: g.merge_branch("edges")):
        graph.delete("node:Person", ["b"])
    assert state(graph) == {"Person:a=1"}
    assert len(merged_heads(graph)) == 1


@LAST
def test_a_deletion_of_the_source_and_a_merge_do_not_hurt_each_other(graph: Graph, point: CrashPoint) -> None:
    """What was planned on is merged, or nothing; and the name can be used again."""
    source = head(graph, "review")
    with meanwhile(graph, point, lambda g: g.delete_branch("review")):
        graph.merge_branch("review")
    assert state(graph) == MERGED
    assert merged_heads(graph) == [source]
    add(graph, "review", person("e", 6))
    graph.merge_branch("review")
    assert state(graph) == MERGED | {"Person:e=6"}


@pytest.mark.parametrize("point", [CrashPoint.BRANCH_FREE, CrashPoint.BRANCH_GONE], ids=lambda p: p.value)
def test_a_merge_of_a_branch_that_is_being_deleted(graph: Graph, point: CrashPoint) -> None:
    """As long as the manifest has it, it is merged; then it is not found."""
    ended: list[str] = []

    def merge(other: Graph) -> None:
        try:
            ended.append(str(other.merge_branch("review").outcome))
        except NotFoundError as error:
            ended.append(error.kind)

    with meanwhile(graph, point, merge):
        graph.delete_branch("review")
    there = point is CrashPoint.BRANCH_FREE
    assert ended == ["fast_forward" if there else "not_found"]
    assert state(graph) == (MERGED if there else BEFORE)
    assert graph.branches() == ["main", "draft"]


@LAST
def test_a_merge_into_a_branch_that_is_deleted_meanwhile(graph: Graph, point: CrashPoint) -> None:
    with (
        meanwhile(graph, point, lambda g: g.delete_branch("draft")),
        pytest.raises((NotFoundError, ConflictError)),
    ):
        graph.merge_branch("review", "draft")
    assert graph.branches() == ["main", "review"]
    graph.create_branch("draft")
    graph.merge_branch("review", "draft")
    assert (state(graph), state(graph, "draft")) == (BEFORE, MERGED)


def test_a_source_that_is_made_anew_before_it_is_read_is_not_merged(graph: Graph) -> None:
    """Its tables have the same versions then, and other rows."""

    def make_anew(other: Graph) -> None:
        other.delete_branch("review")
        add(other, "review", person("a", 5), person("e", 6), knows("e", "a", "k5"))

    with meanwhile(graph, CrashPoint.PLANNED, make_anew), pytest.raises(ConflictError, match="made anew"):
        graph.merge_branch("review")
    assert state(graph) == BEFORE
    graph.merge_branch("review")
    assert state(graph) == (BEFORE - {"Person:a=1"}) | {"Person:a=5", "Person:e=6", "Knows:k5"}


@STEPS
def test_maintenance_leaves_a_merge_its_files(graph: Graph, point: CrashPoint) -> None:
    graph.load([person("x", 5)], "append", options=PLAIN)

    def maintain(other: Graph) -> None:
        other.cleanup(timedelta(0), confirm=True)
        other.optimize()
        other.optimize(branch="review")
        other.ensure_indices()

    with meanwhile(graph, point, maintain):
        graph.merge_branch("review")
    assert state(graph) == MERGED | {"Person:x=5"}


def test_a_target_that_never_stands_still_is_a_conflict_and_no_half(graph: Graph) -> None:
    """Planned again a bounded number of times."""
    rounds: list[int] = []

    def again() -> None:
        rounds.append(len(rounds))
        Graph.open(graph.uri).load([person(f"n{len(rounds)}")], "append", options=PLAIN)
        points.append(stop_at(CrashPoint.CHECKED, again))
        points[-1].__enter__()

    points = [stop_at(CrashPoint.CHECKED, again)]
    with points[0], pytest.raises(ConflictError):
        graph.merge_branch("review")
    assert len(rounds) == 5
    assert state(graph) == BEFORE | {f"Person:n{n + 1}=0" for n in rounds}
