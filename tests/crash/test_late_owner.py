"""A process that was given up for dead goes on: it is refused, or what it still does has no effect.

Owners of a write and recoverers stand still for real at every step that is left to them, another process recovers and
writes, then they are let go. Once a test is the default; `pytest tests/crash/test_late_owner.py -m "long or not long"
--late-rounds 100` runs each a hundred times.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from spark_omnigraph import Graph
from spark_omnigraph.commit.crash_points import CrashPoint
from spark_omnigraph.storage.layout import COMMITS
from spark_omnigraph.storage.manifest.commit_log import open_log
from tests.crash.actor import Actor
from tests.crash.matrix import RECOVERY_POINTS, VISIBLE_AFTER, give_up, rows_of
from tests.crash.worlds import BEFORE, UNTIDY, WRITERS, assert_whole, knows, make_graph, make_untidy, person, state
from tests.support.cases import Json

OWNER_POINTS = [
    CrashPoint.LEASED,
    CrashPoint.ARMED,
    CrashPoint.LANDED_FIRST,
    CrashPoint.LANDED_ALL,
    CrashPoint.HEARTBEAT,
    CrashPoint.PUBLISHED,
    CrashPoint.RECORDED,
    CrashPoint.DISARMED,
]
OPTIMIZE_POINTS = [
    CrashPoint.BOUND,
    CrashPoint.LEASED,
    CrashPoint.ARMED,
    CrashPoint.LANDED_ALL,
    CrashPoint.HEARTBEAT,
    CrashPoint.PUBLISHED,
    CrashPoint.DISARMED,
]
UNDO_POINTS = [CrashPoint.UNDO_STARTED, CrashPoint.UNDO_RESTORED, CrashPoint.UNDO_PUBLISHED]
REALIGN_POINTS = [CrashPoint.RECOVERY_BUMPED, CrashPoint.REALIGN_FENCED, CrashPoint.REALIGN_PUT_BACK]
REFUSED = {"expected_version_mismatch", "conflict", "recovery_required"}
LATER = {"Person:later=7", "Knows:kl"}


def ids(point: CrashPoint) -> str:
    return point.value


def write_later(root: Path, branch: str | None = None) -> None:
    """What somebody else writes after the recovery, on every table that the late process may still touch."""
    graph = Graph.open(root)
    assert_whole(graph)
    graph.load([person("later", 7), knows("later", "later", "kl")], "merge", branch=branch)


def check(root: Path, expected: set[str] | frozenset[str], answer: Json, branch: str | None = None) -> None:
    """The graph as everybody must find it after the late process is through."""
    reader = Graph.open(root, mode="r")
    assert state(reader, branch) == expected, answer
    give_up(reader)
    graph = Graph.open(root)
    assert_whole(graph)
    assert state(graph, branch) == expected, answer
    commits = graph.commits(branch=branch)
    assert len({c.id for c in commits}) == len(commits)
    assert [c.parent for c in commits[:-1]] == [c.id for c in commits[1:]], "one line of commits"
    assert len({c.manifest_version for c in commits}) == len(commits)
    operations = [r.operation_id for r in graph.recoveries()]
    assert len(set(operations)) == len(operations)
    if answer["outcome"] == "returned" and answer.get("commit"):
        assert answer["commit"] in {c.id for c in commits}
    graph.load([person("last", 8)], "merge", branch=branch)
    assert state(graph, branch) == expected | {"Person:last=8"}
    assert_whole(graph)


@pytest.mark.parametrize("point", OWNER_POINTS, ids=ids)
@pytest.mark.parametrize("name", list(WRITERS))
def test_a_late_owner(tmp_path: Path, owner: Actor, late_round: int, name: str, point: CrashPoint) -> None:
    root, writer = tmp_path / "g", WRITERS[name]
    graph = make_graph(root)
    owner.start(root, name, point)
    assert owner.stopped()
    give_up(graph)
    write_later(root, writer.branch)
    answer = owner.resume()
    # At its heartbeat everything has landed; a merge has not said so then, and is undone.
    finished = {row.point for row in rows_of(name) if row.finished}
    done = point in finished or (point is CrashPoint.HEARTBEAT and CrashPoint.LANDED_ALL in finished)
    assert answer["outcome"] == "returned" if point in VISIBLE_AFTER else answer["outcome"] in REFUSED, answer
    check(root, (writer.after if done else BEFORE) | LATER, answer, writer.branch)


@pytest.mark.parametrize("point", [CrashPoint.LEASED, CrashPoint.ARMED, CrashPoint.LANDED_FIRST], ids=ids)
def test_a_late_owner_that_may_plan_again_writes_after_the_others(
    tmp_path: Path, owner: Actor, late_round: int, point: CrashPoint
) -> None:
    root, writer = tmp_path / "g", WRITERS["merge"]
    graph = make_graph(root)
    owner.start(root, "merge", point, replan=True)
    assert owner.stopped()
    give_up(graph)
    write_later(root)
    answer = owner.resume()
    late = ("conflict",) if point is CrashPoint.LEASED else ()  # the open ended its stage, which it finds right there
    undone = answer["outcome"] in ("recovery_required", *late)
    assert undone or answer["outcome"] == "returned", answer
    check(root, (BEFORE if undone else writer.after) | LATER, answer)


@pytest.mark.parametrize("point", [CrashPoint.CHECKED, CrashPoint.BOUND, CrashPoint.LEASED], ids=ids)
@pytest.mark.parametrize("name", ["append", "frame", "mutation", "delete by id", "index", "optimize"])
def test_a_late_owner_whose_files_were_cleaned_up(
    tmp_path: Path, owner: Actor, late_round: int, name: str, point: CrashPoint
) -> None:
    """Clean-up without an age limit takes what it staged while nobody else writes: it must not name what is gone."""
    root = tmp_path / "g"
    graph = make_untidy(root) if name == "optimize" else make_graph(root)
    before = state(graph)
    owner.start(root, name, point)
    if not owner.stopped():
        assert point is CrashPoint.CHECKED, "maintenance checks no rows"
        return
    give_up(graph)
    graph.cleanup(timedelta(0), confirm=True)
    answer = owner.resume()
    if name in ("index", "optimize"):
        assert answer["outcome"] == "returned", "it begins anew"
    else:
        assert answer["outcome"] == "conflict", answer
        assert "taken for dead" in answer["message"]
    write_later(root)
    check(root, before | LATER, answer)


@pytest.mark.parametrize("point", UNDO_POINTS, ids=ids)
def test_a_late_undo(tmp_path: Path, owner: Actor, late_round: int, point: CrashPoint) -> None:
    root, writer = tmp_path / "g", WRITERS["merge"]
    graph = make_graph(root)
    owner.start(root, "merge", point)
    assert owner.stopped()
    give_up(graph)
    write_later(root)
    answer = owner.resume()
    assert answer["outcome"] in {"storage", "recovery_required"}, answer
    check(root, (writer.after if point is CrashPoint.UNDO_STARTED else BEFORE) | LATER, answer)


@pytest.mark.parametrize("point", [p for p in OWNER_POINTS if p is not CrashPoint.RECORDED], ids=ids)
def test_a_late_builder_of_indexes(tmp_path: Path, owner: Actor, late_round: int, point: CrashPoint) -> None:
    root = tmp_path / "g"
    graph = make_graph(root)
    owner.start(root, "index", point)
    assert owner.stopped()
    give_up(graph)
    write_later(root)
    answer = owner.resume()
    assert answer["outcome"] in REFUSED | {"returned"}, answer
    if point is CrashPoint.LEASED:
        assert_whole(Graph.open(root, mode="r"))  # nothing was landed that had to be taken back
    check(root, BEFORE | LATER, answer)


@pytest.mark.parametrize("point", OPTIMIZE_POINTS, ids=ids)
def test_a_late_compaction(tmp_path: Path, owner: Actor, late_round: int, point: CrashPoint) -> None:
    """Lance would land one on the versions of others as well, where those leave its files alone."""
    root = tmp_path / "g"
    graph = make_untidy(root)
    owner.start(root, "optimize", point)
    assert owner.stopped()
    give_up(graph)
    write_later(root)
    answer = owner.resume()
    begins_anew = point in (CrashPoint.BOUND, CrashPoint.LEASED) or point in VISIBLE_AFTER
    assert answer["outcome"] == "returned" if begins_anew else answer["outcome"] in REFUSED, answer
    check(root, UNTIDY | LATER, answer)


@pytest.mark.parametrize("point", [CrashPoint.PUBLISHED, CrashPoint.RECORDED], ids=ids)
@pytest.mark.parametrize("name", ["merge", "index"])
def test_an_owner_whose_machine_slept_knows_that_it_may_be_late(
    tmp_path: Path, owner: Actor, recoverer: Actor, late_round: int, name: str, point: CrashPoint
) -> None:
    """Its commit is recorded once, and it leaves the sidecar to a recovery that has fenced its tables already."""
    root, writer = tmp_path / "g", WRITERS["merge"]
    graph = make_graph(root)
    owner.start(root, name, point, sleeps=300.0)
    if not owner.stopped():
        assert (name, point) == ("index", CrashPoint.RECORDED), "maintenance has no commit"
        return
    give_up(graph)
    recoverer.start(root, "recover", CrashPoint.RECOVERY_RECORDED)
    assert recoverer.stopped()
    answer = owner.resume()
    assert answer["outcome"] == "returned", answer
    if name == "merge":
        assert "took this write for dead" in " ".join(answer["warnings"])
    rows = open_log(graph.store.location, COMMITS, None).to_table()["graph_commit_id"].to_pylist()
    assert len(set(rows)) == len(rows), "no commit has two rows"
    assert recoverer.resume()["outcome"] == "returned"
    check(root, writer.after if name == "merge" else BEFORE, answer)


@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("merge", CrashPoint.CHECKED),
        ("merge", CrashPoint.ARMED),
        ("merge", CrashPoint.LANDED_FIRST),
        ("mutation", CrashPoint.CHECKED),
        ("delete by id", CrashPoint.LANDED_FIRST),
    ],
    ids=lambda value: value if isinstance(value, str) else value.value,
)
def test_an_owner_whose_machine_slept_asks_its_own_clocks_before_it_lands(
    tmp_path: Path, owner: Actor, late_round: int, name: str, point: CrashPoint
) -> None:
    """Nobody took it for dead, as it happens; but nothing that it sees in the store could tell it so."""
    root = tmp_path / "g"
    make_graph(root)
    owner.start(root, name, point, sleeps=300.0)
    assert owner.stopped()
    answer = owner.resume()
    assert answer["outcome"] == "conflict", answer
    assert "taken for dead" in answer["message"]
    assert_whole(Graph.open(root, mode="r"))
    check(root, BEFORE, answer)


@pytest.mark.parametrize("point", [CrashPoint.ARMED, CrashPoint.LANDED_FIRST], ids=ids)
def test_an_owner_whose_machine_slept_leaves_its_write_to_whoever_recovers_it(
    tmp_path: Path, owner: Actor, recoverer: Actor, late_round: int, point: CrashPoint
) -> None:
    root = tmp_path / "g"
    graph = make_graph(root)
    owner.start(root, "merge", point, sleeps=300.0)
    assert owner.stopped()
    give_up(graph)
    recoverer.start(root, "recover", CrashPoint.RECOVERY_FENCED_ALL)
    assert recoverer.stopped()
    answer = owner.resume()
    assert answer["outcome"] == "recovery_required", answer
    assert recoverer.resume() == {"outcome": "returned", "recovered": ["RolledBack"]}
    check(root, BEFORE, answer)


MINUTE = 60.0


@pytest.mark.parametrize(("owns", "opens"), [(-MINUTE, 0.0), (0.0, MINUTE), (MINUTE, 0.0), (0.0, -MINUTE)])
def test_clocks_that_differ_by_a_minute_take_no_live_writer_for_dead(
    tmp_path: Path, owner: Actor, recoverer: Actor, late_round: int, owns: float, opens: float
) -> None:
    root, writer = tmp_path / "g", WRITERS["merge"]
    make_graph(root)
    owner.start(root, "merge", CrashPoint.LANDED_ALL, clock=owns)
    assert owner.stopped()
    recoverer.start(root, "recover", CrashPoint.HEARTBEAT, clock=opens)
    assert not recoverer.stopped()
    assert recoverer.answer() == {"outcome": "returned", "recovered": []}
    answer = owner.resume()
    assert (answer["outcome"], answer["warnings"]) == ("returned", [])
    check(root, writer.after, answer)


@pytest.mark.parametrize("point", [CrashPoint.ARMED, CrashPoint.LANDED_FIRST, CrashPoint.LANDED_ALL], ids=ids)
@pytest.mark.parametrize(("owns", "opens"), [(-3 * MINUTE, 0.0), (0.0, 3 * MINUTE)], ids=["behind", "ahead"])
def test_clocks_that_differ_by_more_cost_a_write_and_no_data(
    tmp_path: Path, owner: Actor, recoverer: Actor, late_round: int, owns: float, opens: float, point: CrashPoint
) -> None:
    """A live writer is recovered too soon; nothing is given up for dead here but by these clocks."""
    root, writer = tmp_path / "g", WRITERS["merge"]
    make_graph(root)
    owner.start(root, "merge", point, clock=owns)
    assert owner.stopped()
    recoverer.start(root, "recover", CrashPoint.HEARTBEAT, clock=opens)
    assert not recoverer.stopped()
    done = point is CrashPoint.LANDED_ALL
    kinds = ["RolledForward" if done else "RolledBack"]
    assert recoverer.answer() == {"outcome": "returned", "recovered": kinds}
    answer = owner.resume()
    assert answer["outcome"] in REFUSED, answer
    check(root, writer.after if done else BEFORE, answer)


@pytest.mark.parametrize("point", RECOVERY_POINTS, ids=ids)
@pytest.mark.parametrize("died_at", [CrashPoint.ARMED, CrashPoint.LANDED_FIRST, CrashPoint.LANDED_ALL], ids=ids)
def test_a_late_recoverer(
    tmp_path: Path, owner: Actor, recoverer: Actor, late_round: int, died_at: CrashPoint, point: CrashPoint
) -> None:
    """The owner stands still too, and goes on last."""
    root, writer = tmp_path / "g", WRITERS["merge"]
    graph = make_graph(root)
    owner.start(root, "merge", died_at)
    assert owner.stopped()
    give_up(graph)
    recoverer.start(root, "recover", point)
    stopped = recoverer.stopped()
    assert stopped or point is CrashPoint.RECOVERY_RESTORED, "only a write that is undone restores"
    give_up(graph)
    write_later(root)
    answer = recoverer.resume() if stopped else recoverer.answer()
    assert answer["outcome"] == "returned", answer
    late = owner.resume()
    assert late["outcome"] in REFUSED, late
    check(root, (writer.after if died_at is CrashPoint.LANDED_ALL else BEFORE) | LATER, late)


STOOD_AT = [CrashPoint.LANDED_FIRST, CrashPoint.LANDED_ALL, CrashPoint.PUBLISHED]
FATES = [
    *(pytest.param(stood_at, "goes on", id=f"{stood_at.value}-goes on") for stood_at in STOOD_AT),
    pytest.param(CrashPoint.LANDED_ALL, "is killed", id="landed_all-is killed"),
    # Each costs the start of a process.
    *(
        pytest.param(stood_at, "is killed", id=f"{stood_at.value}-is killed", marks=pytest.mark.long)
        for stood_at in (CrashPoint.LANDED_FIRST, CrashPoint.PUBLISHED)
    ),
]


@pytest.mark.parametrize("point", RECOVERY_POINTS, ids=ids)
@pytest.mark.parametrize(("stood_at", "fate"), FATES)
def test_an_owner_that_goes_on_before_its_recovery_is_through(
    tmp_path: Path,
    owner: Actor,
    recoverer: Actor,
    late_round: int,
    stood_at: CrashPoint,
    point: CrashPoint,
    fate: str,
) -> None:
    root, writer = tmp_path / "g", WRITERS["merge"]
    graph = make_graph(root)
    owner.start(root, "merge", stood_at)
    assert owner.stopped()
    give_up(graph)
    recoverer.start(root, "recover", point)
    stopped = recoverer.stopped()
    answer = owner.resume()
    if stopped and fate == "goes on":
        assert recoverer.resume()["outcome"] == "returned"
    elif stopped:
        recoverer.kill()
    give_up(graph)
    seen = state(Graph.open(root, mode="r"))
    whole = Graph.open(root)
    assert state(whole) in (BEFORE, writer.after)
    assert seen in (state(whole), BEFORE), "what was visible is never undone"
    if answer["outcome"] == "returned":
        assert state(whole) == writer.after
    check(root, state(whole), answer)


@pytest.mark.parametrize("point", REALIGN_POINTS, ids=ids)
def test_a_late_realigner(tmp_path: Path, owner: Actor, recoverer: Actor, late_round: int, point: CrashPoint) -> None:
    """A table was fenced by a recovery that died; who brings its HEAD back stands still on the way."""
    root, writer = tmp_path / "g", WRITERS["merge"]
    graph = make_graph(root)
    owner.start(root, "merge", CrashPoint.LANDED_ALL)
    assert owner.stopped()
    give_up(graph)
    recoverer.start(root, "recover", CrashPoint.RECOVERY_FENCED_ALL)
    assert recoverer.stopped()
    recoverer.kill()
    assert owner.resume()["outcome"] == "returned"
    owner.start(root, "realign", point)
    assert owner.stopped()
    give_up(graph)
    write_later(root)
    answer = owner.resume()
    assert answer["outcome"] == "returned"
    check(root, writer.after | LATER, answer)
