"""Deleting branches, what bars it, and what is left of one (storage format, section 10)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from spark_omnigraph import BadRequestError, ConflictError, Graph, LoadOptions, NotFoundError, RecoveryRequiredError
from spark_omnigraph.branch.delete import MergedBranches
from spark_omnigraph.commit import protocol
from spark_omnigraph.commit.announced import announced
from spark_omnigraph.commit.claim import branch_claim, claimed
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.errors import WriterBusyError
from spark_omnigraph.manifest.branches import BranchName
from tests.crash.matrix import expire_leases

SCHEMA = "node Room { name: String @key }\nnode Key { tag: String @key }\nedge Opens: Key -> Room"
NO_INDEX = LoadOptions(build_indexes=False)


def room(name: str) -> str:
    return f'{{"type": "Room", "data": {{"name": "{name}"}}}}'


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = Graph.init(tmp_path / "g", SCHEMA)
    made.load([room("hall")], options=NO_INDEX)
    return made


def rooms(graph: Graph, branch: str = "main") -> list[object]:
    return [
        row["r.name"]
        for row in graph.query(
            "query q() { match { $r: Room } return { $r.name } order { $r.name asc } }", branch=branch
        ).to_pylist()
    ]


def folders(graph: Graph) -> list[str]:
    """Folders of Lance branches that are there, and references to them."""
    root = Path(graph.uri)
    trees = [str(p.relative_to(root)) for p in root.glob("**/tree/*")]
    return sorted(trees + [str(p.relative_to(root)) for p in root.glob("**/_refs/branches/*.json")])


def test_a_deleted_branch_leaves_nothing(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.load([room("attic")], branch="draft")
    assert announced(graph.store).notes == ("x_published~draft",)
    head = graph.commits(branch="draft")[0].id
    gone = graph.delete_branch("draft")
    assert (gone.branch, gone.head, gone.forks, gone.warnings) == ("draft", head, ("node:Room",), ())
    assert graph.branches() == ["main"]
    assert (folders(graph), announced(graph.store).notes) == ([], ())
    with pytest.raises(NotFoundError, match="branch 'draft' not found"):
        graph.count("node:Room", branch="draft")
    with pytest.raises(NotFoundError):
        graph.commit(head)
    assert rooms(graph) == ["hall"]


def test_a_name_may_be_used_again_at_once(graph: Graph) -> None:
    for name in ("attic", "cellar"):
        graph.create_branch("draft")
        graph.load([room(name)], branch="draft", options=NO_INDEX)
        assert rooms(graph, "draft") == sorted(["hall", name])
        graph.delete_branch("draft")


def test_what_cannot_be_deleted(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.create_branch("inner", base="draft")
    with pytest.raises(BadRequestError, match="cannot delete branch 'main'"):
        graph.delete_branch("main")
    with pytest.raises(NotFoundError, match=r"branch 'drat' not found .* did you mean 'draft'"):
        graph.delete_branch("drat")
    with pytest.raises(ConflictError, match="cannot delete branch 'draft' because descendant branch 'inner' still"):
        graph.delete_branch("draft")
    with pytest.raises(ConflictError, match="descendant branch 'inner'"):
        graph.delete_branch("draft", dry_run=True)
    assert graph.delete_branch("inner", dry_run=True).branch == "inner"
    assert graph.branches() == ["main", "draft", "inner"]


def test_a_branch_with_an_interrupted_write_stays_until_that_is_recovered(graph: Graph) -> None:
    graph.create_branch("draft")
    with pytest.raises(Crashed), stop_at(CrashPoint.ARMED):
        graph.load([room("attic")], branch="draft", options=NO_INDEX)
    expire_leases(graph)
    with pytest.raises(RecoveryRequiredError, match="interrupted Load"):
        graph.delete_branch("draft")
    graph.recover()
    graph.delete_branch("draft")
    assert graph.branches() == ["main"]


@pytest.mark.parametrize("point", [CrashPoint.BRANCH_FREE, CrashPoint.BRANCH_GONE])
def test_a_deletion_that_died_leaves_the_branch_or_orphans_that_clean_up_removes(
    graph: Graph, point: CrashPoint
) -> None:
    graph.create_branch("draft")
    graph.load([room("attic")], branch="draft", options=NO_INDEX)
    with pytest.raises(Crashed), stop_at(point):
        graph.delete_branch("draft")
    if point is CrashPoint.BRANCH_FREE:
        assert rooms(graph, "draft") == ["attic", "hall"]
        graph.delete_branch("draft")
    else:
        assert graph.branches() == ["main"]
        assert len(folders(graph)) == 4
        graph.cleanup(timedelta(0), confirm=True)
    assert folders(graph) == []


def test_a_writer_waits_for_a_deletion_and_finds_the_branch_gone(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "TURNS", 2)
    graph.create_branch("draft")
    with claimed(graph.store, branch_claim(BranchName("draft"))):
        with pytest.raises(WriterBusyError):
            graph.load([room("attic")], branch="draft", options=NO_INDEX)
        graph.load([room("cellar")], options=NO_INDEX)
    assert rooms(graph) == ["cellar", "hall"]
    assert rooms(graph, "draft") == ["hall"]
    graph.load([room("attic")], branch="draft", options=NO_INDEX)
    assert rooms(graph, "draft") == ["attic", "hall"]


def test_merged_branches_are_those_whose_commits_main_has(graph: Graph) -> None:
    graph.create_branch("new")
    graph.create_branch("draft")
    graph.load([room("attic")], branch="draft", options=NO_INDEX)
    assert graph.delete_merged_branches() == MergedBranches((), ())
    assert graph.branches() == ["main", "draft", "new"]


def test_a_branch_is_known_by_its_parent_head_and_distance(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.create_branch("inner", base="draft")
    graph.load([room("attic")], branch="draft", options=NO_INDEX)
    graph.load([room("cellar")], branch="draft", options=NO_INDEX)
    graph.load([room("porch")], options=NO_INDEX)
    main, draft, inner = graph.branch_infos()
    heads = {name: graph.commits(branch=name)[0] for name in graph.branches()}
    assert (main.name, main.parent, main.head, main.ahead, main.behind) == ("main", None, heads["main"].id, 0, 0)
    assert main.own_tables == ("edge:Opens", "node:Key", "node:Room")
    assert (draft.name, draft.parent, draft.head, draft.ahead, draft.behind) == (
        "draft",
        "main",
        heads["draft"].id,
        2,
        1,
    )
    assert (draft.own_tables, draft.manifest_version) == (("node:Room",), heads["draft"].manifest_version)
    assert (inner.parent, inner.ahead, inner.behind, inner.own_tables) == ("draft", 0, 2, ())
    assert (draft.merged_into, inner.merged_into) == ((), ())


def test_a_branch_starts_at_an_earlier_state(graph: Graph) -> None:
    first = graph.commits()[0]
    graph.load([room("attic")], options=NO_INDEX)
    graph.load([room("cellar")], options=NO_INDEX)
    graph.create_branch("then", snapshot=first.id)
    graph.create_branch("later", version=first.manifest_version + 1)
    assert rooms(graph, "then") == ["hall"]
    assert rooms(graph, "later") == ["attic", "hall"]
    assert [c.id for c in graph.commits(branch="then")] == [c.id for c in graph.commits()[2:]]
    graph.load([room("porch")], branch="then", options=NO_INDEX)
    assert rooms(graph, "then") == ["hall", "porch"]
    assert graph.commits(branch="then")[0].parent == first.id
    info = next(each for each in graph.branch_infos() if each.name == "then")
    assert (info.ahead, info.behind) == (1, 2)
    with pytest.raises(NotFoundError, match="manifest version 99 not found"):
        graph.create_branch("never", version=99)
    graph.create_branch("empty", version=1)  # from before the graph had the stamp of its format
    graph.load([room("yard")], branch="empty", options=NO_INDEX)
    assert rooms(graph, "empty") == ["yard"]


def test_a_snapshot_of_another_branch_is_where_a_branch_starts(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.load([room("attic")], branch="draft", options=NO_INDEX)
    point = graph.commits(branch="draft")[0].id
    graph.load([room("cellar")], branch="draft", options=NO_INDEX)
    graph.create_branch("fix", snapshot=point)
    assert rooms(graph, "fix") == ["attic", "hall"]
    assert next(each for each in graph.branch_infos() if each.name == "fix").parent == "draft"
