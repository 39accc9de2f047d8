"""Types that follow a Delta table: after any history the graph is the table, and each change counts once."""

from __future__ import annotations

import doctest
import json
import os
import random
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_omnigraph import (
    BadRequestError,
    BadRowsError,
    FeedLostError,
    Graph,
    LoadOptions,
    TooManyDeletesError,
)
from spark_omnigraph.cli.program import main
from spark_omnigraph.graph.load.source import OnceRows
from spark_omnigraph.graph.sync.source import LocalDelta
from spark_omnigraph.graph.sync.sync import SyncOutcome, SyncReport
from spark_omnigraph.manifest.rows import Transaction, noted_transactions
from spark_omnigraph.storage.input.delta_feed import DeltaState
from tests.support.delta_tables import FEED, SEED, random_history, table_rows, titles
from tests.support.sleeping import when_we_sleep

SCHEMA = "node Film { title: String @key  year: I32?  part: String? }\nnode Person { name: String @key }"
ANY = LoadOptions(max_deletes=1.0, build_indexes=False)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", SCHEMA)


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A table of three films with a change data feed."""
    place = str(tmp_path / "films")
    write_deltalake(place, titles("a", "b", "c"), configuration=FEED)
    return place


def films(graph: Graph, branch: str = "main") -> list[tuple[Any, ...]]:
    rows = [json.loads(line)["data"] for line in graph.export(["Film"], branch=branch)]
    return sorted(tuple(row.get(name) for name in ("title", "year", "part")) for row in rows)


def follow(graph: Graph, place: str, **choices: Any) -> SyncReport:
    return graph.sync(f"delta:{place}", **{"node": "Film", "options": ANY, **choices})


def standing(graph: Graph) -> list[Transaction]:
    return list(noted_transactions(graph.store.manifest_rows(graph.store.manifest(None))))


def test_a_snapshot_and_then_each_change_once(graph: Graph, place: str) -> None:
    first = follow(graph, place)
    assert (first.outcome, first.version, first.since) == (SyncOutcome.SNAPSHOT, 0, None)
    assert films(graph) == table_rows(place) == [("a", 1, "x"), ("b", 1, "x"), ("c", 1, "x")]
    DeltaTable(place).update({"year": "7"}, predicate="title = 'a'")
    DeltaTable(place).delete("title = 'b'")
    write_deltalake(place, titles("d"), mode="append")
    commits = len(graph.commits())
    then = follow(graph, place)
    assert (then.outcome, then.version, then.since, len(graph.commits())) == (SyncOutcome.CHANGES, 3, 0, commits + 1)
    assert films(graph) == table_rows(place) == [("a", 7, "x"), ("c", 1, "x"), ("d", 1, "x")]
    before = graph.snapshot().version
    again = follow(graph, place)
    assert (again.outcome, again.load, graph.snapshot().version) == (SyncOutcome.SAME, None, before)


def test_what_the_graph_remembers(graph: Graph, place: str) -> None:
    """The number of the version, as the transaction of an application that table and types name, or the caller."""
    follow(graph, place)
    table = str(DeltaTable(place).metadata().id)
    assert [(each.app_id, each.version) for each in standing(graph)] == [(f"delta:{table}:node:Film", 0)]
    follow(graph, place, app_id="films of the lake")
    assert [(each.app_id, each.version) for each in standing(graph)][1:] == [("films of the lake", 0)]
    facts = graph.commits()[0].facts
    assert facts is not None
    assert facts.to_dict()["transaction"] == {"app_id": f"delta:{table}:node:Film", "version": 0}


def test_versions_without_changes_are_remembered_without_a_commit(graph: Graph, place: str) -> None:
    follow(graph, place)
    DeltaTable(place).optimize.compact()
    DeltaTable(place).alter.set_table_properties({"delta.appendOnly": "false"})
    commits = graph.commits()
    done = follow(graph, place)
    assert (done.since, done.version, done.commit) == (0, DeltaTable(place).version(), None)
    assert (graph.commits(), standing(graph)[0].version) == (commits, done.version)


@pytest.mark.parametrize("seed", [SEED, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(12))])
def test_the_graph_is_the_table_after_a_random_history(graph: Graph, tmp_path: Path, seed: int) -> None:
    """Also as a branch follows it at another pace, and when all of it is compared in between."""
    place, luck = str(tmp_path / "films"), random.Random(seed)
    lost: set[str] = set()
    for step in random_history(place, luck, 24):
        lost |= {"main", "slow"} if step == "vacuum" else set()
        for branch, often in (("slow", 0.2), ("main", 0.5)):
            if step == "create" or luck.random() < often:
                if branch not in graph.branches():
                    graph.create_branch(branch)
                catch_up(graph, place, branch, may_be_lost=branch in lost)
                lost.discard(branch)
                assert films(graph, branch) == table_rows(place), (seed, step, branch)
    catch_up(graph, place, "main", may_be_lost="main" in lost)
    assert films(graph) == table_rows(place), seed
    assert follow(graph, place, full=True).commit is None, (seed, "nothing differs")


def catch_up(graph: Graph, place: str, branch: str, may_be_lost: bool) -> None:
    try:
        follow(graph, place, branch=branch)
    except FeedLostError:
        assert may_be_lost
        follow(graph, place, branch=branch, full=True)


def test_a_key_that_is_updated_leaves_no_row_of_its_old_value(graph: Graph, place: str) -> None:
    follow(graph, place)
    DeltaTable(place).update({"title": "'z'"}, predicate="title = 'a'")
    DeltaTable(place).update({"title": "'a'", "year": "5"}, predicate="title = 'b'")
    follow(graph, place)
    assert films(graph) == table_rows(place) == [("a", 5, "x"), ("c", 1, "x"), ("z", 1, "x")]


def test_a_full_sync_writes_the_difference_alone(graph: Graph, place: str) -> None:
    follow(graph, place)
    graph.load(
        [json.dumps({"type": "Film", "data": data}) for data in ({"title": "b", "year": 9}, {"title": "own"})], "merge"
    )
    done = follow(graph, place, full=True)
    assert films(graph) == table_rows(place)
    assert done.load is not None
    counts = done.load.tables["node:Film"]
    assert (counts.inserted, counts.updated, counts.deleted) == (0, 1, 1)
    changed = graph.diff(graph.commits()[1].manifest_version)
    assert sorted((change.id, change.op) for change in changed.changes) == [("b", "update"), ("own", "delete")]


def test_rows_that_were_there_before_stay_and_are_named(graph: Graph, place: str) -> None:
    graph.load([json.dumps({"type": "Film", "data": {"title": title}}) for title in ("a", "own")])
    done = follow(graph, place)
    assert films(graph) == [*table_rows(place), ("own", None, None)]
    assert done.warnings == (
        f"1 rows of node:Film are not in 'delta:{place}', and stay; a sync with --full (full=True) deletes them",
    )


def test_no_more_rows_go_than_a_tenth_unless_more_are_allowed(graph: Graph, tmp_path: Path) -> None:
    place, many = str(tmp_path / "films"), [f"f{i}" for i in range(20)]
    write_deltalake(place, titles(*many), configuration=FEED)
    graph.sync(place, node="Film")
    DeltaTable(place).delete("title in ('f0', 'f1')")
    graph.sync(place, node="Film")
    assert len(films(graph)) == 18
    DeltaTable(place).delete("title in ('f2', 'f3')")
    for full in (False, True):
        with pytest.raises(TooManyDeletesError, match="node:Film 2 of 18"):
            graph.sync(place, node="Film", full=full)
    assert (len(films(graph)), standing(graph)[0].version) == (18, 1)
    graph.sync(place, node="Film", options=LoadOptions(max_deletes=2))
    assert films(graph) == table_rows(place)


def lose_log(place: str) -> None:
    for version in range(3):
        os.remove(f"{place}/_delta_log/{version:020d}.json")


def late(place: str) -> None:
    """The feed is switched off for a while."""
    DeltaTable(place).alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
    write_deltalake(place, titles("x"), mode="append")
    DeltaTable(place).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})


def vacuumed(place: str) -> None:
    DeltaTable(place).delete("title = 'a'")
    DeltaTable(place).update({"year": "8"}, predicate="title = 'b'")
    write_deltalake(place, titles("n"), mode="overwrite")
    DeltaTable(place).vacuum(0, dry_run=False, enforce_retention_duration=False)


def cleaned(place: str) -> None:
    for title in ("p", "q", "r"):
        write_deltalake(place, titles(title), mode="append")
    DeltaTable(place).create_checkpoint()
    lose_log(place)


def torn(place: str) -> None:
    """A checkpoint stands for the log, which has lost the end of a version."""
    for title in ("p", "q", "r"):
        write_deltalake(place, titles(title), mode="append")
    DeltaTable(place).create_checkpoint()
    log = Path(place, "_delta_log", f"{3:020d}.json")
    log.write_bytes(log.read_bytes()[:-9])


def replaced(place: str) -> None:
    os.rename(place, f"{place}-before")
    write_deltalake(place, titles("n"), configuration=FEED)
    for title in ("p", "q"):
        write_deltalake(place, titles(title), mode="append")


def retyped(place: str) -> None:
    other = pa.table({"title": ["a", "b"], "year": pa.array([1, 2], pa.int64()), "part": ["y", "y"]})
    write_deltalake(place, other, mode="overwrite", schema_mode="overwrite")


@pytest.mark.parametrize(
    ("lose", "message"),
    [
        (late, "did not keep the changes of its versions from"),
        (vacuumed, "after VACUUM"),
        (cleaned, "is not there any more"),
        (torn, "the log of version 3 of .* is damaged"),
        (replaced, "is another table"),
        (retyped, "are not those of the version that is shown"),
    ],
)
def test_a_feed_that_does_not_lead_on_says_so_and_a_full_sync_does(
    graph: Graph, place: str, lose: Callable[[str], None], message: str
) -> None:
    write_deltalake(place, titles("d"), mode="append")
    follow(graph, place)
    lose(place)
    before = films(graph), standing(graph)
    with pytest.raises(FeedLostError, match=message) as refused:
        follow(graph, place)
    assert "--full" in refused.value.message
    assert (films(graph), standing(graph)) == before
    follow(graph, place, full=True)
    assert films(graph) == table_rows(place)
    DeltaTable(place).update({"year": "77"})
    assert follow(graph, place).outcome is SyncOutcome.CHANGES
    assert films(graph) == table_rows(place)


def test_a_table_that_comes_back_in_the_place_of_its_follower(graph: Graph, place: str) -> None:
    """Where it stood is not where the graph stands: another table was shown in between."""
    follow(graph, place)
    replaced(place)
    follow(graph, place, full=True)
    os.rename(place, f"{place}-second")
    os.rename(f"{place}-before", place)
    write_deltalake(place, titles("e"), mode="append")
    with pytest.raises(FeedLostError, match="is another table"):
        follow(graph, place)
    follow(graph, place, full=True)
    DeltaTable(place).delete("title = 'e'")
    assert follow(graph, place).outcome is SyncOutcome.CHANGES
    assert films(graph) == table_rows(place)


def test_a_table_that_was_put_back_from_a_copy(graph: Graph, place: str) -> None:
    write_deltalake(place, titles("d"), mode="append")
    follow(graph, place)
    os.remove(f"{place}/_delta_log/{1:020d}.json")
    with pytest.raises(FeedLostError, match="at version 0, and node:Film showed its version 1"):
        follow(graph, place)


def test_a_table_without_a_feed(graph: Graph, tmp_path: Path) -> None:
    place = str(tmp_path / "films")
    write_deltalake(place, titles("a"))
    with pytest.raises(FeedLostError, match="keeps no change data feed"):
        follow(graph, place)
    assert films(graph) == []
    for title in ("b", "c"):
        write_deltalake(place, titles(title), mode="append")
        follow(graph, place, full=True)
        assert films(graph) == table_rows(place)


def test_another_mapping_is_another_way_to_read_the_rows(graph: Graph, place: str) -> None:
    place = f"{place}-2"
    write_deltalake(place, pa.table({"title": ["a"], "made": [1994], "shown": [1995]}), configuration=FEED)
    hows = [
        {"node": "Film", "columns": {"made": "year"}, "ignore": ["shown"]},
        {"node": "Film", "columns": {"shown": "year"}, "ignore": ["made"]},
    ]
    follow(graph, place, node=None, mapping=hows[0])
    write_deltalake(place, pa.table({"title": ["b"], "made": [1998], "shown": [1999]}), mode="append")
    with pytest.raises(FeedLostError, match="how they are read"):
        follow(graph, place, node=None, mapping=hows[1])
    follow(graph, place, node=None, mapping=hows[1], full=True)
    assert films(graph) == [("a", 1995, None), ("b", 1999, None)]


def test_rows_that_a_change_could_not_find_are_refused(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", f"{SCHEMA}\nedge Likes: Person -> Film\nnode Note {{ text: String? }}")
    place = str(tmp_path / "likes")
    write_deltalake(place, pa.table({"from": ["p"], "to": ["a"]}), configuration=FEED)
    with pytest.raises(BadRequestError, match="rows of Likes have no id by which a later change finds them"):
        graph.sync(place, edge="Likes")
    notes = str(tmp_path / "notes")
    write_deltalake(notes, pa.table({"text": ["p"]}), configuration=FEED)
    with pytest.raises(BadRequestError, match="rows of Note have no id"):
        graph.sync(notes, node="Note")
    with pytest.raises(BadRequestError, match="name the type"):
        graph.sync(notes)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"ful": True}, "a sync takes no 'ful'; did you mean 'full'?"),
        ({"full": "no"}, "full is True or False, not 'no'"),
        ({"app_id": 7}, "app_id is a text, not 7"),
        ({"options": {"max_deletes": 1}}, "options is of the class LoadOptions"),
        ({"max_deletes": 5}, "a sync takes no 'max_deletes'"),
    ],
)
def test_a_choice_that_there_is_not_is_refused(graph: Graph, place: str, choices: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequestError, match=re.escape(message)):
        graph.sync(place, **{"node": "Film", **choices})
    with pytest.raises(BadRequestError, match="source is 'delta:URI' or delta_source"):
        graph.sync(5, node="Film")  # type: ignore[arg-type]  # it is refused
    assert films(graph) == []


def test_edges_follow_by_their_ends(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", f"{SCHEMA}\nedge Likes: Person -> Film")
    people = [json.dumps({"type": "Person", "data": {"name": name}}) for name in "pq"]
    graph.load([*people, *(json.dumps({"type": "Film", "data": {"title": title}}) for title in "ab")])
    place, options = str(tmp_path / "likes"), LoadOptions(max_deletes=1.0, edge_id="ends")
    write_deltalake(place, pa.table({"from": ["p", "q"], "to": ["a", "b"]}), configuration=FEED)
    graph.sync(place, edge="Likes", options=options)
    DeltaTable(place).delete("\"from\" = 'p'")
    write_deltalake(place, pa.table({"from": ["q"], "to": ["a"]}), mode="append")
    graph.sync(place, edge="Likes", options=options)
    edges = [json.loads(line) for line in graph.export(["Likes"])]
    assert sorted((edge["from"], edge["to"]) for edge in edges) == [("q", "a"), ("q", "b")]
    assert graph.sync(place, edge="Likes", options=options, full=True).commit is None


def test_two_rows_of_one_id_are_refused_whatever_is_stored(graph: Graph, place: str) -> None:
    follow(graph, place)
    write_deltalake(place, pa.table({"title": ["a"], "year": pa.array([2], pa.int32()), "part": ["x"]}), mode="append")
    apart = patch("spark_omnigraph.staging.stage.FLUSH_ROWS", 1)  # one of them is left out as it is stored
    with apart, pytest.raises(BadRequestError, match="has several rows of the id 'a' of Film"):
        follow(graph, place, full=True)
    with pytest.raises(BadRowsError):
        follow(graph, place, full=True)
    assert films(graph)[0] == ("a", 1, "x")
    other = Graph.init(f"{graph.uri}-2", SCHEMA)
    with pytest.raises(BadRowsError) as refused:
        follow(other, place)
    assert refused.value.summary.per_rule == {"key_duplicate": 1}


@pytest.mark.parametrize("goes", [1, 2])
def test_rows_of_one_id_of_which_one_goes(graph: Graph, place: str, goes: int) -> None:
    """A table may have several for a while: which of them stands its changes alone do not tell."""
    follow(graph, place)
    write_deltalake(place, titles("a", year=2), mode="append")
    files = set(Path(graph.uri).rglob("*.lance"))
    with pytest.raises(BadRowsError) as refused:
        follow(graph, place)
    assert refused.value.summary.per_rule == {"key_duplicate": 1}
    assert set(Path(graph.uri).rglob("*.lance")) == files, "what was staged in vain is gone"
    assert (films(graph)[0], standing(graph)[0].version) == (("a", 1, "x"), 0)
    DeltaTable(place).delete(f"title = 'b' or title = 'a' and year = {goes}")
    done = follow(graph, place)
    assert (done.outcome, done.version, done.since) == (SyncOutcome.CHANGES, 2, 0)
    assert films(graph) == table_rows(place) == [("a", 3 - goes, "x"), ("c", 1, "x")]


def test_a_row_that_another_source_wrote_is_taken_over(graph: Graph, place: str) -> None:
    follow(graph, place)
    graph.load([json.dumps({"type": "Film", "data": {"title": title, "year": 9}}) for title in ("own", "new")], "merge")
    write_deltalake(place, titles("new"), mode="append")
    DeltaTable(place).delete("title = 'a'")
    follow(graph, place)
    assert films(graph) == [("b", 1, "x"), ("c", 1, "x"), ("new", 1, "x"), ("own", 9, None)]


def test_a_bad_row_that_was_corrected_since_refuses_nothing(graph: Graph, place: str) -> None:
    follow(graph, place)
    write_deltalake(place, titles("n").set_column(0, "title", pa.array([None], pa.string())), mode="append")
    with pytest.raises(BadRowsError):
        follow(graph, place)
    DeltaTable(place).update({"title": "'n'"}, predicate="title is null")
    DeltaTable(place).delete("title = 'b'")
    follow(graph, place)
    assert films(graph) == table_rows(place) == [("a", 1, "x"), ("c", 1, "x"), ("n", 1, "x")]


@pytest.mark.parametrize(
    ("without", "loss"), [("node Person { name: String @key }", True), (SCHEMA.replace("year: I32?", ""), False)]
)
def test_what_was_dropped_and_made_again_asks_for_a_full_sync(
    graph: Graph, place: str, without: str, loss: bool
) -> None:
    follow(graph, place)
    graph.apply_schema(f"{SCHEMA}\nnode Other {{ x: I32? }}")
    write_deltalake(place, titles("d"), mode="append")
    assert follow(graph, place).outcome is SyncOutcome.CHANGES
    for schema in (without, SCHEMA):
        graph.apply_schema(schema, allow_data_loss=loss)
    write_deltalake(place, titles("e"), mode="append")
    with pytest.raises(FeedLostError, match="dropped and made again"):
        follow(graph, place)
    follow(graph, place, full=True)
    assert films(graph) == table_rows(place)
    write_deltalake(place, titles("f"), mode="append")
    assert follow(graph, place).outcome is SyncOutcome.CHANGES


def test_values_of_partitions_that_folders_escape(graph: Graph, tmp_path: Path) -> None:
    place = str(tmp_path / "films")
    write_deltalake(place, titles("a", part="x y"), partition_by=["part"], configuration=FEED)
    follow(graph, place)
    write_deltalake(place, titles("b", part="x%y"), mode="append")
    with pytest.raises(BadRequestError, match=r"spelled with escapes \('part=x%25y'\), .* --full"):
        follow(graph, place)
    follow(graph, place, full=True)
    assert films(graph) == table_rows(place) == [("a", 1, "x y"), ("b", 1, "x%y")]


def test_bad_rows_refuse_a_run_and_the_next_one_finds_them_again(graph: Graph, place: str) -> None:
    follow(graph, place)
    write_deltalake(place, pa.table({"title": [None], "year": pa.array([2], pa.int32()), "part": ["x"]}), mode="append")
    for _ in range(2):
        with pytest.raises(BadRowsError) as refused:
            follow(graph, place)
        assert refused.value.summary.sample[0].file == f"delta:{place}@v1"
    with pytest.raises(BadRequestError, match="takes no bad rows"):
        follow(graph, place, full=True, options=LoadOptions(max_bad_rows=1))
    follow(graph, place, options=LoadOptions(max_bad_rows=1))
    assert standing(graph)[0].version == 1


def test_a_dry_run_changes_nothing(graph: Graph, place: str) -> None:
    done = follow(graph, place, options=LoadOptions(dry_run=True))
    assert done.load is not None
    assert (done.load.tables["node:Film"].inserted, films(graph), standing(graph)) == (3, [], [])


def test_two_at_once_apply_each_version_once(graph: Graph, place: str) -> None:
    """The one that comes second finds that all is done, whatever versions each of them had seen."""
    follow(graph, place)
    commits = len(graph.commits())
    write_deltalake(place, titles("n"), mode="append")
    DeltaTable(place).delete("title = 'a'")
    barrier = threading.Barrier(2)

    def one(_: int) -> SyncReport:
        return Graph.open(graph.uri).sync(Waiting(place, barrier), node="Film", options=ANY)

    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(one, range(2)))
    assert sorted(report.outcome for report in reports) == [SyncOutcome.CHANGES, SyncOutcome.SAME]
    assert films(graph) == table_rows(place)
    assert len(graph.commits()) == commits + 1


class Waiting:
    """A table whose changes are read when another one is about to read them, too; the first time."""

    def __init__(self, place: str, barrier: threading.Barrier) -> None:
        self.place, self._barriers, self._inner = place, [barrier], LocalDelta(place)

    def newest(self) -> DeltaState:
        return self._inner.newest()

    def rows(self, version: int) -> OnceRows:
        return self._inner.rows(version)

    def changes(self, first: int, last: int) -> OnceRows:
        if self._barriers:
            self._barriers.pop().wait(120)
        return self._inner.changes(first, last)


def test_a_table_that_is_written_meanwhile(graph: Graph, place: str) -> None:
    """The version that was looked at is the version that is taken."""
    real = LocalDelta.rows

    def rows(self: LocalDelta, version: int) -> Any:
        write_deltalake(place, titles("late"), mode="append")
        return real(self, version)

    with patch.object(LocalDelta, "rows", rows):
        done = follow(graph, place)
    assert (done.version, [film[0] for film in films(graph)]) == (0, ["a", "b", "c"])
    follow(graph, place)
    assert films(graph) == table_rows(place)


def test_others_who_write_the_type_meanwhile(graph: Graph, place: str) -> None:
    """A comparison with what has moved is made again."""
    follow(graph, place)
    seen: list[int] = []
    real = LocalDelta.rows

    def rows(self: LocalDelta, version: int) -> Any:
        found = real(self, version)
        if not seen:
            graph.load([json.dumps({"type": "Film", "data": {"title": "own"}})])
        seen.append(version)
        return found

    with patch.object(LocalDelta, "rows", rows):
        follow(graph, place, full=True)
    assert films(graph) == table_rows(place)


def test_a_restore_sets_a_follower_back(graph: Graph, place: str) -> None:
    follow(graph, place)
    old = graph.snapshot().version
    DeltaTable(place).delete("title = 'a'")
    follow(graph, place)
    graph.restore(version=old, rewind_apps=True)
    assert len(films(graph)) == 3
    assert follow(graph, place).outcome is SyncOutcome.CHANGES
    assert films(graph) == table_rows(place)


def test_without_the_package(graph: Graph, place: str) -> None:
    missing = pytest.raises(BadRequestError, match="the package deltalake is not here")
    with patch.dict("sys.modules", {"deltalake": None}), missing:
        follow(graph, place)


def test_the_session_of_the_page() -> None:
    page = Path(__file__).parents[3] / "docs" / "delta.md"
    results = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert results.failed == 0
    assert results.attempted > 12


def test_of_types_with_blobs_each_version_is_a_commit(tmp_path: Path) -> None:
    graph, place = (
        Graph.init(tmp_path / "g", "node Film { title: String @key  poster: Blob? }"),
        str(tmp_path / "films"),
    )
    write_deltalake(place, pa.table({"title": ["a"], "poster": [b"1"]}), configuration=FEED)
    follow(graph, place)
    for number in "23":
        DeltaTable(place).update({"poster": f"X'3{number}'"}, predicate="title = 'a'")
    commits = len(graph.commits())
    done = follow(graph, place)
    assert (done.since, done.version, done.behind, len(graph.commits())) == (0, 2, 0, commits + 2)
    assert [json.loads(line)["data"]["poster"] for line in graph.export()] == ["base64:Mw=="]


def test_the_job_follows_until_it_is_stopped(
    graph: Graph, place: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["sync", "--graph", graph.uri, "--from", f"delta:{place}", "--node", "Film", "--executor", "local"]
    assert main([*given, "--dry-run"]) == 0
    assert films(graph) == []
    assert main(given) == 0
    body = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (body["tables"]["node:Film"]["inserted"], body["result"]["outcome"]) == (3, "snapshot")
    write_deltalake(place, titles("d"), mode="append")
    steps: list[Callable[[], object]] = [
        lambda: DeltaTable(place).update({"year": "5"}, predicate="title = 'd'"), lambda: None
    ]  # laid out as a table  # fmt: skip
    waits = iter(steps)

    def sleep(seconds: float) -> None:
        assert seconds == 30
        step = next(waits, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    when_we_sleep(monkeypatch, sleep)
    assert main([*given, "--every", "30s", "--max-deletes", "100%"]) == 130
    assert films(graph) == table_rows(place)
    assert [each.version for each in standing(graph)] == [2]
    late(place)
    assert main(given) == 3
    error = json.loads(capsys.readouterr().out.splitlines()[-1])["error"]
    assert (error["kind"], "--full" in error["error"]) == ("feed_lost", True)
    assert main([*given, "--full"]) == 0
    assert films(graph) == table_rows(place)


def test_a_job_that_goes_on_says_what_a_run_warns_of(
    graph: Graph, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no end at which it would be said."""
    graph.load([json.dumps({"type": "Film", "data": {"title": "own"}})])
    given = ["sync", "--graph", graph.uri, "--from", f"delta:{place}", "--node", "Film", "--executor", "local"]
    stopped = SimpleNamespace(sleep=Mock(side_effect=KeyboardInterrupt))
    with patch("spark_omnigraph.cli.verbs.load.time", stopped):
        assert main([*given, "--every", "30s"]) == 130
    assert f"1 rows of node:Film are not in 'delta:{place}', and stay" in capsys.readouterr().err


def test_reports_of_several_batches_stand_side_by_side(graph: Graph, place: str, tmp_path: Path) -> None:
    """Of a stream, of which each batch has a number."""
    few = LoadOptions(max_bad_rows=1, bad_rows=str(tmp_path / "bad.jsonl"), batch=0)
    for number in range(3):
        if number:
            bad = titles("x").set_column(0, "title", pa.array([None], pa.string()))
            write_deltalake(place, bad, mode="append")
        follow(graph, place, options=few)
    assert sorted(path.name for path in tmp_path.glob("bad*")) == ["bad-1.jsonl", "bad-2.jsonl"]


def test_a_place_that_holds_credentials_is_not_kept(graph: Graph) -> None:
    with pytest.raises(BadRequestError, match="must not hold credentials"):
        graph.sync("delta:s3://key:secret@lake/films", node="Film")
