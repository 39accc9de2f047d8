"""A short form of the stress command, and what its checker must find."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from spark_omnigraph import Graph, StorageError
from tests.races import hand, stress
from tests.races.history import SCHEMA, check_history, first_rows, rows
from tests.support.cases import Json

SEED = 20260131


@pytest.mark.timeout(300)
def test_a_history_of_killed_and_of_late_processes(tmp_path: Path) -> None:
    tally = stress.run(str(tmp_path / "g"), 60.0, SEED, 8)
    assert tally.killed
    assert tally.stopped
    assert {"tries", "returned"} <= {answer["outcome"] for answer in tally.answers}
    counts = check_history(stress.finish(str(tmp_path / "g")), tally.answers)
    assert counts["commits"] > 3


def test_a_seed_decides_what_a_process_tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However its operations end: what is drawn does not depend on what was answered."""
    heard: list[list[Json]] = []
    for outcome in (None, StorageError("storage: refused by the test")):
        answers: list[Json] = []
        monkeypatch.setattr(hand, "say", answers.append)
        monkeypatch.setattr(hand, "Graph", _Stub(outcome))
        worker = hand.Worker(str(tmp_path), 11)
        for _ in range(100):
            worker.step()
        heard.append([a for a in answers if a["outcome"] == "tries"])
    assert heard[0] == heard[1]
    assert {a["mode"] for a in heard[0]} == {"append", "merge", "overwrite", "update", "delete"}


class _Stub:
    """Stands for the class `Graph`: every call returns it, or raises."""

    recovered: tuple[()] = ()
    commit, warnings = None, ()

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    def open(self, *arguments: object, **options: object) -> _Stub:
        if self._error is not None:
            raise self._error
        return self

    load = open

    def export(self, **options: object) -> list[str]:
        return []

    def optimize(self, **options: object) -> _Stub:
        return self

    tables: ClassVar[dict[str, object]] = {}
    mutate = open
    recover = ensure_indices = export


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(4))
def test_a_long_history(tmp_path: Path, seed: int) -> None:
    tally = stress.run(str(tmp_path / "g"), 120.0, seed, 8)
    check_history(stress.finish(str(tmp_path / "g")), tally.answers)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load(first_rows())
    return graph


def load(graph: Graph, tag: str, lines: list[str], mode: str) -> list[Json]:
    """A load and what a process would say of it."""
    report = graph.load(lines, mode, actor=tag)
    return [
        {"verb": "load", "tag": tag, "outcome": "tries", "lines": lines, "mode": mode, "branch": None},
        {"verb": "load", "tag": tag, "outcome": "returned", "commit": report.commit},
    ]


def test_the_checker_accepts_what_is_right(graph: Graph) -> None:
    answers = load(graph, "a", rows("a", ["k1"]), "merge") + load(graph, "b", rows("b", ["new"]), "append")
    assert check_history(graph, answers)["commits"] == 4


def test_the_checker_finds_a_lost_update(graph: Graph) -> None:
    answers = load(graph, "a", rows("a", ["k1"]), "merge")
    answers[0]["lines"] = rows("a", ["k1", "k2"])  # as if another load had overwritten what it wrote to k2
    with pytest.raises(AssertionError, match="is not what a makes of its parent"):
        check_history(graph, answers)


def test_the_checker_finds_a_load_that_was_reported_and_is_not_there(graph: Graph) -> None:
    answers = load(graph, "a", rows("a", ["k1"]), "merge")
    answers[1]["commit"] = "01J0000000000000000000000A"
    with pytest.raises(AssertionError, match="not in the log"):
        check_history(graph, answers)


def test_the_checker_finds_a_refused_load_that_is_visible(graph: Graph) -> None:
    answers = load(graph, "a", rows("a", ["k1"]), "merge")
    answers[1] = {"verb": "load", "tag": "a", "outcome": "conflict"}
    with pytest.raises(AssertionError, match="a was refused, and is commit"):
        check_history(graph, answers)


def mutate(graph: Graph, tag: str, mode: str, key: str) -> list[Json]:
    what = f'update Part set {{ tag: "{tag}" }}' if mode == "update" else "delete Part"
    result = graph.mutate(f'query q() {{ {what} where code = "{key}" }}', actor=tag)
    return [
        {"verb": "mutate", "tag": tag, "outcome": "tries", "mode": mode, "key": key, "branch": None},
        {"verb": "mutate", "tag": tag, "outcome": "returned", "commit": result.commit},
    ]


def test_the_checker_accepts_mutations_and_finds_an_edge_that_should_be_gone(graph: Graph) -> None:
    answers = mutate(graph, "a", "update", "k1") + mutate(graph, "b", "delete", "k2")
    assert check_history(graph, answers)["commits"] == 4
    answers[2]["mode"], answers[2]["tag"] = "update", "b"
    with pytest.raises(AssertionError, match="is not what b makes of its parent"):
        check_history(graph, answers)


def test_the_checker_finds_an_append_over_a_key_that_was_there(graph: Graph) -> None:
    answers = load(graph, "a", rows("a", ["k1"]), "merge")
    answers[0]["mode"] = "append"
    with pytest.raises(AssertionError, match="was there"):
        check_history(graph, answers)


def test_the_checker_finds_a_commit_that_nobody_made(graph: Graph) -> None:
    load(graph, "a", rows("a", ["k1"]), "merge")
    with pytest.raises(AssertionError, match="nobody made"):
        check_history(graph, [])
