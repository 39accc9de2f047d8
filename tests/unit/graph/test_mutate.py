"""Mutations over real graphs: what becomes visible, what is refused, who wins, and what is left behind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.errors import (
    BadRequestError,
    ConstraintError,
    ExpectedVersionMismatch,
    NotFoundError,
    OmnigraphError,
    QueryTypeError,
    StorageError,
)
from spark_omnigraph.graph.mutate import mutate as mutate_module
from spark_omnigraph.graph.mutate import staging as mutation_staging
from spark_omnigraph.graph.mutate.check import check_pending
from spark_omnigraph.graph.mutate.staging import ChangedRows
from spark_omnigraph.storage.tables.keys import scan_where
from spark_omnigraph.storage.tables.staged import stage_rows
from spark_omnigraph.write import checker as check_module
from spark_omnigraph.write.attempts import ATTEMPTS

SCHEMA = """
node Person { name: String @key  age: I32?  mail: String? @unique  seen: DateTime?  @range(age, 0..150) }
node Note { text: String  pri: I32? }
edge Knows: Person -> Person @card(0..3) { since: I32? }
edge About: Note -> Person
"""
PERSON, NOTE, KNOWS, ABOUT = "node:Person", "node:Note", "edge:Knows", "edge:About"
PLAIN = LoadOptions(build_indexes=False)


def person(name: str, **data: object) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, **data}})


def note(note_id: str, text: str) -> str:
    return json.dumps({"type": "Note", "data": {"id": note_id, "text": text}})


def edge(kind: str, source: str, target: str, edge_id: str) -> str:
    return json.dumps({"edge": kind, "from": source, "to": target, "data": {"id": edge_id}})


@pytest.fixture
def graph(loaded: Path, tmp_path: Path) -> Graph:
    """A copy that the test may change."""
    return Graph.open(shutil.copytree(loaded, tmp_path / "g"))


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three people, two notes and what joins them, without indexes."""
    graph = Graph.init(tmp_path_factory.mktemp("loaded") / "g", SCHEMA)
    graph.load(
        [
            person("a", age=1, mail="a@x"), person("b", age=2), person("c", age=3),
            note("n1", "one"), note("n2", "two"),
            edge("Knows", "a", "b", "ab"), edge("Knows", "b", "a", "ba"), edge("Knows", "b", "c", "bc"),
            edge("About", "n1", "a", "n1a"),
        ],
        options=PLAIN,
    )  # laid out as a table  # fmt: skip
    return Path(graph.uri)


def ages(graph: Graph, branch: str = "main") -> dict[str, int | None]:
    rows = [json.loads(line)["data"] for line in graph.export(types=["Person"], branch=branch)]
    return {row["name"]: row["age"] for row in rows}


def edges(graph: Graph) -> set[str]:
    return {json.loads(line)["data"]["id"] for line in graph.export(types=["Knows", "About"])}


def files(graph: Graph) -> set[str]:
    root = Path(graph.uri)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def query(statements: str, params: str = "") -> str:
    return f"query q({params}) {{ {statements} }}"


def test_all_statements_become_visible_in_one_commit(graph: Graph) -> None:
    before = graph.snapshot()
    text = query(
        'insert Person { name: "d", age: 4 } insert Knows { from: "d", to: "a" } '
        'update Person set { age: 9 } where age >= 3 insert Note { text: "new" }'
    )
    result = graph.mutate(text, actor="ada")
    assert (result.affected_nodes, result.affected_edges, result.branch, result.query) == (4, 1, "main", "q")
    assert ages(graph) == {"a": 1, "b": 2, "c": 9, "d": 9}
    assert dict(result.tables) == {
        KNOWS: ChangedRows(inserted=1),
        NOTE: ChangedRows(inserted=1),
        PERSON: ChangedRows(inserted=1, updated=1),
    }
    commit = graph.commits()[0]
    assert (commit.id, commit.actor, commit.parent) == (result.commit, "ada", result.base_commit)
    assert commit.manifest_version == result.manifest_version == before.version + 1
    pins = {
        key: graph.at(version=result.manifest_version).snapshot().pin(key) - before.pin(key) for key in before.entries
    }
    assert pins == {PERSON: 1, NOTE: 1, KNOWS: 1, ABOUT: 0}, "one staged commit for each table that changed"
    assert graph.count(PERSON) == 4


def test_the_sidecar_names_the_writer(graph: Graph) -> None:
    with stop_at(CrashPoint.ARMED), pytest.raises(Crashed):
        graph.mutate(query('delete Person where name = "a"'), actor="ada")
    (name,) = [n for n in graph.store.objects.list("__recovery") if n.endswith(".json")]
    sidecar = json.loads(graph.store.objects.get(f"__recovery/{name}") or b"")
    assert (sidecar["writer_kind"], sidecar["actor_id"]) == ("Mutation", "ada")
    assert [pin["table_key"] for pin in sidecar["tables"]] == [ABOUT, KNOWS, PERSON]
    assert sidecar["x_read_expectations"] == {}


def test_an_update_keeps_row_ids_and_the_version_of_creation(graph: Graph) -> None:
    def rows() -> list[tuple[object, ...]]:
        table = graph.store.open_table(graph.snapshot().entries[PERSON])
        columns = ["id", "age", "_row_created_at_version", "_row_last_updated_at_version"]
        found = table.scanner(columns=columns, with_row_id=True).to_table().sort_by("id")
        return [tuple(row[c] for c in ("id", "_rowid", *columns[2:])) for row in found.to_pylist()]

    before = rows()
    graph.mutate(query('update Person set { age: 50 } where name = "b"'))
    after = rows()
    assert [row[:3] for row in after] == [row[:3] for row in before]
    moved = graph.snapshot().pin(PERSON)
    assert [row[0] for row in after if row[3] != before[0][3]] == ["b"], moved


def test_a_mutation_that_matches_nothing_is_no_commit(graph: Graph) -> None:
    version, found = graph.snapshot().version, files(graph)
    for statement in (
        'delete Person where name = "zz"',
        "update Person set { age: 5 } where age > 1000",
        'update Person set { age: 5 } where name = "zz"',
        "delete Knows where since != 0",
    ):
        result = graph.mutate(query(statement))
        assert (result.commit, result.affected_nodes, result.affected_edges, result.tables) == (None, 0, 0, {})
    assert graph.snapshot().version == version
    assert files(graph) == found


def test_a_dry_run_counts_and_writes_nothing(graph: Graph) -> None:
    found = files(graph)
    result = graph.mutate(query("update Person set { age: 7 } where age >= 2"), dry_run=True)
    assert (result.affected_nodes, result.commit) == (2, None)
    with pytest.raises(ConstraintError, match="value 151 > max 150"):
        graph.mutate(query("update Person set { age: 151 } where age >= 2"), dry_run=True)
    assert files(graph) == found


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (query('insert Person { name: "d" } delete Person where name = "a"'), BadRequestError, "mixes inserts/updates"),
        (query('insert Ghost { name: "d" }'), QueryTypeError, "T10"),
        (query('insert Person { name: $x }'), QueryTypeError, "T14"),
        (query("match { $p: Person } return { $p }"), BadRequestError, "read query"),
        (query('update Person set { name: "z" } where name = "a"'), BadRequestError, "cannot update @key"),
        (query('insert Person { name: $x }', "$x: String"), BadRequestError, "parameter 'x' not provided"),
    ],
)  # laid out as a table  # fmt: skip
def test_what_the_text_shows_is_refused_before_a_table_is_looked_at(
    graph: Graph, text: str, error: type[OmnigraphError], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a table was looked at")

    monkeypatch.setattr(type(graph.store), "snapshot_with_rows", refuse)
    monkeypatch.setattr(type(graph.store), "open_table", refuse)
    with pytest.raises(error, match=words):
        graph.mutate(text)


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (
            'insert Person { name: "d", age: -1 }'.replace("-1", "151"),
            "@range violation on Person.age: value 151 > max",
        ),
        ('insert Person { name: "d", mail: "a@x" }', "@unique violation on Person.mail: value 'a@x'"),
        (
            'insert Person { name: "d", mail: "q" } insert Person { name: "e", mail: "q" }',
            "held by an earlier row of the query",
        ),
        ('update Person set { mail: "q" } where age >= 2', "@unique violation on Person.mail: value 'q'"),
        ('insert Knows { from: "a", to: "nope" }', "dst 'nope' not found in Person"),
        ('insert Knows { from: "nope", to: "a" }', "src 'nope' not found in Person"),
        ('insert Knows { from: "z", to: "a" } insert Person { name: "z" }', "src 'z' not found in Person"),
        ('insert Knows { from: "b", to: "a" } insert Knows { from: "b", to: "b" }', "source 'b' has 4 edges"),
        ('insert Person { name: "d", age: 2.5 }', "cannot convert 2.5 to I32"),
        ('insert Person { name: "d", age: 2147483648 }', "2147483648 exceeds Int32 range"),
    ],
)
def test_a_refused_mutation_leaves_nothing(graph: Graph, statements: str, words: str) -> None:
    found, version = files(graph), graph.snapshot().version
    with pytest.raises((ConstraintError, BadRequestError), match=words):
        graph.mutate(query('insert Note { text: "first" } ' + statements))
    assert files(graph) == found
    assert graph.snapshot().version == version


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'query q() {\n  insert Note { text: "x" }\n  insert Person {\n    name: "d", age: 151 }\n}',
            "@range violation on Person.age: value 151 > max 150 (line 3: insert Person)",
        ),
        (
            'query q() {\n  insert Person { name: "d", age: 5 }\n  update Person set { age: 200 } where name = "d"\n}',
            "@range violation on Person.age: value 200 > max 150 (line 3: update Person)",
        ),
        (
            'query q() {\n  update Person set { age: 5 } where name = "a"\n  insert Person { name: "a", age: 200 }\n}',
            "@range violation on Person.age: value 200 > max 150 (line 3: insert Person)",
        ),
        (
            'query q() {\n  insert Knows { from: "a", to: "nope" }\n  insert Knows { from: "a", to: "none" }\n}',
            "dst 'nope' not found in Person (line 2: insert Knows); "
            "dst 'none' not found in Person (line 3: insert Knows)",
        ),
        (
            'query q() {\n  insert Note { text: "x" } insert Knows { from: "z", to: "a" }\n'
            '  insert Knows { from: "z", to: "b" }\n  insert Person { name: "z" }\n}',
            "src 'z' not found in Person, since a later statement makes it: put that one first (line 2: insert Knows)",
        ),
        (
            'query q() {\n\n  insert Person { name: "d", age: 2.5 }\n}',
            "cannot convert 2.5 to I32?: Person: property 'age' expects I32, got 2.5 (line 3: insert Person)",
        ),
    ],
)
def test_a_refusal_names_the_statement(graph: Graph, text: str, said: str) -> None:
    with pytest.raises((ConstraintError, BadRequestError)) as caught:
        graph.mutate(text)
    assert caught.value.message == said


@pytest.mark.parametrize(
    "statements",
    [
        'insert Person { name: "d" } insert Person { name: "a" } insert Knows { from: "a", to: "d" }',
        "update Person set { age: 9 } where age >= 2",
        'insert Note { text: "x" }',
        'delete Person where name = "a"',
        'delete Person where name = "nobody"',
        'update Person set { age: 9 } where name = "nobody"',
    ],
)
def test_a_dry_run_counts_what_the_run_does(graph: Graph, statements: str) -> None:
    for branch in ("main", "draft"):
        if branch != "main":
            graph.create_branch(branch)
        said = graph.mutate(query(statements), branch=branch, dry_run=True)
        assert said.commit is None
        assert said.tables == graph.mutate(query(statements), branch=branch).tables
        if "nobody" not in statements and branch == "main":
            assert said.tables


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(("name", "kind"), [("single", "F32"), ("double", "F64"), ("many", "[F64]")])
@pytest.mark.parametrize("statement", ['insert M { name: "n", %s: $x }', 'update M set { %s: $x } where name = "m"'])
def test_a_number_that_is_not_finite_is_never_written(
    tmp_path: Path, statement: str, name: str, kind: str, number: float
) -> None:
    graph = Graph.init(tmp_path / "g", "node M { name: String @key  single: F32?  double: F64?  many: [F64]? }")
    graph.load(['{"type": "M", "data": {"name": "m"}}'], options=PLAIN)
    version = graph.snapshot().version
    value = [1.0, number] if name == "many" else number
    with pytest.raises(BadRequestError, match=r"cannot convert .*(NaN is not finite|Infinity exceeds Float)"):
        graph.mutate(f"query q($x: {kind}) {{ {statement % name} }}", params={"x": value})
    assert graph.snapshot().version == version
    assert graph.count("node:M") == 1


def test_all_broken_rules_are_named(graph: Graph) -> None:
    inserts = " ".join(f'insert Person {{ name: "x{i}", age: {200 + i} }}' for i in range(7))
    with pytest.raises(ConstraintError, match=r"value 200 .*value 204 .*and 2 more") as refused:
        graph.mutate(query(inserts))
    assert "205" not in str(refused.value)


def test_a_staged_file_does_not_outlive_a_failure(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    found = files(graph)

    def fails_for_notes(target: Any, *rest: Any) -> object:
        if getattr(target, "table_key", "") == PERSON:
            raise StorageError("storage: the disk is full")
        return stage_rows(target, *rest)

    monkeypatch.setattr(mutation_staging, "stage_rows", fails_for_notes)
    with pytest.raises(StorageError, match="disk is full"):
        graph.mutate(query('insert Note { text: "x" } insert Person { name: "d" }'))
    assert files(graph) == found


# --- deletes


def test_deletes_cascade_and_count_each_row_once(graph: Graph) -> None:
    result = graph.mutate(query('delete Person where name = "a" delete Person where age <= 2'))
    assert (result.affected_nodes, result.affected_edges) == (2, 4)
    assert ages(graph) == {"c": 3}
    assert edges(graph) == set()
    assert dict(result.tables) == {
        ABOUT: ChangedRows(deleted=1), KNOWS: ChangedRows(deleted=3), PERSON: ChangedRows(deleted=2),
    }  # laid out as a table  # fmt: skip


def test_an_emptied_table_is_filled_again(graph: Graph) -> None:
    graph.mutate(query("delete Person where age >= 0"))
    assert (graph.count(PERSON), graph.count(KNOWS), graph.count(NOTE)) == (0, 0, 2)
    graph.mutate(query('insert Person { name: "a", age: 8 } insert Knows { from: "a", to: "a" }'))
    assert (ages(graph), graph.count(KNOWS)) == ({"a": 8}, 1)


def test_edges_go_by_end_or_property(graph: Graph) -> None:
    assert graph.mutate(query('delete Knows where from = "b"')).affected_edges == 2
    assert edges(graph) == {"ab", "n1a"}
    assert graph.mutate(query('delete About where to > "a"')).affected_edges == 0
    assert graph.mutate(query('delete About where to <= "a"')).affected_edges == 1


# --- other writers


def meanwhile(work: Callable[[], object]) -> Callable[[], None]:
    def action() -> None:
        work()

    return action


def test_inserts_that_lost_a_race_run_again(graph: Graph) -> None:
    other = Graph.open(graph.uri)
    with stop_at(CrashPoint.CHECKED, meanwhile(lambda: other.load([person("late")], options=PLAIN))):
        result = graph.mutate(query('insert Person { name: "d" } insert Knows { from: "d", to: "a" }'))
    assert result.commit is not None
    assert ages(graph).keys() == {"a", "b", "c", "d", "late"}


def test_a_rule_that_the_winner_made_true_refuses_the_next_attempt(graph: Graph) -> None:
    other = Graph.open(graph.uri)
    with (
        stop_at(CrashPoint.CHECKED, meanwhile(lambda: other.load([person("late", mail="m")], options=PLAIN))),
        pytest.raises(ConstraintError, match="value 'm' is held by a stored row"),
    ):
        graph.mutate(query('insert Person { name: "d", mail: "m" }'))


def test_attempts_are_bounded(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    other, tries = Graph.open(graph.uri), []

    def check_and_lose(*arguments: Any) -> None:
        check_pending(*arguments)
        tries.append(1)
        other.load([person(f"late{len(tries)}")], options=PLAIN)

    monkeypatch.setattr(mutate_module, "check_pending", check_and_lose)
    with pytest.raises(ExpectedVersionMismatch):
        graph.mutate(query('insert Person { name: "d" }'))
    assert len(tries) == ATTEMPTS


@pytest.mark.parametrize(
    "statements",
    [
        'update Person set { age: 7 } where name = "a"',
        'insert Person { name: "d" } update Person set { age: 7 } where name = "a"',
        'delete Person where name = "a"',
    ],
)
def test_updates_and_deletes_tell_of_the_loss(graph: Graph, statements: str) -> None:
    other, before = Graph.open(graph.uri), graph.snapshot().pin(PERSON)
    with (
        stop_at(CrashPoint.STAGED, meanwhile(lambda: other.load([person("late")], options=PLAIN))),
        pytest.raises(ExpectedVersionMismatch) as lost,
    ):
        graph.mutate(query(statements))
    assert (lost.value.table_key, lost.value.expected, lost.value.actual) == (PERSON, before, before + 1)
    assert ages(graph) == {"a": 1, "b": 2, "c": 3, "late": None}


def test_a_delete_does_not_miss_an_edge_that_comes_meanwhile(graph: Graph) -> None:
    """The edge table has no edge of the node, so it is not written; yet the delete relies on that."""
    other = Graph.open(graph.uri)
    late = edge("About", "n2", "c", "late")
    with (
        stop_at(CrashPoint.STAGED, meanwhile(lambda: other.load([late], options=PLAIN))),
        pytest.raises(ExpectedVersionMismatch, match=ABOUT),
    ):
        graph.mutate(query('delete Person where name = "c"'))
    assert "late" in edges(graph)


def test_an_edge_does_not_land_on_a_node_that_goes_meanwhile(graph: Graph) -> None:
    other = Graph.open(graph.uri)
    with (
        stop_at(CrashPoint.STAGED, meanwhile(lambda: other.mutate(query('delete Person where name = "c"')))),
        pytest.raises(ConstraintError, match="dst 'c' not found in Person"),
    ):
        graph.mutate(query('insert Knows { from: "a", to: "c" }'))


# --- branches


def test_a_mutation_on_a_branch_leaves_main_alone(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.mutate(query('update Person set { age: 70 } where name = "a" insert Person { name: "d" }'), branch="draft")
    graph.mutate(query('delete Person where name = "b"'), branch="draft")
    assert ages(graph) == {"a": 1, "b": 2, "c": 3}
    assert ages(graph, "draft") == {"a": 70, "c": 3, "d": None}
    entries = graph.snapshot(branch="draft").entries
    assert {key: entry.branch for key, entry in entries.items()} == {
        PERSON: "draft", KNOWS: "draft", NOTE: None, ABOUT: None,
    }  # laid out as a table  # fmt: skip
    with pytest.raises(NotFoundError, match="nowhere"):
        graph.mutate(query('delete Person where name = "b"'), branch="nowhere")


# --- values


def test_now_is_one_instant(graph: Graph) -> None:
    graph.mutate(query('insert Person { name: "d", seen: now() } update Person set { seen: now() } where age = 1'))
    seen = {r: (graph.entity(PERSON, r) or {})["seen"] for r in ("a", "d")}
    assert seen["a"] == seen["d"] is not None


def test_keys_of_all_types_give_ids(tmp_path: Path) -> None:
    graph = Graph.init(
        tmp_path / "k",
        "node Day { on: Date @key  n: I32? }\nnode At { x: F64  y: String  @key(x, y) }\nedge Goes: Day -> Day",
    )
    text = query(
        'insert Day { on: $d } insert Day { on: date("2024-01-02") } insert Goes { from: "2024-01-01", to: "19724" } '
        'insert At { x: 0.5, y: "q" }',
        "$d: Date",
    )
    graph.mutate(text, params={"d": "2024-01-01"})
    rows = [json.loads(line) for line in graph.export()]
    assert {row["data"]["id"] for row in rows if "type" in row} == {"19723", "19724", '["0.5","q"]'}
    assert [(row["from"], row["to"]) for row in rows if "edge" in row] == [("19723", "19724")]
    graph.mutate(query('update Day set { n: 1 } where on > date("2024-01-01")'))
    assert (graph.entity("node:Day", "19724") or {})["n"] == 1


def test_blobs_and_vectors_survive_an_update(tmp_path: Path) -> None:
    graph = Graph.init(
        tmp_path / "b", "node Doc { k: String @key  n: I32?  v: Vector(2)?  body: Blob?  tags: [Date]? }"
    )
    (tmp_path / "outside.bin").write_bytes(b"far")
    uri = (tmp_path / "outside.bin").as_uri()
    docs = [
        {"k": "in", "body": "base64:aGVsbG8=", "v": [1, 2], "tags": [19724, None]},
        {"k": "out", "body": uri},
        {"k": "no"},
    ]
    graph.load(
        [json.dumps({"type": "Doc", "data": data}) for data in docs], options=replace(PLAIN, blob_schemes=("file",))
    )
    before = {json.loads(line)["data"]["k"]: json.loads(line)["data"] for line in graph.export()}
    graph.mutate(query('update Doc set { n: 5 } where k >= "a"'))
    after = {json.loads(line)["data"]["k"]: json.loads(line)["data"] for line in graph.export()}
    assert after == {key: {**data, "n": 5} for key, data in before.items()}
    text = query('update Doc set { body: $b, v: $v } where k = "in"', "$b: String, $v: Vector(2)?")
    graph.mutate(text, params={"b": "base64:AAEC", "v": None})
    changed = graph.entity("node:Doc", "in") or {}
    assert (changed["body"], changed["v"], changed["n"]) == ("base64:AAEC", None, 5)


def test_many_rows_in_several_files(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation_staging, "FILE_ROWS", 1000)
    graph.load([person(f"p{i:05}", age=i % 100) for i in range(7000)], options=PLAIN)
    result = graph.mutate(query('update Person set { age: 99 } where name >= "p" insert Person { name: "z" }'))
    assert (result.affected_nodes, result.tables[PERSON]) == (7001, ChangedRows(inserted=1, updated=7000))
    assert sorted(set(ages(graph).values()), key=str) == [1, 2, 3, 99, None]
    assert graph.count(PERSON) == 7004


def test_an_update_asks_only_for_what_it_changes(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of another engine may break `@unique`; changing another property neither hides nor punishes that."""
    asked: list[str | None] = []

    def recorded(dataset: Any, columns: Any, condition: str | None) -> object:
        asked.append(condition)
        return scan_where(dataset, columns, condition)

    monkeypatch.setattr(check_module, "scan_where", recorded)
    graph.mutate(query('update Person set { age: 7 } where name = "a"'))
    assert asked == []
    graph.mutate(query('update Person set { mail: "new" } where name = "a"'))
    graph.mutate(query('update Person set { age: 7 } where name = "a" insert Person { name: "e", mail: "e@x" }'))
    assert asked == ["`mail` IN ('new')", "`mail` IN ('new', 'e@x')"]
