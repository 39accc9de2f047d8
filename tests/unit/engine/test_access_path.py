"""Which way rows are found: indexes for few, memory for many, a scan for what does not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.engine.access_path import access_path
from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.engine.select import known_ids, select
from spark_omnigraph.engine.table import Table
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.read.query import source_of
from spark_omnigraph.lang.gq.plan import Column, Comparator, Comparison, Constant, Value
from spark_omnigraph.memory import Memory
from spark_omnigraph.storage.tables.reader import TableReader

ROWS = 2_000
LARGE = Costs(key_rows=100)
"""Tables count as large from few rows on."""


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Table:
    made = Graph.init(
        tmp_path_factory.mktemp("access") / "g", "node N { k: String @key  n: I32 @index  on: Bool @index  m: I32 }"
    )
    on = ("false", "true")
    made.load([f'{{"type":"N","data":{{"k":"k{i}","n":{i},"on":{on[i % 2]},"m":{i}}}}}' for i in range(ROWS)])
    return source_of(made.store, made.catalog(), made.snapshot(), LARGE).table(TableKey.node("N"))


def compared(name: str, scalar: Scalar, comparator: Comparator, value: Value) -> Comparison:
    return Comparison(comparator, Column("n", name, PropType(scalar)), Constant(value, PropType(scalar)))


FEW = compared("n", Scalar.I32, Comparator.GREATER_OR_EQUAL, ROWS - 5)
MANY = compared("n", Scalar.I32, Comparator.GREATER_OR_EQUAL, 5)
HALF = compared("on", Scalar.BOOL, Comparator.EQUAL, True)
KEY = compared("k", Scalar.STRING, Comparator.EQUAL, "k7")
ALL_BUT_ONE = compared("k", Scalar.STRING, Comparator.NOT_EQUAL, "k7")
PLAIN = compared("m", Scalar.I32, Comparator.LESS, 3)


@pytest.mark.parametrize(
    ("predicates", "where", "count"),
    [
        ((FEW,), f"`n` >= {ROWS - 5}", 5),
        ((KEY,), "`id` = 'k7'", 1),
        ((KEY, MANY), "`id` = 'k7'", 1),
        ((MANY, KEY, HALF), "`id` = 'k7'", 1),
        ((FEW, PLAIN), f"`n` >= {ROWS - 5}", 0),
        ((MANY,), None, ROWS - 5),
        ((HALF,), None, ROWS // 2),
        ((PLAIN,), None, 3),
        ((ALL_BUT_ONE,), None, ROWS - 1),
        ((), None, ROWS),
    ],
)
def test_an_index_is_asked_where_it_has_few_rows(
    things: Table, predicates: tuple[Comparison, ...], where: str | None, count: int
) -> None:
    found = access_path(things, predicates)
    assert found.by_index is (where is not None)
    assert found.in_memory is (where is None)
    if where is not None:
        assert found.pushed.where == where
    assert len(select(things, predicates)) == count


def test_what_does_not_fit_in_memory_is_scanned_without_an_index(things: Table) -> None:
    assert things.reader is not None
    small = TableReader(things.reader.table, Memory(50_000))
    things = Table(things.entity, small, LARGE)
    found = access_path(things, (MANY, PLAIN))
    assert (found.by_index, found.in_memory) == (False, False)
    assert found.pushed.where == "`n` >= 5 AND `m` < 3"
    assert select(things, (MANY, PLAIN)).tolist() == []
    assert len(select(things, (MANY, HALF))) == ROWS // 2 - 2


def test_small_tables_are_asked_by_key_alone(things: Table) -> None:
    small = replace(things, costs=Costs(key_rows=ROWS))
    assert not access_path(small, (FEW,)).by_index
    assert access_path(small, (KEY,)).by_index


def test_what_cannot_be_is_not_looked_for(things: Table) -> None:
    impossible = compared("n", Scalar.I32, Comparator.GREATER, 2**40)
    assert access_path(things, (MANY, impossible)).pushed.where == "false"
    assert select(things, (MANY, impossible)).tolist() == []


@pytest.mark.parametrize(
    ("predicates", "ids"),
    [
        ((KEY,), ["k7"]),
        ((MANY, compared("id", Scalar.STRING, Comparator.EQUAL, "k9")), ["k9"]),
        ((compared("k", Scalar.STRING, Comparator.GREATER, "k7"),), None),
        ((FEW,), None),
        ((compared("n", Scalar.I32, Comparator.EQUAL, 3),), None),
    ],
)
def test_ids_that_a_predicate_names_are_not_read(
    things: Table, predicates: tuple[Comparison, ...], ids: list[str] | None
) -> None:
    known = known_ids(things, predicates, len(select(things, predicates)))
    assert known == ids
