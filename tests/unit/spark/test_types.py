"""Stored columns as Spark shows them."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    YearMonthIntervalType,
)

from spark_omnigraph.errors import BadRequestError, StorageError
from spark_omnigraph.spark.types import (
    arrow_columns,
    arrow_target,
    check_user_schema,
    frame_schema,
    select_columns,
    to_frame,
)
from spark_omnigraph.storage.tables.scan import TableScan, read_batches
from tests.unit.spark.graph_types import LINK, THING, date64, millis, stored_things, things, utc, write_table


def test_frame_of_a_node_type() -> None:
    assert [
        f"{f.name} {f.dataType.simpleString()}{'' if f.nullable else ' not null'}" for f in frame_schema(THING)
    ] == [
        "id string not null",
        "b boolean",
        "blob binary",
        "d date",
        "e string not null",
        "f32 float",
        "f64 double",
        "i32 int",
        "i64 bigint",
        "nums array<int>",
        "s string",
        "times array<timestamp>",
        "ts timestamp",
        "u32 bigint",
        "u64 decimal(20,0)",
        "v array<float>",
    ]


def test_frame_of_an_edge_type() -> None:
    assert frame_schema(LINK).names == ["id", "src", "dst", "since"]


def test_every_value_survives(tmp_path: Path) -> None:
    frame = frame_schema(THING)
    target = arrow_target(frame)
    pinned = write_table(tmp_path / "t", stored_things())
    (batch,) = [to_frame(b, target) for b in read_batches(TableScan(pinned, tuple(frame.names)))]
    assert batch.schema.equals(target)
    shown, stored = batch.to_pydict(), things()
    for name in frame.names:
        expected = [None] * 6 if name == "blob" else stored[name]
        if name == "u64":
            expected = [None if v is None else Decimal(v) for v in expected]
        assert shown[name] == expected, name


def test_a_time_beyond_what_spark_can_hold_is_named() -> None:
    far = pa.record_batch([pa.array([2**62], pa.int64()).view(pa.date64())], names=["ts"])
    with pytest.raises(StorageError, match="column 'ts' holds a value that Spark cannot show"):
        to_frame(far, pa.schema([pa.field("ts", pa.timestamp("us", "UTC"))]))


def test_times_of_day_are_kept() -> None:
    moment = utc(1969, 12, 31, 23, 59, 59, 999000)
    batch = pa.record_batch([date64([moment])], names=["ts"])
    shown = to_frame(batch, pa.schema([pa.field("ts", pa.timestamp("us", "UTC"))]))
    assert shown.column(0).cast(pa.int64()).to_pylist() == [millis(moment) * 1000]


def test_columns_are_selected_in_order() -> None:
    assert select_columns(frame_schema(LINK), ("dst", "id"), "'Link'").names == ["dst", "id"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [((), "name at least one"), (("nope",), "'Link' has no column 'nope'"), (("id", "id"), "asked for twice")],
)
def test_columns_that_do_not_fit(columns: tuple[str, ...], message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        select_columns(frame_schema(LINK), columns, "'Link'")


def test_a_schema_of_the_user_may_drop_reorder_and_loosen() -> None:
    asked = StructType([StructField("v", ArrayType(FloatType())), StructField("id", StringType())])
    check_user_schema(frame_schema(THING), asked, "'Thing'")


WIDE: dict[str, DataType] = {
    "i32": LongType(),
    "i64": DecimalType(20, 1),
    "u32": DecimalType(19, 0),
    "u64": DecimalType(38, 2),
    "f32": DoubleType(),
    "nums": ArrayType(DoubleType()),
    "v": ArrayType(DoubleType()),
}


def test_a_schema_of_the_user_may_widen(tmp_path: Path) -> None:
    """Every value is the same number in the wider type."""
    asked = StructType([StructField(name, kind) for name, kind in WIDE.items()])
    check_user_schema(frame_schema(THING), asked, "'Thing'")
    pinned, target = write_table(tmp_path / "t", stored_things()), arrow_target(asked)
    (batch,) = [to_frame(b, target) for b in read_batches(TableScan(pinned, tuple(asked.names)))]
    assert batch.schema.equals(target)
    stored = things()
    assert batch.to_pydict() == {name: stored[name] for name in asked.names}


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (StructField("i64", IntegerType()), "column 'i64' of 'Thing' is bigint, the schema given asks for int: give"),
        (StructField("i64", DoubleType()), "'i64' of 'Thing' is bigint, the schema given asks for double"),
        (StructField("u64", LongType()), "'u64' of 'Thing' is decimal\\(20,0\\), the schema given asks for bigint"),
        (StructField("u64", DecimalType(21, 2)), r"asks for decimal\(21,2\)"),
        (StructField("i32", DecimalType(10, 1)), r"asks for decimal\(10,1\)"),
        (StructField("f64", FloatType()), "asks for float"),
        (StructField("f64", DecimalType(38, 10)), "asks for decimal"),
        (StructField("i32", StringType()), "asks for string"),
        (StructField("ts", DateType()), "asks for date"),
        (StructField("nope", LongType()), "has no column 'nope'"),
        (StructField("i32", IntegerType(), nullable=False), "may be null, the schema given says NOT NULL"),
        (StructField("v", ArrayType(FloatType(), containsNull=False)), "is array<float>"),
        (StructField("v", ArrayType(IntegerType())), "asks for array<int>"),
    ],
)
def test_a_schema_of_the_user_must_hold_the_graphs_values(field: StructField, message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        check_user_schema(frame_schema(THING), StructType([field]), "'Thing'")


@pytest.mark.parametrize(
    ("of", "shown"),
    [
        (YearMonthIntervalType(), "interval year to month"),
        (ArrayType(NullType(), containsNull=False), "array<void>"),
        (MapType(NullType(), NullType()), "map<void,void>"),
        (StructType([StructField("a", CalendarIntervalType())]), "struct<a:interval>"),
    ],
)
def test_a_column_that_arrow_cannot_carry_is_named(of: DataType, shown: str) -> None:
    frame = StructType([StructField("k", StringType()), StructField("n", of)])
    with pytest.raises(BadRequestError, match=rf"column 'n' is {re.escape(shown)}, which Arrow cannot carry"):
        arrow_columns(frame)
