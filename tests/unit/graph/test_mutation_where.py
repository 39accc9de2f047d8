"""The predicate of a mutation means the same to Lance, to rows in memory, and by the book: comparison by value."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from spark_omnigraph.catalog.types import Key, NodeType, Property, PropType, Scalar
from spark_omnigraph.graph.mutate.condition import condition, mask
from spark_omnigraph.lang.gq.plan import Column, Comparator, Comparison, Constant, Value
from spark_omnigraph.records.columns import python_column

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # orders of numbers and texts, as the test gives them  # fmt: skip
F32 = [float(np.float32(x)) for x in (-1.5, -0.1, 0.0, 0.1, 1e30, 16777216.0)]
STORED: dict[Scalar, list[Value]] = {
    Scalar.I32: [-(2**31), -1, 0, 1, 2, 2**31 - 1],
    Scalar.I64: [-(2**63), -(2**53) - 1, 0, 2**53, 2**53 + 1, 2**63 - 1],
    Scalar.U32: [0, 1, 2**32 - 1],
    Scalar.U64: [0, 1, 2**53 + 1, 2**64 - 1],
    Scalar.F32: list(F32),
    Scalar.F64: [-1.5, -0.1, 0.0, 0.1, 1e300, float(2**53)],
    Scalar.DATE: [-800000, -1, 0, 19724],
    Scalar.DATETIME: [-(10**14), -1, 0, 1704067200000, 1704067200001],
    Scalar.STRING: ["", "a", "a'b", "b", "é", "z\U0001f600"],
    Scalar.BOOL: [False, True],
}
NUMBERS: list[Value] = [
    0, 1, -1, 2, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 0.5, 1.5, -0.1, 0.1, 1e30, 1e300, -1e300,
    *F32, float("inf"), float("-inf"),
]  # laid out as a table  # fmt: skip
ASKED: dict[Scalar, list[Value]] = {
    **dict.fromkeys(STORED, NUMBERS),
    Scalar.DATE: STORED[Scalar.DATE],
    Scalar.DATETIME: STORED[Scalar.DATETIME],
    Scalar.STRING: ["", "a", "a'b", "á", "zz"],
    Scalar.BOOL: [False, True],
}


def by_the_book(operator: str, stored: Value, asked: Value) -> bool:
    if isinstance(stored, str):
        assert isinstance(asked, str)
        return OPERATORS[operator](stored.encode(), asked.encode())
    if isinstance(asked, float) and asked in (float("inf"), float("-inf")):
        return OPERATORS[operator](0, asked)
    assert not isinstance(stored, tuple)
    assert not isinstance(asked, tuple | str)
    return OPERATORS[operator](Fraction(stored or 0), Fraction(asked or 0))


def rounded(asked: Value) -> Value:
    """A fraction meets F32 values as the F32 next to it, as in queries: what was stored as 0.1 is found by 0.1."""
    with np.errstate(over="ignore"):
        single = float(np.float32(asked)) if isinstance(asked, float) else asked
    return asked if single in (float("inf"), float("-inf")) else single


@pytest.mark.parametrize("indexed", [False, True], ids=["scan", "index"])
@pytest.mark.parametrize("scalar", STORED, ids=str)
def test_every_comparison(tmp_path: Path, scalar: Scalar, indexed: bool) -> None:
    values = STORED[scalar]
    of = PropType(scalar, nullable=True)
    ids = [str(i) for i in range(len(values) + 1)]
    rows = pa.table({"id": ids, "p": python_column(of, [*values, None])})
    table = lance.write_dataset(rows, tmp_path / "t", data_storage_version="2.2")
    if indexed:
        table.create_scalar_index("p", "BTREE")
    entity = NodeType("T", 1, (Property("p", 1, of),))
    for asked in ASKED[scalar]:
        for operator in OPERATORS:
            found = condition(entity, Comparison(Comparator(operator), Column("", "p", of), Constant(asked, of)))
            meant = rounded(asked) if scalar is Scalar.F32 else asked
            expected = [i for i, stored in zip(ids, values, strict=False) if by_the_book(operator, stored, meant)]
            shown = f"p {operator} {asked!r}: {found.sql}"
            assert sorted(table.to_table(filter=found.sql, columns=["id"])["id"].to_pylist()) == expected, shown
            assert rows.filter(mask(found, rows))["id"].to_pylist() == expected, shown


def test_null_never_matches() -> None:
    of = PropType(Scalar.I32, nullable=True)
    entity = NodeType("T", 1, (Property("p", 1, of),))
    rows = pa.table({"p": pa.array([1, None], pa.int32())})
    for operator in OPERATORS:
        found = condition(entity, Comparison(Comparator(operator), Column("", "p", of), Constant(None, of)))
        assert found.is_empty
        assert found.sql == "false"
        assert not any(mask(found, rows).to_pylist())


def test_a_text_key_is_looked_up_by_id() -> None:
    of = PropType(Scalar.STRING)
    entity = NodeType("T", 1, (Property("p", 1, of), Property("q", 2, of)), (Key(("p",)),))

    def column(name: str) -> str:
        comparison = Comparison(Comparator.LESS, Column("", name, of), Constant("x", of))
        return condition(entity, comparison).column

    assert (column("p"), column("q")) == ("id", "q")


def test_random_numbers_agree(tmp_path: Path) -> None:
    seed = 20240317
    source = random.Random(seed)
    stored = [source.choice([-1, 1]) * source.getrandbits(source.randrange(1, 62)) for _ in range(300)]
    of = PropType(Scalar.I64)
    rows = pa.table({"id": [str(i) for i in range(300)], "p": pa.array(stored, pa.int64())})
    table = lance.write_dataset(rows, tmp_path / "t", data_storage_version="2.2")
    entity = NodeType("T", 1, (Property("p", 1, of),))
    for _ in range(120):
        asked = source.choice(stored) + source.choice([0, 0.5, -0.5, 1, float(2**40)])
        operator = source.choice(list(OPERATORS))
        found = condition(entity, Comparison(Comparator(operator), Column("", "p", of), Constant(asked, of)))
        expected = sum(by_the_book(operator, value, asked) for value in stored)
        assert table.count_rows(filter=found.sql) == expected, (seed, operator, asked)
