"""The verbs of branches on a real graph: what they print, what the summary says, and how they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph import BadRequestError, Graph, LoadOptions
from spark_omnigraph.cli import main

NO_INDEX = LoadOptions(build_indexes=False)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = Graph.init(tmp_path / "g", "node Room { name: String @key  size: I32? }")
    made.create_branch("draft")
    made.load(['{"type": "Room", "data": {"name": "attic"}}'], branch="draft", options=NO_INDEX)
    return made


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, json.loads(out.splitlines()[-1]), err


def test_the_list_tells_all_when_asked(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, err = run(capsys, "branch", "list", "--verbose", "--graph", graph.uri)
    head = graph.commits(branch="draft")[0].id
    assert code == 0
    assert body["result"][1] == {
        "name": "draft", "parent": "main", "manifest_version": graph.commits(branch="draft")[0].manifest_version,
        "head": head, "own_tables": ["node:Room"], "ahead": 1, "behind": 0, "merged_into": [],
    }  # laid out as a table  # fmt: skip
    assert head in err


def test_a_branch_is_deleted_by_name(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "branch", "delete", "draft", "--dry-run", "--graph", graph.uri)
    assert (code, graph.branches()) == (0, ["main", "draft"])
    assert "branch draft can be deleted; dry run: nothing was written" in err
    head = graph.commits(branch="draft")[0].id
    code, body, err = run(capsys, "branch", "delete", "draft", "--graph", graph.uri)
    assert (code, graph.branches(), body["branch"]) == (0, ["main"], "draft")
    assert body["result"] == {"deleted": [{"branch": "draft", "head": head, "forks": ["node:Room"], "warnings": []}]}
    assert f"deleted branch draft, with 1 table of its own; its head was {head}" in err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "give the NAME of a branch, or --merged"),
        (("draft", "--merged"), 2, "not both"),
        (("main",), 3, "cannot delete branch 'main'"),
        (("drat",), 6, "did you mean 'draft'?"),
    ],
)
def test_how_a_deletion_is_refused(
    graph: Graph, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, said: str
) -> None:
    got, body, _ = run(capsys, "branch", "delete", *words, "--graph", graph.uri)
    assert got == code
    assert said in str(body["error"])
    assert graph.branches() == ["main", "draft"]


@pytest.mark.parametrize(
    ("words", "branch"),
    [
        ("create draft/2", "draft/2"),
        ("delete nowhere", "nowhere"),
        ("delete", None),
        ("merge nowhere --into draft", "draft"),
        ("merge nowhere", "main"),
    ],
)
def test_what_fails_names_its_branch_too(
    graph: Graph, capsys: pytest.CaptureFixture[str], words: str, branch: str | None
) -> None:
    code, body, _ = run(capsys, "branch", *words.split(), "--graph", graph.uri)
    assert (code > 0, body["branch"]) == (True, branch)


def test_a_file_of_conflicts_is_refused_before_anything_is_staged(
    graph: Graph, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    path, before = tmp_path / "file" / "conflicts.jsonl", sorted(Path(graph.uri).rglob("*"))
    code, body, _ = run(capsys, "branch", "merge", "draft", "--graph", graph.uri, "--conflicts", str(path))
    assert (code, body["error"]["kind"]) == (2, "usage")
    assert f"'{path}' cannot be written: {tmp_path}/file is no folder" in body["error"]["error"]
    with pytest.raises(BadRequestError, match=r"file of conflicts '.*' cannot be written"):
        graph.merge_branch("draft", conflicts=path)
    assert sorted(Path(graph.uri).rglob("*")) == before


def test_nothing_is_merged_yet(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, err = run(capsys, "branch", "delete", "--merged", "--graph", graph.uri)
    assert (code, body["result"]) == (0, {"deleted": []})
    assert "no branch is merged that could be deleted" in err


def test_a_branch_is_merged_and_deleted(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, err = run(
        capsys, "branch", "merge", "draft", "--into", "main", "--delete-branch", "--actor", "ada", "--graph", graph.uri
    )
    newest = graph.commits()[0]
    assert (code, body["branch"], body["commit"]) == (0, "main", newest.id)
    counts = {"appended": 1, "updated": 0, "deleted": 0, "conflicts": 0, "pointer": False}
    assert (body["tables"], body["base_commit"]) == ({"node:Room": counts}, newest.parent)
    result = body["result"]
    assert isinstance(result, dict)
    assert (result["outcome"], result["source_commit"], result["branch_deleted"]) == (
        "fast_forward", newest.merged_parent, True,
    )  # laid out as a table  # fmt: skip
    assert f"merged draft into main: commit {newest.id}" in err
    assert graph.branches() == ["main"]


def test_conflicts_of_a_merge_are_counted_and_written(
    graph: Graph, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = ['{"type": "Room", "data": {"name": "attic", "size": 2}}']
    graph.load(lines, options=NO_INDEX)
    path = tmp_path / "conflicts.jsonl"
    code, body, err = run(capsys, "branch", "merge", "draft", "--conflicts", str(path), "--graph", graph.uri)
    assert code == 4
    assert body["error"] is not None
    assert "1 conflict of divergent_insert" in err
    assert json.loads(path.read_text())["id"] == "attic"
    assert f"all of them are in {path}" in err
    _, _, err = run(capsys, "branch", "merge", "draft", "--graph", graph.uri)
    assert "--conflicts PATH writes all of them to a file" in err
    code, body, _ = run(capsys, "branch", "merge", "draft", "--on-conflict", "source", "--graph", graph.uri)
    assert code == 3
    assert "name a file" in str(body["error"])
    line = {**json.loads(path.read_text()), "take": "source"}
    decided = tmp_path / "decided.jsonl"
    decided.write_text(json.dumps(line))
    words = ("branch", "merge", "draft", "--decisions", str(decided), "--graph", graph.uri)
    code, body, _ = run(capsys, *words, "--conflicts", str(decided))
    assert (code, decided.read_text()) == (2, json.dumps(line))
    assert "would be replaced" in str(body["error"])
    graph.load(['{"type": "Room", "data": {"name": "attic", "size": 3}}'], "merge", options=NO_INDEX)
    code, body, err = run(capsys, *words)
    assert (code, "1 decision was made on rows that are others by now" in err) == (4, True)
    graph.load(lines, "merge", options=NO_INDEX)
    code, body, _ = run(capsys, *words)
    assert (code, body["tables"]["node:Room"]["updated"]) == (0, 1)
