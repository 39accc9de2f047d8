"""Edge values of every type: how they are written as a record and in a frame, what is read back, what a filter finds.

The cases are what must hold; `test_type_matrix.py` runs them, and docs/type-matrix.md shows them.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from spark_omnigraph.bad_rows import Rule
from tests.unit.spark.graph_types import utc

SCHEMA = """
node Value {
  name: String @key
  string: String?
  bool: Bool?
  i32: I32?
  i64: I64?
  u32: U32?
  u64: U64?
  f32: F32?
  f64: F64?
  date: Date?
  datetime: DateTime?
  choice: enum(x, y)?
  blob: Blob?
  vector: Vector(3)?
  strings: [String]?
  bools: [Bool]?
  i32s: [I32]?
  u64s: [U64]?
  f64s: [F64]?
  dates: [Date]?
  datetimes: [DateTime]?
}
"""

_UTC_MICROS = pa.timestamp("us", "UTC")
FRAME: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "bool": pa.bool_(),
    "i32": pa.int64(),
    "i64": pa.decimal128(20, 0),
    "u32": pa.int64(),
    "u64": pa.decimal128(21, 0),
    "f32": pa.float64(),
    "f64": pa.float64(),
    "date": pa.date32(),
    "datetime": _UTC_MICROS,
    "choice": pa.string(),
    "blob": pa.binary(),
    "vector": pa.list_(pa.float64()),
    "strings": pa.list_(pa.string()),
    "bools": pa.list_(pa.bool_()),
    "i32s": pa.list_(pa.int64()),
    "u64s": pa.list_(pa.decimal128(21, 0)),
    "f64s": pa.list_(pa.float64()),
    "dates": pa.list_(pa.date32()),
    "datetimes": pa.list_(_UTC_MICROS),
}
"""Types of the columns that are written: wide enough for values that must be refused."""

TYPES: Mapping[str, str] = {
    "string": "String",
    "bool": "Bool",
    "i32": "I32",
    "i64": "I64",
    "u32": "U32",
    "u64": "U64",
    "f32": "F32",
    "f64": "F64",
    "date": "Date",
    "datetime": "DateTime",
    "choice": "enum(x, y)",
    "blob": "Blob",
    "vector": "Vector(3)",
    "strings": "[String]",
    "bools": "[Bool]",
    "i32s": "[I32]",
    "u64s": "[U64]",
    "f64s": "[F64]",
    "dates": "[Date]",
    "datetimes": "[DateTime]",
}
LARGE = bytes(range(256)) * 4096
"""A blob that is not stored inside its row."""


class _Mark:
    """A value that is none."""


SAME = _Mark()
"""Stands for "the same value": what is read is what was written."""
ABSENT = _Mark()
"""Stands for a value that the type of the frame's column cannot hold."""


@dataclass(frozen=True)
class Case:
    """One value of one property. A `Rule` is a refusal; a record or a frame cannot write every value."""

    column: str
    record: str | None
    frame: Any
    read: Any = SAME
    shown: str | None = None

    @property
    def value(self) -> Any:
        """What is read back, or the rule that refuses it."""
        return self.frame if self.read is SAME else self.read

    @property
    def is_stored(self) -> bool:
        return not isinstance(self.value, Rule)


def near32(value: float) -> float:
    """The float of 32 bits that is nearest."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def same(column: str, *values: object) -> Iterator[Case]:
    """Values that JSON and a frame write alike and that come back unchanged."""
    for value in values:
        yield Case(column, json.dumps(value, ensure_ascii=False), value)


def _numbers() -> Iterator[Case]:
    yield from same("i32", -(2**31), 2**31 - 1, 0)
    yield Case("i32", "2147483648", 2**31, Rule.OUT_OF_RANGE)
    yield Case("i32", "1.0", 1, shown="1.0")
    for number in (-(2**63), 2**63 - 1):
        yield Case("i64", str(number), Decimal(number), number)
    yield Case("i64", "9223372036854775808", Decimal(2**63), Rule.OUT_OF_RANGE)
    yield Case("i64", "1.5", ABSENT, Rule.WRONG_TYPE, shown="1.5")
    yield from same("u32", 0, 2**31, 2**32 - 1)
    yield Case("u32", "-1", -1, Rule.OUT_OF_RANGE)
    yield Case("u32", "4294967296", 2**32, Rule.OUT_OF_RANGE)
    for number in (0, 2**63 - 1, 2**63, 2**64 - 1):
        yield Case("u64", str(number), Decimal(number))
    yield Case("u64", "18446744073709551616", Decimal(2**64), Rule.OUT_OF_RANGE)
    yield Case("u64", "-1", Decimal(-1), Rule.OUT_OF_RANGE)


def _fractions() -> Iterator[Case]:
    yield from same("f32", 0.0, -0.0, near32(1e-45), near32(3.4028234663852886e38))
    yield Case("f32", "0.1", 0.1, near32(0.1), shown="0.1")
    yield Case("f32", "1e39", 1e39, Rule.OUT_OF_RANGE)
    yield from same("f64", 0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1)
    for column in ("f32", "f64"):
        yield Case(column, None, float("nan"), Rule.OUT_OF_RANGE)
        yield Case(column, None, float("inf"), Rule.OUT_OF_RANGE)
        yield Case(column, None, float("-inf"), Rule.OUT_OF_RANGE)


def _times() -> Iterator[Case]:
    days = (date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31))
    for day in days:
        yield Case("date", f'"{day}"', day)
    yield Case("date", '"2023-02-29"', ABSENT, Rule.INVALID_DATE, shown="2023-02-29")
    yield Case("datetime", '"0001-01-01T00:00:00Z"', utc(1, 1, 1))
    yield Case("datetime", '"1969-12-31T23:59:59.999Z"', utc(1969, 12, 31, 23, 59, 59, 999000))
    yield Case("datetime", '"9999-12-31T23:59:59.999Z"', utc(9999, 12, 31, 23, 59, 59, 999000))
    yield Case("datetime", '"2020-01-01T01:00:00+01:00"', utc(2020, 1, 1))
    exact, cut = utc(2020, 1, 1, 0, 0, 0, 123456), utc(2020, 1, 1, 0, 0, 0, 123000)
    yield Case("datetime", '"2020-01-01T00:00:00.123456Z"', exact, cut)
    before, cut_before = utc(1960, 1, 1, 0, 0, 0, 123456), utc(1960, 1, 1, 0, 0, 0, 123000)
    yield Case("datetime", '"1960-01-01T00:00:00.123456Z"', before, cut_before)


def _others() -> Iterator[Case]:
    yield from same("string", "", 'it\'s "so" \\ %_', "😀 𝄞 ünï", "a\nb\tc", " ", "null")
    yield from same("bool", True, False)
    yield from same("choice", "x")
    yield Case("choice", '"z"', "z", Rule.ENUM)
    for data in (b"\x00", b"abc", b""):
        yield Case("blob", json.dumps("base64:" + base64.b64encode(data).decode()), data)
    yield Case("blob", json.dumps("base64:" + base64.b64encode(LARGE).decode()), LARGE, shown="1 MiB")
    yield from same("vector", [0.0, -0.0, 1.5], [near32(0.1), near32(3e38), -1.0])
    yield Case("vector", "[1, 2]", [1.0, 2.0], Rule.VECTOR_LENGTH)
    yield Case("vector", "[]", [], Rule.VECTOR_LENGTH)
    yield Case("vector", "[1, null, 3]", [1.0, None, 3.0], Rule.WRONG_TYPE)


def _lists() -> Iterator[Case]:
    yield from same("strings", [], [""], [None], ["a", None, "😀"])
    yield from same("bools", [], [True, None, False])
    yield from same("i32s", [], [None], [-(2**31), None, 2**31 - 1])
    yield Case("i32s", "[1, 2147483648]", [1, 2**31], Rule.OUT_OF_RANGE)
    yield Case("u64s", f"[{2**64 - 1}, null]", [Decimal(2**64 - 1), None])
    yield from same("f64s", [], [-0.0, None, 5e-324])
    yield Case("f64s", None, [1.0, float("nan")], Rule.OUT_OF_RANGE)
    yield Case("dates", '["0001-01-01", null]', [date(1, 1, 1), None])
    yield Case("datetimes", '["9999-12-31T23:59:59.999Z", null]', [utc(9999, 12, 31, 23, 59, 59, 999000), None])


def _nulls() -> Iterator[Case]:
    for column in FRAME:
        yield Case(column, "null", None)


CASES: tuple[Case, ...] = (*_others(), *_numbers(), *_fractions(), *_times(), *_lists(), *_nulls())


def name(number: int) -> str:
    """Key of a case."""
    return f"{number:03d} {CASES[number].column}"


def records() -> Iterator[tuple[int, str]]:
    """The cases that JSON can write, each as a record."""
    for number, case in enumerate(CASES):
        if case.record is not None:
            yield number, f'{{"type": "Value", "data": {{"name": "{name(number)}", "{case.column}": {case.record}}}}}'


def frame_rows() -> pa.Table:
    """The cases that a frame can write, each as a row."""
    cases = {n: case for n, case in enumerate(CASES) if case.frame is not ABSENT}
    columns = {"name": pa.array([name(n) for n in cases])}
    for column, kind in FRAME.items():
        columns[column] = pa.array([c.frame if c.column == column else None for c in cases.values()], kind)
    return pa.table(columns)


def where(case: Case) -> list[object] | None:
    """The condition that finds a stored value; None where the type has none."""
    value = case.value
    if case.column == "blob":
        return None
    if value is None:
        return [case.column, "is null"]
    if case.column == "vector":
        return None
    if isinstance(value, list):
        present = [item for item in value if item is not None]
        return [case.column, "contains", present[0]] if present else None
    return [case.column, "=", value]


def filter_sql(case: Case) -> str | None:
    """The same condition in Lance SQL, as a person would write it."""
    condition = where(case)
    if condition is None:
        return None
    if condition[1] == "is null":
        return f"{case.column} is null"
    if condition[1] == "contains":
        return f"array_has({case.column}, {literal(condition[2])})"
    return f"{case.column} = {literal(condition[2])}"


def literal(value: object) -> str:
    """A value in Lance SQL."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"timestamp '{value.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    # Lance reads the lowest number as the negation of one that is too large.
    return "(-9223372036854775807 - 1)" if value == -(2**63) else str(value)


def found_by(case: Case, stored: Mapping[int, Case]) -> set[int]:
    """Cases that the condition of a case must find."""
    condition = where(case)
    assert condition is not None
    if condition[1] == "is null":
        return {n for n, other in stored.items() if other.column != case.column or other.value is None}
    hits = {n for n, other in stored.items() if other.column == case.column and other.value is not None}
    if condition[1] == "contains":
        return {n for n in hits if condition[2] in stored[n].value}
    return {n for n in hits if stored[n].value == condition[2]}


def render() -> str:
    """Rows of the page."""
    lines = ["| type | value | in a record | in a frame | read back |", "|---|---|---|---|---|"]
    for case in sorted(CASES, key=lambda case: list(TYPES).index(case.column)):
        refused = f"refused: `{case.value}`"
        record = "JSON has none" if case.record is None else ("✓" if case.is_stored else refused)
        frame = "the column has none" if case.frame is ABSENT else ("✓" if case.is_stored else refused)
        read = _read_text(case) if case.is_stored else ""
        lines.append(
            f"| `{TYPES[case.column]}` | {_cell(case.shown or _shown(case.frame))} | {record} | {frame} | {read} |"
        )
    return "\n".join(lines)


def _read_text(case: Case) -> str:
    return "the same" if case.value == case.frame else _cell(_shown(case.value))


def _cell(text: str) -> str:
    escaped = text.replace("|", "\\|")
    return f"`{escaped}`" if "`" not in escaped else escaped


def _shown(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_shown(item) for item in value)}]"
    if isinstance(value, bytes):
        return "no bytes" if not value else f"0x{value.hex()}"
    if isinstance(value, datetime):
        return f"{value.replace(tzinfo=None).isoformat()}Z"
    if isinstance(value, date):
        return value.isoformat()
    if value is None:
        return "null"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
