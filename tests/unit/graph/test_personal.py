"""Values of properties marked `@pii` stand in the report file, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph.cli.program import main
from spark_omnigraph.errors import BadRowsError, ConstraintError, EmbeddingError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from tests.unit.graph.test_embed import Scripted

SCHEMA = """
node Person {
    mail: String @key @pii
    age: I32? @pii
    city: enum(Bern, Oslo)?
    phone: String? @unique @pii
    @range(age, 0..150)
}
node Plain {
    k: String @key
    n: I32?
    @range(n, 0..5)
}
edge Knows: Person -> Person
"""
LINES = [
    '{"type":"Person","data":{"mail":"jane@roe.example","age":"seventy"}}',
    '{"type":"Person","data":{"mail":"jane@roe.example","age":1847260913}}',
    '{"type":"Person","data":{"mail":"jane@roe.example","phone":"0791234567"}}',
    '{"type":"Person","data":{"mail":"bo@roe.example","phone":"0791234567"}}',
    '{"type":"Person","data":{"mail":"bob@roe.example","city":"jane@roe.example"}}',
    '{"edge":"Knows","from":"jane@roe.example","to":"nobody@roe.example"}',
    '{"type":"Person","data":{"mail":"jane@roe.example"',
]
# None of them may occur by chance: a log has run ids, times and versions in it.
PERSONAL = ("roe.example", "1847260913", "seventy", "0791234567")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", SCHEMA)


@pytest.mark.parametrize("number", range(len(LINES)))
def test_an_error_shows_no_value(number: int, graph: Graph, tmp_path: Path) -> None:
    lines = LINES[2:4] if number in (2, 3) else [LINES[number]]
    with pytest.raises(BadRowsError) as refused:
        graph.load(lines, options=LoadOptions(bad_rows=str(tmp_path / "report.jsonl")))
    text = f"{refused.value} {refused.value.summary} {json.dumps(refused.value.to_dict())}"
    assert [value for value in PERSONAL if value in text] == []
    report = (tmp_path / "report.jsonl").read_text()
    assert any(value in report for value in PERSONAL)


def test_the_log_shows_none_either(graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.jsonl").write_text("\n".join(LINES))
    for form in ("text", "json"):
        words = ["--graph", graph.uri, "--input", str(tmp_path / "in.jsonl"), "--show-rows", "9", "--log-format", form]
        assert main(["ingest", *words]) == 3
        out, err = capsys.readouterr()
        assert [value for value in PERSONAL if value in out + err] == []


def test_a_mutation_shows_none(graph: Graph) -> None:
    with pytest.raises(ConstraintError) as refused:
        graph.mutate('query q() { insert Person { mail: "jane@roe.example", age: 1847260913 } }')
    assert [value for value in PERSONAL if value in str(refused.value)] == []


def test_other_types_are_shown(graph: Graph) -> None:
    with pytest.raises(BadRowsError) as refused:
        graph.load(['{"type":"Plain","data":{"k":"a","n":77}}'])
    assert "77" in str(refused.value)
    assert '"n":77' in refused.value.summary.sample[0].raw


def test_what_is_of_no_person_is_shown(tmp_path: Path) -> None:
    schema = """
node Client {
    mail: String @key
    code: String
    tier: enum(gold, silver)
    phone: String? @pii
    @check(code, "^[A-Z]+$")
}
"""
    graph = Graph.init(tmp_path / "g", schema)
    good = '{"type":"Client","data":{"mail":"a","code":"X","tier":"gold"}}'
    graph.load([good])
    for line, shown in (
        (good, "Client.id: key_conflict: 'a' exists"),
        (good.replace('"a"', '"b"').replace('"X"', '"x"'), "does not match pattern '^[A-Z]+$'"),
        (good.replace('"tier"', '"teir"'), "unknown field 'teir' of Client; did you mean 'tier'?"),
        (good.replace("Client", "Klient"), "unknown node type 'Klient'; did you mean 'Client'?"),
        (good.replace('"gold"', '"gould"'), "(expected: gold, silver)"),
    ):
        with pytest.raises(BadRowsError) as refused:
            graph.load([line])
        first = refused.value.summary.sample[0]
        assert shown in f"{first.record_type}.{first.field}: {first.rule}: {first.message}"


TIGHT = SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {').replace("Person ->", "Human ->")
TIGHT = TIGHT.replace("-> Person", "-> Human").replace("age: I32? @pii", 'years: I32 @rename_from("age") @pii')
TIGHT = TIGHT.replace("@range(age, 0..150)", "@range(years, 0..99)").replace("phone: String?", "phone: String")


@pytest.mark.parametrize("verb", ["plan_schema", "apply_schema"])
def test_a_change_of_the_schema_shows_none_of_stored_rows(graph: Graph, tmp_path: Path, verb: str) -> None:
    """Neither by the names of before nor by those of afterwards."""
    wide = SCHEMA.replace("0..150", "0..2000000000")
    graph.apply_schema(wide)
    graph.load([LINES[1], *(f'{{"type":"Person","data":{{"mail":"{m}@roe.example"}}}}' for m in "ab")])
    path = tmp_path / "report.jsonl"
    if verb == "plan_schema":
        found = graph.plan_schema(TIGHT, bad_rows=path)
        text = f"{found.bad_rows} {found.bad_rows.sample} {found.to_dict()}"
        assert found.bad_rows.per_rule == {"range": 1, "required": 5}
    else:
        with pytest.raises(
            BadRowsError, match=r"schema change refused, nothing changed: 3 bad rows \(1 range"
        ) as refused:
            graph.apply_schema(TIGHT, bad_rows=path)
        text = f"{refused.value} {refused.value.summary.sample} {json.dumps(refused.value.to_dict())}"
    assert "Human.years" in text
    assert [value for value in PERSONAL if value in text] == []
    assert [value for value in PERSONAL[:2] if value in path.read_text()] == list(PERSONAL[:2])


def test_a_row_that_gets_no_vector_is_not_shown(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node P { mail: String @key @pii  v: Vector(2)? @embed(mail) }")
    graph.load(['{"type":"P","data":{"mail":"jane@roe.example"}}'])

    failing = Scripted(failing=frozenset({"jane@roe.example"}))
    with pytest.raises(EmbeddingError, match="1 row of 1 got no vector") as refused:
        graph.embed(embedder=failing)
    assert "roe.example" not in str(refused.value)
