"""Two processes mutate one graph at once: rules hold whoever wins, and nothing that was reported is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph.graph.handle import Graph
from tests.crash.worlds import assert_whole
from tests.support.cases import Json
from tests.support.workers import Worker

SCHEMA = "node P { name: String @key  mail: String? @unique  n: I32? }\nedge K: P -> P"
ROUNDS = 6
ATTEMPTS = 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    graph = Graph.init(str(tmp_path / "graph"), SCHEMA)
    graph.load([json.dumps({"type": "P", "data": {"name": f"p{i}", "n": 0}}) for i in range(ROUNDS)])
    return tmp_path / "graph"


@pytest.fixture
def writers(partners: tuple[Worker, Worker]) -> tuple[Worker, Worker]:
    return partners


def both(writers: tuple[Worker, Worker], first: str, second: str) -> list[Json]:
    """Both at once; conflicts are tried again, as the contract promises is safe."""
    texts = [f"query q() {{ {statements} }}" for statements in (first, second)]
    for worker, text in zip(writers, texts, strict=True):
        worker.send("mutate", text=text)
    outcomes = [worker.receive() for worker in writers]
    for place, (worker, text) in enumerate(zip(writers, texts, strict=True)):
        for _ in range(ATTEMPTS):
            if outcomes[place]["outcome"] != "conflict":
                break
            outcomes[place] = worker.call("mutate", text=text)
    return outcomes


def rows(root: Path) -> tuple[dict[str, Json], list[tuple[str, str]]]:
    """People by name, and the ends of all edges."""
    people, edges = {}, []
    for line in Graph.open(str(root), mode="r").export():
        record = json.loads(line)
        if "edge" in record:
            edges.append((record["from"], record["to"]))
        else:
            assert record["data"]["name"] not in people
            people[record["data"]["name"]] = record["data"]
    return people, edges


@pytest.mark.timeout(300)
def test_one_of_two_takes_a_unique_value(root: Path, writers: tuple[Worker, Worker]) -> None:
    for number in range(ROUNDS):
        first, second = (f'insert P {{ name: "{own}{number}", mail: "m{number}" }}' for own in "ab")
        outcomes = both(writers, first, second)
        assert sorted(outcome["outcome"] for outcome in outcomes) == ["refused", "won"], outcomes
    people, _ = rows(root)
    mails = [row["mail"] for row in people.values() if row["mail"] is not None]
    assert sorted(mails) == sorted(f"m{number}" for number in range(ROUNDS))
    assert_whole(Graph.open(str(root)))


@pytest.mark.timeout(300)
def test_an_edge_and_the_end_of_its_node(root: Path, writers: tuple[Worker, Worker]) -> None:
    for number in range(1, ROUNDS):
        edge, end = f'insert K {{ from: "p0", to: "p{number}" }}', f'delete P where name = "p{number}"'
        outcomes = both(writers, edge, end)
        assert outcomes[1]["outcome"] == "won", outcomes
        assert outcomes[0]["outcome"] in ("won", "refused"), outcomes
        assert outcomes[1]["affected"] == [1, int(outcomes[0]["outcome"] == "won")], outcomes
    people, edges = rows(root)
    assert people.keys() == {"p0"}
    assert edges == []
    assert_whole(Graph.open(str(root)))


@pytest.mark.timeout(300)
def test_updates_of_two_processes_are_both_there(root: Path, writers: tuple[Worker, Worker]) -> None:
    for number in range(ROUNDS):
        other = (number + 1) % ROUNDS
        first = f'update P set {{ n: {number + 1} }} where name = "p{number}"'
        second = f'update P set {{ mail: "m{number}" }} where name = "p{other}"'
        assert [outcome["outcome"] for outcome in both(writers, first, second)] == ["won", "won"]
    people, _ = rows(root)
    assert {name: row["n"] for name, row in people.items()} == {f"p{i}": i + 1 for i in range(ROUNDS)}
    assert {row["mail"] for row in people.values()} == {f"m{i}" for i in range(ROUNDS)}
    assert_whole(Graph.open(str(root)))


@pytest.mark.timeout(300)
def test_a_table_is_compacted_under_a_writer(root: Path, writers: tuple[Worker, Worker]) -> None:
    writer, keeper = writers
    for number in range(ROUNDS):
        keeper.send("optimize")
        text = f'query q() {{ insert P {{ name: "q{number}" }} insert K {{ from: "q{number}", to: "p0" }} }}'
        assert writer.call("mutate", text=text)["outcome"] == "won"
        keeper.receive()
    assert keeper.call("optimize") == {"edge:K": 1, "node:P": 1}
    people, edges = rows(root)
    assert len(people) == 2 * ROUNDS
    assert sorted(edges) == sorted((f"q{i}", "p0") for i in range(ROUNDS))
    assert_whole(Graph.open(str(root)))
