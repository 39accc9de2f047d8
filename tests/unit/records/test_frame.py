"""Frames: columns that do not fit, and rows that become what the same record in a file becomes."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.records.frames.decode import FrameDecoder, plan_frame
from spark_omnigraph.records.jsonl.decode import DecodedChunk
from spark_omnigraph.records.mode import DecodeOptions
from spark_omnigraph.records.record_text import plain_values

CATALOG = compile_schema("""
node Thing {
  name: String @key
  b: Blob?
  d: Date?
  f32: F32?
  f64: F64?
  i32: I32?
  ts: DateTime?
  times: [DateTime]?
  u32: U32?
  u64: U64?
  us: [U32]?
  v: Vector(2)?
}
node Day { on: Date @key }
node Number { n: I64 @key }
edge Marks: Day -> Number { weight: F64 }
""")


def decode(key: str | None, **columns: pa.Array) -> DecodedChunk:
    batch = pa.record_batch(columns)
    decoder = FrameDecoder(CATALOG, DecodeOptions(), plan_frame(CATALOG, TableKey(key) if key else None, batch.schema))
    return decoder.decode(batch, 100)[0]


def things(**columns: pa.Array) -> DecodedChunk:
    count = len(next(iter(columns.values())))
    return decode("node:Thing", name=pa.array([f"t{i}" for i in range(count)]), **columns)


def column(chunk: DecodedChunk, name: str) -> list[object]:
    values: list[object] = chunk.tables[0].table.column(name).to_pylist()
    return values


TIMES = pa.list_(pa.timestamp("ms"))
MICROS = [0, 1_999, -1, -1_001]


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_times_are_whole_milliseconds_cut_towards_the_past(zone: str | None) -> None:
    kind = pa.timestamp("us", zone)
    chunk = things(
        ts=pa.array([*MICROS, None], pa.int64()).view(kind),
        times=pa.array([[m] for m in MICROS] + [None], pa.list_(pa.int64())).cast(pa.list_(kind)),
    )
    stored = chunk.tables[0].table.column("ts").combine_chunks().view(pa.int64()).to_pylist()
    assert stored == [0, 1, -1, -2, None]
    items = chunk.tables[0].table.column("times").combine_chunks()
    assert items.values.view(pa.int64()).to_pylist() == [0, 1, -1, -2]
    assert items.type == pa.list_(pa.field("item", pa.date64()))


@pytest.mark.parametrize(("unit", "per"), [("s", 0), ("ms", 1), ("us", 1000), ("ns", 1_000_000)])
def test_times_of_every_unit_are_kept_or_refused(unit: str, per: int) -> None:
    kind = pa.timestamp(unit)
    far = [2**62, -(2**62)] if unit in ("s", "ms") else []
    given = [*far, 0, -1, 86_399, None]
    chunk = things(ts=pa.array(given, pa.int64()).view(kind), times=pa.array([[g] for g in given]).cast(pa.list_(kind)))
    assert [(r.line, r.rule) for r in chunk.rejected] == [(100 + i, Rule.OUT_OF_RANGE) for i in range(len(far))]
    stored = chunk.tables[0].table.column("ts").combine_chunks().view(pa.int64()).to_pylist()
    assert stored == [*(v // per if per else v * 1000 for v in (0, -1, 86_399)), None]
    assert [item.as_py() for item in chunk.tables[0].table.column("times")][-1] == [None]


@pytest.mark.parametrize("kind", [pa.decimal128(38, 18), pa.decimal256(76, 40)], ids=str)
def test_decimals_with_many_places_reach_the_end_of_u64(kind: pa.DataType) -> None:
    values = [Decimal(2**64 - 1), Decimal(2**64), Decimal("0.5"), Decimal(-1), None, Decimal(7)]
    chunk = things(u64=pa.array(values, kind))
    assert [r.line for r in chunk.rejected] == [101, 102, 103]
    assert column(chunk, "u64") == [2**64 - 1, None, 7]


def test_the_text_of_a_row_takes_no_look_at_the_lists_of_others() -> None:
    rows = pa.record_batch({"name": ["a", "b", "c"], "times": pa.array([[1], None, [2, 3]]).cast(TIMES)})
    broken = pa.array([b"x", b"\xff", b"y"]).view(pa.string())
    lists = pa.ListArray.from_arrays([0, 1, 2, 3], broken)
    assert plain_values(lists.slice(2)) == [["y"]]
    assert plain_values(rows.column("times").slice(1)) == [
        None,
        ["1970-01-01T00:00:00.002Z", "1970-01-01T00:00:00.003Z"],
    ]


@pytest.mark.parametrize(
    ("name", "values", "kind", "bad"),
    [
        ("u32", [0, 2**32 - 1, None, -1, 2**32], pa.int64(), [3, 4]),
        ("u64", [Decimal(0), Decimal(2**64 - 1), None, Decimal(-1), Decimal(2**64)], pa.decimal128(20, 0), [3, 4]),
        ("u64", [0, -5], pa.int64(), [1]),
        ("i32", [-(2**31), 2**31], pa.int64(), [1]),
        ("i32", [Decimal("2.00"), Decimal("2.50")], pa.decimal128(10, 2), [1]),
        ("f32", [1e38, 1e39, None], pa.float64(), [1]),
        ("f64", [0.1, float("nan"), float("inf")], pa.float64(), [1, 2]),
        ("f64", [2**53, 2**53 + 1], pa.int64(), [1]),
        ("v", [[1, 2], None, [1], [1, None], [1, float("nan")]], pa.list_(pa.float32()), [2, 3, 4]),
        ("v", [[1.0, 1e39], [1.0, 2.0]], pa.list_(pa.float64()), [0]),
        ("v", [[1, 2], [1, 2, 3], None], pa.list_(pa.int32()), [1]),
        ("us", [[1, None], [], None, [1, -1]], pa.list_(pa.int64()), [3]),
    ],
)
def test_values_that_do_not_fit_are_bad_rows(
    name: str, values: list[object], kind: pa.DataType, bad: list[int]
) -> None:
    chunk = things(**{name: pa.array(values, kind)})
    assert [r.line for r in chunk.rejected] == [100 + i for i in bad]
    assert {r.record_type for r in chunk.rejected} == {"Thing"}
    good = [i for i in range(len(values)) if i not in bad]
    assert chunk.tables[0].lines.tolist() == [100 + i for i in good]
    assert column(chunk, "id") == [f"t{i}" for i in good]
    assert chunk.read == {"node:Thing": len(values)}
    stored = column(chunk, name)
    if name != "f32":
        assert stored == [values[i] for i in good]
    assert [v is None for v in stored] == [values[i] is None for i in good]


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64()), pa.large_list(pa.float64())], ids=str)
def test_vectors_of_floats_and_doubles_are_measured_row_by_row(kind: pa.DataType) -> None:
    given = [[9.0], [1.5, 2.0], None, [1.0, 2.0, 3.0], [], [0.5, -1.0], [1.0, None], None]
    vectors = pa.array(given, kind).slice(1)  # Arrow hands on parts of longer arrays
    chunk = things(v=vectors)
    assert [(r.line, r.rule, r.message) for r in chunk.rejected] == [
        (102, Rule.VECTOR_LENGTH, "vector property 'v' expects 2 dimensions, got 3"),
        (103, Rule.VECTOR_LENGTH, "vector property 'v' expects 2 dimensions, got 0"),
        (105, Rule.WRONG_TYPE, "vector property 'v' expects numbers, got null"),
    ]
    stored = chunk.tables[0].table.column("v")
    assert (stored.type.list_size, stored.type.value_type) == (2, pa.float32())
    assert stored.to_pylist() == [[1.5, 2.0], None, [0.5, -1.0], None]
    assert (column(chunk, "id"), chunk.tables[0].lines.tolist()) == (["t0", "t1", "t4", "t6"], [100, 101, 104, 106])


def test_bad_rows_say_what_records_say() -> None:
    chunk = things(u32=pa.array([-1]), d=pa.array([dt.date(2020, 1, 31)]), b=pa.array([b"1"]))
    [row] = chunk.rejected
    assert (row.rule, row.field) == (Rule.OUT_OF_RANGE, "u32")
    assert row.message == "property 'u32': value -1 exceeds UInt32 range"
    assert json.loads(row.raw) == {
        "type": "Thing",
        "data": {"name": "t0", "u32": -1, "d": "2020-01-31", "b": "base64:MQ=="},
    }


def test_ids_and_ends() -> None:
    days = decode("node:Day", on=pa.array([dt.date(1970, 1, 2), None]), id=pa.array([None, None], pa.string()))
    assert column(days, "id") == ["1"]
    assert [r.rule for r in days.rejected] == [Rule.KEY_MISSING]
    edges = decode(
        "edge:Marks",
        to=pa.array([7, 8, None]),
        src=pa.array(["1", "1970-01-03", "1"]),
        weight=pa.array([1.0, 2.0, 3.0]),
    )
    assert (column(edges, "src"), column(edges, "dst")) == (["1", "2"], ["7", "8"])
    assert not edges.tables[0].named.any()
    assert [r.rule for r in edges.rejected] == [Rule.MISSING_ENDPOINT]
    [wrong] = decode("node:Number", n=pa.array([1]), id=pa.array(["2"])).rejected
    assert wrong.rule is Rule.ID_MISMATCH


@pytest.mark.parametrize(
    ("key", "columns", "message"),
    [
        ("node:Thing", {"name": pa.string(), "u46": pa.int64()}, "'Thing' has no column 'u46'; did you mean 'u64'?"),
        ("node:Thing", {"u64": pa.int64()}, "column 'name' is missing"),
        (
            "node:Thing",
            {"nmae": pa.string(), "u64": pa.int64()},
            "'Thing' must have it; did you mean 'nmae'? (columns that are no property: nmae); rename",
        ),
        (
            "node:Thing",
            {"name": pa.int64()},
            "column 'name' is int64, which 'Thing.name' (String) does not take; it takes string",
        ),
        (
            "node:Thing",
            {"name": pa.string(), "v": pa.float32()},
            "(Vector(2)) does not take; it takes arrays of numbers",
        ),
        (
            "node:Thing",
            {"name": pa.string(), "i32": pa.float64()},
            "(I32) does not take; it takes any integer type or decimal",
        ),
        ("edge:Marks", {"src": pa.string(), "from": pa.string()}, "mean the same"),
        ("edge:Marks", {"src": pa.string(), "dst": pa.string()}, "column 'weight' is missing"),
        ("node:Things", {"name": pa.string()}, "no node type 'Things'; did you mean 'Thing'?"),
        (None, {"type": pa.string(), "date": pa.string()}, "no column 'date'; did you mean 'data'?"),
        (None, {"data": pa.string()}, "needs a column 'type' or 'edge'"),
        (None, {"rider_id": pa.string()}, "as node or edge (--node, --edge), for others give a mapping (--mapping)"),
    ],
)
def test_columns_that_do_not_fit(key: str | None, columns: dict[str, pa.DataType], message: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        plan_frame(CATALOG, TableKey(key) if key else None, pa.schema(list(columns.items())))
    assert message in caught.value.message


def test_records() -> None:
    texts = ['{"name":\n"a"}', '{"name": "b"}, "type": "Day"', None, '{"name": "d"}']
    chunk = decode(None, type=pa.array(["Thing", "Thing", "Thing", "Thnig"]), data=pa.array(texts))
    assert column(chunk, "id") == ["a"]
    assert [(r.line, r.rule) for r in chunk.rejected] == [
        (101, Rule.INVALID_JSON),
        (102, Rule.KEY_MISSING),
        (103, Rule.UNKNOWN_TYPE),
    ]


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ('{"name": oops, "i32": 3}', "Expecting value at character 10"),
        ('{"name": "b"}, "type": "Day"', "more text after the JSON value at character 14"),
        ('{"name": "b"', "Expecting ',' delimiter at character 13"),
    ],
)
def test_data_that_is_no_json_is_told_by_its_own_places(data: str, fault: str) -> None:
    batch = pa.record_batch({"type": ["Day", "Thing"], "data": ['{"name": 1}', data]})
    decoder = FrameDecoder(CATALOG, DecodeOptions(), plan_frame(CATALOG, None, batch.schema))
    chunk, text = decoder.decode(batch, 100)
    (row,) = (r for r in chunk.rejected if r.line == 101)
    assert (row.rule, row.message) == (Rule.INVALID_JSON, f"invalid JSON in 'data': {fault}")
    assert text(101) == f'{{"type": "Thing", "data": {data}}}'


def test_dates_outside_the_years_1_to_9999_are_bad_rows() -> None:
    seconds = [253_402_300_799, 253_402_300_800, -62_135_596_801, None]
    chunk = things(
        d=pa.array([2_932_896, None, None, 2_932_897], pa.int32()).view(pa.date32()),
        ts=pa.array(seconds, pa.timestamp("s", "UTC")).cast(pa.timestamp("ms", "UTC")),
    )
    assert [(row.line, row.field, row.rule, row.message) for row in chunk.rejected] == [
        (101, "ts", Rule.OUT_OF_RANGE, "DateTime value out of range: 253402300800000"),
        (102, "ts", Rule.OUT_OF_RANGE, "DateTime value out of range: -62135596801000"),
        (103, "d", Rule.OUT_OF_RANGE, "Date value out of range: 2932897"),
    ]
    lists = things(times=pa.array([[0], [0, 253_402_300_800_000]], pa.list_(pa.timestamp("ms"))))
    assert [(row.line, row.field) for row in lists.rejected] == [(101, "times")]
