"""Stored rows as the desired schema has them: renamed, cast, and with the values that a change gives them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.migration.properties import ColumnSource
from spark_omnigraph.catalog.migration.steps import Fill, FromColumn
from spark_omnigraph.records.arrow_schema import property_type


@dataclass(frozen=True, slots=True)
class Projection:
    """Where the properties of one desired type come from; what is no property (`id`, `src`, `dst`) stays."""

    sources: tuple[ColumnSource, ...]

    def needed(self, names: Iterable[str]) -> list[str]:
        """Stored columns from which these columns of the desired type are made; each once."""
        found: dict[str, None] = {}
        for name in names:
            source = self._source(name)
            if source is None:
                found[name] = None
                continue
            if source.stored is not None:
                found[source.stored] = None
            if isinstance(source.fill, FromColumn):
                found[source.fill.column] = None
        return list(found)

    def of(self, rows: pa.Table | pa.RecordBatch, names: Iterable[str]) -> pa.Table:
        """These columns of the desired type, from rows with the stored columns that they need."""
        names = list(names)
        return pa.table([self.column(rows, name) for name in names], names=names)

    def column(self, rows: pa.Table | pa.RecordBatch, name: str) -> pa.Array | pa.ChunkedArray:
        """One column of the desired type."""
        source = self._source(name)
        if source is None:
            return rows.column(name)
        kind = property_type(source.prop.type)
        if source.stored is None:
            return pa.nulls(rows.num_rows, kind) if source.fill is None else _filled(source.fill, rows, kind)
        stored = rows.column(source.stored)
        if source.old is not None and source.old.scalar is not source.prop.type.scalar:
            stored = stored.cast(kind)
        if source.fill is None or not stored.null_count:
            return stored
        return pc.if_else(stored.is_valid(), stored, _filled(source.fill, rows, kind))

    def _source(self, name: str) -> ColumnSource | None:
        return next((each for each in self.sources if each.prop.name == name), None)


def _filled(fill: Fill, rows: pa.Table | pa.RecordBatch, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if isinstance(fill, FromColumn):
        column = rows.column(fill.column)
        return column if column.type == kind else column.cast(kind)
    return pa.array([fill.value], kind).take(pa.array(np.zeros(rows.num_rows, dtype=np.int64)))
