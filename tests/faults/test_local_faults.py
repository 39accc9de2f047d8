"""Every call of a write on a local disk fails once: it succeeds or says why, and the graph is the old or the new.

The calls are counted first, so that a call which is added is tested without being asked for. By default every few calls
are tried; `pytest tests/faults -m long` tries them all.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from spark_omnigraph import Graph, OmnigraphError
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from tests.crash.matrix import VISIBLE_AFTER, crashed, give_up, rows_of
from tests.crash.worlds import BEFORE, UNTIDY, WRITERS, assert_whole, make_graph, make_untidy, person, run, state
from tests.faults.local import Faults, When, injected

STEP = 5
NOTHING_CHANGED = {"conflict", "expected_version_mismatch", "writer_busy", "bad_rows", "storage", "not_found"}


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph to copy: making one costs more than a write."""
    return Path(make_graph(tmp_path_factory.mktemp("world") / "g").uri)


def attempt(root: Path, name: str, faults: Faults) -> str:
    """Kind of the error that a write ends with, or "returned"."""
    with injected(faults):
        try:
            run(Graph.open(root), WRITERS[name])
        except OmnigraphError as error:
            return error.kind
    return "returned"


def check(root: Path, name: str, outcome: str, faults: Faults) -> None:
    """Old or new; what was reported holds; the next open needs to wait for nobody; the graph can be written."""
    writer = WRITERS[name]
    where = f"{faults.calls[faults.at]} ({faults.at}), {faults.when.value}: {outcome}"
    before_recovery = state(Graph.open(root, mode="r"), writer.branch)
    assert before_recovery in (BEFORE, writer.after), where
    graph = Graph.open(root)
    found = state(graph, writer.branch)
    if outcome == "returned":
        assert found == before_recovery == writer.after, where
    elif outcome == "recovery_required":
        assert found in (BEFORE, writer.after), where
        assert before_recovery in (BEFORE, found), where
    else:
        assert outcome in NOTHING_CHANGED, where
        assert found == before_recovery == BEFORE, where
    assert_whole(graph)
    commits = graph.commits(branch=writer.branch)
    assert len({c.id for c in commits}) == len(commits), where
    assert [c.parent for c in commits[:-1]] == [c.id for c in commits[1:]], where
    graph.load([person("later", 1)], "merge", branch=writer.branch)
    assert state(graph, writer.branch) == found | {"Person:later=1"}, where
    assert_whole(graph)


def calls_of(world: Path, folder: Path, name: str) -> int:
    """Calls of a write without faults."""
    faults = Faults()
    shutil.copytree(world, folder)
    assert attempt(folder, name, faults) == "returned"
    return len(faults.calls)


def every(world: Path, folder: Path, name: str, when: When, numbers: slice) -> None:
    count = calls_of(world, folder / "counted", name)
    for number in range(count)[numbers]:
        root = folder / f"{number}"
        shutil.copytree(world, root)
        faults = Faults(number, when)
        outcome = attempt(root, name, faults)
        assert len(faults.calls) > number
        check(root, name, outcome, faults)
        shutil.rmtree(root)


@pytest.mark.parametrize("when", list(When), ids=lambda w: w.value)
@pytest.mark.parametrize("name", ["merge", "branch"])
def test_some_calls_fail_once(tmp_path: Path, world: Path, name: str, when: When) -> None:
    every(world, tmp_path, name, when, slice(list(When).index(when), None, STEP))


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("when", list(When), ids=lambda w: w.value)
@pytest.mark.parametrize("name", list(WRITERS))
def test_each_call_fails_once(tmp_path: Path, world: Path, name: str, when: When) -> None:
    every(world, tmp_path, name, when, slice(None))


def maintain(root: Path, faults: Faults) -> str:
    with injected(faults):
        try:
            Graph.open(root).optimize()
        except OmnigraphError as error:
            return error.kind
    return "returned"


def maintenance(world: Path, folder: Path, when: When, numbers: slice) -> None:
    """Whatever call fails, no row changes, and what was left half-way is brought to its end."""
    counted = Faults()
    shutil.copytree(world, folder / "counted")
    assert maintain(folder / "counted", counted) == "returned"
    assert counted.calls.count("compaction") == 2
    compactions = [number for number, name in enumerate(counted.calls) if name == "compaction"]
    for number in sorted({*range(len(counted.calls))[numbers], *compactions}):
        root = folder / f"{number}"
        shutil.copytree(world, root)
        outcome = maintain(root, Faults(number, when))
        where = f"{counted.calls[number]} ({number}), {when.value}: {outcome}"
        assert state(Graph.open(root, mode="r")) == UNTIDY, where
        graph = Graph.open(root)
        assert_whole(graph)
        graph.optimize()
        assert_whole(graph)
        assert state(graph) == UNTIDY, where
        assert {len(graph.store.open_table(e).get_fragments()) for e in graph.snapshot().entries.values()} == {1}
        shutil.rmtree(root)


@pytest.fixture(scope="session")
def untidy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same graph with two files in each table."""
    return Path(make_untidy(tmp_path_factory.mktemp("untidy") / "g").uri)


@pytest.mark.parametrize("when", list(When), ids=lambda w: w.value)
def test_some_calls_of_maintenance_fail_once(tmp_path: Path, untidy: Path, when: When) -> None:
    maintenance(untidy, tmp_path, when, slice(list(When).index(when), None, 25))


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("when", list(When), ids=lambda w: w.value)
def test_each_call_of_maintenance_fails_once(tmp_path: Path, untidy: Path, when: When) -> None:
    maintenance(untidy, tmp_path, when, slice(None))


DIED_AT = (CrashPoint.LANDED_FIRST, CrashPoint.LANDED_ALL, CrashPoint.PUBLISHED)


def recovery(root: Path, faults: Faults) -> str:
    with injected(faults):
        try:
            Graph.open(root)
        except OmnigraphError as error:
            return error.kind
    return "returned"


def recoveries(world: Path, folder: Path, died_at: CrashPoint, when: When, numbers: slice) -> None:
    """Whatever call fails, readers see one state and the next recovery ends as the first would have."""
    writer = WRITERS["merge"]
    done = died_at in {row.point for row in rows_of("merge") if row.finished}
    shutil.copytree(world, folder / "died")
    with stop_at(died_at):
        assert crashed(lambda: run(Graph.open(folder / "died"), writer))
    give_up(Graph.open(folder / "died", mode="r"))
    shutil.copytree(folder / "died", folder / "counted")
    counted = Faults()
    assert recovery(folder / "counted", counted) == "returned"
    for number in range(len(counted.calls))[numbers]:
        root = folder / f"{number}"
        shutil.copytree(folder / "died", root)
        outcome = recovery(root, Faults(number, when))
        where = f"{counted.calls[number]} ({number}), {when.value}: {outcome}"
        reader = Graph.open(root, mode="r")
        seen = state(reader)
        assert seen in ((writer.after,) if died_at in VISIBLE_AFTER else (BEFORE, writer.after)), where
        give_up(reader)
        graph = Graph.open(root)
        assert state(graph) == (writer.after if done else BEFORE), where
        assert_whole(graph)
        assert [audit.kind for audit in graph.recoveries()] == ["RolledForward" if done else "RolledBack"], where
        commits = graph.commits()
        assert [c.parent for c in commits[:-1]] == [c.id for c in commits[1:]], where
        graph.load([person("later", 1)], "merge")
        assert_whole(graph)
        shutil.rmtree(root)


@pytest.mark.parametrize("when", list(When), ids=lambda w: w.value)
def test_some_calls_of_a_recovery_fail_once(tmp_path: Path, world: Path, when: When) -> None:
    recoveries(world, tmp_path, CrashPoint.LANDED_ALL, when, slice(4 * list(When).index(when), None, 12))


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("died_at", DIED_AT, ids=lambda p: p.value)
@pytest.mark.parametrize("when", list(When), ids=lambda w: w.value)
def test_each_call_of_a_recovery_fails_once(tmp_path: Path, world: Path, died_at: CrashPoint, when: When) -> None:
    recoveries(world, tmp_path, died_at, when, slice(None))
