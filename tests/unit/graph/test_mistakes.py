"""All mistakes of a row in one run: the row counts once, its mistakes by rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph import BadRow, BadRowsError, Graph, LoadOptions
from spark_omnigraph.bad_rows import Rule

SCHEMA = """
node Customer {
    email: String @key  country: enum(DE, FR)  signed_up: Date  age: I32?  code: String?
    @range(age, 0..150)  @check(email, "^.+@.+$")  @unique(code)
}
edge Knows: Customer -> Customer { w: I32? }
"""


def customer(**data: object) -> str:
    return json.dumps({"type": "Customer", "data": data})


def knows(source: str, target: str, **data: object) -> str:
    return json.dumps({"edge": "Knows", "from": source, "to": target, "data": data})


GOOD = {"email": "a@x", "country": "DE", "signed_up": "2024-01-05"}


def refused(graph: Graph, lines: list[str], report: Path) -> tuple[BadRowsError, list[dict[str, object]]]:
    with pytest.raises(BadRowsError) as caught:
        graph.load(lines, options=LoadOptions(bad_rows=str(report)))
    return caught.value, [json.loads(line) for line in report.read_text().splitlines()]


def rules(row: dict[str, object]) -> list[tuple[object, object]]:
    further = row["further"]
    assert isinstance(further, list)
    return [(row["rule"], row["field"]), *((m["rule"], m["field"]) for m in further)]


def test_values_and_rules_of_one_row_are_told_together(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    lines = [
        customer(**GOOD),
        customer(email="two", country="US", signed_up="05.01.2025", age=200),
        customer(**{**GOOD, "email": "b@x", "country": "US", "age": -1}),
        customer(email="c@x"),
    ]
    error, report = refused(graph, lines, tmp_path / "bad.jsonl")
    assert [rules(row) for row in report] == [
        [("invalid_date", "signed_up"), ("range", "age"), ("check", "email"), ("enum", "country")],
        [("range", "age"), ("enum", "country")],
        [("required", "country"), ("required", "signed_up")],
    ]
    assert [row["id"] for row in report] == ["two", "b@x", "c@x"]
    assert error.summary.total == 3
    assert error.summary.per_rule == {"check": 1, "enum": 2, "invalid_date": 1, "range": 2, "required": 2}
    assert "3 bad rows" in error.message
    assert "(and 3 more in this row)" in error.message
    assert "taken are 2024-01-31" in str(report[0]["message"])


def test_rules_of_the_whole_graph_count_a_row_once_and_name_the_first_place(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    lines = [
        customer(**GOOD, code="one"),
        customer(**GOOD, code="two"),
        customer(**{**GOOD, "email": "b@x"}, code="one"),
        knows("ghost", "nobody", id="e1"),
        knows("a@x", "nobody", id="e1"),
    ]
    file = tmp_path / "in.jsonl"
    file.write_text("\n".join(lines))
    with pytest.raises(BadRowsError) as caught:
        graph.load([file], options=LoadOptions(bad_rows=str(tmp_path / "bad.jsonl")))
    report = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [(row["line"], row["id"], rules(row)) for row in report] == [
        (2, "a@x", [("key_duplicate", "email")]),
        (3, "b@x", [("unique", "code")]),
        (4, "e1", [("endpoint", "from"), ("endpoint", "to")]),
        (5, "e1", [("key_duplicate", "id"), ("endpoint", "to")]),
    ]
    assert report[0]["message"].endswith(f"repeats an earlier record of the input ({file}:1)")
    assert report[1]["message"].endswith(f"is held by an earlier record of the input ({file}:1)")
    assert caught.value.summary.total == 4
    assert caught.value.summary.per_rule == {"endpoint": 3, "key_duplicate": 2, "unique": 1}


def test_a_share_of_bad_rows_is_a_share_of_rows(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    file = tmp_path / "in.jsonl"
    file.write_text(customer(**GOOD) + "\n" + knows("ghost", "nobody"))
    report = graph.load([file], options=LoadOptions(max_bad_rows=1))
    assert (report.bad_rows.total, report.bad_rows.per_rule) == (1, {"endpoint": 2})
    assert (graph.count("node:Customer"), graph.count("edge:Knows")) == (1, 0)


def test_a_row_may_want_several_unique_values_that_are_held(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node P { k: String @key a: I32? @unique b: I32? @unique }")

    def person(k: str, a: int, b: int) -> str:
        return json.dumps({"type": "P", "data": {"k": k, "a": a, "b": b}})

    graph.load([person("s", 1, 1)])
    lines = [person("x", 2, 2), person("y", 2, 1), person("z", 3, 3), person("w", 2, 2), person("v", 1, 4)]
    error, report = refused(graph, lines, tmp_path / "bad.jsonl")
    assert [(row["id"], rules(row)) for row in report] == [
        ("y", [("unique", "a"), ("unique", "b")]),
        ("w", [("unique", "a"), ("unique", "b")]),
        ("v", [("unique", "a")]),
    ]
    assert (error.summary.total, error.summary.per_rule) == (3, {"unique": 5})


def test_rows_of_frames_are_named_by_their_id() -> None:
    row = BadRow("<partition 1>", 3, 0, "Customer", "age", Rule.RANGE, "too old", "{}", "a@x")
    assert row.place == "<partition 1>:3 (id 'a@x')"
    assert BadRow("in.jsonl", 3, 0, "Customer", "age", Rule.RANGE, "too old", "{}", "a@x").place == "in.jsonl:3"


def test_ends_of_a_key_of_several_properties_say_their_form(tmp_path: Path) -> None:
    schema = """
node Order { shop: String  number: I32  @key(shop, number) }
node P { k: String @key }
edge Placed: P -> Order
"""
    graph = Graph.init(tmp_path / "orders", schema)
    order = '{"type":"Order","data":{"shop":"BER","number":7}}'
    edges = [
        '{"edge":"Placed","from":"a","to":' + to + "}" for to in ('["BER", 7]', '"BER|7"', '[7, "BER"]', '["7","BER"]')
    ]
    with pytest.raises(BadRowsError) as refused:
        graph.load(['{"type":"P","data":{"k":"a"}}', order, *edges])
    form = "; an id of Order is the array of its key in the order of names, as [number, shop]"
    assert [row.message for row in refused.value.summary.sample] == [
        f"edge missing 'to': [\"BER\", 7] cannot be the id of a Order{form}",
        f"dst 'BER|7' not found in Order{form}",
    ]


def test_records_of_one_line_are_each_told_with_their_type(tmp_path: Path) -> None:
    """Also several of one type; a record of two mistakes is told once. What is counted is the lines of the report."""
    nodes = "node A { k: String @key } node B { k: String @key } node C { k: String @key }"
    graph = Graph.init(tmp_path / "g", f"{nodes} edge ToB: A -> B edge ToC: A -> C")
    (tmp_path / "x.csv").write_text("k,b,c\na1,b1,c1\na2,b2,\n")
    ends = [("ToB", "k", "b"), ("ToB", "c", "b"), ("ToC", "k", "c")]
    edges = [{"edge": name, "from": source, "to": to} for name, source, to in ends]
    mapping = {"path": str(tmp_path / "x.csv"), "rows": [{"node": "A", "columns": {"k": "k"}}, *edges]}
    with pytest.raises(BadRowsError) as caught:
        graph.load(mapping=mapping, options=LoadOptions(bad_rows=str(tmp_path / "bad.jsonl")))
    report = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    found = [
        (row["line"], row["record_type"], [row["message"], *(each["message"] for each in row["further"])], row["raw"])
        for row in report
    ]
    assert sorted(found) == [
        (2, "ToB", ["dst 'b1' not found in B"], '{"edge": "ToB", "from": "a1", "to": "b1", "data": {}}'),
        (
            2,
            "ToB",
            ["src 'c1' not found in A", "dst 'b1' not found in B"],
            '{"edge": "ToB", "from": "c1", "to": "b1", "data": {}}',
        ),
        (2, "ToC", ["dst 'c1' not found in C"], '{"edge": "ToC", "from": "a1", "to": "c1", "data": {}}'),
        (3, "ToB", ["dst 'b2' not found in B"], '{"edge": "ToB", "from": "a2", "to": "b2", "data": {}}'),
        (3, "ToB", ["edge missing 'from'"], '{"edge": "ToB", "to": "b2", "data": {}}'),
        (3, "ToC", ["edge missing 'to'"], '{"edge": "ToC", "from": "a2", "data": {}}'),
    ]
    summary = caught.value.summary
    assert (summary.total, len(summary.sample)) == (6, 6)
    assert summary.per_rule == {"endpoint": 5, "missing_endpoint": 2}
    graph.load(mapping=mapping, options=LoadOptions(max_bad_rows=6))
    with pytest.raises(BadRowsError):
        graph.load(mapping=mapping, options=LoadOptions(max_bad_rows=5))


def test_long_values_are_cut_in_messages(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    long, name = "word " * 2_000, "n" * 5_000
    lines = [
        customer(**{**GOOD, "email": long}),
        customer(**{**GOOD, "email": "b@x", "country": long}),
        customer(**{**GOOD, "email": "c@x", "signed_up": long}),
        customer(**{**GOOD, "email": "d@x", name: 1}),
        json.dumps({"type": "Customer", "data": {**GOOD, "email": "e@x"}, name: 1}),
        json.dumps({"type": name, "data": {}}),
        json.dumps({"type": "Customer", "id": name, "data": {**GOOD, "email": "f@x"}}),
    ]
    _, report = refused(graph, lines, tmp_path / "bad.jsonl")
    whole = "key_too_long enum invalid_date unknown_field unknown_field unknown_type unknown_field"
    assert [row["rule"] for row in report] == whole.split()
    assert "value 'word word" in str(report[0]["further"])
    known = [customer(**GOOD, code="c" * 5_000), customer(**{**GOOD, "email": "g@x"}, code="c" * 5_000)]
    twice = [customer(**{**GOOD, "email": f"x@{name}"})] * 2
    _, again = refused(graph, [*known, *twice, knows("a@x", name[:-1])], tmp_path / "again.jsonl")
    assert [row["rule"] for row in again] == ["unique", "key_duplicate", "endpoint"]
    for row in [*report, *again]:
        assert max(len(str(row["message"])), len(str(row["further"]))) < 600, row
