"""Predicates in Lance SQL: misreadings refused, instants exact in all years."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_omnigraph.catalog.types import NodeType, Scalar
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.predicates.user_filter import filter_sql
from spark_omnigraph.predicates.where import Term
from spark_omnigraph.storage.tables.scan import PinnedTable, TableScan, check_filter, read_batches
from tests.unit.spark.graph_types import THING, prop, stored_things, things, utc, write_table

NOW = utc(2020, 1, 1, 5)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> PinnedTable:
    return write_table(tmp_path_factory.mktemp("things") / "t", stored_things())


def kept(table: PinnedTable, text: str | None, *terms: Term) -> list[int]:
    where = filter_sql(text, terms, THING, NOW)
    if where is not None:
        check_filter(table, where)
    ids = things()["id"]
    found = [i for batch in read_batches(TableScan(table, ("id",), where)) for i in batch.column(0).to_pylist()]
    return [ids.index(i) for i in found]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("i32 > 0", [1, 2]),
        ("s = 'it''s'", [0]),
        ("s = 'x; y' OR s = '-- no'", [1, 2]),
        ('s = "it\'s"', [0]),
        ("`id` = '' or I32 is null", [5]),
        ("ts = timestamp '2020-01-01 05:00:00'", [0]),
        ("ts > TIMESTAMP  '2020-01-01T05:00:00Z'", [1, 3]),
        ("ts > timestamp '2020-01-01 07:00:00+02:00'", [1, 3]),
        ("ts >= timestamp '9999-12-31 23:59:59.999'", [3]),
        ("ts < timestamp '0001-01-02'", [2]),
        ("ts between timestamp '1960-01-01' and timestamp '2020-01-01 05:00:00.000000000'", [0, 4]),
        ("ts <= now()", [0, 2, 4]),
        ("ts = current_timestamp AND b", [0]),
        ("ts = current_timestamp ( ) AND b", [0]),
        ("ts > date '2020-01-01'", [0, 1, 3]),
        ("d = date '1582-10-04'", [2]),
        ("u64 = 18446744073709551615", [4]),
        ("array_has(nums, 4)", [4]),
    ],
)
def test_predicates(table: PinnedTable, text: str, rows: list[int]) -> None:
    assert kept(table, text) == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  ", "the filter is empty"),
        ("i32 > 0; i32 < 5", "';' does not belong"),
        ("i32 > 0 -- and more", "comments do not belong"),
        ("i32 > /* five */ 5", "comments do not belong"),
        ("s = 'it's'", "unclosed '"),
        ('"i32" = 5', "write the column as `i32`"),
        ("blob is null", "blobs cannot be filtered"),
        ("`blob` is null", "blobs cannot be filtered"),
        ("ts > timestamp 'yesterday'", "is not a time"),
        ("ts > timestamp '2020-13-01'", "is not a time"),
        ("ts > timestamp '2020-01-01 05:00:00.0001'", "finer than a millisecond"),
        ("agee > 3", "No field named agee"),
        ("i32 >", "filter is not valid"),
        ("i32 = 'x'", "filter is not valid"),
        ("i32 + 1", "does not return a boolean"),
        ("id in (select id from t)", "filter is not valid"),
        ("count(*) > 1", "filter is not valid"),
    ],
)
def test_misreadings_are_refused(table: PinnedTable, text: str, message: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        kept(table, text)
    assert message in caught.value.message
    assert ".rs:" not in caught.value.message


_NAMES = ["null", "tRue", "false", "current_date", "current_time", "current_timestamp", "date", "now", "name", "nAme"]
ODD = NodeType("Odd", 1, tuple(prop(name, Scalar.I32) for name in sorted(_NAMES)))
_ROWS = {name: [(n + place) % 5 if (n + place) % 6 else None for n in range(7)] for place, name in enumerate(_NAMES)}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> PinnedTable:
    columns = {name: pa.array(_ROWS[name], pa.int32()) for name in sorted(_NAMES)}
    stored = pa.table({"id": [str(n) for n in range(7)], **columns})
    return write_table(tmp_path_factory.mktemp("odd") / "t", stored)


def odd_rows(odd: PinnedTable, text: str) -> list[int]:
    where = filter_sql(text, (), ODD, NOW)
    assert where is not None
    check_filter(odd, where)
    return [int(i) for batch in read_batches(TableScan(odd, ("id",), where)) for i in batch.column(0).to_pylist()]


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("form", ["{} = 3", "3 = {}", "{} is null", "not ({} = 3)", "{} in (1, 2) or id = '1'"])
def test_a_word_that_is_a_value_and_a_column_is_never_the_value(odd: PinnedTable, name: str, form: str) -> None:
    quoted = odd_rows(odd, form.format(f"`{name}`"))
    is_value = name.lower() not in ("date", "now", "name")
    if is_value:
        with pytest.raises(BadRequestError, match=f"write the column as `{name}`"):
            odd_rows(odd, form.format(name))
    else:
        assert odd_rows(odd, form.format(name)) == quoted
    if form == "{} = 3":
        assert quoted == [n for n, value in enumerate(_ROWS[name]) if value == 3]


def test_values_are_values_after_is(odd: PinnedTable) -> None:
    assert odd_rows(odd, "`date` is null") == [n for n, value in enumerate(_ROWS["date"]) if value is None]
    assert odd_rows(odd, "`null` IS NOT NULL") == [n for n, value in enumerate(_ROWS["null"]) if value is not None]
    assert odd_rows(odd, "(`null` = 3) is true") == [n for n, value in enumerate(_ROWS["null"]) if value == 3]
    with pytest.raises(BadRequestError, match=r"after IS: `b IS true`"):
        odd_rows(odd, "(`null` = 3) = true")


def test_a_name_in_another_case_is_refused_when_two_columns_have_it(odd: PinnedTable) -> None:
    assert odd_rows(odd, "nAme = 3") == odd_rows(odd, "`nAme` = 3") != odd_rows(odd, "name = 3")
    with pytest.raises(BadRequestError, match="'NAME' may be one of several columns; write `nAme` or `name`"):
        odd_rows(odd, "NAME = 3")


def test_a_predicate_that_fails_on_a_value_is_the_callers_error(table: PinnedTable) -> None:
    with pytest.raises(BadRequestError, match="filter fails on a stored value"):
        kept(table, "1 / i32 > 0")


def test_text_and_conditions_must_both_hold(table: PinnedTable) -> None:
    assert kept(table, "b or i32 = 1", Term("i32", ">", 0)) == [1, 2]
    assert kept(table, None) == list(range(6))
