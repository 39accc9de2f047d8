"""Plans as text. The files beside the queries were read line by line; a change of them is a change of plans."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.lang.gq.bind import bind
from spark_omnigraph.lang.gq.check.read_query import check_read
from spark_omnigraph.lang.gq.explain import explain
from spark_omnigraph.lang.gq.lower import lower, operators
from spark_omnigraph.lang.gq.params import bind_params
from spark_omnigraph.lang.gq.plan import Column, Constant, Limit, Output, Plan, Project, Scan
from spark_omnigraph.lang.gq.syntax.parser import parse_queries, pick_query
from spark_omnigraph.lang.pg import compile_schema

GOLDEN = Path(__file__).parents[3] / "golden" / "gq"
HARBOUR = compile_schema((GOLDEN / "harbour.pg").read_text(encoding="utf-8"))
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob("*.gq"))}


def plan(text: str, name: str | None = None) -> Plan:
    return lower(HARBOUR, check_read(HARBOUR, pick_query(parse_queries(text), name)))


@pytest.mark.parametrize("name", TEXTS)
def test_plans(name: str) -> None:
    names = [query.name.text for query in parse_queries(TEXTS[name]).queries]
    shown = "\n".join(explain(plan(TEXTS[name], query)) for query in names)
    assert shown == (GOLDEN / f"{name}.plan.txt").read_text(encoding="utf-8")


def test_every_operator_is_shown() -> None:
    queries = [(text, query.name.text) for text in TEXTS.values() for query in parse_queries(text).queries]
    seen = {type(operator).__name__ for text, name in queries for operator in operators(plan(text, name).root)}
    assert seen == {
        *("Scan", "OuterRows", "Cross", "Expand", "Connect", "Filter", "AntiJoin"),
        *("Rank", "Sort", "Limit", "Project", "Aggregate", "SortResult"),
    }


def test_bound_parameters_are_shown_as_values() -> None:
    text = """query q($n: String, $d: Date, $v: Vector(3), $x: F32?) {
      match { $b: Boat { name: $n } $b.built < $d $b.length = $x $n2: Note $n2.written < now() }
      return { $b.name } order { nearest($n2.vector, $v) } limit 1
    }"""
    read = plan(text)
    query = check_read(HARBOUR, parse_queries(text).queries[0])
    given = {"n": 'O"Hara', "d": "2024-02-29", "v": [1, 2, 3]}
    values = bind_params("q", query.params, given, datetime(2026, 1, 31, 12, tzinfo=timezone.utc))
    shown = explain(bind(read, values))
    assert 'where $b.name = "O\\"Hara" and $b.built < date("2024-02-29") and $b.length = null' in shown
    assert '$n2.written < datetime("2026-01-31T12:00:00.000Z")' in shown
    assert "rank by nearest($n2.vector, [1.0, 2.0, 3.0]), limit 1" in shown


def test_long_values_are_cut() -> None:
    vector = Constant(tuple(float(n) for n in range(384)), PropType(Scalar.VECTOR, dimension=384))
    text = Constant("x" * 1000, PropType(Scalar.STRING))
    day = Constant(10**9, PropType(Scalar.DATE))
    columns = (Output("v", vector), Output("t", text), Output("d", day))
    shown = explain(Plan("q", Project(Limit(Scan("b", "Boat"), 1), columns), ()))
    assert "v = [0.0, 1.0, 2.0, 3.0, … 384 values]" in shown
    assert f't = "{"x" * 80}…"' in shown
    assert "d = date(1000000000)" in shown
    assert len(shown) < 250


def test_a_node_is_its_variable() -> None:
    column = Output("b", Column("b", "id", PropType(Scalar.STRING)))
    assert "project b = $b\n" in explain(Plan("q", Project(Scan("b", "Boat"), (column,)), ()))
