"""Random predicates over awkward columns and values, as conditions, as Lance SQL and as Spark SQL."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from math import isfinite
from random import Random
from typing import Any

import pyarrow as pa

from tests.unit.spark.graph_types import date64, utc

SCHEMA = """
node Odd {
  null: String? @index
  select: String?
  is: Bool?
  current_date: Date? @index
  timestamp: DateTime? @index
  nAme: I32? @index
  name: I32?
  _: I64? @index
  in: U32?
  uNSIGNED: U64? @index
  f32: F32? @index
  oRDER: F64? @index
  values: [I32]?
}
"""
"""Columns called like words of SQL, in several cases, with and without indexes."""

Value = object
Term = tuple[str, str, Value]


def _near32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


_TEXTS = [
    *("", " ", "'", "''", "it's", '"', "`", "\\", "\\'", "\\n", "\n", "\t", "\0", "a\0b", "a", "A", "ab", "b"),
    *("--", "/* x */", "a;b", "%", "_", "a%", "null", "NULL", "true", "{}", "$1", "?", "1", "\ufeff", "\u2028"),
    *("é", "e\u0301", "ß", "ss", "İ", "i", "\uffff", "\U0001f600", "\U0001d11e", "日本", "\x7f", "\x80"),
]
_INSTANTS = [
    *(utc(1, 1, 1), utc(1582, 10, 10), utc(1677, 9, 21), utc(1899, 12, 31, 23, 59, 59, 999000)),
    *(utc(1970, 1, 1), utc(1969, 12, 31, 23, 59, 59, 999000), utc(2020, 3, 29, 1, 30), utc(2262, 4, 12)),
    utc(9999, 12, 31, 23, 59, 59, 999000),
]
POOLS: Mapping[str, Sequence[Value]] = {
    "null": _TEXTS,
    "select": _TEXTS,
    "is": [True, False],
    "current_date": [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1970, 1, 1), date(9999, 12, 31)],
    "timestamp": _INSTANTS,
    "nAme": [0, 1, -1, 2**31 - 1, -(2**31)],
    "name": [0, 1, -1, 2**31 - 1, -(2**31)],
    "_": [0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63)],
    "in": [0, 1, 2**31 - 1, 2**31, 2**32 - 1],
    "uNSIGNED": [0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1],
    "f32": [0.0, -0.0, _near32(0.1), 1.5, _near32(1e-45), _near32(3.4e38), float("inf"), float("-inf")],
    "oRDER": [0.0, -0.0, 0.1, 1.5, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf")],
}
"""Values that the columns store, and from which predicates take theirs and their neighbours."""

_ARROW: Mapping[str, pa.DataType] = {
    "null": pa.string(),
    "select": pa.string(),
    "is": pa.bool_(),
    "current_date": pa.date32(),
    "nAme": pa.int32(),
    "name": pa.int32(),
    "_": pa.int64(),
    "in": pa.uint32(),
    "uNSIGNED": pa.uint64(),
    "f32": pa.float32(),
    "oRDER": pa.float64(),
    "values": pa.list_(pa.int32()),
}
_INTEGERS = ("nAme", "name", "_", "in", "uNSIGNED")
_LEAST = {"in": 0, "uNSIGNED": 0, "nAme": -(2**31), "name": -(2**31), "_": -(2**63)}
_MOST = {"in": 2**32 - 1, "uNSIGNED": 2**64 - 1, "nAme": 2**31 - 1, "name": 2**31 - 1, "_": 2**63 - 1}
_TEXT_TESTS = ("starts with", "ends with", "contains")


def odd_rows(rows: int, random: Random, first: int = 0) -> pa.Table:
    """Rows with values of the pools, a quarter of them null; NaN, which only other writers store, among the floats."""
    columns: dict[str, pa.Array] = {"id": pa.array([f"n{first + n}" for n in range(rows)])}
    for name in sorted(POOLS):
        pool = [*POOLS[name], *([float("nan")] if name in ("f32", "oRDER") else [])]
        values: list[Any] = [None if random.random() < 0.25 else random.choice(pool) for _ in range(rows)]
        columns[name] = date64(values) if name == "timestamp" else pa.array(values, _ARROW[name])
    lists = [None if random.random() < 0.25 else random.choices([1, 2, 3, None], k=n % 4) for n in range(rows)]
    columns["values"] = pa.array(lists, _ARROW["values"])
    return pa.table(columns)


@dataclass(frozen=True)
class Dialect:
    """How one of the two programs spells what differs between them."""

    literal: Callable[[Value], str]
    calls: Mapping[str, str]
    has: str


@dataclass(frozen=True)
class Leaf:
    """One condition of `where`."""

    term: Term

    def text(self, to: Dialect) -> str:
        column, operator, value = self.term
        name = f"`{column}`"
        if operator in ("is null", "is not null"):
            return f"{name} {operator}"
        if column == "values":
            return to.has.format(name, value)
        if operator in ("in", "not in"):
            assert isinstance(value, list)
            return f"{name} {operator} ({', '.join(map(to.literal, value))})"
        if operator in _TEXT_TESTS:
            return f"{to.calls[operator]}({name}, {to.literal(value)})"
        return f"{name} {operator} {to.literal(value)}"


@dataclass(frozen=True)
class Tree:
    """Conditions joined by `and` or `or`, perhaps negated: with nulls, three values of truth."""

    word: str
    parts: tuple[Leaf | Tree, ...]
    negated: bool = False

    def text(self, to: Dialect) -> str:
        joined = f" {self.word} ".join(f"({part.text(to)})" for part in self.parts)
        return f"not ({joined})" if self.negated else joined


def conditions(random: Random, exact: bool) -> Iterator[list[Term]]:
    """Lists of conditions without end. `exact` values are those that a literal of Lance SQL keeps as they are."""
    while True:
        yield [_term(random, exact) for _ in range(random.choice([1, 1, 2, 3]))]


def trees(random: Random) -> Iterator[Tree]:
    """Predicates without end."""
    while True:
        yield _tree(random, 2)


def _tree(random: Random, depth: int) -> Tree:
    parts: list[Leaf | Tree] = []
    for _ in range(random.randint(1, 3)):
        deeper = depth > 0 and random.random() < 0.4
        parts.append(_tree(random, depth - 1) if deeper else Leaf(_term(random, exact=True)))
    return Tree(random.choice(["and", "or"]), tuple(parts), random.random() < 0.4)


def _term(random: Random, exact: bool) -> Term:
    column = random.choice([*POOLS, "null", "select", "values"])
    if random.random() < 0.1:
        return column, random.choice(["is null", "is not null"]), None
    if column == "values":
        return column, "contains", random.randint(0, 4)
    if column == "is":
        return column, random.choice(["=", "!="]), random.choice([True, False])
    texts = list(_TEXT_TESTS) if column in ("null", "select") else []
    operator = random.choice(["=", "!=", "<", "<=", ">", ">=", "in", "not in", *texts])
    if operator in ("in", "not in"):
        return column, operator, [_value(random, column, exact) for _ in range(random.randint(1, 4))]
    return column, operator, _value(random, column, exact)


def _value(random: Random, column: str, exact: bool) -> Value:
    value = random.choice(POOLS[column])
    if random.random() < 0.4:
        return value
    if isinstance(value, str):
        return value + random.choice(_TEXTS) if random.random() < 0.5 else value[:1]
    if isinstance(value, datetime):
        micros = random.choice([-1000, 1000] if exact else [-1, 1, 999, 1000, -86_400_000_000])
        moved = value + timedelta(microseconds=micros) if 1 < value.year < 9999 else value
        return (
            moved.astimezone(timezone(timedelta(minutes=random.choice([0, 345, -210]))))
            if 1 < value.year < 9999
            else moved
        )
    if isinstance(value, date):
        return value + timedelta(days=1 if value.year < 9999 else -1)
    if column in _INTEGERS:
        assert isinstance(value, int)
        return min(max(value + random.choice([-1, 1]), _LEAST[column]), _MOST[column])
    assert isinstance(value, float)
    return value if exact else random.choice([value / 3, 0.1, -value, 1e-46, 1e300])


def _shared(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return f"timestamp '{value.isoformat(sep=' ')}'"
    return f"date '{value.isoformat()}'" if isinstance(value, date) else str(value)


def _lance(value: Value) -> str:
    """As the page on reading says to write it."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        return repr(value) if isfinite(value) else f"CAST('{value}' AS DOUBLE)"
    return "(-9223372036854775807 - 1)" if value == -(2**63) else _shared(value)


def _spark(value: Value) -> str:
    """With no text that could be misread, and integers of any size."""
    if isinstance(value, str):
        return f"decode(X'{value.encode().hex()}', 'utf-8')"
    if isinstance(value, float):
        return f"double('{value!r}')"
    return f"{value}BD" if isinstance(value, int) and not isinstance(value, bool) else _shared(value)


LANCE = Dialect(
    _lance,
    {"starts with": "starts_with", "ends with": "ends_with", "contains": "contains"},
    "array_has({}, {})",
)
SPARK = Dialect(
    _spark,
    {"starts with": "startswith", "ends with": "endswith", "contains": "contains"},
    "exists({}, item -> item <=> {})",  # `array_contains` is null where a list has a null and not the value
)
