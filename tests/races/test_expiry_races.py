"""Expiry of all that may go, beside two processes that load into main and into branches: nobody loses, tags stay."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from spark_omnigraph import ConflictError
from spark_omnigraph.branch.orphans import Shown, what_is_shown
from spark_omnigraph.commit import owners
from spark_omnigraph.errors import VersionExpiredError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.maintain import expire
from spark_omnigraph.storage.graph_store import GraphStore
from tests.races.loads import SCHEMA, records
from tests.support.cases import Json
from tests.support.workers import Worker

ROUNDS = 3
ATTEMPTS = 10


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Graph.init(str(tmp_path / "graph"), SCHEMA).load(records("main", ["m"]))
    return tmp_path / "graph"


def parts(graph: Graph) -> set[str]:
    return {json.loads(line)["data"]["id"] for line in graph.export(["Part"])}


@pytest.mark.timeout(600)
def test_expiry_beside_loads_branches_and_tags(
    root: Path, partners: tuple[Worker, Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clocks of one machine do not differ, so that what is a moment old may go."""
    monkeypatch.setattr(owners, "SKEW", 0.0)
    graph = Graph.open(root)
    tagged: dict[str, set[str]] = {}
    removed = 0
    workers = dict(zip("ab", partners, strict=True))
    for number in range(ROUNDS):
        branch = None if number % 2 == 0 else f"b{number}"
        for name, worker in workers.items():
            worker.send("load", **request(name, number, branch))
        for turn in range(4):
            expiry = graph.cleanup(timedelta(0), keep=1, confirm=True, force=True).expiry
            assert expiry is not None
            removed += expiry.versions
            if turn == 1:
                tag = graph.tag(f"t{number}")
                tagged[tag.name] = parts(graph.at(tag=tag.name))
                branch_off(graph, f"side{number}")
        for name, worker in workers.items():
            until_won(worker, request(name, number, branch))
        assert {f"a{number}", f"b{number}"} <= parts(graph.at(branch=branch or "main"))
        for name, ids in tagged.items():
            assert parts(graph.at(tag=name)) == ids
    for branch in graph.branches():
        assert "m" in parts(graph.at(branch=branch))
        if branch != "main":
            graph.merge_branch(branch, dry_run=True)
    assert removed > 4 * ROUNDS
    assert graph.cleanup(timedelta(0)).kept == ()
    with pytest.raises(VersionExpiredError):
        graph.at(version=2)


def test_a_branch_that_is_deleted_while_an_expiry_looks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.open(root)
    graph.create_branch("draft")
    graph.load(records("draft", ["d"]), "merge", branch="draft")

    def then_deleted(store: GraphStore) -> Shown:
        shown = what_is_shown(store)
        monkeypatch.setattr(expire, "what_is_shown", what_is_shown)
        Graph.open(root).delete_branch("draft")
        return shown

    monkeypatch.setattr(owners, "SKEW", 0.0)
    monkeypatch.setattr(expire, "what_is_shown", then_deleted)
    report = graph.cleanup(timedelta(0), keep=1, force=True)
    assert report.expiry is not None
    assert Graph.open(root).branches() == ["main"]
    assert parts(Graph.open(root)) == {"m"}


def until_won(worker: Worker, asked: dict[str, Json]) -> None:
    """The answer to a load, which is tried again while it is a conflict."""
    outcome = worker.receive()
    for _ in range(ATTEMPTS):
        if outcome["outcome"] != "conflict":
            break
        outcome = worker.call("load", **asked)
    assert outcome["outcome"] == "won", json.dumps(outcome)


def request(name: str, number: int, branch: str | None) -> dict[str, Json]:
    """A load of one part, into a branch that is made from main when it is missing."""
    lines = records(name, [f"{name}{number}"])
    return {"lines": lines, "mode": ("append", "merge")[number % 2], "actor": name, "branch": branch, "base": "main"}


def branch_off(graph: Graph, name: str) -> None:
    """A branch at the newest commit, which may just expire: then it is made of what is newest afterwards."""
    for _ in range(ATTEMPTS):
        try:
            graph.create_branch(name, snapshot=graph.commits(limit=1)[0].id)
        except (VersionExpiredError, ConflictError):
            continue
        return
    pytest.fail("no state could be named")
