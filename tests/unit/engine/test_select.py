"""Predicates reach Lance in a form that its scalar indexes answer, and find what they should over odd values."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.engine.select import select
from spark_omnigraph.engine.source import EngineSource
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.read.query import source_of
from spark_omnigraph.lang.gq.plan import Column, Comparator, Comparison, Constant, TextForm, TextMatch, Value
from tests.support.engine import push

SCALARS = {
    "a": Scalar.I32,
    "b": Scalar.I64,
    "c": Scalar.U32,
    "d": Scalar.U64,
    "f": Scalar.F32,
    "g": Scalar.F64,
    "h": Scalar.DATE,
    "on": Scalar.BOOL,
    "limit": Scalar.I64,
    "camelCase": Scalar.DATETIME,
}
SCHEMA = (
    "node N { k: String @key e: enum(x, y)? @index "
    + " ".join(f"{name}: {scalar}? @index" for name, scalar in SCALARS.items())
    + " t: String? }"
)
ROWS = 40


def line(i: int) -> str:
    values = (
        f'"a": {i}, "b": {i - 2**62}, "c": {i}, "d": {2**63 + i}, "f": {i / 4}, "g": {i / 10}, "h": {i}, "limit": {i}'
    )
    on = "true" if i % 2 else "false"
    return f'{{"type":"N","data":{{"k":"k{i}","e":"x",{values},"on":{on},"camelCase":{i * 1000},"t":"it\'s {i}"}}}}'


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = Graph.init(tmp_path_factory.mktemp("scans") / "g", SCHEMA)
    made.load([*map(line, range(ROWS)), '{"type":"N","data":{"k":"empty"}}'])
    return made


@pytest.fixture
def source(graph: Graph) -> EngineSource:
    return source_of(graph.store, graph.catalog(), graph.snapshot())


def equal(name: str, scalar: Scalar, value: Value, comparator: Comparator = Comparator.EQUAL) -> Comparison:
    given = Scalar.F64 if isinstance(value, float) else scalar
    return Comparison(comparator, Column("n", name, PropType(scalar, nullable=True)), Constant(value, PropType(given)))


PATHS = (
    Costs(),
    Costs(column_share=1 << 50),
    Costs(key_rows=-1, index_share=0, index_rows=1, first_asked=1 << 30),
)
"""In memory, by a scan, by indexes."""


def found(source: EngineSource, *predicates: Comparison) -> set[str]:
    """The ids of the rows, which are the same however they are found."""
    answers = []
    for costs in PATHS:
        table = replace(source.table(TableKey.node("N")), costs=costs)
        answers.append(set(table.columns(select(table, predicates), ["id"])[0].to_pylist()))
    assert answers[0] == answers[1] == answers[2]
    return answers[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a", 7),
        ("a", 7.0),
        ("b", 7 - 2**62),
        ("c", 7),
        ("d", 2**63 + 7),
        ("f", 1.75),
        ("g", 0.7),
        ("h", 7),
        ("limit", 7),
        ("camelCase", 7000),
    ],
)
@pytest.mark.parametrize("comparator", [Comparator.EQUAL, Comparator.LESS, Comparator.GREATER_OR_EQUAL])
def test_an_index_answers_what_fits_its_column(
    source: EngineSource, name: str, value: Value, comparator: Comparator
) -> None:
    predicate = equal(name, SCALARS[name], value, comparator)
    reader = source.table(TableKey.node("N")).reader
    assert reader is not None
    where = push([predicate], reader.names).where
    assert where is not None
    assert f"@{name}_idx(BTree)" in reader.plan(where)
    wanted = {Comparator.EQUAL: range(7, 8), Comparator.LESS: range(7), Comparator.GREATER_OR_EQUAL: range(7, ROWS)}
    assert found(source, predicate) == {f"k{i}" for i in wanted[comparator]}


def test_enums_bools_and_ids_use_their_indexes(source: EngineSource) -> None:
    reader = source.table(TableKey.node("N")).reader
    assert reader is not None
    for predicate in (equal("e", Scalar.STRING, "x"), equal("on", Scalar.BOOL, True), equal("id", Scalar.STRING, "k1")):
        where = push([predicate], reader.names).where
        assert where is not None
        assert "ScalarIndexQuery" in reader.plan(where)
    assert found(source, equal("on", Scalar.BOOL, True), equal("id", Scalar.STRING, "k1")) == {"k1"}


@pytest.mark.parametrize(
    ("name", "value", "comparator", "count"),
    [
        ("a", 2.7, Comparator.EQUAL, 0),
        ("a", 2.7, Comparator.GREATER_OR_EQUAL, ROWS - 3),
        ("a", 3_000_000_000, Comparator.LESS, ROWS),
        ("a", 3_000_000_000, Comparator.NOT_EQUAL, ROWS),
        ("c", -1, Comparator.GREATER, ROWS),
        ("b", -(2**63), Comparator.GREATER, ROWS),
        ("d", 2.0**63, Comparator.EQUAL, 1),
        ("d", 1e300, Comparator.LESS, ROWS),
        ("g", 2**53 + 1, Comparator.LESS, ROWS),
        ("h", -(10**12), Comparator.GREATER, ROWS),
    ],
)
def test_values_that_do_not_fit_are_compared_all_the_same(
    source: EngineSource, name: str, value: Value, comparator: Comparator, count: int
) -> None:
    assert len(found(source, equal(name, SCALARS[name], value, comparator))) == count


def test_names_and_texts_of_any_spelling(source: EngineSource) -> None:
    assert found(source, equal("t", Scalar.STRING, "it's 3")) == {"k3"}
    assert found(source, equal("t", Scalar.STRING, "'; drop")) == set()
    assert found(source, equal("t", Scalar.STRING, "it's 1", Comparator.STARTS_WITH)) == {
        "k1",
        *(f"k{i}" for i in range(10, 20)),
    }


def test_odd_floats_are_found_by_value(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node N { k: String @key  f: F32? @index  g: F64? @index }")
    stored = {"neg": -0.0, "pos": 0.0, "one": 1.0}
    graph.load([f'{{"type":"N","data":{{"k":"{k}","f":{v},"g":{v}}}}}' for k, v in stored.items()])
    source = source_of(graph.store, graph.catalog(), graph.snapshot())
    for name, zero in itertools.product(("f", "g"), (0, 0.0, -0.0)):
        scalar = Scalar.F32 if name == "f" else Scalar.F64
        assert found(source, equal(name, scalar, zero)) == {"neg", "pos"}
        assert found(source, equal(name, scalar, zero, Comparator.LESS)) == set()
        assert found(source, equal(name, scalar, zero, Comparator.GREATER)) == {"one"}
        assert found(source, equal(name, scalar, zero, Comparator.NOT_EQUAL)) == {"one"}


def test_a_type_that_the_snapshot_lacks_has_no_rows(graph: Graph) -> None:
    source = EngineSource(graph.catalog(), lambda _: None)
    assert found(source) == set()
    text = TextMatch(TextForm.SEARCH, Column("n", "t", PropType(Scalar.STRING)), Constant("x", PropType(Scalar.STRING)))
    assert select(source.table(TableKey.node("N")), [text]).tolist() == []
