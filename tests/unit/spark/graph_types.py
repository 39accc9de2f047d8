"""A node type with one property of each kind, and its table made by hand."""

from __future__ import annotations

import struct
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from spark_omnigraph.catalog.types import Cardinality, EdgeType, NodeType, Property, PropType, Scalar
from spark_omnigraph.storage.tables.scan import PinnedTable

BLOB = pa.struct([pa.field("data", pa.large_binary()), pa.field("uri", pa.string())])
BLOB_METADATA = {"ARROW:extension:name": "lance.blob.v2"}


def prop(name: str, scalar: Scalar, **facts: Any) -> Property:
    return Property(name, 1, PropType(scalar, **{"nullable": True, **facts}))


THING = NodeType(
    "Thing",
    1,
    (
        prop("b", Scalar.BOOL),
        prop("blob", Scalar.BLOB),
        prop("d", Scalar.DATE),
        prop("e", Scalar.STRING, nullable=False, enum_values=("x", "y")),
        prop("f32", Scalar.F32),
        prop("f64", Scalar.F64),
        prop("i32", Scalar.I32),
        prop("i64", Scalar.I64),
        prop("nums", Scalar.I32, is_list=True),
        prop("s", Scalar.STRING),
        prop("times", Scalar.DATETIME, is_list=True),
        prop("ts", Scalar.DATETIME),
        prop("u32", Scalar.U32),
        prop("u64", Scalar.U64),
        prop("v", Scalar.VECTOR, dimension=2),
    ),
)
LINK = EdgeType("Link", 2, "Thing", "Thing", Cardinality(), (prop("since", Scalar.DATE),))

STORED = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("b", pa.bool_()),
        pa.field("blob", BLOB, metadata=BLOB_METADATA),
        pa.field("d", pa.date32()),
        pa.field("e", pa.string(), nullable=False),
        pa.field("f32", pa.float32()),
        pa.field("f64", pa.float64()),
        pa.field("i32", pa.int32()),
        pa.field("i64", pa.int64()),
        pa.field("nums", pa.list_(pa.int32())),
        pa.field("s", pa.string()),
        pa.field("times", pa.list_(pa.date64())),
        pa.field("ts", pa.date64()),
        pa.field("u32", pa.uint32()),
        pa.field("u64", pa.uint64()),
        pa.field("v", pa.list_(pa.float32(), 2)),
    ]
)

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def millis(moment: datetime) -> int:
    delta = moment - EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000


def float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def date64(values: list[datetime | None]) -> pa.Array:
    return pa.array([None if v is None else millis(v) for v in values], pa.int64()).view(pa.date64())


def utc(
    year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, microsecond: int = 0
) -> datetime:
    return datetime(year, month, day, hour, minute, second, microsecond, tzinfo=timezone.utc)


MOMENTS: list[Any] = [
    utc(2020, 1, 1, 5),
    utc(2020, 1, 1, 5, 0, 0, 1000),
    utc(1, 1, 1),
    utc(9999, 12, 31, 23, 59, 59, 999000),
    utc(1960, 2, 3, 4, 5, 6, 7000),
    None,
]


def things() -> dict[str, list[Any]]:
    """Six rows of awkward values as Python sees them; `ts` and `times` as instants."""
    return {
        "id": ["it's", "a\\b", 'q"`', "%_", "ünï\n", ""],
        "b": [True, False, True, False, None, None],
        "d": [date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 4), date(2020, 1, 1), date(1970, 1, 1), None],
        "e": ["x", "y", "x", "y", "x", "y"],
        "f32": [0.0, -0.0, float32(0.1), float("inf"), -1.5, None],
        "f64": [0.0, -0.0, 0.1, 5e-324, float("-inf"), None],
        "i32": [0, 1, 2**31 - 1, -(2**31), -1, None],
        "i64": [0, 1, 2**63 - 1, -(2**63), -1, None],
        "nums": [[1, 2], [], None, [3], [4, None], [5]],
        "s": ["it's", "x; y", "-- no", "ab%c", None, "\U0001f600"],
        "times": [[MOMENTS[0], None], [], None, [MOMENTS[2]], [MOMENTS[3]], []],
        "ts": list(MOMENTS),
        "u32": [0, 1, 2**31 - 1, 2**31, 2**32 - 1, None],
        "u64": [0, 1, 2**63 - 1, 2**63, 2**64 - 1, None],
        "v": [[1.0, 2.0], [3.0, 4.0], None, [5.0, 6.0], [7.0, 8.0], [9.0, 0.0]],
    }


def stored_things(blobs: list[dict[str, object] | None] | None = None) -> pa.Table:
    rows = things()
    counts = [None if times is None else len(times) for times in rows["times"]]
    flat = date64([t for times in rows["times"] for t in times or []])
    offsets = [0]
    for count in counts:
        offsets.append(offsets[-1] + (count or 0))
    mask = pa.array([c is None for c in counts])
    arrays = []
    for field in STORED:
        if field.name == "blob":
            arrays.append(pa.array(blobs or [None] * 6, BLOB))
        elif field.name == "ts":
            arrays.append(date64(rows["ts"]))
        elif field.name == "times":
            arrays.append(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat, mask=mask))
        else:
            arrays.append(pa.array(rows[field.name], field.type))
    return pa.Table.from_arrays(arrays, schema=STORED)


def write_table(root: Path, *tables: pa.Table) -> PinnedTable:
    """A dataset with one fragment for each table, pinned to its newest version."""
    dataset = None
    for table in tables:
        dataset = lance.write_dataset(
            table,
            str(root),
            mode="create" if dataset is None else "append",
            data_storage_version="2.2",
            enable_stable_row_ids=True,
            allow_external_blob_outside_bases=True,
        )
    assert dataset is not None
    return PinnedTable(str(root), dataset.version)
