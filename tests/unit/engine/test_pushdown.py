from __future__ import annotations

import math

import pytest

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.engine.pushdown import Pushed
from spark_omnigraph.lang.gq.plan import Column, Comparator, Comparison, Constant, Value
from tests.support.engine import push


def column(name: str, scalar: Scalar) -> Column:
    return Column("x", name, PropType(scalar, nullable=True))


@pytest.mark.parametrize(
    ("scalar", "comparator", "value", "where"),
    [
        (Scalar.I32, Comparator.EQUAL, 5, "`p` = 5"),
        (Scalar.I32, Comparator.EQUAL, 5.0, "`p` = 5"),
        (Scalar.I32, Comparator.EQUAL, 2.7, "false"),
        (Scalar.I32, Comparator.NOT_EQUAL, 2.7, "`p` IS NOT NULL"),
        (Scalar.I32, Comparator.GREATER_OR_EQUAL, 2.7, "`p` >= 3"),
        (Scalar.I32, Comparator.LESS, -2.7, "`p` <= -3"),
        (Scalar.I32, Comparator.LESS, 3_000_000_000, "`p` IS NOT NULL"),
        (Scalar.I32, Comparator.GREATER, 3_000_000_000, "false"),
        (Scalar.I32, Comparator.GREATER, math.inf, "false"),
        (Scalar.I64, Comparator.EQUAL, -(2**63), "`p` = (-9223372036854775807 - 1)"),
        (Scalar.U64, Comparator.GREATER_OR_EQUAL, 2**63, f"`p` >= {2**63}"),
        (Scalar.U32, Comparator.GREATER, -1, "`p` IS NOT NULL"),
        (Scalar.BOOL, Comparator.LESS, True, "`p` = false"),
        (Scalar.BOOL, Comparator.GREATER, True, "false"),
        (Scalar.DATE, Comparator.EQUAL, 1, "`p` = arrow_cast(1, 'Date32')"),
        (Scalar.DATETIME, Comparator.LESS, -5, "`p` < arrow_cast(-5, 'Date64')"),
        (Scalar.F64, Comparator.LESS, 2, "`p` < 2.0"),
        (Scalar.STRING, Comparator.EQUAL, "it's", "`p` = 'it''s'"),
        (Scalar.STRING, Comparator.HAS_TEXT, "%", "contains(`p`, '%')"),
    ],
)
def test_what_lance_is_asked(scalar: Scalar, comparator: Comparator, value: Value, where: str) -> None:
    constant = Constant(value, PropType(scalar))
    found = push([Comparison(comparator, column("p", scalar), constant)], {"p"})
    assert (found.where, found.rest) == (where, ())


def test_what_lance_cannot_decide_is_asked_again() -> None:
    nan_is_greatest = Comparison(Comparator.GREATER, column("p", Scalar.F64), Constant(1.5, PropType(Scalar.F64)))
    assert push([nan_is_greatest], {"p"}).rest == (nan_is_greatest,)


def test_a_column_that_an_old_version_lacks_is_null() -> None:
    found = push([Comparison(Comparator.NOT_EQUAL, column("p", Scalar.I32), Constant(1, PropType(Scalar.I64)))], {"id"})
    assert found.where == "false"


@pytest.mark.parametrize(
    ("scalar", "comparator", "value", "where"),
    [
        (Scalar.F64, Comparator.EQUAL, 2**53 + 1, "false"),
        (Scalar.F64, Comparator.LESS, 2**53 + 1, "`p` <= 9007199254740992.0"),
        (Scalar.F32, Comparator.LESS, 16_777_216, "`p` < 16777216.0"),
        (Scalar.F32, Comparator.LESS, 16_777_217, "`p` <= 16777216.0"),
        (Scalar.F32, Comparator.LESS, 2**200, "`p` < CAST('inf' AS FLOAT)"),
        (Scalar.F32, Comparator.LESS, 1e300, "`p` < CAST('inf' AS FLOAT)"),
        (Scalar.F64, Comparator.LESS_OR_EQUAL, -(2**1100), "`p` <= CAST('-inf' AS DOUBLE)"),
    ],
)
def test_numbers_that_a_float_column_cannot_hold(
    scalar: Scalar, comparator: Comparator, value: Value, where: str
) -> None:
    predicate = Comparison(comparator, column("p", scalar), Constant(value, PropType(Scalar.I64)))
    assert push([predicate], {"p"}) == Pushed(where, ())


@pytest.mark.parametrize(
    ("scalar", "items", "where"),
    [
        (Scalar.STRING, ("a", "it's"), "`p` IN ('a', 'it''s')"),
        (Scalar.I32, (1, 3_000_000_000, -5), "`p` IN (1, -5)"),
        (Scalar.I32, (3_000_000_000,), "false"),
        (Scalar.DATE, (3,), "`p` IN (arrow_cast(3, 'Date32'))"),
        (Scalar.I64, (), "false"),
        (Scalar.F64, (1.5,), None),
    ],
)
def test_a_value_among_constants(scalar: Scalar, items: tuple[Value, ...], where: str | None) -> None:
    among = Constant(items, PropType(scalar, is_list=True))  # values of any type
    predicate = Comparison(Comparator.HAS_ITEM, among, column("p", scalar))
    assert push([predicate], {"p"}) == Pushed(where, () if where else (predicate,))


def test_the_key_is_looked_up_by_id() -> None:
    predicate = Comparison(Comparator.EQUAL, column("name", Scalar.STRING), Constant("a", PropType(Scalar.STRING)))
    assert push([predicate], {"id", "name"}, "name").where == "`id` = 'a'"
