"""Answers → staged files of a table: a fragment's column written anew where many of its rows change, else whole rows.

A column costs all of its vectors again, a row costs the row and a mask; where the type has blobs, rows are never
written, since blobs would be read and written with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.catalog.types import EntityType, Scalar
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.storage.column_rewrite import NewValues, rewrite_columns
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.tables.scan import PinnedTable, fragment_sizes
from spark_omnigraph.storage.tables.staged import ColumnRewrite, StagedFile, TableTarget, stage_rows
from spark_omnigraph.storage.tables.stored_rows import StoredRows
from spark_omnigraph.storage.vectors import AnswerReader, Answers, Rows

SHARE = 0.05
"""Part of a fragment's rows from which its column is written anew."""
SLICE_BYTES = 32 << 20
"""Bytes of vectors of whole rows that one file gets."""
LEFT_ALONE = -2
"""Stands for an answer where a row of the table changes in another property alone."""
_OFFSET, _FRAGMENT = np.uint64(0xFFFFFFFF), np.uint64(32)


@dataclass(frozen=True, slots=True, eq=False)
class VectorChange:
    """Rows of one table that get vectors: ids and addresses of the rows, and for each property the row of its answer
    (-1: no vector, `LEFT_ALONE`: what it has).
    """

    rows: npt.NDArray[np.uint64]
    addresses: npt.NDArray[np.uint64]
    answers: Mapping[str, Rows]

    def only(self, which: npt.NDArray[np.bool_] | slice) -> VectorChange:
        return VectorChange(
            self.rows[which], self.addresses[which], {name: rows[which] for name, rows in self.answers.items()}
        )


@dataclass(frozen=True, slots=True)
class WriteContext:
    """What a task writes where, and from which answers. Picklable."""

    entity: EntityType
    into: TableTarget
    table: PinnedTable
    answers: Mapping[str, Answers]
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class WritePart:
    """The work of one task: rows of a fragment whose columns are written anew, or rows to write whole (None)."""

    change: VectorChange
    fragment: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """What one task staged: columns, or a file of rows that takes the place of those at `removed`."""

    columns: tuple[ColumnRewrite, ...] = ()
    files: tuple[StagedFile, ...] = ()
    removed: tuple[int, ...] = ()

    @property
    def staged(self) -> tuple[StagedFile, ...]:
        return (*self.files, *(each.file for each in self.columns))


def joined(parts: Mapping[str, pa.Table], answers: Mapping[str, Rows]) -> VectorChange:
    """The rows of several properties of one table, each row once, by address."""
    addresses = np.unique(np.concatenate([np.asarray(part.column("address")) for part in parts.values()]))
    rows = np.zeros(len(addresses), dtype=np.uint64)
    found = {}
    for name, part in parts.items():
        at = np.searchsorted(addresses, np.asarray(part.column("address")))
        rows[at] = np.asarray(part.column("row"))
        found[name] = np.full(len(addresses), LEFT_ALONE, dtype=np.int64)
        found[name][at] = answers[name]
    return VectorChange(rows, addresses, found)


def parts_of(context: WriteContext, change: VectorChange) -> Iterator[WritePart]:
    """Tasks: fragments of which columns are written anew, and slices of the other rows."""
    alive = {size.id: size.rows for size in fragment_sizes(context.table)}
    has_blobs = any(prop.type.scalar is Scalar.BLOB for prop in context.entity.properties)
    owners = (change.addresses >> _FRAGMENT).astype(np.int64)
    whole = np.zeros(len(owners), dtype=bool)
    for fragment in np.unique(owners).tolist():
        which = owners == fragment
        if has_blobs or which.sum() >= SHARE * alive[fragment]:
            yield WritePart(change.only(which), fragment)
        else:
            whole |= which
    rest = change.only(whole)
    order = np.argsort(rest.rows)  # ascending ids take little place in the manifest of the table
    rest = VectorChange(rest.rows[order], rest.addresses[order], {n: r[order] for n, r in rest.answers.items()})
    width = sum(4 * answers.dimension for answers in context.answers.values())
    size = max(1, SLICE_BYTES // width)
    for start in range(0, len(rest.rows), size):
        yield WritePart(rest.only(slice(start, start + size)), None)


def write_part(context: WriteContext, part: WritePart) -> Written:
    """Stages one part. Runs on an executor; nothing refers to the files yet."""
    readers = {name: answers.reader() for name, answers in context.answers.items()}
    if part.fragment is not None:
        offsets = (part.change.addresses & _OFFSET).astype(np.int64)
        values = {name: _values(readers[name], offsets, rows) for name, rows in part.change.answers.items()}
        return Written((rewrite_columns(context.into, part.fragment, values, context.options),))
    schema = physical_schema(context.entity)
    rows = StoredRows.open(context.table, schema.names).take(pa.array(part.change.rows))
    for name, answers in part.change.answers.items():
        rows = rows.set_column(schema.get_field_index(name), name, _overlaid(rows.column(name), readers[name], answers))
    file = stage_rows(context.into, rows.cast(schema), part.change.rows, context.options)
    return Written((), (file,), tuple(part.change.addresses.tolist()))


def _values(reader: AnswerReader, offsets: npt.NDArray[np.int64], rows: Rows) -> NewValues:
    """The new values of one column; rows that it leaves alone are none of them."""
    given = rows != LEFT_ALONE
    places, answers = offsets[given], rows[given]
    return NewValues(places, partial(_read, reader, answers))


def _read(reader: AnswerReader, answers: Rows, first: int, last: int) -> pa.Array:
    return reader.take(answers[first:last])


def _overlaid(column: pa.ChunkedArray, reader: AnswerReader, answers: Rows) -> pa.Array:
    given = np.flatnonzero(answers != LEFT_ALONE)
    places = np.arange(len(answers))
    places[given] = len(answers) + np.arange(len(given))
    new = reader.take(answers[given]).cast(column.type)
    return pa.concat_arrays([column.combine_chunks(), new]).take(pa.array(places))


def change_of(written: Sequence[Written]) -> TableChange:
    """Everything that the tasks of one table staged, as one change of it."""
    removed = np.array(sorted(address for part in written for address in part.removed), dtype=np.uint64)
    return TableChange(
        tuple(file for part in written for file in part.files),
        removed if len(removed) else None,
        columns=tuple(column for part in written for column in part.columns),
    )
