"""Arrow rows as the JSON records that a load would read: for reports, and for values that need the row decoder."""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa

from spark_omnigraph.bad_rows import RAW_LIMIT
from spark_omnigraph.catalog.dates import INSTANT_MAX, INSTANT_MIN
from spark_omnigraph.catalog.types import END_MEMBERS, EdgeType, EntityType
from spark_omnigraph.records.json_text import json_text

_PER_MILLISECOND = {"ms": 1, "us": 1000, "ns": 1_000_000}
_MOST_SECONDS = (2**63 - 1) // 1000


def record_text(entity: EntityType, rows: pa.Table | pa.RecordBatch, limit: int | None = RAW_LIMIT) -> list[str]:
    """One JSON record a row, columns named as stored; nulls are left out. `limit` cuts the texts.

    A number that is not finite is written as Python writes it: the record is then no JSON.
    """
    columns = {name: plain_values(column) for name, column in zip(rows.schema.names, rows.columns, strict=True)}
    is_edge = isinstance(entity, EdgeType)
    texts = []
    for i in range(rows.num_rows):
        row = {name: values[i] for name, values in columns.items() if values[i] is not None}
        record: dict[str, object] = {"edge" if is_edge else "type": entity.name}
        if is_edge:
            record |= {member: row.pop(name) for name, member in END_MEMBERS.items() if name in row}
        texts.append(json_text({**record, "data": row})[:limit])
    return texts


def plain_values(column: pa.Array | pa.ChunkedArray) -> list[object]:
    """Values as JSON has them: dates and points in time as text, bytes as base64."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        # A part of a longer array has the items of all; only its own are looked at.
        offsets = np.asarray(column.offsets)
        items = plain_values(column.values.slice(offsets[0], offsets[-1] - offsets[0]))
        bounds = (offsets - offsets[0]).tolist()
        valid = column.is_valid().to_pylist()
        return [items[a:b] if ok else None for a, b, ok in zip(bounds[:-1], bounds[1:], valid, strict=True)]
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return [None if v is None else _moment(v, pa.types.is_date32(kind)) for v in _integers(column)]
    render = _RENDERERS.get(kind.id)
    values: list[object] = column.to_pylist()
    return values if render is None else [None if v is None else render(v) for v in values]


def _integers(column: pa.Array) -> list[int | None]:
    """Days of dates, milliseconds of points in time."""
    if pa.types.is_timestamp(column.type):
        column = milliseconds(column)
    numbers: list[int | None] = column.view(pa.int32() if pa.types.is_date32(column.type) else pa.int64()).to_pylist()
    return numbers


def milliseconds(column: pa.Array) -> pa.Array:
    """A timestamp column as whole milliseconds (date64), fractions cut off towards the past as in texts.

    Seconds that are too many for that become the largest or smallest number of milliseconds, which no year has.
    """
    counts = np.asarray(column.view(pa.int64()).fill_null(0))
    if column.type.unit == "s":
        millis = np.clip(counts, -_MOST_SECONDS, _MOST_SECONDS) * 1000
    else:
        millis = counts // _PER_MILLISECOND[column.type.unit]
    return pa.array(millis, mask=np.asarray(column.is_null())).view(pa.date64())


def _moment(value: int, in_days: bool) -> object:
    millis = value * 86_400_000 if in_days else value
    if not INSTANT_MIN <= millis <= INSTANT_MAX:
        return value
    text = str(np.datetime_as_string(np.datetime64(millis, "ms"), unit="D" if in_days else "ms"))
    return text if in_days else f"{text}Z"


def _decimal(value: object) -> object:
    assert isinstance(value, Decimal)
    return int(value) if value == value.to_integral_value() else value


def _bytes(value: object) -> object:
    assert isinstance(value, bytes)
    return "base64:" + base64.b64encode(value).decode()


def _blob(value: object) -> object:
    assert isinstance(value, dict)
    return value["uri"] if value.get("data") is None else _bytes(value["data"])


_RENDERERS: dict[int, Callable[[object], object]] = {
    **{kind(1).id: _decimal for kind in (pa.decimal32, pa.decimal64, pa.decimal128, pa.decimal256)},
    pa.binary().id: _bytes,
    pa.large_binary().id: _bytes,
    pa.struct([]).id: _blob,
}
