"""`read_query` and `query --executor spark`: two engines, the same rows, names and types."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from spark_omnigraph import Graph, read_query
from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.cli.program import main
from spark_omnigraph.errors import BadRequestError, NotFoundError, QueryTypeError
from spark_omnigraph.graph.read.history import ReadTarget
from spark_omnigraph.lang.gq.choose import Engine
from spark_omnigraph.lang.gq.plan import Column, Comparison
from spark_omnigraph.spark.query.comparisons import comparison_column
from spark_omnigraph.spark.query.frame import Frame, inside_type
from spark_omnigraph.spark.query.read import AskedQuery, ask
from spark_omnigraph.spark.query.tables import sized
from spark_omnigraph.spark.session import under
from tests.spark.sessions import UNUSUAL
from tests.support.frames import json_rows
from tests.unit.engine.test_compare import ORDERED, VALUES, exact

SCHEMA = """
node P { name: String @key  age: I32?  seen: DateTime?  born: Date?  u: U64?  v: Vector(2)?  tags: [Date]?  t: String? }
edge Knows: P -> P { since: I32? }
"""
PEOPLE = [
    {"name": "Ada", "age": 36, "seen": "2024-01-31T12:00:00.5Z", "u": 2**64 - 1, "v": [0, 1], "tags": ["0001-01-01"]},
    {"name": "Bob", "age": 1, "born": "1582-10-10", "v": [1, 1], "t": "wax and moss"},
    {"name": "Cyd", "seen": "9999-12-31T23:59:59.999Z", "u": 1, "t": "wax wax"},
    {"name": "Dan", "age": 36, "born": "1969-12-31", "v": [3, 1]},
]
KNOWS = [("Ada", "Bob", 1), ("Bob", "Cyd", 2), ("Cyd", "Cyd", None), ("Cyd", "Dan", 3), ("Ada", "Bob", 4)]
QUERIES = {
    "values": "match { $p: P } return { $p.name, $p.age, $p.seen, $p.born, $p.u, $p.v, $p.tags } order { $p.born }",
    "walk": "match { $p: P { name: $name } $p knows{1,3} $q } return { $q.name } order { $q.name }",
    "hop": "match { $p: P $p knows $q } return { $p.name, $q.name as other } order { $p.name, $q.name }",
    "share": "match { $p: P $p.age < 40 $p knows $q $q knows $r } return { $p.name, $p.age, $q.name as via, "
    "$r.name as other } order { $p.name, $r.name }",
    "edges": "match { $p: P $p $w:knows $q } return { $p.name, $q.name as other, $w.since } order { $w.since }",
    "absent": "match { $p: P not { $q knows $p $q.age > 30 } } return { $p.name } order { $p.name }",
    "met": 'match { $p: P $q: P { name: "Bob" } $p knows $q } return { $p.name, count($q) as n }',
    "sums": "match { $p: P } return { $p.age, count($p) as n, sum($p.u) as u, avg($p.age) as m } order { n desc }",
    "nearest": "match { $p: P } return { $p.name, nearest($p.v, [2, 1]) as d } order { nearest($p.v, [2, 1]) } limit 2",
    "text": 'match { $p: P search($p.t, "wax") } return { $p.name, bm25($p.t, "wax") as s } order { $p.name }',
}
TEXT = "\n".join(f"query {name}($name: String) {{ {body} }}" for name, body in QUERIES.items())
PARAMS = {"name": "Ada"}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = Graph.init(tmp_path_factory.mktemp("queries") / "g", SCHEMA)
    rows = [{"type": "P", "data": person} for person in PEOPLE]
    edges = [{"edge": "Knows", "from": a, "to": b, "data": {"since": since}} for a, b, since in KNOWS]
    graph.load([json.dumps(row) for row in (*rows, *edges)])
    return graph


@pytest.mark.parametrize("name", QUERIES)
def test_both_engines_give_the_rows_of_one_machine(spark: SparkSession, people: Graph, name: str) -> None:
    result = people.query(TEXT, name, PARAMS)
    assert result.row_count
    schemas = []
    for engine in ("spark", "embedded"):
        frame = read_query(spark, people.uri, TEXT, name, PARAMS, engine=engine)
        assert frame.columns == result.column_names
        assert json_rows(frame, result.columns) == result.to_pylist(), engine
        schemas.append([(field.name, field.dataType) for field in frame.schema.fields])
    assert schemas[0] == schemas[1]


def test_integers_and_floats_are_compared_exactly(spark: SparkSession) -> None:
    """Whole numbers of more digits than are shown of a float, and fractions of which 1.0 takes nothing away."""
    kinds = {"i": Scalar.I64, "u": Scalar.U64, "f": Scalar.F64}
    rows: list[tuple[Any, ...]] = [(i, None, f) for i in VALUES[Scalar.I64] for f in VALUES[Scalar.F64]]
    rows += [(None, None if u is None else Decimal(u), f) for u in VALUES[Scalar.U64] for f in VALUES[Scalar.F64]]
    columns = {name: Column("n", name, PropType(scalar, nullable=True)) for name, scalar in kinds.items()}
    data = spark.createDataFrame(rows, StructType([StructField(n, inside_type(c.type)) for n, c in columns.items()]))
    frame = Frame(data, {("n", name): name for name in kinds}, {})
    asked = [(each, *sides) for each in ORDERED for sides in ("if", "fi", "uf", "fu")]
    made = [comparison_column(Comparison(each, columns[a], columns[b]), frame) for each, a, b in asked]
    found = data.select("*", *(column.alias(f"a{place}") for place, column in enumerate(made))).collect()
    assert len(found) == len(rows)
    for row in found:
        of = {name: exact(row[name]) for name in kinds if row[name] is not None}
        for place, (each, a, b) in enumerate(asked):
            wanted = a in of and b in of and ORDERED[each](of[a], of[b])
            assert bool(row[f"a{place}"]) is wanted, (each, of)


def test_settings_of_the_session_do_not_matter(spark: SparkSession, people: Graph) -> None:
    with under(spark, UNUSUAL):
        for name, engine in (("values", "spark"), ("values", "embedded"), ("absent", "spark")):
            result = people.query(TEXT, name, PARAMS)
            frame = read_query(spark, people.uri, TEXT, name, PARAMS, engine=engine)
            assert json_rows(frame, result.columns) == result.to_pylist(), (name, engine)


def test_long_lists_are_compared_and_shown(spark: SparkSession, people: Graph) -> None:
    whole = [*range(5, 3000), 2, 3]
    texts = {
        ", ".join(map(str, whole)): "$w.since",
        ", ".join(f"{each}.0" for each in whole): "$w.since",
        f"{2**53 + 1}, 1": "$q.u",
        '"Bob", "a\\"b"': "$q.name",
        "true": "true",
    }
    for items, asked in texts.items():
        match = f"$p: P $p $w:knows $q [{items}] contains {asked}"
        text = f"query q() {{ match {{ {match} }} return {{ $q.name, $w.since }} }}"
        rows = sorted(people.query(text).to_pylist(), key=str)
        found = read_query(spark, people.uri, text, engine="spark")
        assert sorted((row.asDict() for row in found.collect()), key=str) == rows, asked
        assert rows, asked
    shown = "query q($l: [I64], $f: [F64], $s: [String]) { match { $p: P } return { $l, $f, $s } limit 1 }"
    given = {"l": [2**63 - 1, *range(10_000)], "f": [0.1, -0.0, 5e-324, 1e308], "s": ["", 'ä"\\\n\u2028', "😀"]}
    result = people.query(shown, params=given)
    assert json_rows(read_query(spark, people.uri, shown, params=given, engine="spark"), result.columns) == [given]


def test_a_walk_tells_of_its_hops(spark: SparkSession, people: Graph) -> None:
    told: list[tuple[str, int, int]] = []
    query = ask(people.store, ReadTarget(), AskedQuery(TEXT, "walk", PARAMS))
    query.frame(spark, Engine.SPARK, lambda *part: told.append(part))
    assert told == [("walk", 1, 3), ("walk", 2, 3), ("walk", 3, 3)]


def test_a_plan_grows_by_as_much_with_each_negated_block(
    spark: SparkSession, people: Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = {}
    for count in (3, 9):
        blocks = " ".join(f"not {{ $p knows $q{n} $q{n}.age = {n + 30} }}" for n in range(count))
        frame = read_query(
            spark, people.uri, f"query q() {{ match {{ $p: P {blocks} }} return {{ $p }} }}", engine="spark"
        )
        frame.explain()
        lines[count] = len(capsys.readouterr().out.splitlines())
    assert lines[9] < 4 * lines[3]


def test_a_frame_stays_at_its_state(spark: SparkSession, tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node A { k: String @key }")
    first = graph.load(['{"type":"A","data":{"k":"a"}}'])
    text = "query q() { match { $a: A } return { $a } order { $a.k } }"
    frames = [read_query(spark, graph.uri, text, engine=engine) for engine in ("auto", "spark")]
    graph.create_branch("dev")
    graph.load(['{"type":"A","data":{"k":"b"}}'])
    graph.load(['{"type":"A","data":{"k":"c"}}'], branch="dev")
    assert [[row["a"] for row in frame.collect()] for frame in frames] == [["a"], ["a"]]
    for engine in ("auto", "spark"):
        now, past, other = (
            read_query(spark, graph.uri, text, engine=engine, **where)
            for where in ({}, {"version": first.manifest_version}, {"branch": "dev"})
        )
        shown = [[row["a"] for row in frame.collect()] for frame in (now, past, other)]
        assert shown == [["a", "b"], ["a"], ["a", "c"]], engine


def test_what_does_not_fit_is_refused_at_once(spark: SparkSession, people: Graph) -> None:
    with pytest.raises(BadRequestError, match="engine is one of auto, embedded, spark, not 'sparc'; did you mean"):
        read_query(spark, people.uri, TEXT, "walk", PARAMS, engine="sparc")
    with pytest.raises(QueryTypeError, match="has no property"):
        read_query(spark, people.uri, "query q() { match { $p: P } return { $p.nope } }")
    twice = "query q() { match { $p: P } return { $p.name as one, $p.age as oNe } }"
    with pytest.raises(BadRequestError, match="'one' and 'oNe', which Spark does not tell apart"):
        read_query(spark, people.uri, twice)
    with pytest.raises(NotFoundError):
        read_query(spark, people.uri, TEXT, "walk", PARAMS, branch="none")


def test_spark_knows_the_size_of_a_scan_and_counts_its_tasks(spark: SparkSession) -> None:
    for parts, size in ((1, 0), (3, 0), (3, 10_000), (4, 1 << 20)):
        assert sorted(row["id"] for row in sized(spark, parts, size).collect()) == list(range(parts))


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_the_verb_writes_files_of_any_size(
    spark: SparkSession, people: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    (tmp_path / "q.gq").write_text(TEXT)
    asked = ["query", "--graph", people.uri, "--file", str(tmp_path / "q.gq"), "--name", "edges", "--format", form]
    asked += ["--params", json.dumps(PARAMS), "--log-level", "error"]
    local, folder = tmp_path / "local", tmp_path / "folder"
    assert main([*asked, "--output", str(local)]) == 0
    assert main([*asked, "--executor", "spark", "--output", str(folder)]) == 0
    body = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert body["result"]["row_count"] == len(KNOWS)
    parts = sorted(path for path in folder.iterdir() if path.name.startswith("part-"))
    if form == "parquet":
        result = people.query(TEXT, "edges", PARAMS)
        assert json_rows(spark.read.parquet(str(folder)).orderBy("`w.since`"), result.columns) == result.to_pylist()
    else:
        assert "".join(path.read_text() for path in parts) == local.read_text()
    assert main([*asked, "--executor", "spark", "--output", str(folder)]) == 2
