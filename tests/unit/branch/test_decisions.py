"""Decisions of conflicts: the file that was written, edited, is the file that is read; and what is refused."""

from __future__ import annotations

import base64
import json
import random
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_omnigraph import BadRequestError, Graph, LoadOptions, MergeConflict, MergeConflictsError
from spark_omnigraph.graph.merge.decisions import read_decisions

SCHEMA = """
node Room { name: String @key  size: I32?  @range(size, 0..100)  plan: Vector(2)?  sign: String? @unique }
edge Door: Room -> Room
"""
NO_INDEX = LoadOptions(build_indexes=False)
Line = dict[str, Any]


def room(name: str, size: int | None = None, **more: object) -> str:
    return json.dumps({"type": "Room", "data": {"name": name, "size": size, **more}})


def put(graph: Graph, branch: str, *lines: str) -> None:
    graph.load(list(lines), "merge", branch=branch, options=NO_INDEX)


def rooms(graph: Graph) -> dict[str, int | None]:
    rows = (json.loads(line)["data"] for line in graph.export(["Room"]))
    return {row["name"]: row["size"] for row in rows}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Main and draft disagree on hall (changed by both), attic (deleted by draft) and new (inserted by both)."""
    made = Graph.init(tmp_path_factory.mktemp("decisions") / "g", SCHEMA)
    made.load([room("hall", 1, plan=[0.1, 3]), room("attic", 2)], options=NO_INDEX)
    made.create_branch("draft")
    put(made, "draft", room("hall", 9, plan=[0.1, 3]), room("new", 1))
    made.delete("node:Room", ["attic"], branch="draft")
    put(made, "main", room("hall", 8), room("attic", 7), room("new", 2))
    return made


@pytest.fixture
def graph(stored: Graph, tmp_path: Path) -> Graph:
    return Graph.open(shutil.copytree(stored.uri, tmp_path / "g"))


def conflicts_of(graph: Graph, path: Path) -> list[Line]:
    with pytest.raises(MergeConflictsError):
        graph.merge_branch("draft", conflicts=path)
    return [json.loads(line) for line in path.read_text().splitlines()]


def edited(lines: list[Line], changes: Mapping[str, Line]) -> list[Line]:
    return [{**line, **changes.get(line["id"], {})} for line in lines]


def test_the_file_of_conflicts_edited_decides_them(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "conflicts.jsonl"
    lines = conflicts_of(graph, path)
    heads = {graph.commits(branch="draft")[0].id: "source_commit", graph.commits()[0].id: "target_commit"}
    assert [{line[name] for line in lines} for name in heads.values()] == [{commit} for commit in heads]
    own = {"type": "Room", "data": {"name": "new", "size": 55, "plan": [0.5, 2.5]}}
    changes: dict[str, Line] = {"hall": {"take": "target"}, "attic": {"take": "source"}, "new": {"row": own}}
    given = tmp_path / "decisions.jsonl"
    given.write_text("\n".join(json.dumps(line) for line in edited(lines, changes)))
    after = tmp_path / "discarded.jsonl"
    report = graph.merge_branch("draft", decisions=given, conflicts=after)
    assert rooms(graph) == {"hall": 8, "new": 55}
    counts = report.tables["node:Room"]
    assert (counts.appended, counts.updated, counts.deleted, counts.conflicts) == (0, 1, 1, 3)
    told = {line["id"]: line for line in map(json.loads, after.read_text().splitlines())}
    assert {name: line["decided"] for name, line in told.items()} == {
        "attic": "source", "hall": "target", "new": "row",
    }  # laid out as a table  # fmt: skip
    assert [told["new"][side]["data"]["size"] for side in ("source", "target")] == [1, 2]
    stored = graph.entity("node:Room", "new")
    assert stored is not None
    assert stored["plan"] == [0.5, 2.5]


def test_decisions_come_in_any_form(stored: Graph, tmp_path: Path) -> None:
    path = tmp_path / "conflicts.parquet"
    with pytest.raises(MergeConflictsError):
        stored.merge_branch("draft", conflicts=path)
    table = pq.read_table(path)
    assert table.column("id").to_pylist() == ["attic", "hall", "new"]
    assert json.loads(table.column("target").to_pylist()[1])["data"]["size"] == 8
    table = table.append_column("take", pa.array(["source", None, "row"]))
    table = table.append_column("row", pa.array([None, None, room("new", 55)]))
    pq.write_table(table, tmp_path / "decisions.parquet")
    frame = table.to_pandas()
    frame = frame[frame["take"].notna()]
    frame.attrs["metrics"] = object()  # as Spark Connect leaves them, and Arrow warns of
    for given in (tmp_path / "decisions.parquet", table, frame, table.to_pylist()):
        found = read_decisions(given, {})
        assert [(each.name, str(each.take), each.record) for each in found] == [
            ("node:Room 'attic'", "source", ""), ("node:Room 'new'", "row", room("new", 55)),
        ]  # laid out as a table  # fmt: skip


def test_a_record_may_stand_for_the_word(graph: Graph, tmp_path: Path) -> None:
    lines = conflicts_of(graph, tmp_path / "c.jsonl")
    changes = {line["id"]: {"take": line["target"]} for line in lines}
    report = graph.merge_branch("draft", decisions=edited(lines, changes))
    assert report.tables["node:Room"].conflicts == 3
    assert rooms(graph) == {"hall": 8, "attic": 7, "new": 2}
    assert graph.diff(report.target_commit, report.commit or "").changes == ()


def test_what_is_left_open_is_a_conflict_unless_it_is_said(graph: Graph, tmp_path: Path) -> None:
    lines = conflicts_of(graph, tmp_path / "c.jsonl")
    given = edited(lines, {"hall": {"take": "target"}})
    with pytest.raises(MergeConflictsError) as caught:
        graph.merge_branch("draft", decisions=given)
    assert [c.row_id for c in caught.value.conflicts] == ["attic", "new"]
    assert caught.value.counts == {"delete_vs_update": 1, "divergent_insert": 1}
    path = tmp_path / "all.jsonl"
    graph.merge_branch("draft", decisions=given, on_conflict="source", conflicts=path)
    assert rooms(graph) == {"hall": 8, "new": 1}
    decided = {line["id"]: line["decided"] for line in map(json.loads, path.read_text().splitlines())}
    assert decided == {"attic": "source", "hall": "target", "new": "source"}


def test_a_decision_about_other_rows_does_not_count(graph: Graph, tmp_path: Path) -> None:
    lines = conflicts_of(graph, tmp_path / "c.jsonl")
    given = edited(lines, {line["id"]: {"take": "source"} for line in lines})
    put(graph, "main", room("hall", 10), room("other", 3))
    with pytest.raises(MergeConflictsError) as caught:
        graph.merge_branch("draft", decisions=given)
    assert [(c.row_id, c.message) for c in caught.value.conflicts] == [
        ("hall", "divergent update for id 'hall'; the decision was made on other rows")
    ]
    report = graph.merge_branch("draft", decisions=given, on_conflict="target", conflicts=tmp_path / "d.jsonl")
    assert rooms(graph) == {"hall": 10, "new": 1, "other": 3}
    assert "decisions of 1 row " in report.warnings[0]


def test_the_merged_state_is_checked_with_rows_that_were_given(graph: Graph, tmp_path: Path) -> None:
    put(graph, "main", room("exit", 1, sign="red"))
    lines = conflicts_of(graph, tmp_path / "c.jsonl")
    own = json.loads(room("new", 3, sign="red"))
    given = edited(lines, {"hall": {"take": "target"}, "attic": {"take": "target"}, "new": {"row": own}})
    with pytest.raises(MergeConflictsError) as caught:
        graph.merge_branch("draft", decisions=given)
    assert [(c.row_id, c.kind) for c in caught.value.conflicts] == [("new", "unique_violation")]


HALL = {"table": "node:Room", "id": "hall", "digest": "0"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([{**HALL, "id": "cellar", "take": "source"}], r"not in conflict: node:Room 'cellar' \(decision 1\)"),
        ([{**HALL, "table": "node:Rom", "take": "source"}], "no type 'node:Rom'.*'node:Room'"),
        ([{**HALL, "take": "mine"}], "decision 1: take must be source or target"),
        ([{**HALL, "take": "row"}], "decision 1: take must be source or target"),
        ([{**HALL, "take": "source", "row": "{}"}], "decision 1: take must be source or target"),
        ([{**HALL, "tak": "source"}], "unknown member 'tak'.*'take'"),
        ([{**HALL, "digest": None, "take": "source"}], "decision 1 has no digest"),
        ([{**HALL, "id": None, "take": "source"}], "only rows, by 'table' and 'id', can be decided"),
        ([{**HALL, "take": "source"}] * 2, "decision 2 decides node:Room 'hall' once more, after decision 1"),
        ([{**HALL, "row": room("hall", 101)}], "decision 1 for node:Room 'hall': .*101"),
        ([{**HALL, "row": room("hall", 1, colour="red")}], "cannot be stored: decision 1 .*colour"),
        ([{**HALL, "row": room("halle", 1)}], "its row has another id"),
        ([{**HALL, "row": '{"edge": "Door", "from": "a", "to": "b", "data": {}}'}], "its row is one of edge:Door"),
        ([{**HALL, "row": "{"}], "cannot be stored: decision 1 for node:Room 'hall'"),
        ([{**HALL, "row": {"type": "Room", "data": {"name": {1}}}}], "cannot be written as JSON"),
        (["hall"], "decision 1 is str, not a dict"),
        (7, "a file, a frame or dicts, not int"),
    ],
)
def test_what_decides_nothing_is_refused_by_name(stored: Graph, given: Any, message: str) -> None:
    version = stored.snapshot().version
    with pytest.raises(BadRequestError, match=message):
        stored.merge_branch("draft", decisions=given)
    assert stored.snapshot().version == version


def test_a_bad_line_is_named_and_the_file_is_not_replaced(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('\n{"table": 1,\n')
    with pytest.raises(BadRequestError, match=r"c\.jsonl:2 is no JSON object"):
        graph.merge_branch("draft", decisions=path)
    with pytest.raises(BadRequestError, match="would be replaced"):
        graph.merge_branch("draft", decisions=path, conflicts=path)


MANY = """
node Part { name: String  serial: I32  shape: Vector(3)?  score: F64?  plan: Blob?  made: DateTime?  tags: [String]?
  @key(name, serial) }
edge Fits: Part -> Part { width: I32? }
"""


class Parts:
    """Rows at random, whose ids are the same every time."""

    def __init__(self, seed: int) -> None:
        print(f"seed {seed}")
        self.random = random.Random(seed)

    def nodes(self, numbers: Iterable[int]) -> list[str]:
        return [json.dumps({"type": "Part", "data": {"name": f"é{i}", "serial": i, **self._values()}}) for i in numbers]

    def edges(self, numbers: Iterable[int]) -> list[str]:
        ends = {"from": ["é60", 60], "to": ["é61", 61]}
        return [
            json.dumps({"edge": "Fits", **ends, "data": {"id": f"e{i}", "width": self.random.randrange(99)}})
            for i in numbers
        ]

    def _values(self) -> Line:
        plan = base64.b64encode(self.random.randbytes(5)).decode()
        return {
            "shape": [self.random.random() for _ in range(3)], "score": self.random.random(), "plan": f"base64:{plan}",
            "made": "2020-01-01T00:00:00.5Z", "tags": ["x", str(self.random.random())],
        }  # laid out as a table  # fmt: skip

    def decide(self, line: Line) -> tuple[Line, Line | None]:
        """The line with a decision, and the row that comes of it."""
        take = self.random.choice(["source", "target", "row"])
        if take != "row":
            return {**line, "take": take}, line[take]
        record = line["source"] or line["target"]
        member = "width" if "edge" in record else "score"
        own = {**record, "data": {**record["data"], member: self.random.choice([7, line["target"]["data"][member]])}}
        return {**line, "row": own}, own


def stored_rows(graph: Graph, branch: str = "main") -> dict[tuple[str, str], Line]:
    found = {}
    for record in map(json.loads, graph.export(branch=branch)):
        key = f"edge:{record['edge']}" if "edge" in record else f"node:{record['type']}"
        found[key, record["data"]["id"]] = record
    return found


@pytest.mark.parametrize("seed", [6])
def test_decisions_at_random_are_carried_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("spark_omnigraph.graph.merge.rows.SLICE_ROWS", 37)  # several tasks, chunks and parts
    monkeypatch.setattr("spark_omnigraph.graph.merge.rows._FIRST_ROWS", 11)
    monkeypatch.setattr("spark_omnigraph.graph.merge.rows._MOST_ROWS", 11)
    for module in ("rows", "conflicts"):
        monkeypatch.setattr(f"spark_omnigraph.graph.merge.{module}.text_rows", lambda _: 4)
    parts = Parts(seed)
    graph = Graph.init(tmp_path / "g", MANY)
    graph.load([*parts.nodes(range(70)), *parts.edges(range(40))], options=NO_INDEX)
    graph.create_branch("draft")
    for branch in ("draft", "main"):
        put(graph, branch, *parts.nodes(range(50)), *parts.nodes(range(90, 110)), *parts.edges(range(30)))
    graph.delete("edge:Fits", [f"e{i}" for i in range(30, 40)], branch="draft")
    put(graph, "main", *parts.edges(range(30, 40)))
    source, target = stored_rows(graph, "draft"), stored_rows(graph)
    lines = conflicts_of(graph, tmp_path / "c.jsonl")
    given, expected = [], dict(target)
    for line in lines:
        key = line["table"], line["id"]
        assert (line["source"], line["target"]) == (source.get(key), target.get(key))
        decided, row = parts.decide(line)
        given.append(json.dumps(decided))
        expected.pop(key, None)
        expected |= {} if row is None else {key: row}
    (tmp_path / "d.jsonl").write_text("\n".join(given))
    graph.merge_branch("draft", decisions=tmp_path / "d.jsonl")
    assert len(lines) > 100
    assert stored_rows(graph) == expected


def test_an_error_has_counts_and_a_bounded_sample(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.create_branch("draft")
    for branch, size in (("draft", 1), ("main", 2)):
        put(graph, branch, *(room(f"r{i:03}", size) for i in range(150)))
    path = tmp_path / "c.jsonl"
    with pytest.raises(MergeConflictsError, match=r"r002 \(divergent_insert\); and 147 more") as caught:
        graph.merge_branch("draft", conflicts=path)
    body: dict[str, Any] = caught.value.to_dict()
    assert (len(body["merge_conflicts"]), body["conflict_counts"]) == (100, {"divergent_insert": 150})
    assert body["merge_conflicts"][-1]["row_id"] == "r099"
    assert len(path.read_text().splitlines()) == 150


def test_counts_without_a_sample_are_those_of_the_conflicts() -> None:
    error = MergeConflictsError([MergeConflict("node:Room", str(i), "k", "m") for i in range(101)])
    assert (len(error.conflicts), error.counts) == (100, {"k": 101})
