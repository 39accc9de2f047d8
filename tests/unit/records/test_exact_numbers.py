"""Numbers are judged by how they are written, not by the nearest float: lines one by one and many at a time, frames."""

from __future__ import annotations

import random
from decimal import Context, Decimal

import pyarrow as pa
import pytest

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.records.frames.decode import FrameDecoder, plan_frame
from spark_omnigraph.records.jsonl.decode import DecodedChunk, RecordDecoder
from spark_omnigraph.records.mode import DecodeOptions
from tests.unit.records.builders import ALL_BY_ROW, chunk

CATALOG = compile_schema("""
node Thing {
  name: String @key
  i32: I32?  i64: I64?  u32: U32?  u64: U64?
  f32: F32?  f64: F64?
  is: [I64]?  us: [U64]?  fs: [F64]?  v: Vector(2)?
}
node Number { n: I64 @key }
edge At: Number -> Number { w: U64? }
""")
FRACTIONS = ("4503599627370497.5", "9007199254740990.6", "1e-400", "1.00000000000000000001", "-0.00000000000000000001")
_WIDE = Context(prec=100)
SCALES = [(pa.decimal128, 38), (pa.decimal256, 76), (pa.decimal64, 18), (pa.decimal32, 9)]


def decoded(values: list[str], name: str, columns_from: int = ALL_BY_ROW) -> DecodedChunk:
    lines = [f'{{"type":"Thing","data":{{"name":"t{i}","{name}":{v}}}}}' for i, v in enumerate(values)]
    return RecordDecoder(CATALOG, DecodeOptions(), columns_from=columns_from).decode(chunk(lines))


def stored(chunk: DecodedChunk, name: str) -> list[object]:
    return [v for table in chunk.tables for v in table.table.column(name).to_pylist()]


def framed(name: str, column: pa.Array) -> DecodedChunk:
    batch = pa.record_batch({"name": [f"t{i}" for i in range(len(column))], name: column})
    decoder = FrameDecoder(CATALOG, DecodeOptions(), plan_frame(CATALOG, TableKey.node("Thing"), batch.schema))
    return decoder.decode(batch, 0)[0]


@pytest.mark.parametrize("columns_from", [ALL_BY_ROW, 1], ids=["one by one", "many"])
@pytest.mark.parametrize("name", ["i32", "i64", "u32", "u64"])
def test_a_fraction_is_refused_however_small_or_far_away(name: str, columns_from: int) -> None:
    values = ["1.0", "2.0", *FRACTIONS, "3.00", "7e0", "1e999999999999", "70e-1"]
    found = decoded(values, name, columns_from)
    assert stored(found, name) == [1, 2, 3, 7, 7]
    assert [r.line for r in found.rejected] == [2, 3, 4, 5, 6, 9]
    assert [r.rule for r in found.rejected] == [Rule.WRONG_TYPE] * 5 + [Rule.OUT_OF_RANGE]


@pytest.mark.parametrize("columns_from", [ALL_BY_ROW, 1], ids=["one by one", "many"])
def test_list_items_and_large_whole_numbers_are_judged_by_their_digits(columns_from: int) -> None:
    found = decoded(["[1]", "[9007199254740993.0]", "[1, 4503599627370497.5]", "[1e-400]"], "is", columns_from)
    assert stored(found, "is") == [[1], [9007199254740993]]
    assert [r.line for r in found.rejected] == [2, 3]
    wide = decoded(["9007199254740993.0", "18446744073709551615.0", "18446744073709551615.5"], "u64", columns_from)
    assert stored(wide, "u64") == [9007199254740993, 18446744073709551615]
    assert [r.line for r in wide.rejected] == [2]


def test_ends_of_edges_are_judged_by_their_digits() -> None:
    lines = [f'{{"edge":"At","from":{end},"to":2}}' for end in ("9007199254740993.0", "4503599627370497.5")]
    found = RecordDecoder(CATALOG, DecodeOptions()).decode(chunk(lines))
    assert stored(found, "src") == ["9007199254740993"]
    assert [r.rule for r in found.rejected] == [Rule.MISSING_ENDPOINT]


@pytest.mark.parametrize(("kind", "precision"), SCALES[:2])
def test_decimals_with_a_fraction_are_refused_by_their_own_digits(kind: type, precision: int) -> None:
    values = [Decimal("9007199254740993.5"), Decimal("9007199254740993.0"), None, Decimal("0.1")]
    for name in ("i64", "u64"):
        found = framed(name, pa.array(values, kind(precision, 1)))
        assert stored(found, name) == [9007199254740993, None]
        assert [(r.line, r.field, r.rule) for r in found.rejected] == [
            (0, name, Rule.WRONG_TYPE),
            (3, name, Rule.WRONG_TYPE),
        ]
        assert "9007199254740993.5" in found.rejected[0].message
    for name in ("is", "us"):
        lists = framed(name, pa.array([[values[0]], [values[1], None], None], pa.list_(kind(precision, 1))))
        assert stored(lists, name) == [[9007199254740993, None], None]
        assert [r.line for r in lists.rejected] == [0]


@pytest.mark.parametrize(("kind", "precision"), SCALES)
@pytest.mark.parametrize("name", ["i32", "i64", "u32", "u64", "f64"])
def test_decimals_of_every_width_and_scale_mean_what_their_text_means(kind: type, precision: int, name: str) -> None:
    chosen = random.Random(7)
    for scale in (0, 1, min(precision, 30)):
        numbers = [
            Decimal(chosen.randint(-(10 ** chosen.randint(1, precision)) + 1, 10 ** chosen.randint(1, precision) - 1))
            for _ in range(20)
        ]
        column = pa.array([n.scaleb(-scale, _WIDE) for n in numbers], kind(precision, scale))
        # A decimal that is whole is an integer, whatever the scale of its column.
        texts = [str(int(v)) if v == v.to_integral_value() else str(v) for v in column.to_pylist()]
        found, expected = framed(name, column), decoded(texts, name)
        assert stored(found, name) == stored(expected, name)
        assert [(r.line, r.rule) for r in found.rejected] == [(r.line, r.rule) for r in expected.rejected]


def test_decimals_become_the_nearest_float() -> None:
    values = [Decimal("-0.945587797159400"), Decimal("-2956724.825046160")]
    assert stored(framed("f64", pa.array(values, pa.decimal128(30, 15))), "f64") == [float(v) for v in values]
    vectors = framed("v", pa.array([values], pa.list_(pa.decimal128(30, 15))))
    assert stored(vectors, "v") == [pa.array([float(v) for v in values]).cast(pa.float32()).to_pylist()]


def test_unsigned_columns_of_64_bits_fit_or_are_bad_rows() -> None:
    found = framed("i64", pa.array([5, 2**63, 2**63 - 1], pa.uint64()))
    assert stored(found, "i64") == [5, 2**63 - 1]
    assert [(r.line, r.rule) for r in found.rejected] == [(1, Rule.OUT_OF_RANGE)]


def test_an_integer_that_a_float_cannot_hold_is_refused_from_decimals_too() -> None:
    found = framed("f64", pa.array([Decimal(2**53 + 1), Decimal(2**53 + 2)], pa.decimal256(60, 0)))
    assert stored(found, "f64") == [float(2**53 + 2)]
    assert [(r.line, r.rule) for r in found.rejected] == [(0, Rule.OUT_OF_RANGE)]
