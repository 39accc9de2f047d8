"""A schema change beside every other writer, each made to stop between any two of its steps while the other one runs:
nothing is lost, no row stands under a schema that it breaks, and who loses is told so.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from spark_omnigraph import BadRowsError, ConflictError, ConstraintError, Graph, LoadOptions, WriterBusyError
from spark_omnigraph.commit import owners
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.errors import OmnigraphError
from tests.crash.matrix import SCHEMA_ROWS, expire_claims, expire_leases
from tests.crash.worlds import assert_whole, knows, person
from tests.races.remaking import Side

PLAIN = LoadOptions(build_indexes=False)
WIDE = "node Person { name: String @key  age: I32? @index }  edge Knows: Person -> Person"
TIGHT = "node Person { name: String @key  age: I32? @index  @range(age, 0..50) }  edge Knows: Person -> Person"
OTHER = "node Person { name: String @key  age: I64? @index }  edge Knows: Person -> Person { since: I32? }"
START = frozenset({("a", 1), ("b", 2), ("c", 3), "ab", "bc"})
WRITERS: dict[str, Callable[[Graph], object]] = {
    "load": lambda g: g.load([person("z", 99), knows("a", "z", "az")], options=PLAIN),
    "mutation": lambda g: g.mutate('query q() { update Person set { age: 99 } where name = "a" }'),
    "delete": lambda g: g.delete("node:Person", ["c"]),
    "optimize": lambda g: g.optimize(),
    "index": lambda g: g.ensure_indices(),
}
WRITTEN = {
    "load": START | {("z", 99), "az"},
    "mutation": START - {("a", 1)} | {("a", 99)},
    "delete": START - {("c", 3), "bc"},
    "optimize": START,
    "index": START,
}
BREAKS: dict[str, type[OmnigraphError]] = {"load": BadRowsError, "mutation": ConstraintError}
"""What comes of those that are refused under `TIGHT`."""
UPKEEP = ("optimize", "index")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Two files in each table, and no index: there is something to do for whoever keeps it up."""
    graph = Graph.init(tmp_path / "g", WIDE)
    graph.load([person("a", 1), person("b", 2), knows("a", "b", "ab")], options=PLAIN)
    graph.load([person("c", 3), knows("b", "c", "bc")], options=PLAIN)
    return graph


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who would wait for a writer that is alive gives up at once: here it goes on only afterwards."""
    monkeypatch.setattr(owners.await_turn, "__defaults__", (0.0,))


def rows(graph: Graph) -> frozenset[object]:
    records = [json.loads(line) for line in graph.export()]
    nodes = {(each["data"]["name"], each["data"]["age"]) for each in records if "type" in each}
    return frozenset(nodes | {each["data"]["id"] for each in records if "edge" in each})


def again(graph: Graph) -> Graph:
    """What another process finds: a whole graph that nothing has to be recovered of, and that goes on."""
    found = Graph.open(graph.uri)
    assert (found.recovered, found.interrupted(), found.store.has_schema_lock()) == ((), [], False)
    assert [name for name in found.store.objects.list("") if name.endswith(".staging")] == []
    assert_whole(found)
    return found


def refused(*, by: type[OmnigraphError] = ConflictError, match: str | None = None) -> AbstractContextManager[object]:
    return pytest.raises(by, match=match)


@pytest.mark.parametrize(
    "point", [CrashPoint.BOUND, pytest.param(CrashPoint.LEASED, marks=pytest.mark.long)], ids=lambda p: p.value
)
@pytest.mark.parametrize("name", WRITERS)
def test_a_writer_that_was_planned_before_a_change(graph: Graph, name: str, point: CrashPoint) -> None:
    def change() -> None:
        assert Graph.open(graph.uri).apply_schema(TIGHT).applied

    # Upkeep is begun again by itself, or left for the next time.
    with stop_at(point, change), nullcontext() if name in UPKEEP else refused(match="the schema changed after"):
        WRITERS[name](graph)
    found = again(graph)
    assert (found.schema(), rows(found)) == (TIGHT, START)
    with pytest.raises(BREAKS[name]) if name in BREAKS else nullcontext():
        WRITERS[name](found)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "point",
    [
        CrashPoint.ARMED,
        pytest.param(CrashPoint.LANDED_FIRST, marks=pytest.mark.long),
        CrashPoint.LANDED_ALL,
        CrashPoint.PUBLISHED,
        pytest.param(CrashPoint.DISARMED, marks=pytest.mark.long),
    ],
    ids=lambda p: p.value,
)
@pytest.mark.parametrize("name", BREAKS)
def test_a_change_while_a_writer_is_armed(graph: Graph, name: str, point: CrashPoint) -> None:
    """It waits; once the writer is done, the rows that it has written are asked like all others."""

    def change() -> None:
        over = point is CrashPoint.DISARMED
        with refused(by=BadRowsError) if over else refused(by=WriterBusyError, match="another writer"):
            Graph.open(graph.uri).apply_schema(TIGHT)

    with stop_at(point, change):
        WRITERS[name](graph)
    found = again(graph)
    assert (found.schema(), rows(found)) == (WIDE, WRITTEN[name])
    with refused(by=BadRowsError):
        found.apply_schema(TIGHT)
    assert found.apply_schema(OTHER, values={"Knows.since": 7}).applied
    assert rows(again(graph)) == WRITTEN[name]


@pytest.mark.parametrize("name", ["load", pytest.param("delete", marks=pytest.mark.long)])
def test_a_change_waits_for_a_writer_and_then_succeeds(graph: Graph, name: str) -> None:
    writer = Side(lambda: WRITERS[name](Graph.open(graph.uri)), CrashPoint.LANDED_ALL)
    writer.start()
    change = Side(
        lambda: Graph.open(graph.uri).apply_schema(OTHER, values={"Knows.since": 7}), CrashPoint.SCHEMA_LOCKED
    )
    change.start()
    assert change.stopped, "it has taken the lock, and looks for writers next"
    change.go()
    writer.finish()
    change.finish()
    assert (writer.error, writer.unexpected, change.error, change.unexpected) == (None, None, None, None)
    found = again(graph)
    assert (found.schema(), rows(found)) == (OTHER, WRITTEN[name])
    assert {json.loads(line)["data"]["since"] for line in found.export() if "edge" in json.loads(line)} == {7}


SHORT = (CrashPoint.SCHEMA_LOCKED, CrashPoint.SCHEMA_STAGED, CrashPoint.SCHEMA_FILE_NAMED, CrashPoint.DISARMED)
STEPS = [row.point for row in SCHEMA_ROWS if row.point not in (CrashPoint.REMOVED_FIRST, CrashPoint.SCHEMA_UNLOCKED)]
OTHERS: dict[str, Callable[[Graph], object]] = {
    **WRITERS,
    "branch": lambda g: g.create_branch("draft"),
    "tag": lambda g: g.tag("v1"),
    "restore": lambda g: g.restore(snapshot=g.commits()[-1].id),
    "change": lambda g: g.apply_schema(f"{OTHER}  node Town {{ name: String @key }}"),
}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "point", [p if p in SHORT else pytest.param(p, marks=pytest.mark.long) for p in STEPS], ids=lambda p: p.value
)
def test_writers_while_a_change_runs(graph: Graph, point: CrashPoint) -> None:
    told: dict[str, str] = {}

    def others() -> None:
        for name, write in OTHERS.items():
            try:
                write(Graph.open(graph.uri))
                told[name] = "done"
            except ConflictError as error:
                told[name] = "busy" if isinstance(error, WriterBusyError) else error.message
        seen.append(rows(Graph.open(graph.uri, mode="r")))

    seen: list[frozenset[object]] = []
    with stop_at(point, others):
        report = graph.apply_schema(OTHER, values={"Knows.since": 7})
    assert (report.applied, report.warnings) == (True, ())
    assert {name for name, words in told.items() if words == "done"} <= set(UPKEEP)
    assert all("schema" in words for words in told.values() if words not in ("done", "busy")), told
    found = again(graph)
    assert (seen, found.schema(), rows(found), found.branches(), found.tags()) == ([START], OTHER, START, ["main"], [])
    assert [c.facts.operation for c in found.commits() if c.facts is not None].count("schema_apply") == 1
    WRITERS["delete"](found)
    assert rows(again(graph)) == WRITTEN["delete"]


@pytest.mark.parametrize("point", [CrashPoint.BOUND, CrashPoint.ARMED, CrashPoint.PUBLISHED], ids=lambda p: p.value)
def test_a_change_while_a_branch_is_merged(graph: Graph, point: CrashPoint) -> None:
    graph.create_branch("draft")
    graph.load([person("z", 99)], branch="draft", options=PLAIN)

    def change() -> None:
        with refused(match="non-main branches: draft"):
            Graph.open(graph.uri).apply_schema(TIGHT)

    with stop_at(point, change):
        graph.merge_branch("draft", "main")
    found = again(graph)
    assert rows(found) == START | {("z", 99)}
    found.delete_branch("draft")
    with refused(by=BadRowsError):
        found.apply_schema(TIGHT)


def test_a_change_while_a_branch_is_made(graph: Graph) -> None:
    """It was looked for before the branch was there; whoever makes the branch looks again."""
    made = Side(lambda: Graph.open(graph.uri).create_branch("draft"), CrashPoint.BRANCH_LOGGED)
    made.start()
    change = Side(lambda: Graph.open(graph.uri).apply_schema(TIGHT), CrashPoint.STAGED)
    change.start()
    made.finish()
    change.finish()
    assert isinstance(made.error, ConflictError), made.unexpected
    assert change.error is None or "non-main branches" in change.error.message, change.error
    found = again(graph)
    assert (found.branches(), rows(found)) == (["main"], START)
    assert found.schema() == (WIDE if change.error is not None else TIGHT)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("point", [CrashPoint.STAGED, CrashPoint.SCHEMA_FILE_STAGED], ids=lambda p: p.value)
def test_who_was_taken_for_dead_takes_nothing_of_the_next_change(graph: Graph, point: CrashPoint) -> None:
    """It goes on while the schema files of the next one are staged, under the same names."""
    late = Side(lambda: Graph.open(graph.uri).apply_schema(TIGHT), point)
    late.start()
    expire_leases(graph)
    Graph.open(graph.uri)
    change = Side(
        lambda: Graph.open(graph.uri).apply_schema(OTHER, values={"Knows.since": 7}), CrashPoint.SCHEMA_STAGED
    )
    change.start()
    assert (late.stopped, change.stopped) == (True, True)
    late.finish()
    assert isinstance(late.error, ConflictError), late.unexpected
    change.finish()
    assert (change.error, change.unexpected) == (None, None)
    found = again(graph)
    assert (found.schema(), rows(found)) == (OTHER, START)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "point",
    [CrashPoint.RECOVERY_PUBLISHED, pytest.param(CrashPoint.RECOVERY_DECIDED, marks=pytest.mark.long)],
    ids=lambda p: p.value,
)
def test_a_late_recovery_of_a_change_takes_nothing_of_the_next_one(graph: Graph, point: CrashPoint) -> None:
    """Another recovery has taken over from it and has ended, and the next change has staged its files."""
    with stop_at(CrashPoint.SCHEMA_STAGED), pytest.raises(Crashed):
        graph.apply_schema(TIGHT)
    expire_leases(graph)
    late = Side(lambda: Graph.open(graph.uri), point)
    late.start()
    expire_claims(graph)
    assert Graph.open(graph.uri).schema() == TIGHT
    change = Side(
        lambda: Graph.open(graph.uri).apply_schema(OTHER, values={"Knows.since": 7}), CrashPoint.SCHEMA_STAGED
    )
    change.start()
    assert (late.stopped, change.stopped) == (True, True)
    late.finish()
    change.finish()
    assert (change.error, change.unexpected, late.unexpected) == (None, None, None)
    found = again(graph)
    assert (found.schema(), rows(found)) == (OTHER, START)
