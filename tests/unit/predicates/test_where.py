"""Conditions from Python values keep exactly the rows that Spark's own filters would."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_omnigraph.catalog.types import NodeType, Scalar
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.predicates.where import Term, parse_where, where_json, where_sql
from spark_omnigraph.storage.tables.scan import PinnedTable, TableScan, check_filter, read_batches
from tests.unit.spark.graph_types import LINK, MOMENTS, THING, prop, stored_things, things, utc, write_table

OPERATORS: dict[str, Callable[[object, object], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
    "starts with": lambda a, b: a.startswith(b),
    "ends with": lambda a, b: a.endswith(b),
    "contains": lambda a, b: b in a,
}
COMPARISONS = ["=", "!=", "<", "<=", ">", ">="]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> PinnedTable:
    return write_table(tmp_path_factory.mktemp("things") / "t", stored_things())


def kept(table: PinnedTable, *terms: tuple[object, ...]) -> list[int]:
    where = where_sql(parse_where(where_json(terms)), THING)
    if where is not None:
        check_filter(table, where)
    ids = things()["id"]
    found = [i for batch in read_batches(TableScan(table, ("id",), where)) for i in batch.column(0).to_pylist()]
    return [ids.index(i) for i in found]


def expected(column: str, operator: str, value: object) -> list[int]:
    test = OPERATORS[operator]
    stored = things()[column]
    return [i for i, v in enumerate(stored) if v is not None and test(_ordered(v), _ordered(value))]


def _ordered(value: object) -> object:
    """Strings compare by their UTF-8 bytes in Lance and in Spark."""
    if isinstance(value, str):
        return value.encode()
    return [v.encode() if isinstance(v, str) else v for v in value] if isinstance(value, list) else value


def near(column: str) -> st.SearchStrategy[object]:
    """Stored values and their neighbours."""
    stored = [v for v in things()[column] if v is not None]
    if column in ("id", "s"):
        return st.sampled_from(stored) | st.text(max_size=4) | st.sampled_from(["'", "''", "\\'", "--", "`", ";"])
    if column in ("f32", "f64"):
        return st.sampled_from(stored) | st.floats(allow_nan=False)
    if column == "d":
        return st.sampled_from(stored) | st.dates()
    if column == "ts":
        zones = st.sampled_from([timezone.utc, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))])
        moments = st.sampled_from(MOMENTS[:2]).flatmap(lambda m: st.integers(-1500, 1500).map(lambda n: _shift(m, n)))
        return st.builds(lambda m, z: m.astimezone(z), moments, zones) | st.sampled_from(stored)
    ranges = {"i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1), "u32": (0, 2**32 - 1), "u64": (0, 2**64 - 1)}
    return st.sampled_from(stored) | st.integers(*ranges[column])


def _shift(moment: datetime | None, micros: int) -> datetime:
    assert moment is not None
    return moment + timedelta(microseconds=micros)


COLUMNS = ["id", "s", "d", "ts", "f32", "f64", "i32", "i64", "u32", "u64"]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_comparisons_are_exact(table: PinnedTable, data: st.DataObject) -> None:
    column = data.draw(st.sampled_from(COLUMNS))
    operator = data.draw(st.sampled_from([*COMPARISONS, "in", "not in"]))
    values = near(column)
    value = data.draw(st.lists(values, max_size=3) if operator.endswith("in") else values)
    if operator == "not in" and value == []:
        assert kept(table, (column, operator, value)) == list(range(6))
    else:
        assert kept(table, (column, operator, value)) == expected(column, operator, value)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> PinnedTable:
    """The same rows in two fragments, of which only the first is in the indexes that all columns have, of the
    kinds that a graph has.
    """
    root = tmp_path_factory.mktemp("things") / "indexed"
    rows = stored_things()
    write_table(root, rows.slice(0, 4))
    dataset = lance.dataset(str(root))
    for column in (*COLUMNS, "b"):
        dataset.create_scalar_index(column, "INVERTED" if column == "s" else "BTREE")
    written = lance.write_dataset(rows.slice(4), str(root), mode="append")
    return PinnedTable(str(root), written.version)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_an_index_changes_no_answer(indexed: PinnedTable, data: st.DataObject) -> None:
    column = data.draw(st.sampled_from(COLUMNS))
    texts = ["starts with", "ends with", "contains"] if column in ("id", "s") else []
    operator = data.draw(st.sampled_from([*COMPARISONS, "in", "not in", *texts]))
    values = near(column)
    value = data.draw(st.lists(values, min_size=1, max_size=3) if operator in ("in", "not in") else values)
    assert sorted(kept(indexed, (column, operator, value))) == expected(column, operator, value)
    missing = [i for i, v in enumerate(things()[column]) if v is None]
    assert sorted(kept(indexed, (column, "is null"))) == missing


_NAMES = [
    "select",
    "order",
    "null",
    "true",
    "not",
    "in",
    "date",
    "timestamp",
    "name",
    "nAme",
    "_x",
    "x9",
    "__",
    "a" * 200,
]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(_NAMES), st.sampled_from(COMPARISONS), st.integers(0, 4)), min_size=1, max_size=3
    )
)
def test_columns_of_any_spelling(tmp_path_factory: pytest.TempPathFactory, terms: list[tuple[str, str, int]]) -> None:
    entity = NodeType("Odd", 1, tuple(prop(name, Scalar.I32) for name in sorted(_NAMES)))
    rows = {name: [(n + place) % 5 if (n + place) % 6 else None for n in range(9)] for place, name in enumerate(_NAMES)}
    stored = pa.table({"id": [str(n) for n in range(9)], **{n: pa.array(rows[n], pa.int32()) for n in sorted(rows)}})
    table = write_table(tmp_path_factory.mktemp("odd") / "t", stored)
    where = where_sql(parse_where(where_json(terms)), entity)
    assert where is not None
    check_filter(table, where)
    found = [int(i) for batch in read_batches(TableScan(table, ("id",), where)) for i in batch.column(0).to_pylist()]

    def holds(n: int, term: tuple[str, str, int]) -> bool:
        value = rows[term[0]][n]
        return value is not None and OPERATORS[term[1]](value, term[2])

    assert found == [n for n in range(9) if all(holds(n, term) for term in terms)]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["starts with", "ends_with", "contains"]), near("s"))
def test_texts_are_matched_literally(table: PinnedTable, operator: str, value: object) -> None:
    assert kept(table, ("s", operator, value)) == expected("s", operator.replace("_", " "), value)


def test_null_tests_and_conjunction(table: PinnedTable) -> None:
    assert kept(table, ("s", "is null")) == [4]
    assert kept(table, ("v", "IS NOT NULL", None)) == [0, 1, 3, 4, 5]
    assert kept(table, ("i32", ">", -5), ("b", "=", True)) == [0, 2]
    assert kept(table) == list(range(6))


def test_lists_contain(table: PinnedTable) -> None:
    assert kept(table, ("nums", "contains", 4)) == [4]
    assert kept(table, ("nums", "contains", 9)) == []
    assert kept(table, ("times", "contains", MOMENTS[2])) == [3]
    assert kept(table, ("times", "contains", MOMENTS[2] + timedelta(microseconds=1))) == []


def test_an_empty_in_list_keeps_nothing(table: PinnedTable) -> None:
    assert kept(table, ("i32", "in", [])) == []


def test_decimals_reach_the_whole_range_of_u64(table: PinnedTable) -> None:
    assert kept(table, ("u64", "=", Decimal(2**64 - 1))) == [4]


def test_infinities(table: PinnedTable) -> None:
    assert kept(table, ("f32", "=", math.inf)) == [3]
    assert kept(table, ("f64", "<=", -math.inf)) == [4]


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (("nope", "=", 1), "'Thing' has no column 'nope'"),
        (("i32", "~", 1), "unknown operator '~' on 'i32'"),
        (("i32", "=", None), "use 'is null'"),
        (("i32", "is null", 5), "takes no value"),
        (("i32", "in", 5), "takes a list"),
        (("i32", "in", [1, None]), "none of them null"),
        (("i32", "=", 2**31), "out of range for 'i32' of type I32"),
        (("u64", ">", -1), "out of range"),
        (("i32", "=", 1.5), "cannot be compared with 'i32'"),
        (("i32", "=", True), "cannot be compared with 'i32'"),
        (("i32", "=", "five"), "cannot be compared with 'i32'"),
        (("s", "=", 5), "cannot be compared with 's'"),
        (("b", "<", True), "does not apply to the Bool column"),
        (("b", "=", 1), "cannot be compared with 'b'"),
        (("f64", "=", math.nan), "NaN cannot be compared"),
        (("f64", "=", 2**53 + 1), "cannot be compared exactly"),
        (("f64", "=", 10**399), "cannot be compared exactly"),
        (("i64", "in", [10**5000]), "'i64' has too many digits"),
        (("d", "=", "tomorrow"), "cannot be compared with 'd'"),
        (("d", "=", "2020-W01-3"), "cannot be compared with 'd'"),
        (("d", "=", "2020-01-01T00:00:00Z"), "cannot be compared with 'd'"),
        (("ts", "=", "20200101T000000Z"), "cannot be compared with 'ts'"),
        (("ts", "=", datetime(2020, 1, 1)), "has no zone"),  # noqa: DTZ001 - the point of the case
        (("ts", "=", "2020-01-01"), "has no zone"),
        (("ts", "=", date(2020, 1, 1)), "has no zone"),
        (("blob", "is null"), "blobs cannot be filtered"),
        (("v", "=", [1.0]), "is a Vector"),
        (("nums", "=", [1]), "is a list"),
        (("i32", "starts with", "1"), "needs a String or list column"),
        (("i32", "=", object()), "a value of type object"),
        (("i32",), "a condition is (column, operator, value)"),
        ("i32", "a condition is (column, operator, value)"),
    ],
)
def test_what_cannot_be_meant_is_refused(term: tuple[object, ...], message: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        where_sql(parse_where(where_json([term])), THING)
    assert message in caught.value.message


@pytest.mark.parametrize(("text", "message"), [("{", "is not JSON"), ('{"a": 1}', "must be a JSON list")])
def test_malformed_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        parse_where(text)


def test_edges_have_endpoints_to_filter_on() -> None:
    assert where_sql((Term("src", "=", "a"),), LINK) == "(`src` = 'a')"
    with pytest.raises(BadRequestError, match="no column 'src'"):
        where_sql((Term("src", "=", "a"),), THING)


def test_dates_are_read_as_a_load_reads_them() -> None:
    texts = ("2020-01-01", "2020-1-1", "20200101")
    assert {where_sql((Term("d", "=", text),), THING) for text in texts} == {"(`d` = arrow_cast(18262, 'Date32'))"}


def test_instants_keep_every_digit() -> None:
    finer = "2020-01-01T12:00:00.000000001Z"
    assert where_sql((Term("ts", ">=", finer),), THING) == "(`ts` >= arrow_cast(1577880000001, 'Date64'))"
    assert where_sql((Term("ts", "=", finer),), THING) == "(false)"


def test_instants_keep_their_zone() -> None:
    noon = utc(2020, 1, 1, 12)
    assert where_sql(parse_where(where_json([("ts", "<", noon.astimezone(timezone(timedelta(hours=2))))])), THING) == (
        "(`ts` < arrow_cast(1577880000000, 'Date64'))"
    )


def test_a_table_path_may_have_any_name(tmp_path: Path) -> None:
    assert kept(write_table(tmp_path / "it's a `table`", stored_things()), ("b", "=", False)) == [1, 3]
