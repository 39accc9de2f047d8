"""Values of properties marked `@pii` stand in the report file, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph.cli.program import main
from spark_omnigraph.errors import BadRowsError, ConstraintError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions

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
