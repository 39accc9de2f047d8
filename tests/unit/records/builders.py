"""Catalogs and chunks for tests of this room."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.records.jsonl.decode import DecodedChunk, LineChunk, RecordDecoder, Rejected
from spark_omnigraph.records.mode import DecodeOptions, UnknownFields

ALL_BY_ROW = 1 << 60
"""As `columns_from`: no line is decoded by columns."""

SCHEMA = """
node Reed {
    tag: String @key
    a: I32?  b: I64?  c: U32?  d: U64?  e: F32?  f: F64?  g: Bool?
    h: Date?  i: DateTime?  k: [I32]?  s: String?  v: Vector(2)?  p: Blob?
    n: enum(one, two)?
}
node Free { name: String?  w: I32? }
node Lists {
    bools: [Bool]?  wholes: [U64]?  reals: [F32]?  doubles: [F64]?  texts: [String]?  days: [Date]?  times: [DateTime]?
}
node Bolt { tag: String @key  len: F64  made: Date  ok: Bool  hue: [String]  vec: Vector(3)  pic: Blob  n: enum(x, y) }
node Lot { area: String  num: I32  @key(area, num)  w: I64? }
node Day { day: Date @key }
node Moment { at: DateTime @key }
node Nth { n: U64 @key }
node Real { x: F32 @key }
node Flag { on: Bool @key }
node Pair { a: Date  b: F64  c: Bool  @key(a, b, c) }
edge Tied: Reed -> Reed { w: I32? }
edge HeldBy: Reed -> Free
edge Placed: Lot -> Nth { since: DateTime }
edge Dated: Day -> Moment { data: String?  type: String? }
edge Odd: Real -> Flag
edge Paired: Pair -> Lot
"""


def catalog(schema: str = SCHEMA) -> Catalog:
    return compile_schema(schema)


CATALOG = catalog()


def chunk(lines: Sequence[bytes | str], first_line: int = 0, first_offset: int = 0) -> LineChunk:
    """Lines as the loader hands them over, each followed by one line break in the file."""
    raw = [line.encode() if isinstance(line, str) else line for line in lines]
    starts = itertools.accumulate((len(line) + 1 for line in raw[:-1]), initial=first_offset)
    return LineChunk(raw, np.array(list(starts)[: len(raw)], dtype=np.int64), first_line)


def decode(
    lines: Sequence[bytes | str],
    *,
    unknown_fields: UnknownFields = UnknownFields.REFUSE,
    columns_from: int = 1,
    of: Catalog = CATALOG,
) -> DecodedChunk:
    return RecordDecoder(of, DecodeOptions(unknown_fields), columns_from).decode(chunk(lines))


def node(type_name: str, **data: object) -> str:
    return json.dumps({"type": type_name, "data": data}, ensure_ascii=False)


def edge(type_name: str, source: object, target: object, **data: object) -> str:
    return json.dumps({"edge": type_name, "from": source, "to": target, "data": data}, ensure_ascii=False)


def rows(decoded: DecodedChunk, table_key: str) -> list[dict[str, object]]:
    """Rows of a table, none when there is no such table; days and milliseconds as numbers."""
    found: list[dict[str, object]] = []
    for table in decoded.tables:
        if table.table_key == table_key:
            found += with_plain_dates(table.table).to_pylist()
    return found


_PLAIN = {
    pa.date32(): pa.int32(),
    pa.date64(): pa.int64(),
    pa.list_(pa.date32()): pa.list_(pa.int32()),
    pa.list_(pa.date64()): pa.list_(pa.int64()),
}


def with_plain_dates(table: pa.Table) -> pa.Table:
    """Python's dates have neither the years nor the time of day of the stored ones."""
    return pa.table(
        {name: table[name].cast(_PLAIN.get(table[name].type, table[name].type)) for name in table.column_names}
    )


def only_reject(decoded: DecodedChunk) -> Rejected:
    assert len(decoded.rejected) == 1, decoded.rejected
    return decoded.rejected[0]
