"""Two processes write the same graph at once: every key once, one winner a round, whole snapshots only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph.graph.handle import Graph
from tests.races.loads import SCHEMA, records
from tests.support.cases import Json
from tests.support.graph_files import recovery_files
from tests.support.workers import Worker

ROUNDS = 20
ATTEMPTS = 10


def round_keys(number: int, own: str) -> list[str]:
    """Three keys that both writers use in this round and two of their own."""
    return [f"r{number:02d}-shared-{i}" for i in range(3)] + [f"r{number:02d}-{own}-{i}" for i in range(2)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Graph.init(str(tmp_path / "graph"), SCHEMA)
    return tmp_path / "graph"


@pytest.fixture
def writers(partners: tuple[Worker, Worker]) -> dict[str, Worker]:
    return dict(zip("ab", partners, strict=True))


def let_go(writers: dict[str, Worker], number: int, mode: str) -> dict[str, Json]:
    """Both writers load at once; each conflict is tried again, as the contract promises is safe."""
    requests = {
        name: {"lines": records(f"{number}{name}", round_keys(number, name)), "mode": mode, "actor": f"act-{name}"}
        for name in writers
    }
    for name, worker in writers.items():
        worker.send("load", **requests[name])
    outcomes = {name: worker.receive() for name, worker in writers.items()}
    for name, worker in writers.items():
        for _ in range(ATTEMPTS):
            if outcomes[name]["outcome"] != "conflict":
                break
            outcomes[name] = worker.call("load", **requests[name])
    return outcomes


def stored(root: Path) -> dict[str, dict[str, str]]:
    """Table → id → tag; fails when an id occurs twice."""
    found: dict[str, dict[str, str]] = {"Part": {}, "Bin": {}, "In": {}}
    for line in Graph.open(str(root), mode="r").export():
        record = json.loads(line)
        table = found[record.get("type") or record["edge"]]
        assert record["data"]["id"] not in table, record
        table[record["data"]["id"]] = record["data"]["tag"]
    return found


def assert_commit_chain(root: Path, wins: int) -> None:
    """One commit a win on top of genesis, each on its own manifest version, in one unbranched line."""
    commits = Graph.open(str(root), mode="r").commits()
    assert len(commits) == wins + 1
    parents = [commit.parent for commit in commits]
    assert len(set(parents)) == len(parents)
    assert len({commit.manifest_version for commit in commits}) == len(commits)


@pytest.mark.timeout(600)
def test_appends_of_overlapping_keys_have_one_winner(root: Path, writers: dict[str, Worker]) -> None:
    expected: dict[str, str] = {}
    for number in range(ROUNDS):
        outcomes = let_go(writers, number, "append")
        assert sorted(each["outcome"] for each in outcomes.values()) == ["refused", "won"], json.dumps(
            outcomes, indent=1
        )
        for name, outcome in outcomes.items():
            if outcome["outcome"] == "won":
                expected.update(dict.fromkeys(round_keys(number, name), f"{number}{name}"))
            else:
                # The other writer's keys are stored by now: three nodes of either type and three edges.
                assert outcome["rules"] == {"key_conflict": 9}
    found = stored(root)
    assert found["Part"] == found["Bin"] == expected
    assert found["In"] == {f"in-{key}": tag for key, tag in expected.items()}
    assert recovery_files(root) == []
    assert_commit_chain(root, ROUNDS)


@pytest.mark.timeout(600)
def test_merges_of_overlapping_keys_both_land_whole(root: Path, writers: dict[str, Worker]) -> None:
    expected: dict[str, str] = {}
    for number in range(ROUNDS):
        outcomes = let_go(writers, number, "merge")
        assert [each["outcome"] for each in outcomes.values()] == ["won", "won"], json.dumps(outcomes, indent=1)
        last = "a" if outcomes["a"]["base"] == outcomes["b"]["commit"] else "b"
        assert outcomes[last]["base"] == outcomes["b" if last == "a" else "a"]["commit"]
        for name in ("b", "a") if last == "a" else ("a", "b"):
            expected.update(dict.fromkeys(round_keys(number, name), f"{number}{name}"))
    found = stored(root)
    assert found["Part"] == found["Bin"] == expected
    assert found["In"] == {f"in-{key}": tag for key, tag in expected.items()}
    assert recovery_files(root) == []
    assert_commit_chain(root, 2 * ROUNDS)


@pytest.mark.timeout(600)
def test_patches_of_different_properties_of_one_row_both_stay(root: Path, writers: dict[str, Worker]) -> None:
    keys = [f"k{number}" for number in range(5)]
    writers["a"].call("load", lines=records("first", keys), mode="append", actor="first")
    for number in range(ROUNDS // 2):
        given = {"a": "tag", "b": "note"}
        for name, member in given.items():
            lines = [json.dumps({"type": "Part", "data": {"code": key, member: f"{number}{name}"}}) for key in keys]
            writers[name].send("load", lines=lines, mode="update", actor=f"act-{name}")
        outcomes = [worker.receive() for worker in writers.values()]
        assert [each["outcome"] for each in outcomes] == ["won", "won"], json.dumps(outcomes, indent=1)
        data = [json.loads(line)["data"] for line in Graph.open(str(root), mode="r").export(types=["Part"])]
        assert {(row["tag"], row["note"]) for row in data} == {(f"{number}a", f"{number}b")}
    assert recovery_files(root) == []
    assert_commit_chain(root, 1 + ROUNDS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("mode", "rounds"), [("append", ROUNDS // 2), ("merge", ROUNDS), ("overwrite", ROUNDS // 2)])
def test_the_identical_file_again_and_again(
    root: Path, writers: dict[str, Worker], tmp_path: Path, mode: str, rounds: int
) -> None:
    """Two processes load it at once: after each round the graph opens, reads and writes."""
    keys, file = ["a", "b", "c"], tmp_path / "same.jsonl"
    file.write_text("\n".join(records("same", keys)), encoding="utf-8")
    for number in range(rounds):
        for worker in writers.values():
            worker.send("load", source=str(file), mode=mode, actor="twin")
        outcomes = [worker.receive() for worker in writers.values()]
        ends = [each["outcome"] for each in outcomes]
        if mode == "append":
            assert sorted(ends) == (["refused", "refused"] if number else ["refused", "won"]), outcomes
        else:
            assert set(ends) <= {"won", "conflict"}, json.dumps(outcomes, indent=1)
            assert "won" in ends
        if mode == "merge":
            assert {each["outcome"] for each in outcomes} == {"won"}, "merges are planned again"
        graph = Graph.open(str(root))
        assert graph.recovered == ()
        expected = {"Part": dict.fromkeys(keys, "same"), "Bin": dict.fromkeys(keys, "same")}
        expected["In"] = {f"in-{key}": "same" for key in keys}
        found = stored(root)
        assert {table: {k: found[table].get(k) for k in rows} for table, rows in expected.items()} == expected
        graph.load(records("other", [f"other-{number}"]), "merge")
        assert stored(root)["Part"][f"other-{number}"] == "other"
        assert recovery_files(root) == []


@pytest.mark.timeout(600)
def test_appends_of_different_keys_both_land(root: Path, writers: dict[str, Worker]) -> None:
    for number in range(ROUNDS):
        for name, worker in writers.items():
            keys = [f"r{number:02d}-{name}-{i}" for i in range(4)]
            worker.send("load", lines=records(f"{number}{name}", keys), mode="append", actor=name)
        for name, worker in writers.items():
            outcome = worker.receive()
            keys = [f"r{number:02d}-{name}-{i}" for i in range(4)]
            for _ in range(ATTEMPTS):
                if outcome["outcome"] != "conflict":
                    break
                outcome = worker.call("load", lines=records(f"{number}{name}", keys), mode="append", actor=name)
            assert outcome["outcome"] == "won", json.dumps(outcome)
    assert {table: len(rows) for table, rows in stored(root).items()} == dict.fromkeys(
        ("Part", "Bin", "In"), 2 * 4 * ROUNDS
    )
    assert recovery_files(root) == []
    assert_commit_chain(root, 2 * ROUNDS)


@pytest.mark.timeout(600)
def test_a_reader_sees_whole_loads_only(partners: tuple[Worker, Worker]) -> None:
    writer, reader = partners
    seen: list[dict[str, dict[str, int]]] = []
    for number in range(ROUNDS):
        mode = ("append", "merge", "overwrite")[number % 3]
        keys = [f"k{i}" for i in range(6)] if mode != "append" else [f"a{number}-{i}" for i in range(6)]
        reader.send("look_often", times=6)
        outcome = writer.call("load", lines=records(str(number), keys), mode=mode, actor="w")
        assert outcome["outcome"] == "won", json.dumps(outcome)
        seen.extend(reader.receive())
    whole = {"Part": 6, "Bin": 6, "In": 6}
    for picture in seen:
        assert all(tables == whole for tables in picture.values()), picture
    newest = [max((int(tag) for tag in picture), default=-1) for picture in seen]
    assert newest == sorted(newest)
    assert writer.call("look") == reader.call("look")
