"""Branch names, creation and listing."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_omnigraph import BadRequestError, BranchExistsError, ConflictError, Graph, LoadOptions, NotFoundError
from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.branch.fork import clear_debris
from spark_omnigraph.manifest.branches import BranchName
from spark_omnigraph.storage.layout import RECOVERY

SCHEMA = "node Room { name: String @key }"
NO_INDEX = LoadOptions(build_indexes=False)


def room(name: str) -> str:
    return f'{{"type": "Room", "data": {{"name": "{name}"}}}}'


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", SCHEMA)


def test_main_is_the_unnamed_branch() -> None:
    assert parse_branch("main") is None
    assert parse_branch(" draft ") == "draft"
    assert parse_branch("team/x") == "team/x"


BAD_NAMES = [
    "",
    " ",
    "a b",
    "a//b",
    "/a",
    "a/",
    "a..b",
    "a\\b",
    "a.lock",
    "a:b",
    "a/main",
    ".",
    "a/./b",
    "./a",
    "x" * 300,
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_lance_or_the_layout_cannot_hold_are_refused(name: str) -> None:
    with pytest.raises(BadRequestError):
        parse_branch(name)


def test_a_dry_run_finds_what_a_creation_would(graph: Graph) -> None:
    assert graph.create_branch("draft", dry_run=True) == "draft"
    assert graph.branches() == ["main"]
    graph.create_branch("draft")
    for name, base, error in [
        ("draft", "main", BranchExistsError),
        ("draft/2", "main", BranchExistsError),
        ("new", "drafts", NotFoundError),
        ("main", "main", BadRequestError),
    ]:
        for dry_run in (True, False):
            with pytest.raises(error):
                graph.create_branch(name, base, dry_run=dry_run)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("DRAFT", "branch 'DRAFT' differs from branch 'Draft' in case alone"),
        ("draft/2", "branch 'draft/2' collides with branch 'Draft': one is a path prefix"),
        ("A", "branch 'A' collides with branch 'a/B'"),
        ("a/b", "branch 'a/b' differs from branch 'a/B' in case alone"),
    ],
)
def test_no_two_names_share_a_folder_on_a_disk_that_does_not_look_at_case(graph: Graph, name: str, says: str) -> None:
    for there in ("Draft", "a/B"):
        graph.create_branch(there)
    with pytest.raises(BranchExistsError, match=says):
        graph.create_branch(name)
    assert graph.branches() == ["main", "Draft", "a/B"]
    graph.delete_branch("Draft")
    assert graph.create_branch("draft") == "draft", "a name is free again once its branch is gone"


def test_an_existing_name_is_a_refusal_for_schedulers(graph: Graph) -> None:
    """Exit code 4 says "run again", which would never help."""
    graph.create_branch("draft")
    with pytest.raises(ConflictError, match="branch 'draft' exists already") as caught:
        graph.create_branch("draft")
    assert (caught.value.exit_code, caught.value.kind, caught.value.code) == (3, "branch_exists", "conflict")


def test_a_missing_branch_names_those_there_are(graph: Graph) -> None:
    graph.create_branch("review")
    where = f"in '{graph.uri}'"
    with pytest.raises(NotFoundError) as caught:
        Graph.open(graph.uri, branch="reveiw")
    assert caught.value.message == (
        f"branch 'reveiw' not found {where}; did you mean 'review'? (branches: main, review)"
    )
    with pytest.raises(NotFoundError) as caught:
        graph.load([], branch="x")
    assert caught.value.message == (
        f"branch 'x' not found {where} (branches: main, review); create it first, or name a base to create it from"
    )
    for number in range(10):
        graph.create_branch(f"b{number}")
    with pytest.raises(NotFoundError, match=r"\(branches: main, b0, .*b8, and 2 more\)"):
        graph.commits(branch="x")


def test_the_schema_lock_is_an_internal_name() -> None:
    with pytest.raises(BadRequestError, match="internal system ref"):
        parse_branch("__schema_apply_lock__")


def test_branches_are_listed_main_first(graph: Graph) -> None:
    graph.create_branch("zeta")
    graph.create_branch("alpha", base="zeta")
    assert graph.branches() == ["main", "alpha", "zeta"]
    assert graph.store.objects.list(RECOVERY) == []


def test_a_branch_shows_its_base_and_then_goes_its_own_way(graph: Graph) -> None:
    graph.load([room("a")])
    graph.create_branch("draft")
    graph.load([room("b")], branch="draft")
    graph.load([room("c")])
    assert graph.count("node:Room", branch="draft") == 2
    assert graph.count("node:Room") == 2
    names = list(graph.export(branch="draft"))
    assert ['"b"' in n or '"a"' in n for n in names] == [True, True]


def test_a_branch_of_a_branch_inherits_what_was_written_there(graph: Graph) -> None:
    graph.load([room("a")])
    graph.create_branch("one")
    graph.load([room("b")], branch="one")
    graph.create_branch("two", base="one")
    graph.load([room("c")], branch="two")
    assert [graph.count("node:Room", branch=b) for b in ("main", "one", "two")] == [1, 2, 3]
    entry = graph.snapshot(branch="two").entries["node:Room"]
    assert entry.branch == "two"


def test_only_tables_that_are_written_fork(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node A { k: String @key } node B { k: String @key }")
    graph.create_branch("draft")
    graph.load(['{"type": "A", "data": {"k": "1"}}'], branch="draft")
    entries = graph.snapshot(branch="draft").entries
    assert (entries["node:A"].branch, entries["node:B"].branch) == ("draft", None)


def test_an_existing_name_and_nested_names_are_conflicts(graph: Graph) -> None:
    graph.create_branch("a/b")
    for name in ("a/b", "a", "a/b/c"):
        with pytest.raises(ConflictError):
            graph.create_branch(name)


def test_a_missing_base_is_named(graph: Graph) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        graph.create_branch("x", base="nowhere")


def test_commits_of_a_branch_know_their_branch_and_parent(graph: Graph) -> None:
    first = graph.load([room("a")])
    graph.create_branch("draft")
    second = graph.load([room("b")], branch="draft", actor="ada")
    newest = graph.commits(branch="draft")[0]
    assert (newest.id, newest.branch, newest.parent, newest.actor) == (second.commit, "draft", first.commit, "ada")
    assert graph.commits()[0].id == first.commit


def test_a_left_over_fork_of_another_line_is_not_taken_for_ours(graph: Graph) -> None:
    graph.load([room("m1")], options=NO_INDEX)
    graph.create_branch("b1")
    graph.load([room("b")], branch="b1", options=NO_INDEX)
    graph.load([room("m2")], options=NO_INDEX)
    main, line = (graph.snapshot(branch=b).entries["node:Room"] for b in ("main", "b1"))
    assert main.version == line.version, "the case is about equal numbers"
    graph.store.open_table(main).create_branch("x", (None, main.version))
    graph.create_branch("x", base="b1")
    graph.load([room("new")], branch="x", options=NO_INDEX)
    names = sorted(line.split('"name": "')[1].split('"')[0] for line in graph.export(branch="x"))
    assert names == ["b", "m1", "new"]


def test_a_creation_that_died_before_its_branch_was_there_does_not_bar_its_name(graph: Graph) -> None:
    graph.load([room("m")], options=NO_INDEX)
    entry = graph.snapshot().entries["node:Room"]
    for path in ("__manifest", "_graph_commits.lance", entry.location):
        dataset = graph.store.open_dataset(path)
        dataset.create_branch("draft", None)
        graph.store.objects.delete(f"{path}/_refs/branches/draft.json")
    assert graph.branches() == ["main"]
    graph.create_branch("draft")
    graph.load([room("a")], branch="draft")
    assert (graph.count("node:Room", branch="draft"), graph.count("node:Room")) == (2, 1)


def test_what_lies_inside_or_comes_from_a_branch_keeps_its_folder(graph: Graph) -> None:
    dataset = graph.store.open_dataset("nodes/" + graph.snapshot().entries["node:Room"].location.split("/")[1])
    path = graph.snapshot().entries["node:Room"].location
    inner = dataset.create_branch("x/y", None)
    parent = dataset.create_branch("p", None)
    parent.create_branch("child", ("p", None))
    graph.store.objects.delete(f"{path}/_refs/branches/p.json")
    for name in ("x", "x/y", "p"):
        clear_debris(graph.store, path, BranchName(name))
    assert graph.store.objects.has_prefix(f"{path}/tree/p")
    assert inner.count_rows() == 0
    assert graph.store.open_dataset(f"{path}/tree/child").count_rows() == 0


def test_a_creation_that_died_half_way_can_be_repeated(graph: Graph) -> None:
    log = graph.store.open_dataset("_graph_commits.lance")
    log.create_branch("draft", (None, log.version))
    assert graph.branches() == ["main"]
    graph.create_branch("draft")
    graph.load([room("a")], branch="draft")
    assert graph.count("node:Room", branch="draft") == 1
