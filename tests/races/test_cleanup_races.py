"""Clean-up without any age limit beside two processes that load into main, new branches and old ones: nobody loses."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import lance
import pytest

from spark_omnigraph.graph.handle import Graph
from tests.races.loads import SCHEMA, records
from tests.support.cases import Json
from tests.support.workers import Worker

ROUNDS = 10
ATTEMPTS = 10


def read_everything(root: Path) -> int:
    """Reads all rows of every version of every dataset on every branch; how many versions there are."""
    count = 0
    for place in sorted(root.rglob("_versions")):
        if "tree" in place.parts:
            continue
        names = lance.dataset(place.parent).branches.list()
        for folder in (place.parent, *(place.parent.joinpath("tree", *name.split("/")) for name in names)):
            for version in lance.dataset(folder).versions():
                lance.dataset(folder, version=version["version"]).to_table()
                count += 1
    return count


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Graph.init(str(tmp_path / "graph"), SCHEMA).load(records("main", ["m"]))
    return tmp_path / "graph"


@pytest.mark.timeout(600)
def test_cleanup_beside_loads(root: Path, partners: tuple[Worker, Worker]) -> None:
    graph = Graph.open(root)
    removed: list[str] = []
    workers = dict(zip("ab", partners, strict=True))
    for number in range(ROUNDS):
        branch = None if number % 3 == 0 else f"b{number // 2}"
        requests: dict[str, Json] = {
            name: {
                "lines": records(name, [f"{name}{number}"]),
                "mode": ("append", "merge")[number % 2],
                "actor": name,
                "branch": branch,
                "base": "main",
            }
            for name in workers
        }
        for name, worker in workers.items():
            worker.send("load", **requests[name])
        for _ in range(6):
            removed += [item.path for item in graph.cleanup(timedelta(0), confirm=True).items]
        for name, worker in workers.items():
            outcome = worker.receive()
            for _ in range(ATTEMPTS):
                if outcome["outcome"] != "conflict":
                    break
                outcome = worker.call("load", **requests[name])
            assert outcome["outcome"] == "won", json.dumps(outcome)
        found = {json.loads(line)["data"]["id"] for line in graph.export(["Part"], branch=branch or "main")}
        assert {f"a{number}", f"b{number}"} <= found
    assert read_everything(root) > 4 * ROUNDS
    assert graph.cleanup(timedelta(0)).kept == ()
