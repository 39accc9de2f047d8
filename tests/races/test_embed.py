"""Embedding while others load, mutate and merge: no vector is ever that of another text, and no change is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.mock import MockEmbedder
from tests.crash.worlds import assert_whole
from tests.races.loads import records
from tests.support.cases import Json
from tests.support.workers import Worker

SCHEMA = """
node Part { code: String @key  tag: String  vec: Vector(2)? @embed("tag") }
node Bin { code: String @key  tag: String  vec: Vector(2)? @embed("tag") }
edge In: Part -> Bin { tag: String }
"""
ROUNDS = 8
ATTEMPTS = 10
KEYS = [f"k{n}" for n in range(6)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    graph = Graph.init(str(tmp_path / "graph"), SCHEMA)
    graph.load(records("first", KEYS), options=LoadOptions(build_indexes=False))
    return tmp_path / "graph"


def vector(tag: str) -> list[float]:
    found: list[float] = MockEmbedder().embed([tag], dimension=2, role=Role.DOCUMENT).vectors[0].tolist()
    return found


def nodes(graph: Graph, snapshot: str | None = None) -> dict[tuple[str, str], tuple[str, list[float] | None]]:
    rows = (json.loads(line) for line in graph.export(["Part", "Bin"], snapshot=snapshot))
    return {(row["type"], row["data"]["code"]): (row["data"]["tag"], row["data"]["vec"]) for row in rows}


@pytest.mark.timeout(600)
def test_vectors_beside_loads_and_merges(root: Path, partners: tuple[Worker, Worker]) -> None:
    graph, (writer, embedder) = Graph.open(root), partners
    expected = dict.fromkeys(KEYS, "first")
    for number in range(ROUNDS):
        tag, keys = f"t{number}", KEYS[number % 3 :: 2]
        work: tuple[str, Json] = ("load", {"lines": records(tag, keys), "mode": "merge", "actor": "a"})
        if number % 2:
            keys = [f"new{number}", f"more{number}"]
            lines, branch = records(tag, keys), f"draft{number}"
            graph.load(lines, branch=branch, base="main", options=LoadOptions(build_indexes=False))
            work = ("merge", {"source": branch})
        expected.update(dict.fromkeys(keys, tag))
        writer.send(work[0], **work[1])
        embedder.send("embed")
        ends = [writer.receive(), embedder.receive()]
        for _ in range(ATTEMPTS):
            if ends[0]["outcome"] == "conflict":
                ends[0] = writer.call(work[0], **work[1])
            if ends[1]["outcome"] == "conflict":
                ends[1] = embedder.call("embed")
        assert [each["outcome"] for each in ends] == ["won", "won"], ends
    assert embedder.call("embed")["outcome"] == "won"
    assert nodes(graph) == {
        (kind, key): (tag, vector(tag)) for kind in ("Part", "Bin") for key, tag in expected.items()
    }
    for commit in graph.commits():
        for tag, found in nodes(graph, commit.id).values():
            assert found in (None, vector(tag)), "the vector of another text"
    assert_whole(graph)
    assert graph.interrupted() == graph.running() == []
