"""A condition given as an option keeps the rows that Spark's own filter keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.spark.api import read_nodes
from tests.unit.spark.graph_types import things
from tests.unit.spark.test_where import near

COLUMNS = ["id", "s", "d", "ts", "f32", "f64", "i32", "i64", "u32", "u64"]
COMPARE: dict[str, Callable[[Column, Column], Column]] = {
    "=": lambda c, v: c == v,
    "!=": lambda c, v: c != v,
    "<": lambda c, v: c < v,
    "<=": lambda c, v: c <= v,
    ">": lambda c, v: c > v,
    ">=": lambda c, v: c >= v,
    "starts with": lambda c, v: c.startswith(v),
    "ends with": lambda c, v: c.endswith(v),
    "contains": lambda c, v: c.contains(v),
}


def spark_condition(column: str, operator: str, value: object) -> Column:
    if operator in ("is null", "is not null"):
        return sf.col(column).isNull() if operator == "is null" else sf.col(column).isNotNull()
    if column in ("nums", "times"):
        return sf.array_contains(sf.col(column), literal(value))
    if operator in ("in", "not in"):
        assert isinstance(value, list)
        found = sf.col(column).isin(*map(literal, value))
        return found if operator == "in" else ~found
    return COMPARE[operator](sf.col(column), literal(value))


def literal(value: object) -> Column:
    """`lit` goes through Java's old calendar, which has no proleptic years, and 64 signed bits."""
    if isinstance(value, datetime):
        return sf.expr(f"timestamp '{value.isoformat()}'")
    if isinstance(value, date):
        return sf.expr(f"date '{value.isoformat()}'")
    return sf.expr(f"{value}BD") if isinstance(value, int) and not isinstance(value, bool) else sf.lit(value)


def conditions() -> st.SearchStrategy[tuple[str, str, object]]:
    def of(column: str) -> st.SearchStrategy[tuple[str, str, object]]:
        values = near(column)
        plain = st.tuples(st.just(column), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), values)
        lists = st.tuples(st.just(column), st.sampled_from(["in", "not in"]), st.lists(values, min_size=1, max_size=3))
        if column in ("id", "s"):
            return plain | lists | nothing | st.tuples(st.just(column), st.sampled_from(list(COMPARE)[-3:]), values)
        return plain | lists | nothing

    nulls = st.sampled_from([*COLUMNS, "b", "nums", "v"])
    nothing = st.tuples(nulls, st.sampled_from(["is null", "is not null"]), st.none())
    inside = st.tuples(st.just("nums"), st.just("contains"), st.integers(1, 6))
    return st.sampled_from(COLUMNS).flatmap(of) | inside


def test_option_equals_spark_filter(spark: SparkSession, graph: str, remote: bool) -> None:
    # A call over Connect costs several times that of a classic session; the predicates are made by the same code.
    @settings(max_examples=6 if remote else 40, deadline=None, derandomize=True)
    @given(st.lists(conditions(), min_size=1, max_size=2))
    def same_rows(terms: list[tuple[str, str, object]]) -> None:
        whole = read_nodes(spark, graph, "Thing")
        for column, operator, value in terms:
            whole = whole.filter(spark_condition(column, operator, value))
        expected = {r["id"] for r in whole.select("id").collect()}
        found = {r["id"] for r in read_nodes(spark, graph, "Thing", columns=["id"], where=terms).collect()}
        assert found == expected
        assert expected <= set(things()["id"])

    same_rows()


@pytest.mark.parametrize(
    "terms", [[("select", ">", 1)], [("nAme", "=", 2), ("name", "!=", "n3")], [("_x", "is null", None)]]
)
def test_columns_of_any_spelling(spark: SparkSession, tmp_path: Path, terms: list[tuple[str, str, object]]) -> None:
    names = ["select", "order", "nAme", "_x", "null"]
    graph = Graph.init(tmp_path / "g", f"node Odd {{ name: String @key {' '.join(f'{n}: I32?' for n in names)} }}")
    rows = [{"name": f"n{n}", **{name: (n + i) % 4 or None for i, name in enumerate(names)}} for n in range(5)]
    graph.load([json.dumps({"type": "Odd", "data": row}) for row in rows])
    spark.conf.set("spark.sql.caseSensitive", "true")  # else Spark takes nAme and name for one
    try:
        whole = read_nodes(spark, graph.uri, "Odd")
        assert sorted(whole.columns) == sorted(["id", "name", *names])
        for column, operator, value in terms:
            whole = whole.filter(spark_condition(f"`{column}`", operator, value))
        found = read_nodes(spark, graph.uri, "Odd", where=terms).collect()
        assert sorted(found) == sorted(whole.collect())
        assert found
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
