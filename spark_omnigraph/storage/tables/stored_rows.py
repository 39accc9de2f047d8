"""Stored rows by row id, in the layout in which they could be written again: blobs as their bytes or their reference.

A reference is copied and never followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from lance import LanceDataset

from spark_omnigraph.records.arrow_schema import BLOB
from spark_omnigraph.storage.tables.blobs import EXTERNAL, BlobNulls, Descriptor, is_blob
from spark_omnigraph.storage.tables.scan import PinnedTable, open_pinned, reading

_ADDRESS = "_rowaddr"


@dataclass(frozen=True, slots=True)
class StoredRows:
    """One pinned table, opened once, and the columns that are wanted of it."""

    dataset: LanceDataset
    columns: tuple[str, ...]
    nulls: BlobNulls

    @classmethod
    def open(cls, table: PinnedTable, columns: Sequence[str]) -> StoredRows:
        dataset = open_pinned(table)
        return cls(dataset, tuple(columns), BlobNulls(dataset))

    def take(self, row_ids: pa.Array | pa.ChunkedArray) -> pa.Table:
        """Rows by row id (uint64), in that order, all in memory."""
        wanted = row_ids.to_pylist()
        with reading(f"read rows of {self.dataset.uri}"):
            found = self.dataset._take_rows(wanted, columns=[*self.columns, _ADDRESS])
        places = found.column(_ADDRESS).to_pylist()
        arrays = [self._column(found, name, wanted, places) for name in self.columns]
        return pa.Table.from_arrays(arrays, names=list(self.columns))

    def addresses(self, row_ids: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
        """Physical addresses (uint64) of rows by row id, in that order; no data file is read."""
        with reading(f"look up rows of {self.dataset.uri}"):
            return self.dataset._take_rows(row_ids.to_pylist(), columns=[_ADDRESS]).column(_ADDRESS)

    def _column(self, rows: pa.Table, name: str, row_ids: list[int], places: list[int]) -> pa.Array | pa.ChunkedArray:
        column = rows.column(name)
        if not is_blob(self.dataset.schema.field(name)):
            return column
        described: list[Descriptor | None] = column.to_pylist()
        values: list[dict[str, object] | None] = [None] * len(described)
        inline: list[int] = []
        for i, (each, place) in enumerate(zip(described, places, strict=True)):
            if each is None or self.nulls.is_null(name, each, place):
                continue
            if each["kind"] == EXTERNAL:
                values[i] = {"data": None, "uri": each["blob_uri"]}
            else:
                inline.append(i)
        if inline:
            with reading(f"read blobs of column '{name}' of {self.dataset.uri}"):
                for i, blob in zip(
                    inline, self.dataset.take_blobs(name, ids=[row_ids[i] for i in inline]), strict=True
                ):
                    if blob is not None:
                        with blob as opened:
                            values[i] = {"data": opened.read(), "uri": None}
        return pa.array(values, BLOB)
