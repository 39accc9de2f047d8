"""The load: modes, questions about the whole graph, bad rows named exactly, nothing half."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_omnigraph import (
    BadRequestError,
    BadRowsError,
    ConstraintError,
    Graph,
    LoadOptions,
    LocalExecutor,
    NotFoundError,
    TableCounts,
)
from spark_omnigraph.bad_rows import BadRow, Rule
from spark_omnigraph.graph.read.export import plain_values
from spark_omnigraph.records.mode import OnDuplicate
from tests.support.graph_files import recovery_files

SCHEMA = """
node Person { name: String @key  mail: String? @unique  age: I32? @range(age, 0..150) }
node Note { text: String }
edge Knows: Person -> Person { since: Date? }
edge Leads: Person -> Person @card(2..3)
edge Wrote: Person -> Note @card(0..2)
"""


def person(name: str, **data: object) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, **data}})


def note(note_id: str) -> str:
    return json.dumps({"type": "Note", "data": {"id": note_id, "text": note_id}})


def edge(kind: str, source: str, target: str, **data: object) -> str:
    return json.dumps({"edge": kind, "from": source, "to": target, "data": data})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", SCHEMA)


def people(graph: Graph) -> dict[str, object]:
    rows = (json.loads(line)["data"] for line in graph.export(types=["Person"]))
    return {row["name"]: row["age"] for row in rows}


def refused(graph: Graph, lines: list[str] | list[Path], mode: str = "append", **options: Any) -> list[BadRow]:
    """The bad rows of a refused load, after checking that nothing changed."""
    before = (graph.snapshot(), len(graph.commits()))
    files = data_files(graph)
    with pytest.raises(BadRowsError) as caught:
        graph.load(lines, mode, options=LoadOptions(**options))
    assert (graph.snapshot(), len(graph.commits())) == before
    assert recovery_files(Path(graph.uri)) == []
    assert data_files(graph) == files, "staged files of a refused load are removed"
    return list(caught.value.summary.sample)


def data_files(graph: Graph) -> set[str]:
    return {str(p) for p in Path(graph.uri).rglob("data/*.lance")}


def facts(rows: list[BadRow]) -> list[tuple[int, str, str | None]]:
    return [(row.line, str(row.rule), row.field) for row in rows]


def test_all_types_in_one_commit(graph: Graph) -> None:
    report = graph.load([edge("Knows", "a", "b"), person("a", age=1), person("b"), note("n")], actor="ada")
    assert report.nodes_loaded == {"Note": 1, "Person": 2}
    assert report.edges_loaded == {"Knows": 1}
    assert len(graph.commits()) == 2
    assert graph.commits()[0].id == report.commit
    assert graph.commits()[0].actor == "ada"
    assert report.base_commit == graph.commits()[-1].id
    assert people(graph) == {"a": 1, "b": None}


def test_an_empty_input_makes_no_commit(graph: Graph) -> None:
    report = graph.load(["", "  ", "// only a comment"])
    assert (report.commit, report.nodes_loaded, len(graph.commits())) == (None, {}, 1)


def test_append_refuses_ids_that_are_stored_with_their_line(graph: Graph) -> None:
    graph.load([person("a"), person("b")])
    rows = refused(graph, [person("c"), "", person("b", age=3)])
    assert facts(rows) == [(3, "key_conflict", "id")]
    assert rows[0].raw == person("b", age=3)
    assert rows[0].offset == len(person("c")) + 2
    assert rows[0].record_type == "Person"


def test_append_refuses_explicit_edge_ids_that_are_stored(graph: Graph) -> None:
    graph.load([person("a"), edge("Knows", "a", "a", id="k1")])
    assert facts(refused(graph, [edge("Knows", "a", "a", id="k1")])) == [(1, "key_conflict", "id")]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_repeated_key_is_bad_from_its_second_record_on(graph: Graph, mode: str) -> None:
    rows = refused(graph, [person("a"), person("b"), person("a"), person("a")], mode)
    assert facts(rows) == [(3, "key_duplicate", "name"), (4, "key_duplicate", "name")]
    assert "Person.name" in rows[0].message
    assert "'a'" in rows[0].message


def test_repeats_are_found_across_files_and_reported_in_input_order(graph: Graph, tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first.write_text("\n".join([person("a"), "{", person("b")]))
    second.write_text("\n".join([person("b"), person("c"), person("a")]))
    rows = refused(graph, [first, second])
    assert [(Path(r.file).name, r.line, str(r.rule)) for r in rows] == [
        ("1.jsonl", 2, "invalid_json"),
        ("2.jsonl", 1, "key_duplicate"),
        ("2.jsonl", 3, "key_duplicate"),
    ]


def test_merge_replaces_whole_rows_and_inserts_new_ones(graph: Graph) -> None:
    graph.load([person("a", age=1, mail="a@x"), person("b", age=2)])
    report = graph.load([person("a", age=9), person("c", age=3)], "merge")
    assert report.tables["node:Person"] == TableCounts(read=2, valid=2, inserted=1, updated=1)
    assert people(graph) == {"a": 9, "b": 2, "c": 3}
    assert graph.entity("node:Person", "a") == {"id": "a", "age": 9, "mail": None, "name": "a"}
    assert graph.count("node:Person") == 3


def test_merge_keeps_row_ids_and_creation_versions(graph: Graph) -> None:
    graph.load([person("a", age=1), person("b", age=2)])
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]

    def rows() -> dict[str, tuple[int, int, int]]:
        table = graph.store.open_table(graph.snapshot().entries["node:Person"]).to_table(columns=columns)
        return {r["id"]: tuple(r[c] for c in columns[1:]) for r in table.to_pylist()}

    before = rows()
    graph.load([person("b", age=5), person("c")], "merge", options=LoadOptions(build_indexes=False))
    after = rows()
    version = graph.snapshot().entries["node:Person"].version
    assert after["a"] == before["a"]
    assert after["b"] == (before["b"][0], before["b"][1], version)
    assert after["c"][1:] == (version, version)


def test_replaced_rows_lie_in_the_order_of_their_row_ids(graph: Graph) -> None:
    names = [f"n{i:03d}" for i in range(100)]
    graph.load([person(name, age=1) for name in names])
    shuffled = random.Random(3).sample([*names, "new1", "new2"], 102)
    report = graph.load([person(name, age=2) for name in shuffled], "merge", options=LoadOptions(build_indexes=False))
    assert (report.tables["node:Person"].inserted, report.tables["node:Person"].updated) == (2, 100)
    table = graph.store.open_table(graph.snapshot().entries["node:Person"])
    rows = table.scanner(columns=["id"], with_row_id=True, scan_in_order=True).to_table()
    assert rows.column("_rowid").to_pylist()[:100] == list(range(100))
    assert rows.column("id").to_pylist()[:100] == names
    assert people(graph) == dict.fromkeys([*names, "new1", "new2"], 2)


def test_the_last_record_of_a_merge_wins_in_file_then_line_order(graph: Graph, tmp_path: Path) -> None:
    graph.load([person("a", age=1)])
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first.write_text("\n".join([person("a", age=10), person("n", age=11), person("a", age=12)]))
    second.write_text("\n".join([person("n", age=20), person("m", age=21)]))
    report = graph.load([first, second], "merge")
    assert people(graph) == {"a": 12, "n": 20, "m": 21}
    assert report.tables["node:Person"] == TableCounts(read=5, valid=5, inserted=2, updated=1, superseded=2)
    assert graph.count("node:Person") == 3
    ids = graph.store.open_table(graph.snapshot().entries["node:Person"]).to_table(columns=["_rowid"])
    assert len(set(ids.column(0).to_pylist())) == 3


def test_merge_can_refuse_repeats(graph: Graph) -> None:
    rows = refused(graph, [person("a"), person("a", age=2)], "merge", on_duplicate=OnDuplicate.ERROR)
    assert facts(rows) == [(2, "key_duplicate", "name")]


def test_merge_of_edges_goes_by_id(graph: Graph) -> None:
    graph.load([person("a"), edge("Knows", "a", "a", id="k", since="2024-01-01")])
    report = graph.load([edge("Knows", "a", "a", id="k"), edge("Knows", "a", "a")], "merge")
    assert report.tables["edge:Knows"] == TableCounts(read=2, valid=2, inserted=1, updated=1)
    assert graph.count("edge:Knows") == 2


def test_overwrite_replaces_only_mentioned_types(graph: Graph) -> None:
    graph.load([person("a"), person("b"), note("n1"), note("n2")])
    report = graph.load([note("n9")], "overwrite")
    assert report.tables == {"node:Note": TableCounts(read=1, valid=1, inserted=1, deleted=2)}
    assert (graph.count("node:Note"), graph.count("node:Person")) == (1, 2)


def test_overwrite_refuses_to_leave_stored_edges_dangling_and_names_them(graph: Graph) -> None:
    graph.load([person("a"), person("b"), edge("Knows", "a", "b", id="k7")])
    before = graph.snapshot()
    with pytest.raises(ConstraintError, match=r"stored edges dangling: 1 Knows edges whose dst .*edge 'k7' dst 'b'"):
        graph.load([person("a")], "overwrite")
    assert graph.snapshot() == before
    graph.load([person("a"), edge("Knows", "a", "a")], "overwrite")
    assert (graph.count("node:Person"), graph.count("edge:Knows")) == (1, 1)


def test_an_overwrite_names_all_types_of_edges_that_it_would_leave_dangling(graph: Graph) -> None:
    graph.load(
        [person("a"), person("b"), note("n"), edge("Knows", "a", "b", id="k7"), edge("Wrote", "b", "n", id="w1")]
    )
    with pytest.raises(ConstraintError) as refused:
        graph.load([person("a"), note("m")], "overwrite")
    assert refused.value.message == (
        "overwriting Note, Person would leave stored edges dangling: "
        "1 Knows edges whose dst is not found in Person (edge 'k7' dst 'b'); "
        "1 Wrote edges whose src is not found in Person (edge 'w1' src 'b'); "
        "1 Wrote edges whose dst is not found in Note (edge 'w1' dst 'n'). "
        "Load Knows, Wrote in the same overwrite, or keep those nodes."
    )


def test_a_refusal_says_how_many_rows_may_be_bad(graph: Graph) -> None:
    lines = [person("a", age=900), person("b", age=900), *(person(f"c{i}") for i in range(8))]
    for limit, said in (
        (0, "2 bad rows (2 range)"),
        (1, "2 bad rows where 1 may be bad (2 range)"),
        (0.125, "2 bad rows where 12.5% of 10 records may be bad (2 range)"),
    ):
        with pytest.raises(BadRowsError) as refused:
            graph.load(lines, options=LoadOptions(max_bad_rows=limit))
        assert f"nothing changed: {said}" in refused.value.message


def test_an_overwrite_tells_of_bad_rows_before_it_tells_of_dangling_edges(graph: Graph, tmp_path: Path) -> None:
    graph.load([person("a"), person("b"), edge("Knows", "a", "b", id="k7")])
    lines = [person("a"), person("c", age=900)]
    report = tmp_path / "bad.jsonl"
    assert facts(refused(graph, lines, "overwrite", bad_rows=str(report))) == [(2, "range", "age")]
    assert len(report.read_text().splitlines()) == 1
    report.unlink()
    with pytest.raises(ConstraintError, match="stored edges dangling: 1 Knows edges"):
        graph.load(lines, "overwrite", options=LoadOptions(max_bad_rows=1, bad_rows=str(report)))
    assert len(report.read_text().splitlines()) == 1


def test_an_overwrite_whose_rows_are_all_bad_does_not_empty_the_type(graph: Graph) -> None:
    graph.load([person("a"), note("n1")])
    lines = [person("b", age=900), person("c", age=901), note("n2")]
    rows = refused(graph, lines, "overwrite", max_bad_rows=2)
    assert facts(rows) == [(1, "range", "age"), (2, "range", "age")]
    graph.load([*lines, person("d", age=9)], "overwrite", options=LoadOptions(max_bad_rows=2))
    assert people(graph) == {"d": 9}


def test_overwritten_nodes_are_no_endpoints(graph: Graph) -> None:
    graph.load([person("x")])
    rows = refused(graph, [person("z"), edge("Knows", "x", "z")], "overwrite")
    assert facts(rows) == [(2, "endpoint", "from")]
    assert rows[0].message == "src 'x' not found in Person"


def test_endpoints_may_be_stored_or_new_in_any_order(graph: Graph) -> None:
    graph.load([person("a")])
    graph.load([edge("Knows", "a", "b"), edge("Knows", "b", "a"), person("b")])
    rows = refused(graph, [edge("Knows", "a", "ghost"), edge("Knows", "ghost", "nobody"), edge("Knows", "a", "b")])
    assert [(r.line, r.message) for r in rows] == [
        (1, "dst 'ghost' not found in Person"),
        (2, "src 'ghost' not found in Person"),
    ]


def test_endpoints_belong_to_the_declared_type(graph: Graph) -> None:
    graph.load([person("a"), note("n")])
    assert facts(refused(graph, [edge("Wrote", "n", "n")])) == [(1, "endpoint", "from")]


def test_unique_counts_stored_rows_and_exempts_nulls(graph: Graph) -> None:
    graph.load([person("a", mail="m@x"), person("b"), person("c")])
    rows = refused(graph, [person("d", mail="m@x"), person("e", mail="n@x"), person("f", mail="n@x"), person("g")])
    assert facts(rows) == [(1, "unique", "mail"), (3, "unique", "mail")]
    assert "'m@x'" in rows[0].message


@pytest.mark.parametrize("kind", ["F32", "F64"])
def test_both_zeros_are_one_unique_value(tmp_path: Path, kind: str) -> None:
    graph = Graph.init(tmp_path / "zeros", f"node A {{ name: String @key  v: {kind}? @unique }}")
    zero, minus = '{"type": "A", "data": {"name": "a", "v": 0.0}}', '{"type": "A", "data": {"name": "b", "v": -0.0}}'
    with pytest.raises(BadRowsError, match=r"value '-0\.0' is held by an earlier record"):
        graph.load([zero, minus])
    graph.load([zero])
    with pytest.raises(BadRowsError, match=r"value '-0\.0' is held by a stored row"):
        graph.load([minus])
    graph.load([zero.replace("0.0", "-0.0")], mode="merge")
    with pytest.raises(BadRowsError, match=r"value '0\.0' is held by a stored row"):
        graph.load([minus.replace("-0.0", "0.0")])


@pytest.mark.parametrize("name", ["row", "c0", "group"])
def test_a_unique_property_may_have_any_name(tmp_path: Path, name: str) -> None:
    graph = Graph.init(tmp_path / "g", f"node A {{ k: String @key  {name}: String? @unique }}")

    def made(key: str, value: str) -> str:
        return json.dumps({"type": "A", "data": {"k": key, name: value}})

    graph.load([made("a", "one"), made("b", "two")], options=LoadOptions(build_indexes=False))
    assert facts(refused(graph, [made("c", "three"), made("d", "two")])) == [(2, "unique", name)]
    graph.load([made("c", "three")], options=LoadOptions(build_indexes=False))
    assert graph.count("node:A") == 3


def test_a_merge_may_move_a_unique_value_between_rows_it_replaces(graph: Graph) -> None:
    graph.load([person("a", mail="one"), person("b", mail="two")])
    graph.load([person("a", mail="two"), person("b", mail="one")], "merge")
    assert graph.entity("node:Person", "a") == {"id": "a", "age": None, "mail": "two", "name": "a"}
    assert facts(refused(graph, [person("a", mail="one")], "merge")) == [(1, "unique", "mail")]


def test_what_a_refused_row_would_have_replaced_still_holds_its_values(graph: Graph) -> None:
    graph.load([person("a", mail="1"), person("b", mail="2"), person("c", mail="3")])
    lines = [person("a", mail="2"), person("b", mail="3")]
    report = graph.load(lines, "merge", options=LoadOptions(max_bad_rows=5))
    assert (report.bad_rows.total, report.tables["node:Person"].updated) == (2, 0)
    stored = [graph.entity("node:Person", name) or {} for name in "abc"]
    assert [row["mail"] for row in stored] == ["1", "2", "3"]


def test_the_first_of_refused_repeats_replaces_the_stored_row(graph: Graph) -> None:
    graph.load([person("a", age=0, mail="m")])
    lines = [person("a", age=1, mail="m"), person("a", age=2)]
    report = graph.load(lines, "merge", options=LoadOptions(max_bad_rows=5, on_duplicate=OnDuplicate.ERROR))
    assert report.tables["node:Person"] == TableCounts(read=2, valid=1, bad=1, updated=1)
    assert (people(graph), graph.count("node:Person")) == ({"a": 1}, 1)


def test_a_fraction_means_what_it_says(graph: Graph) -> None:
    lines = [person(f"p{i}") for i in range(71)] + ["{"] * 29
    graph.load(lines, options=LoadOptions(max_bad_rows=0.29))
    assert graph.count("node:Person") == 71


def test_damaged_input_is_a_typed_error_that_names_the_file(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(person(f"p{i}") for i in range(500)).encode())[:-200])
    with pytest.raises(BadRequestError, match=r"cut\.jsonl\.gz' is a damaged gzip file"):
        graph.load(path)
    with pytest.raises(BadRequestError, match="empty path"):
        graph.load("")


def test_a_deeply_nested_record_is_a_bad_row_on_a_branch_too(graph: Graph) -> None:
    graph.create_branch("draft")
    line = '{"type": "Person", "data": {"name": ' + "[" * 2000 + "]" * 2000 + "}}"
    with pytest.raises(BadRowsError):
        graph.load([line, person("a")], branch="draft")


def test_a_file_that_is_named_twice_is_read_once(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(person("a"))
    graph.load([path, tmp_path / "." / "in.jsonl"])
    assert graph.count("node:Person") == 1


def test_old_date_times_survive_an_export(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node E { k: String @key  at: DateTime }")
    graph.load(['{"type": "E", "data": {"k": "a", "at": "0999-06-01T00:00:00Z"}}'])
    lines = list(graph.export())
    assert json.loads(lines[0])["data"]["at"] == "0999-06-01T00:00:00.000Z"
    graph.load(lines, "overwrite")
    assert list(graph.export()) == lines


def test_cardinality_counts_stored_edges_and_refuses_the_last_ones(graph: Graph) -> None:
    graph.load([person("a"), note("n"), edge("Wrote", "a", "n")])
    rows = refused(graph, [edge("Wrote", "a", "n"), edge("Wrote", "a", "n"), edge("Wrote", "a", "n")])
    assert facts(rows) == [(2, "cardinality", "from"), (3, "cardinality", "from")]
    assert rows[0].message == "@card violation on edge Wrote: source 'a' has 4 edges (max 2)"
    graph.load([edge("Wrote", "a", "n")])
    assert graph.count("edge:Wrote") == 2


def test_a_minimum_holds_for_sources_that_are_written(graph: Graph) -> None:
    graph.load([person("a"), person("b")])
    rows = refused(graph, [edge("Leads", "a", "b"), edge("Leads", "b", "a"), edge("Leads", "b", "b")])
    assert facts(rows) == [(1, "cardinality", "from")]
    assert rows[0].message == "@card violation on edge Leads: source 'a' has 1 edges (min 2)"
    graph.load([edge("Leads", "a", "b"), edge("Leads", "a", "a")])


def test_a_replaced_edge_is_not_counted_twice(graph: Graph) -> None:
    graph.load([person("a"), note("n"), edge("Wrote", "a", "n", id="1"), edge("Wrote", "a", "n", id="2")])
    graph.load([edge("Wrote", "a", "n", id="1")], "merge")
    assert facts(refused(graph, [edge("Wrote", "a", "n", id="3")], "merge")) == [(1, "cardinality", "from")]


def test_good_rows_get_in_when_bad_ones_are_allowed(graph: Graph, tmp_path: Path) -> None:
    graph.load([person("old")])
    lines = [
        person("a"),
        person("b", age=200),
        person("a"),
        edge("Knows", "a", "b"),
        edge("Knows", "a", "old"),
        person("old"),
        "nonsense",
    ]
    path = tmp_path / "bad" / "rows.jsonl"
    report = graph.load(lines, options=LoadOptions(max_bad_rows=5, bad_rows=str(path)))
    assert people(graph) == {"a": None, "old": None}
    assert report.bad_rows.total == 5
    assert report.bad_rows.per_rule == {
        "endpoint": 1,
        "invalid_json": 1,
        "key_conflict": 1,
        "key_duplicate": 1,
        "range": 1,
    }
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["line"], row["rule"]) for row in written] == [
        (2, "range"),
        (3, "key_duplicate"),
        (4, "endpoint"),
        (6, "key_conflict"),
        (7, "invalid_json"),
    ]
    assert [row["raw"] for row in written] == [lines[1], lines[2], lines[3], lines[5], lines[6]]
    assert report.tables["node:Person"] == TableCounts(read=4, valid=1, bad=3, inserted=1)
    assert report.tables["edge:Knows"] == TableCounts(read=2, valid=1, bad=1, inserted=1)
    assert graph.count("node:Person") == 2


def test_a_report_never_replaces_an_input_and_is_readable_by_others(graph: Graph, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("{nonsense\n")
    for report in (source, tmp_path):
        with pytest.raises(BadRequestError, match="bad-row report"):
            graph.load(source, options=LoadOptions(bad_rows=str(report)))
    assert source.read_text() == "{nonsense\n"
    report = tmp_path / "report.jsonl"
    with pytest.raises(BadRowsError):
        graph.load(source, options=LoadOptions(bad_rows=str(report)))
    other = tmp_path / "other"
    other.touch()
    assert report.stat().st_mode == other.stat().st_mode
    assert sorted(p.name for p in tmp_path.iterdir()) == ["g", "in.jsonl", "other", "report.jsonl"]


def test_one_more_bad_row_than_allowed_refuses_everything(graph: Graph) -> None:
    assert len(refused(graph, [person("a"), "x", "y"], max_bad_rows=1)) == 2
    assert len(refused(graph, [person("a"), person("b"), "x", "y"], max_bad_rows=0.49)) == 2
    graph.load([person("a"), person("b"), "x", "y"], options=LoadOptions(max_bad_rows=0.5))
    assert graph.count("node:Person") == 2


def test_a_dry_run_checks_everything_and_changes_nothing(graph: Graph) -> None:
    files = data_files(graph)
    report = graph.load([person("a"), person("b")], options=LoadOptions(dry_run=True))
    assert (report.commit, report.nodes_loaded) == (None, {"Person": 2})
    assert (graph.count("node:Person"), len(graph.commits()), data_files(graph)) == (0, 1, files)
    refused(graph, [edge("Knows", "a", "b")], dry_run=True)


def test_worker_processes_give_the_same_result(graph: Graph, tmp_path: Path) -> None:
    paths = []
    for i in range(3):
        path = tmp_path / f"{i}.jsonl"
        path.write_text("\n".join([person(f"p{i}-{j}", age=j) for j in range(20)] + [edge("Knows", f"p{i}-0", "p0-1")]))
        paths.append(path)
    graph.load(paths, options=LoadOptions(executor=LocalExecutor(2)))
    assert graph.count("node:Person") == 60
    assert graph.count("edge:Knows") == 3
    rows = refused(graph, [*paths, paths[0]], executor=LocalExecutor(2))
    assert rows[0].line == 1
    assert str(rows[0].rule) == "key_conflict"


def test_progress_is_told_per_range(graph: Graph) -> None:
    seen: list[tuple[str, int, int]] = []
    graph.load([person("a")], options=LoadOptions(progress=lambda *step: seen.append(step)))
    assert seen == [("stage", 1, 1)]


def test_ingest_creates_the_branch_from_its_base(graph: Graph) -> None:
    graph.load([person("a")])
    report = graph.ingest([person("b")], branch="draft", mode="merge")
    assert report.ingest_result() == {
        "branch": "draft",
        "base_branch": "main",
        "branch_created": True,
        "mode": "merge",
        "tables": [{"table_key": "node:Person", "rows_loaded": 1}],
    }
    assert graph.ingest([person("c")], branch="draft").branch_created is False
    assert (graph.count("node:Person"), graph.count("node:Person", branch="draft")) == (1, 3)


def test_a_dry_run_into_a_missing_branch_checks_against_its_base_and_makes_none(graph: Graph) -> None:
    graph.load([person("a")])
    with pytest.raises(BadRowsError):
        graph.ingest([person("a")], branch="draft", options=LoadOptions(dry_run=True))
    report = graph.ingest([person("b")], branch="draft", options=LoadOptions(dry_run=True))
    assert (report.nodes_loaded, report.branch_created) == ({"Person": 1}, False)
    assert graph.branches() == ["main"]


def test_a_refused_load_leaves_the_branch_that_was_made_for_it_at_its_base(graph: Graph) -> None:
    graph.load([person("a")])
    with pytest.raises(BadRowsError):
        graph.ingest([person("b"), "{nonsense"], branch="draft")
    assert graph.count("node:Person", branch="draft") == 1
    assert graph.ingest([person("b")], branch="draft").branch_created is False


def test_load_into_a_missing_branch_is_not_found(graph: Graph) -> None:
    with pytest.raises(NotFoundError, match="'draft' not found"):
        graph.load([person("a")], branch="draft")
    assert graph.branches() == ["main"]


def test_an_unknown_mode_is_refused(graph: Graph) -> None:
    with pytest.raises(BadRequestError, match="append, merge, update, overwrite, changes"):
        graph.load([person("a")], "upsert")


def test_a_read_only_handle_does_not_load(graph: Graph) -> None:
    with pytest.raises(BadRequestError, match="read-only"):
        Graph.open(graph.uri, mode="r").load([person("a")])


def test_indexes_are_built_without_a_commit_and_never_hold_up_data(graph: Graph) -> None:
    graph.load([person("a"), person("b"), edge("Knows", "a", "b")])
    assert len(graph.commits()) == 2
    snapshot = graph.snapshot()
    for key in ("node:Person", "edge:Knows"):
        entry = snapshot.entries[key]
        assert graph.store.head_version(entry.location, None) == entry.version
    described = graph.describe()
    persons, knows = described.nodes["Person"].table, described.edges["Knows"].table
    assert persons is not None
    assert sorted(persons.indexes) == ["id_idx", "name_idx"]
    assert knows is not None
    assert sorted(knows.indexes) == ["dst_idx", "id_idx", "src_idx"]
    graph.load([person("c")])
    assert graph.commits()[0].parent == graph.commits()[1].id
    assert graph.entity("node:Person", "c") is not None


def test_unique_values_behind_a_blob_are_checked(tmp_path: Path) -> None:
    graph = Graph.init(
        tmp_path / "g", "node File { name: String @key  content: Blob?  hash: String? @unique  z: I32? @unique }"
    )

    def line(name: str, hash_: str | None, z: int | None = None) -> str:
        content = {"name": name, "content": "base64:aGk=", "hash": hash_, "z": z}
        return json.dumps({"type": "File", "data": content})

    graph.load([line("a", "1", 7), line("b", None)])
    with pytest.raises(BadRowsError, match="1 unique"):
        graph.load([line("c", "2"), line("d", "2")])
    with pytest.raises(BadRowsError, match="2 unique"):
        graph.load([line("c", "1"), line("d", "3", 7)])
    graph.load([line("a", "4", 7), line("e", "1")], "merge")
    assert graph.count("node:File") == 3


def test_no_date_outside_the_years_1_to_9999_is_stored(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node Event { name: String @key  at: DateTime?  on: Date?  days: [Date]? }")
    late = 253_402_300_800_000  # the first instant of the year 10,000
    given: list[dict[str, Any]] = [
        {"at": late - 1},
        {"at": late},
        {"on": "0000-12-31"},
        {"days": [0, 2_932_897]},
        {"days": [0, 2_932_896]},
    ]
    lines = [json.dumps({"type": "Event", "data": {"name": str(i), **data}}) for i, data in enumerate(given)]
    rows = refused(graph, lines)
    assert facts(rows) == [(2, "out_of_range", "at"), (3, "invalid_date", "on"), (4, "out_of_range", "days")]
    graph.load([lines[0], lines[4]])
    stored = {"id": "0", "name": "0", "at": "9999-12-31T23:59:59.999Z", "on": None, "days": None}
    assert graph.entity("node:Event", "0") == stored
    text = 'query add($on: Date) { insert Event { name: "m", on: $on } }'
    with pytest.raises(BadRequestError, match="Date value out of range: 2932897"):
        graph.mutate(text, params={"on": "+10000-01-01"})
    with pytest.raises(BadRequestError, match="DateTime value out of range: -"):
        graph.mutate('query add() { insert Event { name: "m", at: datetime("0000-12-31") } }')


def test_a_foreign_instant_without_a_text_is_exported_as_milliseconds(tmp_path: Path) -> None:
    [event] = Graph.init(tmp_path / "g", "node Event { name: String @key  at: DateTime? }").catalog().tables()
    late = pa.array([253_402_300_800_000 - 1, 253_402_300_800_000, None]).view(pa.date64())
    assert plain_values(event, "at", late) == ["9999-12-31T23:59:59.999Z", 253_402_300_800_000, None]


def test_a_report_may_be_named_by_a_path(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node Event { name: String @key }")
    report: Any = tmp_path / "bad.jsonl"
    with pytest.raises(BadRowsError):
        graph.load(['{"type": "Nope"}'], options=LoadOptions(bad_rows=report))
    assert json.loads(report.read_text())["rule"] == "unknown_type"


BADGES = "node Badge { name: String @key  code: I32? @unique } edge Wears: Badge -> Badge @card(0..1)"


def badge(name: str, code: int | None) -> str:
    return json.dumps({"type": "Badge", "data": {"name": name, "code": code}})


def wears(edge_id: str, src: str, dst: str) -> str:
    return json.dumps({"edge": "Wears", "from": src, "to": dst, "data": {"id": edge_id}})


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("files", [True, False])
def test_the_last_repeat_that_breaks_no_rule_wins(tmp_path: Path, files: bool, stored: bool) -> None:
    graph = Graph.init(tmp_path / "g", BADGES)
    graph.load([badge("held", 1), *([badge("x", 9), badge("y", 8)] if stored else [])])
    lines = [badge("x", 5), badge("x", 6), badge("x", 1), badge("y", 7), badge("x", 1), badge("z", None)]
    source: list[str] = lines
    if files:
        for at, text in enumerate(lines):
            (tmp_path / f"{at}.jsonl").write_text(text)
        source = [str(tmp_path / f"{at}.jsonl") for at in range(len(lines))]
    with pytest.raises(BadRowsError, match="2 bad rows") as refused:
        graph.load(source, "merge")
    assert {row.rule for row in refused.value.summary.sample} == {Rule.UNIQUE}
    report = graph.load(source, "merge", options=LoadOptions(max_bad_rows=2))
    updated = 2 if stored else 0
    assert report.tables["node:Badge"] == TableCounts(6, 4, 2, 3 - updated, updated, superseded=1)
    codes = {row["id"]: row["code"] for row in (json.loads(line)["data"] for line in graph.export())}
    assert codes == {"held": 1, "x": 6, "y": 7, "z": None}


def test_an_earlier_edge_takes_the_place_of_one_that_dangles(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", BADGES)
    graph.load([badge("a", 1), badge("b", 2)])
    lines = [wears("e", "a", "b"), wears("e", "a", "nowhere"), wears("f", "b", "a"), wears("f", "a", "a")]
    report = graph.load(lines, "merge", options=LoadOptions(max_bad_rows=2))
    assert report.bad_rows.per_rule == {"cardinality": 1, "endpoint": 1}
    ends = {row["data"]["id"]: (row["from"], row["to"]) for row in map(json.loads, graph.export(["Wears"]))}
    assert ends == {"e": ("a", "b"), "f": ("b", "a")}


def test_a_refusal_says_how_to_see_all_bad_rows(graph: Graph) -> None:
    many = [person("x", age=-1), person("y", age=-1)]
    with pytest.raises(BadRowsError, match="all of them: --bad-rows, in Python bad_rows, in Spark badRowsPath"):
        graph.load(many)
    with pytest.raises(BadRowsError) as caught:
        graph.load(many[:1])
    assert "--bad-rows" not in caught.value.message, "the only one is in the message"


def test_an_input_without_files_is_a_warning_of_the_report(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node T { k: String @key }")
    (tmp_path / "in").mkdir()
    report = graph.load(tmp_path / "in", mode="overwrite")
    assert (report.commit, report.warnings) == (None, (f"no input files in '{tmp_path}/in'",))


def test_a_row_chooses_no_file_of_its_readers(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node D { k: String @key b: Blob? }")
    lines = [
        json.dumps({"type": "D", "data": {"k": str(i), "b": "base64:YQ==" if i else "file:///etc/passwd"}})
        for i in range(80)  # enough for the reader of many rows
    ]
    with pytest.raises(BadRowsError, match=r"1 bad row \(1 invalid_blob\)"):
        graph.load(lines)
    kept = graph.load(lines, options=LoadOptions(max_bad_rows=1))
    assert [(row.field, str(row.rule)) for row in kept.bad_rows.sample] == [("b", "invalid_blob")]
    allowed = LoadOptions(blob_schemes=("file",), build_indexes=False)
    graph.load([lines[0]], "merge", options=allowed)
    assert graph.entity("node:D", "0") == {"id": "0", "k": "0", "b": "file:///etc/passwd"}
    with pytest.raises(BadRequestError, match="got 'http'"):
        LoadOptions(blob_schemes=("http",))
