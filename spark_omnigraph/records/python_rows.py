"""Rows of Python → JSON lines: dictionaries of properties of one type, or records as lines have them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import END_MEMBERS
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.records.changes.ranks import CHANGE_NAMES, telling_names
from spark_omnigraph.records.values import BASE64_PREFIX

_DIGITS = 400
"""Numbers that are longer are larger than any property's."""
_ENDS = {"from": "from", "to": "to"} | END_MEMBERS


def record_lines(rows: Iterable[object], table_key: TableKey | None, changes: bool = False) -> list[str]:
    """One JSON line a row. Values are those of JSON, dates and times of Python, bytes for blobs, and decimals. Of
    `changes` the members that tell of them are no properties.

    >>> record_lines([{"name": "Heat", "seen": date(1995, 12, 15)}], TableKey.node("Film"))
    ['{"type": "Film", "data": {"name": "Heat", "seen": "1995-12-15"}}']
    """
    beside = CHANGE_NAMES if changes else ()
    return [_line(place, row, table_key, beside) for place, row in enumerate(rows)]


def _line(place: int, row: object, table_key: TableKey | None, beside: Sequence[str]) -> str:
    if not isinstance(row, Mapping):
        raise BadRequestError(f"item {place} of the input is a {type(row).__name__}, and the first is a dictionary")
    record: dict[str, object] = dict(row)
    told = {name: record.pop(name) for name in telling_names(record) if name in beside and table_key is not None}
    if table_key is not None and table_key.kind == "edge":
        ends = {_ENDS[name]: record.pop(name) for name in _ENDS if name in record}
        record = {"edge": table_key.type_name, **ends, "data": record}
    elif table_key is not None:
        record = {"type": table_key.type_name, "data": record}
    try:
        return json.dumps(told | record, default=_value, ensure_ascii=False)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadRequestError(f"item {place} of the input is no record: {error}") from None


def _value(value: object) -> object:
    """What JSON has for a value of Python; a TypeError for what no property takes."""
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return BASE64_PREFIX + base64.b64encode(value).decode()
    if hasattr(value, "tolist"):  # of numpy
        return value.tolist()
    if isinstance(value, (tuple, set, frozenset)):
        return list(value)
    raise TypeError(f"a {type(value).__name__} is no value of a property")


def _number(value: Decimal) -> int | float:
    """What JSON has for a decimal. ValueError for one that a float would make another whole number of."""
    if not value.is_finite() or value.adjusted() > _DIGITS:
        return float(value)
    if value == value.to_integral_value():
        return int(value)
    nearest = float(value)
    if nearest.is_integer():
        raise ValueError(f"the decimal {value} has more digits than a number of a property")
    return nearest
