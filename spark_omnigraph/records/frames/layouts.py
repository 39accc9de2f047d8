"""Columns in the many layouts of Arrow → the few that decoding knows; no value changes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_SIMPLER = {
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
    pa.float16(): pa.float32(),
    pa.date64(): pa.timestamp("ms"),
}


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The columns that `plain_batch` gives."""
    return pa.schema([pa.field(field.name, _plain_type(field.type), field.nullable) for field in schema])


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same values without dictionaries, runs, views, and lists of a fixed size."""
    schema = plain_schema(batch.schema)
    if schema.types == batch.schema.types:
        return batch
    return pa.RecordBatch.from_arrays(
        [_plain(c, t) for c, t in zip(batch.columns, schema.types, strict=True)], schema=schema
    )


def _plain_type(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _plain_type(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(kind.storage_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind) or types.is_list_view(kind):
        return pa.list_(_plain_type(kind.value_type))
    return _SIMPLER.get(kind, kind)


def _plain(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    kind = column.type
    if kind == wanted:
        return column
    if isinstance(column, pa.ExtensionArray):
        return _plain(column.storage, wanted)
    if pa.types.is_dictionary(kind):
        # Arrow takes from fewer layouts than it has dictionaries of.
        return _plain(column.dictionary, wanted).take(column.indices)
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(column), wanted)
    if pa.types.is_date64(kind):
        return column.view(pa.int64()).view(wanted)
    if not pa.types.is_list(wanted):
        return column.cast(wanted)
    if (not pa.types.is_list(kind) and not pa.types.is_large_list(kind)) or pa.types.is_large_list(kind):
        column = column.cast(pa.list_(kind.value_type))
    offsets = column.offsets
    first = offsets[0].as_py()
    items = _plain(column.values.slice(first, offsets[-1].as_py() - first), wanted.value_type)
    mask = column.is_null() if column.null_count else None
    return pa.ListArray.from_arrays(pc.subtract(offsets, first), items, type=wanted, mask=mask)
