"""The rows of one type as a query sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from spark_omnigraph.catalog.types import EntityType, Scalar
from spark_omnigraph.engine.columns import Columns
from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.engine.int_arrays import is_range, upto
from spark_omnigraph.engine.order import Numbered
from spark_omnigraph.records.arrow_schema import property_type
from spark_omnigraph.storage.tables.reader import Positions, TableReader


@dataclass(frozen=True)
class Table:
    """Rows by position. Without a reader there are none."""

    entity: EntityType
    reader: TableReader | None
    costs: Costs = field(default_factory=Costs)

    @cached_property
    def kept(self) -> Columns | None:
        """Columns of the stored version, some of them in memory."""
        return Columns(self.reader, self.costs) if self.reader is not None else None

    def are_many(self, count: int) -> bool:
        """Whether so many rows are enough for whole columns to be read."""
        return count * self.costs.many_share >= self.stored

    @property
    def stored(self) -> int:
        """Rows of the stored version."""
        return self.reader.rows if self.reader is not None else 0

    @property
    def names(self) -> frozenset[str]:
        """Columns that the stored version has; others are null there."""
        return self.reader.names if self.reader is not None else frozenset()

    @cached_property
    def text_key(self) -> str | None:
        """The String property that alone is the key, so that ids are its values."""
        key = self.entity.key
        found = self.entity.property(key[0]) if key is not None and len(key) == 1 else None
        return found.name if found is not None and found.type.scalar is Scalar.STRING else None

    def every(self) -> Positions:
        """Positions of all rows."""
        return upto(self.stored)

    def numbers(self, positions: Positions, name: str) -> Numbered | None:
        """Numbers for the texts of many rows, from what is kept of the whole column; None where nothing is."""
        if self.kept is None or name not in self.names or not self.are_many(len(positions)):
            return None
        found = self.kept.text_numbers(name)
        return found if found is None or is_range(positions, self.stored) else found.at(positions)

    def columns(self, positions: Positions, names: Sequence[str]) -> list[pa.Array]:
        """Columns of rows, in the order of `positions`."""
        known = [name for name in names if name in self.names]
        read = self.kept.read(positions, known) if known and self.kept is not None else {}
        return [as_declared(self.entity, n, read[n] if n in read else pa.nulls(len(positions))) for n in names]


def as_declared(entity: EntityType, name: str, column: pa.Array) -> pa.Array:
    """A column in its declared type: a version of before a schema change may store a narrower one, or none."""
    prop = entity.property(name)
    of = pa.string() if prop is None else property_type(prop.type)
    is_other = column.type != of and (pa.types.is_null(column.type) or pa.types.is_primitive(column.type))
    return column.cast(of) if is_other else column
