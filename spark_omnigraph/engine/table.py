"""The rows of one type as a query sees them: stored rows that show, then pending ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import EntityType, Scalar
from spark_omnigraph.engine.columns import COLUMNS, FEW, one_array
from spark_omnigraph.engine.order import Numbered
from spark_omnigraph.engine.sets import is_range
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.storage.table_reader import Positions, TableReader


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

    def find(self, where: str | None, by_index: bool = True) -> Positions:
        """Positions of stored rows that show and that Lance SQL keeps, ascending; None keeps all."""
        if self.reader is None:
            return np.empty(0, dtype=np.int64)
        if where is None:
            return self.shown(np.arange(self.stored, dtype=np.int64))
        return self.shown(self.reader.find(where, by_index))

    def shown(self, positions: Positions) -> Positions:
        """Those of some stored rows that show."""
        if not self.hidden or not len(positions):
            return positions
        ids = self.columns(positions, ["id"])[0]
        gone = pc.is_in(ids, value_set=pa.array(sorted(self.hidden), pa.string()))
        found: Positions = positions[~np.asarray(gone)]
        return found

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
            rest = one_array(self.pending.column(name)).take(taken).cast(column.type)
            found.append(pa.concat_arrays([column, rest]).take(order))
        return found

    def numbers(self, positions: Positions, name: str) -> Numbered | None:
        """Numbers for the texts of many rows, from what is kept of the whole column; None where nothing is."""
        if self.pending is not None or self.reader is None or name not in self.names:
            return None
        if len(positions) * FEW < self.stored:
            return None
        found = COLUMNS.text_numbers(self.reader, name)
        return found if found is None or is_range(positions, self.stored) else found.at(positions)

    def _stored(self, positions: Positions, names: Sequence[str]) -> list[pa.Array]:
        known = [name for name in names if name in self.names]
        read: dict[str, pa.Array] = {}
        if known and self.reader is not None:
            read = COLUMNS.read(self.reader, positions, known)
        schema = physical_schema(self.entity)
        return [read[n] if n in read else pa.nulls(len(positions), schema.field(n).type) for n in names]
