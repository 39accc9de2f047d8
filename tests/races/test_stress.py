"""A short form of the stress command, and what its checker must find."""

from __future__ import annotations

import copy
import random
import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import ClassVar

import pytest

from spark_omnigraph import Commit, Graph, StorageError
from spark_omnigraph.embed.mock import MockEmbedder
from tests.races import damage, hand, stress
from tests.races.damage import Breaker
from tests.races.hand import side
from tests.races.history import check_history
from tests.races.pins import Pins
from tests.races.remade import check_remade
from tests.races.states import SCHEMA, first_rows, rows
from tests.support.cases import Json

SEED = 20260131


@pytest.mark.timeout(300)
def test_a_history_of_killed_and_of_late_processes(tmp_path: Path) -> None:
    tally = stress.run(str(tmp_path / "g"), 60.0, SEED, 8)
    assert tally.killed
    assert tally.stopped
    assert {"tries", "returned"} <= {answer["outcome"] for answer in tally.answers}
    counts, violations = stress.check(str(tmp_path / "g"), tally)
    assert violations == []
    assert counts["main"]["commits"] > 3
    assert tally.damages


def test_a_seed_decides_what_a_process_tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However its operations end: what is drawn does not depend on what was answered."""
    heard: list[list[Json]] = []
    for outcome in (None, StorageError("storage: refused by the test")):
        answers: list[Json] = []
        monkeypatch.setattr(hand, "say", answers.append)
        for name in ("Graph", "write_frame", "write_stream"):
            monkeypatch.setattr(hand, name, _Stub(outcome))
        monkeypatch.setattr(hand, "Pins", lambda: _Stub(None))
        worker = hand.Worker(str(tmp_path), 11)
        for _ in range(300):
            worker.step()
        heard.append([a for a in answers if a["outcome"] == "tries"])
    assert heard[0] == heard[1]
    assert {a["mode"] for a in heard[0]} == {
        "append",
        "merge",
        "overwrite",
        "changes",
        "update",
        "delete",
        "remake",
        "merge_branch",
        "private_load",
        "private_erase",
        "evolve",
        "embed",
    }
    verbs = {"load", "mutate", "frame", "stream", "remake", "merge", "private", "evolve", "embed", "sync"}
    assert {a["verb"] for a in heard[0]} == verbs


class _Stub:
    """Stands for the class `Graph` and for writes of frames: every call returns it, or raises."""

    recovered: tuple[()] = ()
    commit, base_commit, warnings, items, files, done = None, None, (), (), 0, True
    source_commit, target_commit, outcome = "s", "t", "merged"

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    def open(self, *arguments: object, **options: object) -> _Stub:
        if self._error is not None:
            raise self._error
        return self

    load = init = cleanup = merge_branch = delete_branch = copy = erase = apply_schema = __call__ = open

    def step(self, *arguments: object) -> Json:
        return {"outcome": "pinned"}

    def export(self, **options: object) -> list[str]:
        return []

    def optimize(self, **options: object) -> _Stub:
        return self

    tables: ClassVar[dict[str, object]] = {}
    mutate = embed = open
    recover = ensure_indices = commits = branches = export


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(4))
def test_a_long_history(tmp_path: Path, seed: int) -> None:
    leases = ("short", "shipped")[seed % 2]
    tally = stress.run(str(tmp_path / "g"), 120.0, seed, 8, leases)
    assert stress.check(str(tmp_path / "g"), tally, leases)[1] == []


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


def test_the_checker_accepts_vectors_and_finds_those_of_another_text(graph: Graph) -> None:
    tries = {"verb": "embed", "tag": "e", "outcome": "tries", "mode": "embed", "branch": None}
    report = graph.embed("Part", embedder=MockEmbedder("m"), actor="e")
    answers: list[Json] = [{**tries, "rows": "missing", "types": ["Part"]}]
    answers += [{"verb": "embed", "tag": "e", "outcome": "returned", "commit": report.commit}]
    answers += mutate(graph, "a", "update", "k1")  # and the vector stays
    assert check_history(graph, answers)["commits"] == 4
    for wrong in ({"types": ["Bin"]}, {"types": ["Bin", "Part"]}):
        with pytest.raises(AssertionError, match="is not what e makes of its parent"):
            check_history(graph, [{**answers[0], **wrong}, *answers[1:]])


def test_the_checker_finds_an_append_over_a_key_that_was_there(graph: Graph) -> None:
    answers = load(graph, "a", rows("a", ["k1"]), "merge")
    answers[0]["mode"] = "append"
    with pytest.raises(AssertionError, match="was there"):
        check_history(graph, answers)


def test_the_checker_finds_a_commit_that_nobody_made(graph: Graph) -> None:
    load(graph, "a", rows("a", ["k1"]), "merge")
    with pytest.raises(AssertionError, match="nobody made"):
        check_history(graph, [])


def told(verb: str, tag: str, begin: float, end: float, **facts: object) -> list[Json]:
    """What a process says of something that it did to the graph that is made anew."""
    common = {"verb": verb, "tag": tag, "graph": "side"}
    return [
        {**common, "outcome": "tries", "mode": "append", "branch": None, "at": begin, **facts},
        {**common, "outcome": "returned", "at": end, **facts},
    ]


def side_load(graph: Graph, tag: str, begin: float, end: float) -> list[Json]:
    lines = rows(tag, [tag])
    report = graph.load(lines, actor=tag)
    return told("load", tag, begin, end, lines=lines, commit=report.commit, base=report.base_commit)


@pytest.fixture
def remade(tmp_path: Path) -> tuple[Graph, list[Json]]:
    """A graph that an init replaced after one load, and that has another one since."""
    answers = side_load(Graph.init(tmp_path / "s", SCHEMA), "a", 1.0, 2.0)
    graph = Graph.init(tmp_path / "s", SCHEMA, force=True)
    return graph, answers + told("remake", "i", 3.0, 4.0) + side_load(graph, "b", 5.0, 6.0)


def test_the_checker_accepts_a_load_that_a_later_init_replaced(remade: tuple[Graph, list[Json]]) -> None:
    counts = check_remade(*remade)
    assert (counts["acknowledged"], counts["replaced"], counts["inits"], counts["commits"]) == (2, 1, 1, 2)


def test_the_checker_finds_a_load_that_no_init_replaced(remade: tuple[Graph, list[Json]]) -> None:
    graph, answers = remade
    for end in ({"outcome": "writer_busy"}, {"at": 0.5}):  # refused, and over before the load began
        wrong = [{**a, **end} if a["tag"] == "i" and a["outcome"] == "returned" else a for a in answers]
        with pytest.raises(AssertionError, match="no init came after it"):
            check_remade(graph, wrong)


def test_the_checker_finds_a_load_that_outlived_an_init(remade: tuple[Graph, list[Json]]) -> None:
    graph, answers = remade
    with pytest.raises(AssertionError, match="still there"):
        check_remade(graph, answers + told("remake", "j", 7.0, 8.0))


def test_the_checker_finds_a_load_that_is_gone_though_its_base_stands(remade: tuple[Graph, list[Json]]) -> None:
    graph, answers = remade
    wrong = [{**a, "base": graph.commits()[0].id} if a["tag"] == "a" else a for a in answers]
    with pytest.raises(AssertionError, match="that it was based on is not"):
        check_remade(graph, wrong)


def test_a_damaged_file_is_told_and_put_back(graph: Graph) -> None:
    for branch in stress.BRANCHES:
        graph.create_branch(branch)
    log: list[Json] = []
    found = Breaker(graph.uri, random.Random(2), log).strike(3)
    assert {damage.kind for damage in found} == {"index", "table version", "manifest version"}
    assert [damage.violations for damage in found] == [[], [], []]
    assert {damage.outcomes["afterwards main"] for damage in found} == {"right"}
    assert {answer["outcome"] for answer in log} > {"tries"}


def test_the_breaker_finds_rows_that_changed(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    for branch in stress.BRANCHES:
        graph.create_branch(branch)
    numbers = count()
    monkeypatch.setattr(damage, "digest", lambda lines: next(numbers))
    found = Breaker(graph.uri, random.Random(2), []).strike(1)
    assert any("shows other rows" in text for text in found[0].violations)


def test_a_pin_that_shows_something_else_is_found(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    pins = Pins()
    assert pins.step(graph.uri, None, 0.1) == {"outcome": "pinned"}
    assert pins.step(graph.uri, None, 0.1)["outcome"] == "same"
    monkeypatch.setattr("tests.races.pins.digest", lambda lines: "other")
    assert pins.step(graph.uri, None, 0.1)["outcome"] == "bent"


def test_a_graph_whose_init_died_is_made_once_more(tmp_path: Path) -> None:
    """And what was acknowledged before is lost, unless the checker knows of such an init."""
    answers = side_load(Graph.init(side(str(tmp_path / "g")), SCHEMA), "a", 1.0, 2.0)
    shutil.rmtree(f"{side(str(tmp_path / 'g'))}/__manifest")
    graph = stress.finish_side(str(tmp_path / "g"), "shipped")
    with pytest.raises(AssertionError, match="no init came after it"):
        check_remade(graph, answers)
    assert check_remade(graph, answers + told("remake", "i", 3.0, 4.0)[:1])["replaced"] == 1


def review(graph: Graph, tag: str, keys: list[str]) -> list[Json]:
    lines = rows(tag, keys)
    report = graph.load(lines, "merge", branch="review/0", base="main", actor=tag)
    tries = {"outcome": "tries", "lines": lines, "mode": "merge", "branch": "review/0", "at": 1.0}
    return [
        {"verb": "load", "tag": tag, **tries},
        {"verb": "review", "tag": tag, "outcome": "returned", "commit": report.commit, "at": 2.0},
    ]


def by_hand(root: str, monkeypatch: pytest.MonkeyPatch, name: str, *drawn: str) -> list[Json]:
    """A merge or a deletion as a process does it; what it draws is given."""
    said: list[Json] = []
    numbers = count(len(drawn) * 10)
    monkeypatch.setattr(hand, "say", lambda answer: said.append({**answer, "at": float(next(numbers))}))
    worker, choices = hand.Worker(root, 1), iter(drawn)
    monkeypatch.setattr(worker._dice, "choice", lambda _: next(choices))
    hand.say({"verb": name, "tag": name, **getattr(worker, f"_{name}")(name, "main")})
    return said


@pytest.fixture
def merged(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> list[Json]:
    """What is said of two loads that meet in a merge, and of the deletion of the branch."""
    told = review(graph, "r", ["k1", "new"]) + load(graph, "a", rows("a", ["k1", "k2"]), "merge")
    told += by_hand(graph.uri, monkeypatch, "merge", "review/0", "main", "source")
    return told + [{**a, "at": a["at"] + 100} for a in by_hand(graph.uri, monkeypatch, "drop", "review/0")]


def only(answers: list[Json], tag: str, outcome: str) -> Json:
    (found,) = (a for a in answers if (a["tag"], a["outcome"]) == (tag, outcome))
    return found


def test_the_checker_accepts_a_merge_whose_branch_is_gone(graph: Graph, merged: list[Json]) -> None:
    assert graph.branches() == ["main"]
    counts = check_history(graph, merged)
    assert (counts["merges"], counts["buried"], counts["merges of what is gone"]) == (1, 1, 0)
    conflicts = sorted(only(merged, "merge", "returned")["conflicts"])
    assert conflicts == [["edge:In", "in-k1"], ["node:Bin", "k1"], ["node:Part", "k1"]]


def test_the_checker_finds_what_is_wrong_with_a_merge(graph: Graph, merged: list[Json]) -> None:
    wrong = copy.deepcopy(merged)
    commit = only(wrong, "drop", "buries")["commits"][0]
    commit["rows"] = [row for row in commit["rows"] if "new" not in row]
    with pytest.raises(AssertionError, match="is not what merge makes of"):  # it took a row that nobody had
        check_history(graph, wrong)
    wrong = copy.deepcopy(merged)
    only(wrong, "merge", "tries")["on_conflict"] = "fail"
    with pytest.raises(AssertionError, match="is not what merge makes of"):  # it was to be refused
        check_history(graph, wrong)
    wrong = copy.deepcopy(merged)
    only(wrong, "merge", "returned")["conflicts"].pop()
    with pytest.raises(AssertionError, match="discarded other rows than it reported"):
        check_history(graph, wrong)
    wrong = copy.deepcopy(merged)
    only(wrong, "merge", "returned")["outcome"] = "merge_conflicts"
    with pytest.raises(AssertionError, match="merge was refused, and is commit"):
        check_history(graph, wrong)


def test_the_checker_finds_a_branch_that_nobody_deleted(graph: Graph, merged: list[Json]) -> None:
    with pytest.raises(AssertionError, match="reported as done, and not in the log"):
        check_history(graph, [a for a in merged if a["verb"] != "drop"])


def test_the_checker_finds_a_merge_without_its_second_parent(
    graph: Graph, merged: list[Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Graph.commits

    def commits(self: Graph, **options: str) -> list[Commit]:
        return [replace(commit, merged_parent=None) for commit in plain(self, branch=options.get("branch"))]

    monkeypatch.setattr(Graph, "commits", commits)
    with pytest.raises(AssertionError, match=r"is a merge, and .* has one parent"):
        check_history(graph, merged)
