"""What a plan counts: against a naive reading of the rows, and case by case; and that it writes nothing."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_omnigraph import BadRequestError, BadRowsError, FromColumn, Graph, LoadOptions, NotFoundError, SchemaPreview
from spark_omnigraph.commit.contract import Contract, read_contract
from spark_omnigraph.errors import SchemaParseError
from spark_omnigraph.graph.schema import stored
from spark_omnigraph.graph.schema.count import check_steps
from spark_omnigraph.graph.schema.preview import ChangeRequest, plan_change
from spark_omnigraph.lang.pg import compile_stored_schema
from spark_omnigraph.storage.tables.scan import TableScan, read_batches
from spark_omnigraph.write.executor import LocalExecutor
from tests.support import schema_steps

NO_INDEX = LoadOptions(build_indexes=False)
KITES = "node Kite { tag: String @key  n: I32?  hue: String?  mail: String? }\nedge Near: Kite -> Kite { since: I32? }"


@pytest.fixture(scope="module")
def kites(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Eight kites in two fragments, k2 of which is gone: n counts, every other one is red, two share an address each;
    four edges, three of them from k0.
    """
    graph = Graph.init(tmp_path_factory.mktemp("kites") / "g", KITES)
    lines = [_kite(i) for i in range(8)]
    graph.load(lines[:5], options=NO_INDEX)
    ends = [(0, 1), (0, 3), (0, 4), (1, 0)]
    edges = [json.dumps({"edge": "Near", "from": f"k{a}", "to": f"k{b}", "data": {}}) for a, b in ends]
    graph.load([*lines[5:], *edges], options=NO_INDEX)
    graph.delete("node:Kite", ["k2"])
    return graph


def _kite(i: int) -> str:
    data: dict[str, object] = {"tag": f"k{i}", "n": i, "mail": f"m{i // 2}"}
    return json.dumps({"type": "Kite", "data": {**data, "hue": "red"} if i % 2 else data})


def kite(
    graph: Graph, body: str, edge: str = "edge Near: Kite -> Kite { since: I32? }", **choices: Any
) -> SchemaPreview:
    """The preview of a change to another body of Kite, or of the edge."""
    return graph.plan_schema(f"node Kite {{ tag: String @key {body} }}\n{edge}", **choices)


def figures(found: SchemaPreview) -> dict[str, tuple[int | None, int, int | None]]:
    return {each.step.kind: (each.touched, each.rewritten, each.broken) for each in found.steps}


SAME = "n: I32?  hue: String?  mail: String?"


@pytest.mark.parametrize(
    ("body", "values", "expected"),
    [
        ("hue: String?  mail: String?", {}, {"drop_property": (7, 0, 0)}),
        ("n: I32?  mail: String?", {}, {"drop_property": (4, 0, 0)}),
        ('n: I32?  hue: String?  post: String? @rename_from("mail")', {}, {"rename_property": (7, 0, 0)}),
        ("n: I64?  hue: String?  mail: String?", {}, {"widen_property": (7, 7, 0)}),
        (f"{SAME}  size: I32?", {}, {"add_property": (0, 0, 0)}),
        (f"{SAME}  size: I32", {"size": 3}, {"add_property": (7, 7, 0)}),
        ("n: I32?  hue: String  mail: String?", {}, {"require_property": (0, 0, 3)}),
        ("n: I32?  hue: String  mail: String?", {"hue": "blue"}, {"require_property": (3, 7, 0)}),
        (f"{SAME}  @range(n, 1..5)", {}, {"add_constraint": (0, 0, 3)}),
        (f'{SAME}  @check(hue, "^b")', {}, {"add_constraint": (0, 0, 4)}),
        ("n: I32?  hue: String?  mail: String? @unique", {}, {"add_constraint": (0, 0, 3)}),
        ("n: I32? @index  hue: String?  mail: String?", {}, {"add_constraint": (0, 0, 0)}),
        ("n: I32?  hue: enum(red, blue)?  mail: String?", {}, {"add_enum": (0, 0, 0)}),
        ("n: I32?  hue: enum(blue)?  mail: String?", {}, {"add_enum": (0, 0, 4)}),
    ],
)
def test_rows_of_one_step(
    kites: Graph, body: str, values: dict[str, object], expected: dict[str, tuple[int, int, int]]
) -> None:
    found = kite(kites, body, values={f"Kite.{name}": value for name, value in values.items()})
    assert figures(found) == expected
    assert [each.rows for each in found.steps] == [7]
    assert [each.shows_updates for each in found.steps] == [bool(values) or "widen_property" in expected]
    broken = sum(each[2] for each in expected.values())
    assert (found.bad_rows.total, found.applicable) == (broken, not broken)


@pytest.mark.parametrize(
    ("body", "values", "expected"),
    [
        ("s: String?  n: I32?  b: Blob?  t: String?", {"t": "s"}, [("add_property", "columns")]),
        ("s: String?  n: I32?  b: Blob?  t: I64?", {"t": "n"}, [("add_property", "values")]),
        ("s: String  n: I32?  b: Blob?", {"s": "tag"}, [("require_property", "values")]),
        (
            "s: String?  n: I64?  b: Blob?  t: I32?",
            {"t": "n"},
            [("widen_property", "values"), ("add_property", "columns")],
        ),
        (
            "s: String?  n: I32?  b: Blob  t: String?",
            {"t": "s"},
            [("require_property", "nothing"), ("add_property", "rows")],
        ),
        (
            "M s: String?  n: I32?  b: Blob?  t: String?",
            {"t": "s"},
            [("rename_type", "rows"), ("add_property", "rows")],
        ),
        ("s: String?  n: I32?  b: Blob?  c: Bool?", {"c": None}, [("add_property", "values")]),
    ],
    ids=["like", "wider", "required", "like and wider", "blob", "renamed", "one value"],
)
def test_what_a_plan_says_is_written_is_written(
    tmp_path: Path, body: str, values: dict[str, str | None], expected: list[tuple[str, str]]
) -> None:
    """No file comes where none is told of; the change feed shows the rows all the same."""
    graph = Graph.init(tmp_path / "g", "node K { tag: String @key  s: String?  n: I32?  b: Blob? }")
    rows = [{"tag": f"k{i}", "s": f"s{i}", "n": i, "b": "base64:AAEC"} for i in range(3)]
    graph.load([json.dumps({"type": "K", "data": row}) for row in rows], options=NO_INDEX)
    is_renamed = body.startswith("M ")
    name = "M" if is_renamed else "K"
    marked = 'M @rename_from("K")' if is_renamed else name
    text = f"node {marked} {{ tag: String @key  {body.removeprefix('M ')} }}"
    given = {f"{name}.{prop}": True if other is None else FromColumn(other) for prop, other in values.items()}
    found = graph.plan_schema(text, values=given)
    assert [(each.step.kind, str(each.work)) for each in found.steps] == expected
    assert [each.rewritten for each in found.steps] == [3 * (work in ("values", "rows")) for _, work in expected]
    assert [each["writes"] for each in found.to_dict()["steps"]] == [work for _, work in expected]  # type: ignore[attr-defined]  # a list of mappings
    filled = [each.shows_updates for each in found.steps if each.step.kind == "add_property"]
    assert all(filled)

    def data() -> set[str]:
        return {each.path for each in graph.store.objects.walk("nodes") if "/data/" in each.path}

    before = data()
    graph.apply_schema(text, values=given)
    assert bool(data() - before) is any(work in ("values", "rows") for _, work in expected)


@pytest.mark.parametrize(
    ("card", "broken"), [("0..3", 0), ("0..2", 1), ("0..0", 4), ("2..", 1), ("3..3", 1), ("4..", 4)]
)
def test_edges_of_sources_that_have_some(kites: Graph, card: str, broken: int) -> None:
    found = kite(kites, SAME, f"edge Near: Kite -> Kite @card({card}) {{ since: I32? }}")
    assert figures(found) == {"change_cardinality": (0, 0, broken)}
    assert set(found.bad_rows.per_rule) == ({"cardinality"} if broken else set())


def test_types_that_come_go_or_change_their_names(kites: Graph) -> None:
    found = kites.plan_schema(
        'node Glider @rename_from("Kite") { tag: String @key  n: I32?  hue: String?  mail: String? }\n'
        "node Reel { code: String @key }"
    )
    counts = [(each.step.kind, each.rows, each.touched, each.rewritten) for each in found.steps]
    assert counts == [("rename_type", 7, 7, 7), ("add_type", 0, 0, 0), ("drop_type", 4, 4, 0)]


def test_a_value_keeps_the_rules_of_its_property(tmp_path: Path) -> None:
    """Also those that stand there already, and that no step of the change adds."""
    before = "node K { tag: String @key  n: I32? @unique  @range(n, 0..9)  e: enum(lo, hi)?  s: String? }"
    graph = Graph.init(tmp_path / "g", before)
    graph.load(
        [json.dumps({"type": "K", "data": {"tag": tag, "s": tag}}) for tag in ("lo", "b", "c")], options=NO_INDEX
    )
    after = before.replace("I32?", "I32").replace("hi)?", "hi)")
    found = graph.plan_schema(after, values={"K.n": 12, "K.e": FromColumn("s")})
    assert dict(found.bad_rows.per_rule) == {"enum": 2, "range": 3, "unique": 2}
    assert found.bad_rows.total == 3
    assert figures(graph.plan_schema(after, values={"K.n": 3, "K.e": "lo"})) == {"require_property": (3, 3, 2)}


def test_one_value_for_a_new_property_is_held_against_its_rules(tmp_path: Path) -> None:
    """Also where no stored column has to be read for that."""
    graph = Graph.init(tmp_path / "g", "node K { tag: String @key }")
    graph.load([json.dumps({"type": "K", "data": {"tag": tag}}) for tag in ("a", "b")], options=NO_INDEX)
    after = "node K { tag: String @key  n: I32  e: enum(lo, hi)  @range(n, 0..9) }"
    with pytest.raises(BadRowsError) as refused:
        graph.apply_schema(after, values={"K.n": 12, "K.e": "mid"})
    assert refused.value.summary.per_rule == {"enum": 2, "range": 2}
    assert graph.apply_schema(after, values={"K.n": 9, "K.e": "hi"}).applied
    assert graph.entity("node:K", "a") == {"id": "a", "e": "hi", "n": 9, "tag": "a"}


def test_bad_rows_are_told_as_those_of_a_load(kites: Graph, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    found = kite(
        kites,
        'num: I32? @rename_from("n")  hue: String  mail: String? @unique  @range(num, 1..5)',
        "edge Near: Kite -> Kite @card(0..2) { since: I32? }",
        bad_rows=path,
    )
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == found.bad_rows.total == 7
    assert dict(found.bad_rows.per_rule) == {"cardinality": 1, "range": 3, "required": 3, "unique": 3}
    told = {row["id"]: (row["line"], row["rule"], [each["rule"] for each in row["further"]]) for row in rows[:6]}
    assert told == {
        "k0": (1, "required", ["range"]),
        "k1": (2, "unique", []),
        "k4": (4, "required", []),
        "k5": (5, "unique", []),
        "k6": (6, "required", ["range"]),
        "k7": (7, "range", ["unique"]),
    }
    assert rows[5] == {
        "file": "<stored node:Kite>",
        "line": 7,
        "offset": 0,
        "record_type": "Kite",
        "field": "num",
        "rule": "range",
        "message": "@range violation on Kite.num: value 7 > max 5",
        "raw": '{"type": "Kite", "data": {"id": "k7", "hue": "red", "mail": "m3", "n": 7, "tag": "k7"}}',
        "id": "k7",
        "further": [
            {
                "field": "mail",
                "rule": "unique",
                "message": "@unique violation on Kite.mail: value 'm3' is held by an earlier row of the table "
                "(id 'k6')",
            }
        ],
    }
    assert (rows[6]["file"], rows[6]["field"]) == ("<stored edge:Near>", "from")
    assert [row.to_dict() | {"further": None} for row in found.bad_rows.sample] == [r | {"further": None} for r in rows]
    assert found.bad_rows.sample[0].place == "<stored node:Kite>:1 (id 'k0')"


def test_a_report_has_whole_records(tmp_path: Path) -> None:
    """They are what a quarantine keeps of the rows."""
    graph = Graph.init(tmp_path / "g", "node K { tag: String @key  s: String?  n: I32?  b: Blob? }")
    record = {"type": "K", "data": {"tag": "a", "s": "x" * 5000, "b": "base64:AAEC"}}
    graph.load([json.dumps(record)], options=NO_INDEX)
    schema = "node K { tag: String @key  s: String?  n: I32  b: Blob? }"
    graph.plan_schema(schema, bad_rows=tmp_path / "bad.jsonl")
    raw = json.loads(json.loads((tmp_path / "bad.jsonl").read_text())["raw"])
    assert raw == {"type": "K", "data": {"id": "a", "s": "x" * 5000, "tag": "a"}}


def test_a_plan_writes_nothing(kites: Graph, tmp_path: Path) -> None:
    def files() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in Path(kites.uri).rglob("*")}

    before = files()
    reader = Graph.open(kites.uri, mode="r")
    found = kite(reader, "n: I64  hue: String @unique  size: I32", values={"Kite.size": 1}, allow_data_loss=True)
    assert found.bad_rows.total
    assert files() == before


def test_each_table_is_read_once_and_what_is_needed_alone(kites: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    scans: list[TableScan] = []

    def reading(scan: TableScan) -> Iterator[pa.RecordBatch]:
        scans.append(scan)
        return read_batches(scan)

    monkeypatch.setattr(stored, "read_batches", reading)
    both = 'n: I64  post: String? @rename_from("mail")  @range(n, 0..9) @check(post, "m")'
    kite(kites, both, "edge Near: Kite -> Kite")
    assert [(scan.columns, "nodes" in scan.table.uri) for scan in scans] == [
        (("n", "mail", "hue"), True),
        (("since",), False),
    ]
    scans.clear()
    request = ChangeRequest("node Kite { tag: String @key  hue: String?  n: I32? @unique }")
    plan = plan_change(read_contract(kites.store), request)
    check_steps(kites.store, kites.snapshot(), plan, LocalExecutor(1), rules_only=True)
    assert [scan.columns for scan in scans] == [("id", "n")]


def test_what_no_change_can_do_is_part_of_the_plan(kites: Graph) -> None:
    """Rules over other properties are counted all the same."""
    found = kite(kites, "n: I32?  hue: I32?  mail: String  size: I32  @range(hue, 0..1)  @range(n, 0..3)")
    assert found.unsupported == (
        "[OG-MF-106] changing property type for 'Kite.hue' from String? to I32? is not supported in schema migration "
        "v1",
        "[OG-MF-103] adding required property 'Kite.size' requires a backfill and is not supported in schema migration "
        "v1; with values for stored rows it is made: --set 'Kite.size=JSON' gives all of them one, and "
        "--set 'Kite.size=@OTHER' each what it has in the property OTHER",
    )
    assert [each.broken for each in found.steps] == [None, 0, None, None, 4]
    assert not found.applicable
    assert found.to_dict()["supported"] is False


def test_a_schema_that_nobody_accepts_any_more_can_go_on() -> None:
    """Then the rules of the format alone are asked of what it becomes; but for the columns of Lance."""
    old = "node K { tag: String @key  n: I32?  iD2: I32?\n  @range(n, ..9) }"
    catalog = compile_stored_schema(old)
    contract = Contract(catalog, old, catalog.ir_hash)
    plan = plan_change(contract, ChangeRequest(old.replace("iD2", "_rowid: I64?  iD2")))
    assert [step.reason for step in plan.unsupported] == [
        "property name '_rowid' is reserved for a column that Lance makes up (K._rowid)"
    ]
    assert plan_change(contract, ChangeRequest(old.replace("iD2", "more: I32?  iD2"))).supported
    accepted = old.replace("..9", "0..9")
    catalog = compile_stored_schema(accepted)
    with pytest.raises(SchemaParseError, match="needs a lower bound"):
        plan_change(Contract(catalog, accepted, catalog.ir_hash), ChangeRequest(old))


def test_branches_are_named(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node K { tag: String @key }")
    graph.create_branch("draft")
    found = graph.plan_schema("node K { tag: String @key  n: I32? }")
    assert (found.supported, found.applicable, found.branches) == (True, False, ("draft",))
    assert graph.plan_schema("node K { tag: String @key }").applicable


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"Kite.size": "big"}, BadRequestError, "the value for stored rows of 'Kite.size'.*expects I32"),
        ({"Kite.size": None}, BadRequestError, "null is no value"),
        ({"Kite.size": 2**31}, BadRequestError, "exceeds Int32 range"),
        ({"Kit.size": 1}, NotFoundError, "no type 'Kit'.*did you mean 'Kite'"),
        ({"Kite.sise": 1}, NotFoundError, "no property 'sise'.*did you mean 'size'"),
        ({"size": 1}, BadRequestError, "'Type.property'"),
        ({"Kite.size": 1, "node:Kite.size": 2}, BadRequestError, "two values"),
        ({"Kite.size": 1, "Kite.n": 2}, BadRequestError, "no stored row takes the value of 'Kite.n'"),
        ({"Kite.size": FromColumn("mail")}, BadRequestError, r"String\? does not fit into I32"),
        (["Kite.size=1"], BadRequestError, "values are a mapping"),
        ({"Kite.size": object()}, BadRequestError, "'Kite.size' is none that JSON can carry: <object"),
        ({"Kite.size": 10**5000}, BadRequestError, "none that JSON can carry: a number of"),
        ({"Kite.tag": "\ud800"}, BadRequestError, "'Kite.tag' is none that JSON can carry"),
    ],
)
def test_values_that_do_not_fit_are_refused(kites: Graph, values: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        kite(kites, f"{SAME}  size: I32", values=values)


def test_of_a_type_that_cannot_be_changed_so_that_is_told_and_not_its_values(kites: Graph) -> None:
    """The value is for a step that the refused one stands in for."""
    body = 'm: I32? @rename_from("n")  n: I32?  hue: String?  mail: String?'
    found = kite(kites, body, values={"Kite.n": 1})
    assert found.unsupported == ("property 'Kite.m' is renamed from 'n', but 'n' is still declared",)


def test_a_change_that_is_made_already_is_no_step(kites: Graph) -> None:
    """With the values that it gave: whoever does not know whether it was made makes it again."""
    text, values = f"node Kite {{ tag: String @key {SAME}  size: I32 }}", {"Kite.size": 1}
    text += "\nedge Near: Kite -> Kite { since: I32? }"
    assert kites.apply_schema(text, values=values).applied
    assert kites.plan_schema(text, values=values).steps == ()
    assert not kites.apply_schema(text, values=values).applied


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"Kite.size": 2}, BadRequestError, "no stored row takes the value of 'Kite.size'"),
        ({"Kite.size": FromColumn("n")}, BadRequestError, "no stored row takes the value of 'Kite.size'"),
        ({"Kite.size": 1, "Kite.n": 1}, BadRequestError, "no stored row takes the value of 'Kite"),
        ({"Kite.sise": 1}, NotFoundError, "no property 'sise'.*did you mean 'size'"),
        ({"Kite.size": "big"}, BadRequestError, "'Kite.size'.*expects I32"),
    ],
)
@pytest.mark.parametrize("is_changed", [True, False])
def test_values_that_nothing_takes_are_refused_where_there_is_nothing_to_do(
    tmp_path: Path, is_changed: bool, values: dict[str, object], error: type[Exception], message: str
) -> None:
    """As a change would: after one that gave others, and in a graph whose schema was never changed."""
    old = "node Kite { tag: String @key  n: I32? }"
    text = old.replace("I32?", "I32?  size: I32")
    graph = Graph.init(tmp_path / "g", old if is_changed else text)
    if is_changed:
        graph.apply_schema(text, values={"Kite.size": 1})
    version = graph.snapshot().version
    for change in (graph.plan_schema, graph.apply_schema):
        with pytest.raises(error, match=message):
            change(text, values=values)
    assert graph.snapshot().version == version


@pytest.mark.parametrize("text", ["", "\n", "// nothing is left\n"])
def test_an_empty_text_does_not_drop_all_types(kites: Graph, text: str) -> None:
    """As of a file that was cut off, or is another one."""
    for change in (kites.plan_schema, kites.apply_schema):
        with pytest.raises(BadRequestError, match=r"no type, so that all of the graph's would go.*--allow-data-loss"):
            change(text)
    assert kites.plan_schema(text, allow_data_loss=True).supported


def test_a_text_that_is_no_schema_is_refused(kites: Graph) -> None:
    with pytest.raises(SchemaParseError):
        kites.plan_schema("node Kite { tag String }")
    with pytest.raises(NotFoundError, match=r"schema file '\\ud800' not found"):
        kites.plan_schema("\ud800")
    with pytest.raises(BadRequestError, match=r"takes no 'value'.*did you mean 'values'"):
        kites.plan_schema(KITES, value={})  # type: ignore[call-arg]  # a mistake of a caller


def test_values_of_every_type_are_stored_as_they_are(tmp_path: Path) -> None:
    """Dates, points in time, lists and vectors too, where there is null."""
    graph = Graph.init(tmp_path / "g", "node K { tag: String @key  d: Date?  v: Vector(2)? }")
    graph.load(
        ['{"type": "K", "data": {"tag": "a", "d": "2024-01-01"}}', '{"type": "K", "data": {"tag": "b"}}'],
        options=NO_INDEX,
    )
    found = graph.plan_schema(
        "node K { tag: String @key  d: Date @unique  v: Vector(2)  t: DateTime @unique  l: [Date]  f: F32 }",
        values={
            "K.d": "2024-01-01", "K.v": [1, 2.5], "K.t": "2024-01-31T12:00:00Z", "K.l": ["2024-01-01"], "K.f": 1.5,
        },
    )  # laid out as a table  # fmt: skip
    assert dict(found.bad_rows.per_rule) == {"unique": 2}
    assert [(row.id, [each.field for each in row.mistakes]) for row in found.bad_rows.sample] == [("b", ["d", "t"])]


def check(seed: int, folder: Path) -> int:
    """A plan of schemas and rows at random counts what a naive reading says. How many mistakes there are."""
    rng = random.Random(seed)
    before = schema_steps.schema(rng)
    data = schema_steps.rows(rng, before)
    after = schema_steps.changed(rng, before, 6)
    graph = Graph.init(folder / f"g{seed}", schema_steps.text(before))
    lines = schema_steps.records(data)
    if lines:
        graph.load(lines, options=NO_INDEX)
    found = graph.plan_schema(schema_steps.text(after), values=schema_steps.values(after))
    expected: Counter[str] = Counter()
    for _, rule, _, count in schema_steps.refused(before, after, data):
        expected[rule] += count
    assert found.supported, (seed, found.unsupported)
    assert dict(found.bad_rows.per_rule) == dict(+expected), seed
    assert graph.plan_schema(schema_steps.text(before)).steps == (), seed
    again = graph.plan_schema(schema_steps.text(after), values=schema_steps.values(after))
    assert again.to_dict() == found.to_dict(), seed
    return expected.total()


def test_counts_are_those_of_a_naive_reading(tmp_path: Path) -> None:
    assert sum(check(seed, tmp_path) for seed in range(8)) > 20


@pytest.mark.long
def test_counts_are_those_of_a_naive_reading_many_times(tmp_path: Path) -> None:
    assert sum(check(seed, tmp_path) for seed in range(100, 400)) > 1000
