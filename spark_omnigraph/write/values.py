"""New values of stored rows → staged files: a fragment's columns written anew where many of its rows change, else whole
rows.

A column costs all of its values again, a row costs the row and a mask; where the type has blobs, rows are written only
if a blob of theirs changes, since all blobs are read and written with them. Rows that are new come along.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.catalog.types import EntityType, Scalar
from spark_omnigraph.progress.meter import in_phase
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.tables.scan import PinnedTable, fragment_sizes
from spark_omnigraph.storage.tables.staged import ColumnRewrite, StagedFile, TableTarget, stage_rows
from spark_omnigraph.storage.tables.stored_rows import StoredRows
from spark_omnigraph.storage.values.rewrite import NewValues, rewrite_columns
from spark_omnigraph.storage.values.staged import Places, ValueReader, ValueSource

SHARE = 0.05
"""Part of a fragment's rows from which its columns are written anew."""
SLICE_BYTES = 32 << 20
"""Bytes of whole rows that one file gets, about."""
LEFT_ALONE = -2
"""Stands for a value where a row of the table changes in another property alone."""
_BLOB_BYTES, _VALUE_BYTES = 64 << 10, 16
_OFFSET, _FRAGMENT = np.uint64(0xFFFFFFFF), np.uint64(32)


@dataclass(frozen=True, slots=True, eq=False)
class ValueChange:
    """Rows of one table that get values, by rising address: ids and addresses, and for each column the place
    of its value in the column's source (-1: null, `LEFT_ALONE`: what it has). New rows have neither.
    """

    rows: npt.NDArray[np.uint64]
    addresses: npt.NDArray[np.uint64]
    values: Mapping[str, Places]

    def only(self, which: npt.NDArray[np.bool_ | np.int64] | slice) -> ValueChange:
        return ValueChange(
            self.rows[which], self.addresses[which], {name: places[which] for name, places in self.values.items()}
        )

    def given(self) -> ValueChange:
        """Without columns that it leaves alone in all of its rows."""
        values = {name: places for name, places in self.values.items() if (places != LEFT_ALONE).any()}
        return ValueChange(self.rows, self.addresses, values)


@dataclass(frozen=True, slots=True)
class WriteContext:
    """What a task writes where, and from which values. Picklable."""

    entity: EntityType
    into: TableTarget
    table: PinnedTable
    sources: Mapping[str, ValueSource]
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class WritePart:
    """The work of one task: rows of a fragment whose columns are written anew, or rows to write whole (None). `new`
    holds the values of rows that are not stored.
    """

    change: ValueChange
    fragment: int | None = None
    new: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """What one task staged: columns, or a file of rows that takes the place of those at `removed`."""

    columns: tuple[ColumnRewrite, ...] = ()
    files: tuple[StagedFile, ...] = ()
    removed: tuple[int, ...] = ()

    @property
    def staged(self) -> tuple[StagedFile, ...]:
        return (*self.files, *(each.file for each in self.columns))


def parts_of(context: WriteContext, change: ValueChange) -> Iterator[WritePart]:
    """Tasks: fragments of which columns are written anew, and slices of the other rows."""
    alive = {size.id: size.rows for size in fragment_sizes(context.table)}
    blobs = [prop.name for prop in context.entity.properties if prop.type.scalar is Scalar.BLOB]
    gets_blob = np.zeros(len(change.rows), dtype=bool)
    for name in change.values.keys() & set(blobs):
        gets_blob |= change.values[name] != LEFT_ALONE
    owners = (change.addresses >> _FRAGMENT).astype(np.int64)
    starts = np.flatnonzero(np.diff(owners, prepend=-1)).tolist()
    whole = np.zeros(len(owners), dtype=bool)
    for start, stop in pairwise([*starts, len(owners)]):
        which, fragment = slice(start, stop), int(owners[start])
        if (blobs or stop - start >= SHARE * alive[fragment]) and not gets_blob[which].any():
            yield WritePart(change.only(which).given(), fragment)
        else:
            whole[which] = True
    rest = change.only(whole)
    # Ascending ids take little place in the manifest of the table.
    yield from (WritePart(part) for part in _slices(context.entity, rest.only(np.argsort(rest.rows))))


def new_rows(context: WriteContext, values: Mapping[str, Places]) -> Iterator[WritePart]:
    """Tasks that write rows which are not stored."""
    nowhere = np.zeros(len(next(iter(values.values()))), dtype=np.uint64)
    yield from (WritePart(part, new=True) for part in _slices(context.entity, ValueChange(nowhere, nowhere, values)))


def _slices(entity: EntityType, change: ValueChange) -> Iterator[ValueChange]:
    widths = [
        _BLOB_BYTES if p.type.scalar is Scalar.BLOB else max(_VALUE_BYTES, 4 * (p.type.dimension or 0))
        for p in entity.properties
    ]
    size = max(1, SLICE_BYTES // (_VALUE_BYTES + sum(widths)))
    for start in range(0, len(change.rows), size):
        yield change.only(slice(start, start + size))


@in_phase("write")
def write_part(context: WriteContext, part: WritePart) -> Written:
    """Stages one part. Runs on an executor; nothing refers to the files yet."""
    change = part.change
    readers = {name: context.sources[name].reader() for name in change.values}
    if part.fragment is not None:
        offsets = (change.addresses & _OFFSET).astype(np.int64)
        values = {name: _values(readers[name], offsets, places) for name, places in change.values.items()}
        return Written((rewrite_columns(context.into, part.fragment, values, context.options),))
    schema = physical_schema(context.entity)
    if part.new:
        columns = [readers[name].take(change.values[name]).cast(schema.field(name).type) for name in schema.names]
        rows = pa.Table.from_arrays(columns, schema=schema)
        return Written((), (stage_rows(context.into, rows, None, context.options),))
    rows = StoredRows.open(context.table, schema.names).take(pa.array(change.rows))
    for name, places in change.values.items():
        at = schema.get_field_index(name)
        rows = rows.set_column(at, name, overlaid(rows.column(name), readers[name], places))
    file = stage_rows(context.into, rows.cast(schema), change.rows, context.options)
    return Written((), (file,), tuple(change.addresses.tolist()))


def _values(reader: ValueReader, offsets: npt.NDArray[np.int64], places: Places) -> NewValues:
    """The new values of one column; rows that it leaves alone are none of them."""
    given = places != LEFT_ALONE
    return NewValues(offsets[given], partial(_read, reader, places[given]))


def _read(reader: ValueReader, places: Places, first: int, last: int) -> pa.Array:
    return reader.take(places[first:last])


def overlaid(column: pa.ChunkedArray, reader: ValueReader, places: Places) -> pa.Array:
    """A column with the values of a source where it is not left alone."""
    given = np.flatnonzero(places != LEFT_ALONE)
    at = np.arange(len(places))
    at[given] = len(places) + np.arange(len(given))
    new = reader.take(places[given]).cast(column.type)
    return pa.concat_arrays([column.combine_chunks(), new]).take(pa.array(at))


def change_of(written: Sequence[Written]) -> TableChange:
    """Everything that the tasks of one table staged, as one change of it."""
    removed = np.array(sorted(address for part in written for address in part.removed), dtype=np.uint64)
    return TableChange(
        tuple(file for part in written for file in part.files),
        removed if len(removed) else None,
        columns=tuple(column for part in written for column in part.columns),
    )
