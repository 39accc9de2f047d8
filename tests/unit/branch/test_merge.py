"""The truth table of a merge, and what a merge of small graphs does that the shared cases do not ask."""

from __future__ import annotations

import json
import math
import pickle
import random
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from spark_omnigraph import (
    BadRequestError,
    ConflictError,
    Graph,
    LoadOptions,
    MergeConflictsError,
    MergeReport,
    NotFoundError,
)
from spark_omnigraph.branch.conflicts import ConflictKind, conflict_kind
from spark_omnigraph.branch.merge import judge
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from spark_omnigraph.graph.merge import plan
from spark_omnigraph.graph.merge.conflicts import off_memory
from spark_omnigraph.graph.merge.rows import SideRows
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.storage.tables.stored_rows import StoredRows

SCHEMA = "node Room { name: String @key  size: I32? }\nedge Door: Room -> Room"
NO_INDEX = LoadOptions(build_indexes=False)


def room(name: str, size: int | None = None) -> str:
    return json.dumps({"type": "Room", "data": {"name": name, "size": size}})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = Graph.init(tmp_path / "g", SCHEMA)
    made.load([room("hall", 1), room("attic", 2)], options=NO_INDEX)
    made.create_branch("draft")
    return made


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"dry_run": "no"}, "dry_run is True or False, not"),
        ({"executor": "spark"}, "executor is an executor, such as"),
        ({"conflicts": 3}, "conflicts is a path, not 3"),
        ({"source": None}, "source is a text, not None"),
        ({"on_conflct": "source"}, "did you mean 'on_conflict'"),
    ],
)
def test_a_choice_of_another_kind_is_refused_by_name(graph: Graph, choices: dict[str, Any], said: str) -> None:
    with pytest.raises(BadRequestError, match=said):
        graph.merge_branch(**{"source": "draft", **choices})


def test_conflicts_are_not_written_into_the_graph(graph: Graph) -> None:
    with pytest.raises(BadRequestError, match=r"the file of conflicts .* lies inside the graph"):
        graph.merge_branch("draft", conflicts=f"{graph.uri}/conflicts.jsonl")


def put(graph: Graph, branch: str, *lines: str) -> str:
    commit = graph.load(list(lines), "merge", branch=branch, options=NO_INDEX).commit
    assert commit is not None
    return commit


def move(graph: Graph, line: str) -> None:
    put(graph, "main", line)


def rooms(graph: Graph, branch: str = "main") -> dict[str, int | None]:
    rows = (json.loads(line)["data"] for line in graph.export(["Room"], branch=branch))
    return {row["name"]: row["size"] for row in rows}


@pytest.mark.parametrize(
    ("source_changed", "target_changed", "equal", "take", "conflict"),
    [
        (True, False, False, True, False),
        (False, True, False, False, False),
        (True, True, False, False, True),
        (False, False, False, False, True),
        (True, True, True, False, False),
        (False, False, True, False, False),
        (True, False, True, False, False),
    ],
)
def test_the_truth_table(source_changed: bool, target_changed: bool, equal: bool, take: bool, conflict: bool) -> None:
    found = judge(*(np.array([each]) for each in (source_changed, target_changed, equal)))
    assert (found.take.tolist(), found.conflict.tolist()) == ([take], [conflict])


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ((False, True, True), ConflictKind.DIVERGENT_INSERT),
        ((True, True, True), ConflictKind.DIVERGENT_UPDATE),
        ((True, True, False), ConflictKind.DELETE_VS_UPDATE),
        ((True, False, True), ConflictKind.DELETE_VS_UPDATE),
    ],
)
def test_the_class_of_a_conflict_is_by_where_the_row_is(where: tuple[bool, bool, bool], kind: ConflictKind) -> None:
    assert conflict_kind(*where) is kind


def test_a_report_says_what_was_taken(graph: Graph) -> None:
    head = put(graph, "draft", room("hall", 9), room("cellar", 3))
    graph.delete("node:Room", ["attic"], branch="draft")
    put(graph, "main", room("porch", 4))
    report = graph.merge_branch("draft", actor="ada", metadata={"ticket": "OPS-7"})
    assert (str(report.outcome), report.source, report.target) == ("merged", "draft", "main")
    counts = report.tables["node:Room"]
    assert (counts.appended, counts.updated, counts.deleted, counts.conflicts) == (1, 1, 1, 0)
    assert rooms(graph) == {"hall": 9, "cellar": 3, "porch": 4}
    newest = graph.commits()[0]
    assert (newest.id, newest.actor, newest.merged_parent) == (report.commit, "ada", report.source_commit)
    assert report.source_commit != head
    assert newest.parent == report.target_commit
    facts = newest.facts
    assert facts is not None
    assert (facts.operation, facts.origin.metadata) == ("merge", {"ticket": "OPS-7"})
    assert astuple(facts.totals()) == (1, 1, 1, 0)
    assert graph.branch_infos()[1].merged_into == ("main",)
    merged = graph.delete_merged_branches()
    assert [gone.branch for gone in merged.deleted] == ["draft"]


def test_a_dry_run_finds_all_of_it_and_writes_nothing(graph: Graph, tmp_path: Path) -> None:
    put(graph, "draft", room("hall", 9))
    before = graph.snapshot()
    report = graph.merge_branch("draft", dry_run=True)
    assert (report.commit, report.tables["node:Room"].updated) == (None, 1)
    put(graph, "main", room("hall", 8))
    with pytest.raises(MergeConflictsError):
        graph.merge_branch("draft", dry_run=True)
    assert graph.snapshot().version == before.version + 1
    data = list((Path(graph.uri) / "nodes").glob("*/data/*.lance"))
    assert len(data) == 2, "what a dry run and a refused merge staged is gone"


def test_conflicts_are_written_with_the_rows_of_all_sides(graph: Graph, tmp_path: Path) -> None:
    put(graph, "draft", room("hall", 9), room("new", 1))
    graph.delete("node:Room", ["attic"], branch="draft")
    put(graph, "main", room("hall", 8), room("attic", 7), room("new", 2))
    path = tmp_path / "conflicts.jsonl"
    with pytest.raises(MergeConflictsError) as caught:
        graph.merge_branch("draft", conflicts=path)
    told = [(c.row_id, c.kind) for c in caught.value.conflicts]
    assert told == [("attic", "delete_vs_update"), ("hall", "divergent_update"), ("new", "divergent_insert")]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(each["table"], each["id"], each["kind"]) for each in lines] == [("node:Room", *pair) for pair in told]
    sides = [[each[name] and each[name]["data"]["size"] for name in ("base", "source", "target")] for each in lines]
    assert sides == [[2, None, 7], [1, 9, 8], [None, 1, 2]]
    assert {each["decided"] for each in lines} == {None}
    assert rooms(graph) == {"hall": 8, "attic": 7, "new": 2}


@pytest.mark.parametrize(
    ("side", "expected"),
    [("source", {"hall": 9, "new": 1, "both": 5}), ("target", {"hall": 8, "attic": 7, "new": 2, "both": 5})],
)
def test_conflicts_may_be_decided_and_every_discarded_row_is_kept(
    graph: Graph, tmp_path: Path, side: str, expected: dict[str, int]
) -> None:
    put(graph, "draft", room("hall", 9), room("new", 1), room("both", 5))
    graph.delete("node:Room", ["attic"], branch="draft")
    put(graph, "main", room("hall", 8), room("attic", 7), room("new", 2))
    with pytest.raises(BadRequestError, match="discards rows: name a file"):
        graph.merge_branch("draft", on_conflict=side)
    path = tmp_path / "conflicts.jsonl"
    report = graph.merge_branch("draft", on_conflict=side, conflicts=path)
    assert report.tables["node:Room"].conflicts == 3
    assert rooms(graph) == expected
    assert [json.loads(line)["decided"] for line in path.read_text().splitlines()] == [side] * 3
    assert str(graph.merge_branch("draft").outcome) == "already_up_to_date"


def test_a_rule_that_breaks_after_conflicts_were_decided_is_a_conflict(graph: Graph, tmp_path: Path) -> None:
    graph.delete("node:Room", ["attic"], branch="draft")
    door = json.dumps({"edge": "Door", "from": "attic", "to": "hall", "data": {"id": "d"}})
    put(graph, "main", door, room("attic", 7))
    with pytest.raises(MergeConflictsError) as caught:
        graph.merge_branch("draft", on_conflict="source", conflicts=tmp_path / "c.jsonl")
    assert [(c.table_key, c.row_id, c.kind, c.message) for c in caught.value.conflicts] == [
        ("edge:Door", "d", "orphan_edge", "src 'attic' not found in Room")
    ]
    assert rooms(graph)["attic"] == 7


def test_a_merge_plans_again_when_its_target_moves(graph: Graph) -> None:
    put(graph, "draft", room("hall", 9))
    with stop_at(CrashPoint.CHECKED, lambda: move(graph, room("attic", 5))):
        report = graph.merge_branch("draft")
    assert rooms(graph) == {"hall": 9, "attic": 5}
    assert report.target_commit == graph.commits()[1].id


def test_a_conflict_that_comes_up_while_a_merge_runs_is_found(graph: Graph) -> None:
    put(graph, "draft", room("hall", 9))
    moving = stop_at(CrashPoint.CHECKED, lambda: move(graph, room("hall", 5)))
    with moving, pytest.raises(MergeConflictsError):
        graph.merge_branch("draft")
    assert rooms(graph)["hall"] == 5
    assert [c.merged_parent for c in graph.commits()] == [None] * 3


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ({"source": "draft", "into": "draft"}, BadRequestError, "distinct source and target"),
        ({"source": "drat"}, NotFoundError, "did you mean 'draft'"),
        ({"source": "draft", "into": "mian"}, NotFoundError, "did you mean 'main'"),
        ({"source": "draft", "on_conflict": "mine"}, BadRequestError, "one of fail, source, target"),
        ({"source": "draft", "on_conflicts": "x"}, BadRequestError, "takes no 'on_conflicts'.* 'on_conflict'"),
    ],
)
def test_how_a_merge_is_refused(graph: Graph, call: dict[str, str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        graph.merge_branch(**call)  # type: ignore[arg-type]  # what a caller may get wrong


def test_the_source_may_not_be_deleted_under_a_write_of_its_own(graph: Graph) -> None:
    graph.create_branch("inner", base="draft")
    put(graph, "inner", room("hall", 3))
    graph.merge_branch("inner", "draft")
    with pytest.raises(ConflictError, match="descendant branch 'inner'"):
        graph.delete_branch("draft")
    graph.delete_branch("inner")
    graph.merge_branch("draft")
    assert rooms(graph)["hall"] == 3


def test_bases_that_one_side_each_agrees_with_are_a_conflict(graph: Graph) -> None:
    put(graph, "draft", room("hall", 2))
    put(graph, "main", room("porch"))
    graph.create_branch("main-then")
    graph.create_branch("draft-then", base="draft")
    graph.merge_branch("draft-then", "main")
    graph.merge_branch("main-then", "draft")
    put(graph, "main", room("hall", 1))
    with pytest.raises(MergeConflictsError) as caught:
        graph.merge_branch("draft")
    assert [(c.row_id, c.kind) for c in caught.value.conflicts] == [("hall", "divergent_update")]


def test_an_error_of_many_conflicts_tells_the_first_ones(graph: Graph) -> None:
    graph.merge_branch("draft")
    for branch, size in (("draft", 1), ("main", 2)):
        put(graph, branch, *(room(f"r{number}", size) for number in range(120)))
    with pytest.raises(MergeConflictsError, match="and 117 more") as caught:
        graph.merge_branch("draft")
    told = caught.value.to_dict()
    assert (len(caught.value.conflicts), told["conflict_counts"]) == (100, {"divergent_insert": 120})
    assert len(cast("list[object]", told["merge_conflicts"])) == 100
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def made_anew(graph: Graph, branch: str) -> None:
    """Another process deletes a branch, makes it anew, and writes it as often as it was written before."""
    other = Graph.open(graph.uri)
    other.delete_branch(branch)
    other.create_branch(branch)
    put(other, branch, room("new", 3))


@pytest.mark.parametrize("point", [CrashPoint.CHECKED, CrashPoint.BOUND])
@pytest.mark.parametrize("write", ["load", "append", "delete", "merge"])
def test_a_branch_that_is_made_anew_under_a_write_stays_whole(graph: Graph, point: CrashPoint, write: str) -> None:
    put(graph, "draft", room("cellar", 3))
    graph.create_branch("source")
    put(graph, "source", room("hall", 9))
    writes: dict[str, Callable[[], object]] = {
        "load": lambda: put(graph, "draft", room("hall", 7)),
        "append": lambda: graph.load([room("roof")], "append", branch="draft", options=NO_INDEX),
        "delete": lambda: graph.delete("node:Room", ["hall"], branch="draft"),
        "merge": lambda: graph.merge_branch("source", "draft"),
    }
    with stop_at(point, lambda: made_anew(graph, "draft")), pytest.raises(ConflictError, match="made anew"):
        writes[write]()
    assert rooms(graph, "draft") == {"hall": 1, "attic": 2, "new": 3}
    put(graph, "draft", room("hall", 8))
    assert rooms(graph, "draft") == {"hall": 8, "attic": 2, "new": 3}


def test_long_rows_are_read_a_few_at_a_time(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [room(random.Random(number).randbytes(1000).hex()) for number in range(64)]
    put(graph, "draft", *lines)
    monkeypatch.setattr("spark_omnigraph.graph.merge.rows.CHUNK_BYTES", 1 << 14)
    taken: list[int] = []
    take = StoredRows.take

    def counted(rows: StoredRows, row_ids: pa.ChunkedArray) -> pa.Table:
        found = take(rows, row_ids)
        taken.append(found.nbytes)
        return found

    monkeypatch.setattr(StoredRows, "take", counted)
    assert graph.merge_branch("draft").tables["node:Room"].appended == len(lines)
    assert sum(taken) > 8 * (1 << 14)
    assert max(taken) < 4 * (1 << 14)
    assert rooms(graph) == rooms(graph, "draft")


def test_a_head_whose_commit_is_not_logged_yet_is_waited_for(graph: Graph) -> None:
    put(graph, "draft", room("hall", 9))
    with ThreadPoolExecutor(1) as pool:
        merging: list[Future[MergeReport]] = []
        other = Graph.open(graph.uri)

        def merge_meanwhile() -> None:
            merging.append(pool.submit(lambda: other.merge_branch("draft")))
            time.sleep(0.3)
            assert not merging[0].done()

        with stop_at(CrashPoint.PUBLISHED, merge_meanwhile):
            put(graph, "main", room("attic", 5))
        report = merging[0].result(timeout=60)
    assert (str(report.outcome), report.target_commit) == ("merged", graph.commits()[1].id)
    assert rooms(graph) == {"hall": 9, "attic": 5}


def test_an_indexed_fork_can_be_written_after_it_was_compacted(graph: Graph) -> None:
    graph.ensure_indices()
    graph.create_branch("work")
    graph.delete("node:Room", ["attic"], branch="work")
    assert set(graph.optimize(branch="work").indexes) == {"node:Room.name", "node:Room.id"}
    put(graph, "work", room("hall", 7))
    graph.merge_branch("work")
    assert rooms(graph) == {"hall": 7}


def test_a_table_that_both_sides_emptied_is_merged(graph: Graph) -> None:
    """Neither side has a row to read then, and the base alone has."""
    for branch in ("draft", "main"):
        graph.delete("node:Room", ["hall", "attic"], branch=branch)
    report = graph.merge_branch("draft")
    assert (report.commit is None, dict(report.tables), rooms(graph)) == (False, {}, {})


def door(name: str, start: str, end: str, **more: object) -> str:
    return json.dumps({"edge": "Door", "from": start, "to": end, "data": {"id": name, **more}})


def test_a_base_on_a_branch_that_is_made_anew_is_not_taken_for_the_old_one(graph: Graph) -> None:
    """What both have from a third branch is looked up there, and its name may be another one's by then."""
    graph.create_branch("third")
    put(graph, "third", room("hall", 5))
    for branch in ("draft", "main"):
        graph.merge_branch("third", branch)
    put(graph, "draft", room("attic", 6))
    put(graph, "main", room("hall", 7))
    with stop_at(CrashPoint.PLANNED, lambda: made_anew(graph, "third")), pytest.raises(ConflictError, match="'third'"):
        graph.merge_branch("draft")
    assert rooms(graph) == {"hall": 7, "attic": 2}


def test_equal_edges_of_both_sides_stay_two_and_are_told(tmp_path: Path) -> None:
    graph = Graph.init(
        tmp_path / "g",
        "node Room { name: String @key }\nedge Door: Room -> Room { width: I32?  sign: String?  plan: Blob? }",
    )
    rows = [json.dumps({"type": "Room", "data": {"name": name}}) for name in "ab"]
    graph.load([*rows, door("old", "a", "b")], options=NO_INDEX)
    graph.create_branch("draft")
    same = {"width": 1, "sign": None, "plan": "base64:QUFB"}
    ours = [door("m1", "a", "b", **same), door("m2", "a", "b", **same), door("both", "b", "b")]
    put(graph, "main", *ours, door("m3", "b", "a", width=2))
    theirs = [door("d1", "a", "b", **same), door("d2", "a", "b", **{**same, "plan": "base64:QkJC"})]
    others = [door("d3", "b", "a", width=2, sign=""), door("d4", "a", "b"), door("d5", "b", "a", width=2)]
    put(graph, "draft", *theirs, *others, door("both", "b", "b"))
    report = graph.merge_branch("draft", dry_run=True)
    assert [w for w in report.warnings if "parallel" in w] == list(report.warnings)
    report = graph.merge_branch("draft")
    assert report.warnings == ("parallel_edges: 2 of edge:Door, each equal to one that the target inserted too",)
    assert graph.count("edge:Door") == 1 + 4 + 5


def test_edges_that_a_fast_forward_brings_are_parallel_to_none(graph: Graph) -> None:
    put(graph, "main", door("d", "hall", "attic"))
    graph.create_branch("work")
    put(graph, "work", door("e", "hall", "attic"))
    assert graph.merge_branch("work").warnings == ()


def test_of_a_unique_value_that_both_sides_gave_the_cause_alone_is_told(tmp_path: Path) -> None:
    schema = "node Room { name: String @key  sign: String? @unique }\nedge Door: Room -> Room"
    graph = Graph.init(tmp_path / "g", schema)
    lines = [json.dumps({"type": "Room", "data": {"name": name, "sign": sign}}) for name, sign in (("a", None),)]
    graph.load(lines, options=NO_INDEX)
    graph.create_branch("draft")
    signed = {name: json.dumps({"type": "Room", "data": {"name": name, "sign": "x"}}) for name in "mdc"}
    put(graph, "main", signed["m"])
    put(graph, "draft", signed["d"], json.dumps({"type": "Room", "data": {"name": "c"}}))
    put(graph, "draft", door("k", "d", "a"), door("l", "c", "d"), door("n", "c", "a"), door("o", "a", "c"))
    with pytest.raises(MergeConflictsError) as caught:
        graph.merge_branch("draft")
    assert [(c.table_key, c.row_id, c.kind) for c in caught.value.conflicts] == [("node:Room", "d", "unique_violation")]
    graph.delete("node:Room", ["a"])
    with pytest.raises(MergeConflictsError) as caught:
        graph.merge_branch("draft")
    told = [(c.row_id, c.kind, c.message) for c in caught.value.conflicts if c.table_key == "edge:Door"]
    assert told == [
        ("k", "orphan_edge", "dst 'a' not found in Room"),
        ("n", "orphan_edge", "dst 'a' not found in Room"),
        ("o", "orphan_edge", "src 'a' not found in Room"),
    ]


def test_many_conflicts_take_no_memory(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_omnigraph.graph.merge.conflicts._AT_ONCE", 3)
    monkeypatch.setattr("spark_omnigraph.graph.merge.decisions._AT_ONCE", 3)
    for branch, size in (("draft", 1), ("main", 2)):
        put(graph, branch, *(room(f"r{number}", size) for number in range(10)))
    before = pa.total_allocated_bytes()
    rows = off_memory(pa.table({"id": [f"r{number}" for number in range(100_000)]}))
    assert pa.total_allocated_bytes() - before < 10_000, "they lie in a file"
    assert rows.num_rows == 100_000
    path = tmp_path / "conflicts.jsonl"
    with pytest.raises(MergeConflictsError) as caught:
        graph.merge_branch("draft", conflicts=path)
    assert caught.value.counts == {"divergent_insert": 10}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["id"] for line in lines] == sorted(f"r{number}" for number in range(10))
    graph.merge_branch("draft", decisions=[{**line, "take": "source"} for line in lines])
    assert rooms(graph) == rooms(graph, "draft")


def test_rows_in_conflict_are_json_whatever_others_stored(tmp_path: Path) -> None:
    """No record can carry NaN, so it is never written here; another program may have stored it."""
    graph = Graph.init(tmp_path / "g", "node Gauge { tag: String @key  value: F64?  places: Vector(2)? }")
    graph.load(['{"type": "Gauge", "data": {"tag": "NaN", "value": 1.5}}'], options=NO_INDEX)
    entity = graph.catalog().require("node:Gauge")
    schema = physical_schema(entity)
    values = {"id": ["NaN"], "tag": ["NaN"], "value": [math.nan], "places": [[math.inf, -math.inf]]}
    stored = cast("StoredRows", SimpleNamespace(take=lambda _: pa.table(values, schema=schema)))
    (record,) = SideRows(stored, pa.chunked_array([[0]], pa.uint64())).records(entity, np.array([0]))
    data = json.loads(record or "", parse_constant=pytest.fail)["data"]
    assert data == {"id": "NaN", "tag": "NaN", "value": "NaN", "places": ["Infinity", "-Infinity"]}


def shared_third(graph: Graph) -> None:
    """Both have merged what a third branch did to the hall, and main has set it back."""
    graph.create_branch("third")
    put(graph, "third", room("hall", 5))
    put(graph, "draft", room("attic", 6))
    for branch in ("draft", "main"):
        graph.merge_branch("third", branch)
    put(graph, "main", room("hall", 1))


def test_what_went_with_a_third_branch_is_told(graph: Graph) -> None:
    shared_third(graph)
    assert graph.merge_branch("draft", dry_run=True).warnings == ()
    graph.delete_branch("third")
    (told,) = graph.merge_branch("draft", dry_run=True).warnings
    assert told.startswith("both branches have 1 commit in common that went with a branch")
    graph.merge_branch("draft")
    put(graph, "draft", room("attic", 7))
    assert graph.merge_branch("draft").warnings == (), "it lies behind the new base"


def test_a_base_whose_state_was_removed_gives_way_to_the_one_before_it(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_third(graph)
    base, shown = graph.commits(branch="third")[0], plan._shown
    monkeypatch.setattr(plan, "_shown", lambda store, commit: None if commit.id == base.id else shown(store, commit))
    report = graph.merge_branch("draft", dry_run=True)
    assert report.bases != (base.id,)
    assert len(report.bases) == 1
    assert base.id in report.warnings[0]


def test_a_row_that_is_given_where_the_source_has_none_left(graph: Graph, tmp_path: Path) -> None:
    put(graph, "main", door("d", "hall", "attic"))
    graph.create_branch("work")
    graph.delete("edge:Door", ["d"], branch="work")
    put(graph, "main", door("d", "attic", "hall"), door("e", "hall", "hall"))
    path = tmp_path / "conflicts.jsonl"
    with pytest.raises(MergeConflictsError):
        graph.merge_branch("work", conflicts=path)
    (line,) = [json.loads(line) for line in path.read_text().splitlines()]
    given = json.loads(door("d", "hall", "hall"))
    report = graph.merge_branch("work", decisions=[{**line, "row": given}])
    assert (report.tables["edge:Door"].updated, report.warnings) == (1, ())
