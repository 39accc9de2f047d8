"""The rows of one type as a query sees them: stored rows that show, then pending ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import EntityType, Scalar
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.storage.table_reader import Positions, TableReader

FEW = 16
"""A column is read whole when more than one row in so many is wanted, and row by row otherwise."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows by position: those of the stored version first, then the pending ones."""

    entity: EntityType
    reader: TableReader | None
    pending: pa.Table | None = None
    hidden: frozenset[str] = frozenset()

    def with_pending(self, rows: pa.Table | None, hidden: frozenset[str]) -> Table:
        """The same stored rows with other rows written after them."""
        return self if rows is None and not hidden else replace(self, pending=rows, hidden=hidden)

    @property
    def stored(self) -> int:
        """Stored rows, hidden ones too; positions of pending rows begin here."""
        return self.reader.rows if self.reader is not None else 0

    @property
    def names(self) -> frozenset[str]:
        """Columns that the stored version has; others are null there."""
        return self.reader.names if self.reader is not None else frozenset()

    @property
    def text_key(self) -> str | None:
        """The String property that alone is the key, so that ids are its values."""
        key = self.entity.key
        found = self.entity.property(key[0]) if key is not None and len(key) == 1 else None
        return found.name if found is not None and found.type.scalar is Scalar.STRING else None

    def find(self, where: str | None) -> Positions:
        """Positions of stored rows that show and that Lance SQL keeps, ascending; None keeps all."""
        if self.reader is None:
            return np.empty(0, dtype=np.int64)
        found = np.arange(self.stored, dtype=np.int64) if where is None else self.reader.find(where)
        if not self.hidden or not len(found):
            return found
        ids = self.columns(found, ["id"])[0]
        gone = pc.is_in(ids, value_set=pa.array(sorted(self.hidden), pa.string()))
        shown: Positions = found[~np.asarray(gone)]
        return shown

    def pending_positions(self) -> Positions:
        """Positions of the pending rows."""
        count = self.pending.num_rows if self.pending is not None else 0
        return np.arange(self.stored, self.stored + count, dtype=np.int64)

    def columns(self, positions: Positions, names: Sequence[str]) -> list[pa.Array]:
        """Columns of rows, in the order of `positions`."""
        if self.pending is None:
            return self._stored(positions, names)
        late = positions >= self.stored
        early = np.flatnonzero(~late)
        stored = self._stored(positions[early], names)
        order = pa.array(np.argsort(np.concatenate([early, np.flatnonzero(late)])))
        taken = pa.array(positions[late] - self.stored)
        found = []
        for name, column in zip(names, stored, strict=True):
            rest = _whole(self.pending.column(name)).take(taken).cast(column.type)
            found.append(pa.concat_arrays([column, rest]).take(order))
        return found

    def _stored(self, positions: Positions, names: Sequence[str]) -> list[pa.Array]:
        known = [name for name in names if name in self.names]
        read: dict[str, pa.Array] = {}
        if known and self.reader is not None:
            if len(positions) * FEW < self.stored:
                table = self.reader.take(positions, known)
                read = {name: _whole(table.column(name)) for name in known}
            else:
                table = self.reader.columns(known)
                every = len(positions) == self.stored and bool((positions == np.arange(self.stored)).all())
                at = None if every else pa.array(positions)
                for name in known:
                    column = _whole(table.column(name))
                    read[name] = column if at is None else column.take(at)
        schema = physical_schema(self.entity)
        return [read[n] if n in read else pa.nulls(len(positions), schema.field(n).type) for n in names]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):  # a column of no chunks, or one too large for 32-bit offsets
        return pa.concat_arrays(combined.chunks) if combined.num_chunks else pa.array([], column.type)
    return combined
