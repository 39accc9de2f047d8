"""Mode `changes`: upserts and deletes of one input in one commit, checked as the state is at its end."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_omnigraph import (
    BadRequestError,
    BadRowsError,
    Graph,
    LoadOptions,
    LoadReport,
    TooManyDeletesError,
    TransactionCommittedError,
)
from spark_omnigraph.graph.load import load as loads
from spark_omnigraph.graph.load.frame import finish_frame_load
from spark_omnigraph.graph.load.source import LoadCall, load_source
from spark_omnigraph.manifest.facts import CommitOrigin
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.storage.input.ranges import InputRange
from spark_omnigraph.write.executor import LocalExecutor
from tests.unit.graph.test_frame_load import data_files, stage, write

SCHEMA = """
node Person { name: String @key  mail: String? @unique  age: I32? @range(age, 0..150) }
node City { name: String @key }
edge Knows: Person -> Person @card(0..2) { since: I32? }
edge LivesIn: Person -> City
"""


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def knows(source: str, target: str, edge_id: str) -> dict[str, Any]:
    return {"edge": "Knows", "from": source, "to": target, "data": {"id": edge_id}}


def u(record: dict[str, Any], **told: Any) -> dict[str, Any]:
    return {"op": "u", **told, **record}


def d(record: dict[str, Any], **told: Any) -> dict[str, Any]:
    return {"op": "d", **told, **record}


FIRST = [
    person("ada", mail="a"),
    person("bob", mail="b"),
    person("cy"),
    {"type": "City", "data": {"name": "Rome"}},
    knows("ada", "bob", "k1"),
    knows("bob", "cy", "k2"),
    {"edge": "LivesIn", "from": "ada", "to": "Rome", "data": {"id": "l1"}},
]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load(lines(FIRST), options=LoadOptions(build_indexes=False))
    return graph


def lines(records: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(record) for record in records]


def change(graph: Graph, *records: dict[str, Any], branch: str | None = None, **options: Any) -> LoadReport:
    chosen = LoadOptions(**{"build_indexes": False, **options})
    return graph.load(lines(list(records)), "changes", branch=branch, options=chosen)


def shown(graph: Graph, **where: Any) -> dict[str, Any]:
    """Id → mail of a person, ends of an edge, None of a city."""
    found = {}
    for record in map(json.loads, graph.export(**where)):
        ends = (record["from"], record["to"]) if "edge" in record else record["data"].get("mail")
        found[record["data"]["id"]] = ends
    return found


def counts(report: LoadReport) -> dict[str, dict[str, int]]:
    return {
        key: {name: value for name, value in asdict(found).items() if value} for key, found in report.tables.items()
    }


def test_upserts_and_deletes_are_one_commit_and_edges_of_deleted_nodes_go_along(graph: Graph) -> None:
    before = graph.commits()
    report = change(
        graph,
        d(person("ada")),
        d(person("nobody")),
        u(person("bob", mail="b", age=4)),
        u(person("dan")),
        u(knows("dan", "bob", "k3")),
        d({"edge": "Knows", "data": {"id": "k9"}}),
        {"_change_type": "update_preimage", **person("zoe")},
    )
    assert shown(graph) == {
        "bob": "b", "cy": None, "dan": None, "Rome": None, "k2": ("bob", "cy"), "k3": ("dan", "bob")
    }  # laid out as a table  # fmt: skip
    assert counts(report) == {
        "node:Person": {"read": 4, "valid": 4, "inserted": 1, "updated": 1, "deleted": 1, "missing": 1},
        "edge:Knows": {"read": 2, "valid": 2, "inserted": 1, "deleted": 1, "cascaded": 1, "missing": 1},
        "edge:LivesIn": {"deleted": 1, "cascaded": 1},
    }
    [commit, *rest] = graph.commits()
    assert (rest, commit.id, commit.facts.mode if commit.facts else None) == (before, report.commit, "changes")
    facts = commit.facts.tables if commit.facts is not None else {}
    assert {key: rows.deleted for key, rows in facts.items()} == {"node:Person": 1, "edge:Knows": 1, "edge:LivesIn": 1}


def test_replaced_rows_keep_their_row_ids(graph: Graph) -> None:
    def row_ids() -> dict[str, int]:
        entry = graph.snapshot().entry("node:Person")
        rows = graph.store.open_table(entry).to_table(columns=["id"], with_row_id=True)
        return dict(zip(rows["id"].to_pylist(), rows["_rowid"].to_pylist(), strict=True))

    before = row_ids()
    change(graph, u(person("bob"), _commit_version=2), u(person("bob", age=1), _commit_version=1), d(person("ada")))
    assert row_ids() == {"bob": before["bob"], "cy": before["cy"]}


def test_the_same_changes_again_change_no_row(graph: Graph) -> None:
    records = [d(person("ada")), u(person("bob", mail="x"))]
    change(graph, *records)
    once = shown(graph)
    assert counts(change(graph, *records))["node:Person"] == {"read": 2, "valid": 2, "updated": 1, "missing": 1}
    assert shown(graph) == once
    report = change(graph, d(person("ada")))
    assert (report.commit, counts(report)) == (None, {"node:Person": {"read": 1, "valid": 1, "missing": 1}})


def test_rules_hold_for_the_state_at_the_end(graph: Graph) -> None:
    """A unique value moves, a node takes the place of another, the third edge of a source comes as one goes."""
    change(graph, u(knows("bob", "ada", "k3")))
    change(
        graph,
        u(person("dan", mail="a")),
        d(person("ada")),
        u(knows("bob", "dan", "k4")),
        u(knows("dan", "bob", "k1")),
    )
    found = shown(graph)
    assert (found["dan"], found["k1"], found["k4"]) == ("a", ("dan", "bob"), ("bob", "dan"))
    assert not {"ada", "k3", "l1"} & found.keys()
    with pytest.raises(BadRowsError, match=r"1 bad row.*cardinality.*source 'bob' has 3 edges"):
        change(graph, u(knows("bob", "bob", "k5")))
    change(graph, u(knows("bob", "bob", "k5")), d({"edge": "Knows", "data": {"id": "k2"}}))
    with pytest.raises(BadRowsError, match=r"1 unique\).*value 'a' is held by a stored row"):
        change(graph, u(person("eve", mail="a")), d(person("cy")))


def test_an_edge_that_the_input_writes_to_a_deleted_node_is_bad(graph: Graph) -> None:
    before = shown(graph)
    with pytest.raises(BadRowsError, match=r"1 endpoint\).*:2: dst 'bob' not found in Person"):
        change(graph, d(person("bob")), u(knows("cy", "bob", "k3")))
    with pytest.raises(BadRowsError, match=r"1 endpoint\).*:1: src 'ada' not found in Person"):
        change(graph, u(knows("ada", "bob", "k1")), d(person("ada")))
    assert shown(graph) == before
    report = change(graph, u(knows("ada", "bob", "k1")), d(person("ada")), max_bad_rows=1)
    assert counts(report)["edge:Knows"] == {"read": 1, "bad": 1, "deleted": 1, "cascaded": 1}
    assert "k1" not in shown(graph), "the stored edge has lost its end all the same"


def test_the_greatest_version_counts_whatever_the_order(graph: Graph) -> None:
    report = change(
        graph,
        u(person("ada", mail="new"), _commit_version=9),
        d(person("ada"), _commit_version=8),
        d(person("cy"), _commit_version=12),
        u(person("cy"), _commit_version=11),
        {"_change_type": "delete", "_commit_version": 7, **person("bob")},
        {"_change_type": "insert", "_commit_version": 7, **person("bob", mail="twice")},
    )
    assert shown(graph) == {"ada": "new", "bob": "twice", "Rome": None, "k1": ("ada", "bob"), "l1": ("ada", "Rome")}
    assert counts(report)["node:Person"] == {
        "read": 6, "valid": 6, "updated": 2, "deleted": 1, "superseded": 3
    }  # laid out as a table  # fmt: skip


def test_a_row_that_is_written_and_deleted_without_versions_is_bad_and_stays(graph: Graph) -> None:
    records = [u(person("ada", mail="x")), u(person("bob", mail="y")), d(person("ada"))]
    told = "'ada' of Person is written and deleted by the input, and no version says which comes last"
    with pytest.raises(BadRowsError) as caught:
        change(graph, *records)
    assert caught.value.summary.per_rule == {"key_duplicate": 2}
    assert [row.message for row in caught.value.summary.sample] == [f"{told} (<input>:{line})" for line in (3, 1)]
    report = change(graph, *records, max_bad_rows=2)
    assert counts(report)["node:Person"] == {"read": 3, "valid": 1, "bad": 2, "updated": 1}
    assert (shown(graph)["ada"], shown(graph)["bob"]) == ("a", "y")


def test_repeated_upserts_go_by_on_duplicate_and_repeated_deletes_count_once(graph: Graph) -> None:
    records = [u(person("bob", mail="1")), u(person("bob", mail="2")), d(person("ada")), d(person("ada"))]
    with pytest.raises(BadRowsError, match="'bob' of Person repeats another record of the input"):
        change(graph, *records, on_duplicate="error")
    report = change(graph, *records)
    assert counts(report)["node:Person"] == {
        "read": 4, "valid": 4, "updated": 1, "deleted": 1, "superseded": 2
    }  # laid out as a table  # fmt: skip
    assert shown(graph)["bob"] == "2"


def test_a_refused_upsert_gives_way_to_the_change_before_it(graph: Graph) -> None:
    """As if the bad row were not there."""
    clash = u(person("cy", mail="b"), _commit_version=3)
    change(graph, clash, u(person("cy", mail="c"), _commit_version=2), max_bad_rows=1)
    assert shown(graph)["cy"] == "c"
    report = change(graph, clash, d(person("cy"), _commit_version=2), max_bad_rows=1)
    assert "cy" not in shown(graph)
    assert counts(report)["edge:Knows"] == {"deleted": 1, "cascaded": 1}


@pytest.mark.parametrize(
    ("record", "rule", "message"),
    [
        (person("x"), "invalid_envelope", "mode changes needs 'op'"),
        (d({"type": "Person"}), "key_missing", "node Person missing @key property 'name'"),
        (d({"type": "Person", "data": {"id": "y", "name": "x"}}), "id_mismatch", "explicit id 'y' that does not match"),
        (
            d({"edge": "Knows", "from": "ada", "to": "bob"}),
            "key_missing",
            "a record that deletes a Knows needs its 'id'",
        ),
        (d({"type": "Town", "data": {"name": "x"}}), "unknown_type", "unknown node type 'Town'"),
        (d({"type": "Person", "data": {"name": "x", "nme": 1}}), "unknown_field", "unknown field 'nme' of Person"),
        (u(person("x", age=200)), "range", "value 200 > max 150"),
        (
            d({"type": "Person", "data": {"name": 7}}),
            "wrong_type",
            "property 'name' has null or invalid values: expects String",
        ),
    ],
)
def test_bad_rows_name_what_is_wrong(graph: Graph, record: dict[str, Any], rule: str, message: str) -> None:
    with pytest.raises(BadRowsError, match=message) as caught:
        change(graph, u(person("good")), record)
    assert caught.value.summary.per_rule == {rule: 1}
    assert caught.value.summary.sample[0].line == 2


def test_the_report_has_the_line_as_it_was_written(graph: Graph, tmp_path: Path) -> None:
    line = '{"op":"u", "type":"Person", "_commit_version":3, "data":{"name":7}}'
    with pytest.raises(BadRowsError) as caught:
        graph.load([line], "changes")
    assert [row.raw for row in caught.value.summary.sample] == [line]
    bad = b'{"op": "u", "type": "Person", "data": {"name": "\xe9"}}'
    (tmp_path / "bad.jsonl").write_bytes(bad)
    with pytest.raises(BadRowsError, match=f"invalid UTF-8 at byte {bad.index(0xE9) + 1}"):
        graph.load(tmp_path / "bad.jsonl", "changes")


def test_of_a_record_that_deletes_only_the_id_counts(graph: Graph) -> None:
    """A feed has the whole row, of an older schema perhaps."""
    change(graph, d(person("bob", age=999, mail=None)), d({"type": "Person", "data": {"id": "cy"}}))
    assert shown(graph) == {"ada": "a", "Rome": None, "l1": ("ada", "Rome")}


FEED = pa.table(
    {
        "name": ["bob", "bob", "eve", "cy", "ada"],
        "mail": ["b", "B", "e", None, None],
        "_change_type": ["update_preimage", "update_postimage", "insert", "delete", "delete"],
        "_commit_version": pa.array([4, 4, 5, 5, 6], pa.int64()),
        "_commit_timestamp": pa.array([0] * 5, pa.timestamp("us")),
    }
)
AFTER = {"bob": "B", "eve": "e", "Rome": None}


def test_a_table_a_file_and_a_frame_give_the_same(graph: Graph, tmp_path: Path) -> None:
    for place in ("table", "parquet", "csv", "frame", "records"):
        graph.create_branch(place)
    pq.write_table(FEED, tmp_path / "feed.parquet", row_group_size=2)
    plain = FEED.drop_columns("_commit_timestamp").to_pylist()
    head = "name,mail,op,_commit_version\n"
    text = (f"{r['name']},{r['mail'] or ''},{r['_change_type']},{r['_commit_version']}\n" for r in plain)
    (tmp_path / "feed.csv").write_text(head + "".join(text))
    graph.load_table("node:Person", FEED, "changes", branch="table")
    graph.load(tmp_path / "feed.parquet", "changes", node="Person", branch="parquet")
    graph.load(tmp_path / "feed.csv", "changes", node="Person", branch="csv")
    write(graph, "node:Person", FEED.slice(0, 2), FEED.slice(2), mode="changes", branch="frame")
    records = pa.table(
        {
            "type": ["Person"] * 5,
            "data": [json.dumps({"name": r["name"], "mail": r["mail"]}) for r in plain],
            "_change_type": FEED["_change_type"],
            "_commit_version": FEED["_commit_version"],
        }
    )
    write(graph, None, records, mode="changes", branch="records")
    assert [shown(graph, branch=place) for place in ("table", "parquet", "csv", "frame", "records")] == [AFTER] * 5


def test_dictionaries_say_it_beside_their_properties(graph: Graph) -> None:
    rows = [
        {"name": "eve", "mail": "e", "op": "u"},
        {"name": "ada", "op": "d"},
        {"name": "cy", "_change_type": "delete"},
    ]
    graph.load_table("node:Person", rows, "changes")
    assert shown(graph) == {"bob": "b", "eve": "e", "Rome": None}


def test_a_frame_of_deletes_needs_ids_alone(graph: Graph) -> None:
    for columns in ({"id": ["ada"]}, {"name": ["bob"]}):
        report = graph.load_table("node:Person", pa.table({**columns, "op": ["d"]}), "changes")
        assert report.tables["node:Person"].deleted == 1
    with pytest.raises(BadRowsError, match=r"1 missing_endpoint|edge missing 'from'"):
        graph.load_table("edge:Knows", pa.table({"id": ["k7"], "op": ["u"]}), "changes")
    with pytest.raises(BadRequestError, match="column 'src' is missing"):
        graph.load_table("edge:Knows", pa.table({"id": ["k7"], "op": ["d"], "since": [1]}), "changes")


def test_rows_of_a_table_that_say_nothing_are_bad_at_their_place(graph: Graph, tmp_path: Path) -> None:
    rows = pa.table({"name": ["x", "y", "z"], "op": ["u", None, "w"], "mail": [None, "m", None]})
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=1)
    with pytest.raises(BadRowsError) as caught:
        graph.load(tmp_path / "rows.parquet", "changes", node="Person")
    assert [(row.line, row.field, json.loads(row.raw)) for row in caught.value.summary.sample] == [
        (2, "op", {"name": "y", "mail": "m"}),
        (3, "op", {"name": "z", "op": "w"}),
    ]


def test_rows_of_a_frame_that_contradict_each_other_are_located(graph: Graph) -> None:
    first = pa.table({"name": ["ada", "bob"], "op": ["u", "d"]})
    second = pa.table({"name": ["cy", "bob"], "op": ["u", "u"]})
    with pytest.raises(BadRowsError) as caught:
        write(graph, "node:Person", first, second, mode="changes")
    assert [(row.file, row.line, row.id) for row in caught.value.summary.sample] == [
        ("<partition 0>", 2, "bob"),
        ("<partition 1>", 2, "bob"),
    ]
    assert json.loads(caught.value.summary.sample[0].raw) == {"type": "Person", "data": {"id": "bob"}}


def test_a_mapping_makes_changes_of_several_types(graph: Graph) -> None:
    rows = pa.table({"who": ["ada", "eve"], "town": ["Rome", "Rome"], "key": ["l1", "l2"], "op": ["d", "u"]})
    rules: dict[str, Any] = {
        "rows": [
            {"node": "Person", "columns": {"who": "name"}},
            {"edge": "LivesIn", "from": "who", "to": "town", "id": "key"},
        ]
    }
    graph.load(rows, "changes", mapping=rules)
    assert shown(graph) == {
        "bob": "b", "cy": None, "eve": None, "Rome": None, "k2": ("bob", "cy"), "l2": ("eve", "Rome")
    }  # laid out as a table  # fmt: skip
    rules["rows"][0]["distinct"] = True
    with pytest.raises(BadRequestError, match="'distinct' does not go with mode changes"):
        graph.load(rows, "changes", mapping=rules)


def test_too_many_deletes_are_refused_before_anything_is_staged(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = [d(person("ada")), d(person("bob")), d(person("nobody")), u(person("eve"))]
    before, files = shown(graph), data_files(graph)
    with monkeypatch.context() as patched:
        patched.setattr("spark_omnigraph.staging.stage.write_fragment", lambda *_: pytest.fail("staged"))
        for limit, told in ((1, "where 1 may be"), (0.5, "where 50% of the rows of a type may be")):
            with pytest.raises(TooManyDeletesError, match=rf"2 stored rows.*\(node:Person 2 of 3\).*{told}") as caught:
                change(graph, *gone, max_deletes=limit)
            assert caught.value.deletes == caught.value.to_dict()["deletes"] == 2
    assert (shown(graph), data_files(graph)) == (before, files)
    again = [d(person("cy"), _commit_version=1), u(person("cy"), _commit_version=2)]
    change(graph, *again, max_deletes=0)  # what comes again is not deleted
    change(graph, *gone, max_deletes=0.67)
    assert shown(graph) == {"cy": None, "eve": None, "Rome": None}


def test_too_many_deletes_of_a_frame_leave_no_file(graph: Graph) -> None:
    files = data_files(graph)
    frame = pa.table({"name": ["ada", "eve"], "op": ["d", "u"]})
    with pytest.raises(TooManyDeletesError):
        write(graph, "node:Person", frame, mode="changes", max_deletes=0)
    assert data_files(graph) == files


def test_max_deletes_is_of_changes_alone(graph: Graph) -> None:
    for mode in ("append", "merge", "overwrite"):
        with pytest.raises(BadRequestError, match="max_deletes goes with mode 'changes'"):
            graph.load([], mode, options=LoadOptions(max_deletes=1))
    limits: list[Any] = [-1, 1.5, True, "5%"]
    for limit in limits:
        with pytest.raises(BadRequestError, match="max_deletes"):
            LoadOptions(max_deletes=limit)


def test_a_branch_gets_forks_of_what_goes_along(graph: Graph) -> None:
    graph.create_branch("draft")
    change(graph, d(person("ada")), branch="draft")
    assert shown(graph, branch="draft") == {"bob": "b", "cy": None, "Rome": None, "k2": ("bob", "cy")}
    assert shown(graph)["l1"] == ("ada", "Rome")


def test_a_name_makes_a_batch_count_once(graph: Graph) -> None:
    call = LoadCall("changes", "main", None, None, CommitOrigin(), LoadOptions(), {}, Transaction("feed", 7))
    first = load_source(graph.store, lines([d(person("ada"))]), call)
    assert graph.commits()[0].id == first.commit
    for version in (7, 6):
        again = replace(call, transaction=Transaction("feed", version))
        with pytest.raises(TransactionCommittedError):
            load_source(graph.store, lines([u(person("ada"))]), again)
        with pytest.raises(TransactionCommittedError):
            load_source(graph.store, FEED, replace(again, inputs={"node": "Person"}))
    load_source(graph.store, lines([u(person("ada"))]), replace(call, transaction=Transaction("feed", 8)))
    assert "ada" in shown(graph)


def test_processes_and_many_ranges_give_the_same(graph: Graph, tmp_path: Path) -> None:
    """Changes of one row lie in different ranges, and what a range deletes another one writes."""
    records = []
    for number in range(400):
        name = f"p{number % 100}"
        version = {"_commit_version": (number * 37) % 401}
        records.append(d(person(name), **version) if number % 3 == 0 else u(person(name, age=number % 150), **version))
    (tmp_path / "changes.jsonl").write_text("\n".join(lines(records)))
    expected: dict[str, tuple[int, int | None]] = {}
    for number, record in enumerate(records):
        name, version = record["data"]["name"], record["_commit_version"]
        if version >= expected.get(name, (-1, None))[0]:
            expected[name] = version, None if record["op"] == "d" else number % 150
    ages = {name: age for name, (_, age) in expected.items() if age is not None}
    options = LoadOptions(build_indexes=False, executor=LocalExecutor(1), max_deletes=0)
    graph.create_branch("once")
    for branch in ("once", "once"):  # the second time all rows are stored
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(loads, "cut", lambda files, *_: _small_ranges(files))
            graph.load(tmp_path / "changes.jsonl", "changes", branch=branch, options=options)
        rows = [json.loads(line)["data"] for line in graph.export(types=["Person"], branch=branch)]
        assert {row["name"]: row["age"] for row in rows if row["name"].startswith("p")} == ages


def _small_ranges(files: Any) -> list[Any]:

    [file] = files
    step = file.size // 7 + 1
    return [
        InputRange(index, file, start, min(start + step, file.size))
        for index, start in enumerate(range(0, file.size, step))
    ]


def test_a_frame_that_lost_a_race_is_tried_again_with_what_it_staged(graph: Graph) -> None:
    request, plan, parts = stage(
        graph, "node:Person", [pa.table({"name": ["bob", "eve", "ada"], "op": ["u", "u", "d"]})], "changes"
    )
    change(graph, u(person("eve", mail="first")), u(knows("cy", "ada", "k7")))

    report = finish_frame_load(graph.store, request, plan, parts)
    assert counts(report)["node:Person"] == {"read": 3, "valid": 3, "updated": 2, "deleted": 1}
    assert counts(report)["edge:Knows"]["cascaded"] == 2
    assert shown(graph) == {"bob": None, "cy": None, "eve": None, "Rome": None, "k2": ("bob", "cy")}
