from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.catalog.types import Range
from spark_omnigraph.errors import ConstraintError
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.validate.batch import LONGEST_ID, BatchChecker, RowViolation, number_text

CATALOG = compile_schema(
    """
    node Acct {
        login: String @key
        age: I32?  load: F64?  narrow: F32?  big: U64?
        slug: String?  plan: enum(paid, free)?
        @range(age, 0..120)
        @range(load, -1.5..)
        @range(narrow, -1..0.1)
        @range(big, 0..9223372036854775807)
        @check(slug, "^[a-z]+(-[a-z]+)*$")
        @check(slug, "a")
    }
    node Plain { must: String  blob: Blob  vec: Vector(2)  list: [I32] }
    node Broken { k: String @key  v: String?  @check(v, "[0-") }
    edge Joins: Acct -> Acct { role: enum(ops, dev)  since: I32? }
    """
)
ACCT = BatchChecker(CATALOG.nodes["Acct"])
TYPES = {
    "login": pa.string(),
    "age": pa.int32(),
    "load": pa.float64(),
    "narrow": pa.float32(),
    "big": pa.uint64(),
    "slug": pa.string(),
    "plan": pa.string(),
}


def accounts(**columns: list[object]) -> pa.Table:
    count = max(len(values) for values in columns.values())
    filled: dict[str, list[object]] = {name: [None] * count for name in TYPES}
    filled |= {"login": ["x"] * count, **columns}
    return pa.table({name: pa.array(values, TYPES[name]) for name, values in filled.items()})


def messages(**columns: list[object]) -> list[tuple[int, str | None, Rule, str]]:
    return [(v.row, v.field, v.rule, v.message) for v in ACCT.check(accounts(**columns))]


def test_ranges_are_inclusive_and_null_is_exempt() -> None:
    assert messages(age=[0, 120, None], load=[-1.5, 1e300, None]) == []


def test_range_violations() -> None:
    assert messages(age=[-1, 5, 121], load=[None, -1.75, None]) == [
        (0, "age", Rule.RANGE, "@range violation on Acct.age: value -1 < min 0"),
        (1, "load", Rule.RANGE, "@range violation on Acct.load: value -1.75 < min -1.5"),
        (2, "age", Rule.RANGE, "@range violation on Acct.age: value 121 > max 120"),
    ]


def test_nan_is_in_no_range() -> None:
    assert messages(load=[float("nan"), 1.0]) == [
        (0, "load", Rule.RANGE, "@range violation on Acct.load: value is NaN")
    ]
    assert messages(load=[float("inf"), -float("inf")]) == [
        (1, "load", Rule.RANGE, "@range violation on Acct.load: value -inf < min -1.5")
    ]


def test_narrow_floats_are_compared_as_stored() -> None:
    assert messages(narrow=[0.1, 0.099]) == [
        (0, "narrow", Rule.RANGE, "@range violation on Acct.narrow: value 0.10000000149011612 > max 0.1")
    ]


def test_large_integers_are_compared_exactly() -> None:
    assert messages(big=[2**63 - 1, 2**63]) == [
        (1, "big", Rule.RANGE, "@range violation on Acct.big: value 9223372036854775808 > max 9223372036854775807")
    ]


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64()])
@pytest.mark.parametrize(
    "bounds",
    [
        (0, 120),
        (-1.5, None),
        (None, 2.5),
        (0.1, 0.1),
        (2**53 + 1, None),
        (None, 2**53 + 1),
        (-(2**63), 2**63 - 1),
        (2**64, None),
        (None, -(2**64)),
        (1e300, None),
        (None, 1e300),
        (-1, -1),
        (2**63, None),
        (None, 2**64 - 1),
    ],
)
def test_ranges_are_compared_as_numbers_are_whatever_their_kinds(
    kind: pa.DataType, bounds: tuple[float | None, float | None]
) -> None:
    edges = [0, 1, 2, 3, 120, 121, -1, -2, 2**31 - 1, 2**53, 2**53 + 2, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)]
    if pa.types.is_floating(kind):
        values = pa.array([*map(float, edges), 0.1, -1.5, 2.5, float("inf"), float("nan"), None]).cast(kind)
    else:
        limits = np.iinfo(kind.to_pandas_dtype())
        values = pa.array([each for each in edges if limits.min <= each <= limits.max] + [None], kind)
    low, high = bounds
    outside = [
        row
        for row, value in enumerate(values.to_pylist())
        if value is not None
        and not ((low is None or value >= low) and (high is None or value <= high) and value == value)
    ]
    node = compile_schema("node T { n: F64? }").nodes["T"]
    checker = BatchChecker(replace(node, constraints=(Range("n", *bounds),)))
    assert [each.row for each in checker.check(pa.table({"n": values}))] == outside


def test_check_violations() -> None:
    assert messages(slug=["ab-cd", "Not_ok", None, "b"]) == [
        (
            1,
            "slug",
            Rule.CHECK,
            "@check violation on Acct.slug: value 'Not_ok' does not match pattern '^[a-z]+(-[a-z]+)*$'",
        ),
        (1, "slug", Rule.CHECK, "@check violation on Acct.slug: value 'Not_ok' does not match pattern 'a'"),
        (3, "slug", Rule.CHECK, "@check violation on Acct.slug: value 'b' does not match pattern 'a'"),
    ]


def test_enum_violations() -> None:
    assert messages(plan=["free", "gold", None, "paid", "Paid", ""]) == [
        (row, "plan", Rule.ENUM, f"invalid enum value '{value}' for Acct.plan (expected: free, paid)")
        for row, value in ((1, "gold"), (4, "Paid"), (5, ""))
    ]


def test_a_row_is_named_with_all_rules_range_then_check_then_enum() -> None:
    found = messages(age=[-1, 1, 1], slug=["A", "A", "a"], plan=["x", "x", "x"])
    assert [(row, rule) for row, _, rule, _ in found] == [
        (0, Rule.RANGE),
        (0, Rule.CHECK),
        (0, Rule.CHECK),
        (0, Rule.ENUM),
        (1, Rule.CHECK),
        (1, Rule.CHECK),
        (1, Rule.ENUM),
        (2, Rule.ENUM),
    ]


def test_chunked_columns() -> None:
    table = pa.concat_tables([accounts(age=[1, 2]), accounts(age=[-1]), accounts(age=[3, -2], plan=["gold", None])])
    assert [(v.row, v.rule) for v in ACCT.check(table)] == [(2, Rule.RANGE), (3, Rule.ENUM), (4, Rule.RANGE)]


def test_empty_tables() -> None:
    assert ACCT.check(accounts(age=[])) == []


def test_edges_have_enums_checked() -> None:
    checker = BatchChecker(CATALOG.edges["Joins"])
    table = pa.table({"role": ["dev", "cto"], "since": pa.array([1, None], pa.int32())})
    assert checker.check(table) == [
        RowViolation(1, "role", Rule.ENUM, "invalid enum value 'cto' for Joins.role (expected: dev, ops)")
    ]


def test_required_columns() -> None:
    table = pa.table(
        {
            "must": ["x", None, "y", "z"],
            "blob": pa.array([{"data": b"", "uri": None}, None, None, {"data": b"", "uri": None}]),
            "vec": pa.array([[1, 2], None, [1, 2], None], pa.list_(pa.float32(), 2)),
            "list": pa.array([[], None, [], []], pa.list_(pa.int32())),
        }
    )
    assert [(v.row, v.field, v.rule, v.message) for v in BatchChecker(CATALOG.nodes["Plain"]).check(table)] == [
        (1, "blob", Rule.REQUIRED, "non-nullable blob property 'blob' has null values"),
        (1, "list", Rule.REQUIRED, "non-nullable property 'list' has null or invalid values: it is missing or null"),
        (1, "must", Rule.REQUIRED, "non-nullable property 'must' has null or invalid values: it is missing or null"),
        (1, "vec", Rule.REQUIRED, "non-nullable vector property 'vec' has null values"),
        (2, "blob", Rule.REQUIRED, "non-nullable blob property 'blob' has null values"),
        (3, "vec", Rule.REQUIRED, "non-nullable vector property 'vec' has null values"),
    ]


@pytest.mark.parametrize("values", [[], [None], ["a"]])
def test_an_invalid_pattern_fails_the_first_batch_whatever_it_holds(values: list[object]) -> None:
    checker = BatchChecker(CATALOG.nodes["Broken"])
    table = pa.table({"k": pa.array(["k"] * len(values), pa.string()), "v": pa.array(values, pa.string())})
    with pytest.raises(ConstraintError, match=r"@check on Broken\.v has invalid regex '\[0-'"):
        checker.check(table)


@pytest.mark.parametrize(
    ("value", "text"),
    [(-1.75, "-1.75"), (3.0, "3"), (120, "120"), (1e21, "1000000000000000000000"), (0.1, "0.1"), (-0.5, "-0.5")],
)
def test_numbers_in_messages(value: float, text: str) -> None:
    assert number_text(value) == text


def test_an_id_has_a_bound_in_bytes() -> None:
    longest, longer = "é" * (LONGEST_ID // 2), "é" * (LONGEST_ID // 2) + "x"
    nodes = accounts(login=[longest, longer])
    nodes = nodes.append_column("id", nodes.column("login"))
    message = "the key of Acct has 8193 bytes; ids and keys may have 8192"
    assert ACCT.check(nodes) == [RowViolation(1, "login", Rule.KEY_TOO_LONG, message)]
    ids, ends = ["e", longer, "f", "g"], ["a", "a", longer, "b"]
    edges = pa.table({"id": ids, "src": ends, "dst": ["a", "a", "a", longer], "role": [None] * 4})
    edges = edges.set_column(3, "role", pa.nulls(4, pa.string()))
    found = BatchChecker(CATALOG.edges["Joins"]).check(edges.append_column("since", pa.nulls(4, pa.int32())))
    assert [(v.row, v.field, v.rule) for v in found if v.rule is Rule.KEY_TOO_LONG] == [
        (1, "id", Rule.KEY_TOO_LONG),
        (2, "from", Rule.KEY_TOO_LONG),
        (3, "to", Rule.KEY_TOO_LONG),
    ]
