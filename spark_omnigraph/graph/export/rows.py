"""Rows of a type as a table shows them, in parts that tasks read: all of a state, or what differs from another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.catalog.types import EntityType, Scalar
from spark_omnigraph.errors import StorageError
from spark_omnigraph.graph.changes.diff import TableDiff
from spark_omnigraph.storage.delta_write import OPERATION, Part
from spark_omnigraph.storage.tables.changes import read_rows
from spark_omnigraph.storage.tables.scan import (
    PinnedTable,
    TableScan,
    column_names,
    fragment_sizes,
    group_fragments,
    read_batches,
)

PART_ROWS = 1 << 15
"""Changed rows that one task reads."""
_SCALARS: Mapping[Scalar, pa.DataType] = {
    Scalar.STRING: pa.string(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.int64(),
    Scalar.U64: pa.decimal128(20, 0),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.DATETIME: pa.timestamp("us", "UTC"),
    Scalar.BLOB: pa.binary(),
    Scalar.VECTOR: pa.list_(pa.float32()),
}


def shown_columns(entity: EntityType, with_blobs: bool) -> pa.Schema:
    """The columns of a type as a table."""
    kinds = {prop.name: prop.type for prop in entity.properties}
    fields = []
    for name in entity.columns:
        kind = kinds.get(name)
        if kind is not None and kind.scalar is Scalar.BLOB and not with_blobs:
            continue
        item = pa.string() if kind is None or kind.scalar is None else _SCALARS[kind.scalar]
        fields.append(pa.field(name, pa.list_(item) if kind is not None and kind.is_list else item))
    return pa.schema(fields)


@dataclass(frozen=True, slots=True)
class StoredPart:
    """Fragments of a table."""

    scan: TableScan
    schema: pa.Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in read_batches(self.scan):
            yield _as_shown(batch, self.schema)


@dataclass(frozen=True, slots=True)
class ChangedPart:
    """Rows that one version of a table has and another lacks, by row id, with what became of them in `OPERATION`."""

    table: PinnedTable
    rows: npt.NDArray[np.uint64]
    columns: tuple[str, ...]
    operation: str
    schema: pa.Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in read_rows(self.table, pa.array(self.rows), self.columns):
            word = pa.repeat(pa.scalar(self.operation), batch.num_rows)
            yield _as_shown(batch, self.schema).append_column(OPERATION, word)


def stored_parts(table: PinnedTable | None, schema: pa.Schema, slots: int) -> list[Part]:
    """All rows of a table, for so many tasks at once."""
    if table is None:
        return []
    known = set(column_names(table))
    columns = tuple(name for name in schema.names if name in known)
    groups = group_fragments(fragment_sizes(table), slots)
    return [StoredPart(TableScan(table, columns, fragments=group), schema) for group in groups]


def changed_parts(change: TableDiff, schema: pa.Schema) -> list[Part]:
    """The rows that stand of those that differ, and those that went."""
    rows, known = change.rows(), set(change.columns)
    columns = tuple(name for name in schema.names if name in known)
    parts: list[Part] = []
    for table, ids, word in (
        (change.after, rows.inserted, "u"),
        (change.after, rows.updated, "u"),
        (change.before, rows.deleted, "d"),
    ):
        if table is not None:
            found = ids.to_numpy(zero_copy_only=False)
            starts = range(0, len(found), PART_ROWS)
            parts += [ChangedPart(table, found[at : at + PART_ROWS], columns, word, schema) for at in starts]
    return parts


def _as_shown(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    names = batch.schema.names
    columns = [
        _cast(batch.column(field.name), field) if field.name in names else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, wanted: pa.Field) -> pa.Array:
    try:
        return column.cast(wanted.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise StorageError(
            f"storage: column '{wanted.name}' holds a value that a table cannot have: {error}"
        ) from error
