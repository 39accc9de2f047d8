"""Two processes write a branch that neither has seen: one creation, one fork a table, both loads, no damage.

Racing creations of a Lance branch at different versions leave a branch whose head is not the one its reference names,
so this is where a missing claim would show.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph.graph.handle import Graph
from tests.races.loads import SCHEMA, records
from tests.support.cases import Json
from tests.support.graph_files import internal, pins, recovery_files
from tests.support.workers import Worker

ROUNDS = 8
ATTEMPTS = 10


@pytest.fixture
def root(tmp_path: Path) -> Path:
    graph = Graph.init(str(tmp_path / "graph"), SCHEMA)
    graph.load(records("main", ["m0", "m1"]))
    return tmp_path / "graph"


@pytest.fixture
def writers(partners: tuple[Worker, Worker]) -> dict[str, Worker]:
    return dict(zip("ab", partners, strict=True))


def together(writers: dict[str, Worker], requests: dict[str, Json]) -> dict[str, Json]:
    """Both load at once; a conflict is tried again."""
    for name, worker in writers.items():
        worker.send("load", **requests[name])
    outcomes = {name: worker.receive() for name, worker in writers.items()}
    for name, worker in writers.items():
        for _ in range(ATTEMPTS):
            if outcomes[name]["outcome"] != "conflict":
                break
            outcomes[name] = worker.call("load", **requests[name])
    return outcomes


def ids(root: Path, branch: str) -> list[str]:
    lines = Graph.open(str(root), mode="r").export(tables=["node:Part"], branch=branch)
    return [json.loads(line)["data"]["id"] for line in lines]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("exists", [False, True], ids=["branch-is-new", "tables-are-not-forked"])
def test_two_first_writers_of_a_branch(root: Path, writers: dict[str, Worker], exists: bool) -> None:
    main_before = pins(root)
    for number in range(ROUNDS):
        branch = f"team/b{number}"
        if exists:
            Graph.open(str(root)).create_branch(branch)
        requests = {
            name: {
                "lines": records(name, [f"{name}{i}" for i in range(3)]),
                "mode": "append",
                "actor": name,
                "branch": branch,
                "base": "main",
            }
            for name in writers
        }
        outcomes = together(writers, requests)
        assert [each["outcome"] for each in outcomes.values()] == ["won", "won"], json.dumps(outcomes, indent=1)
        assert ids(root, branch) == ["a0", "a1", "a2", "b0", "b1", "b2", "m0", "m1"]
        assert_branch_is_sound(root, branch)
    assert pins(root) == main_before
    assert recovery_files(root) == []


def assert_branch_is_sound(root: Path, branch: str) -> None:
    """The references agree with what stands under the branch, and every head is pinned."""
    assert branch in internal(root, "__manifest").branches.list()
    for pin in pins(root, branch).values():
        assert pin.branch == branch
        assert pin.head(root).version == pin.version
        assert pin.open(root).count_rows() == pin.row_count == 8
        named = internal(root, pin.location).branches.list()[branch]["parent_version"]
        oldest = min(version["version"] for version in pin.head(root).versions())
        assert oldest == named
