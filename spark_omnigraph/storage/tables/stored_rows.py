"""Stored rows by row id, as they could be written again: blobs as their bytes or their reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from lance import LanceDataset

from spark_omnigraph.records.arrow_schema import BLOB
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.tables.blobs import StoredBlobs, is_blob
from spark_omnigraph.storage.tables.handles import data_bytes
from spark_omnigraph.storage.tables.scan import PinnedTable, open_pinned

_ADDRESS = "_rowaddr"


@dataclass(frozen=True, slots=True)
class StoredRows:
    """One pinned table, opened once, and the columns that are wanted of it."""

    dataset: LanceDataset
    columns: tuple[str, ...]
    blobs: StoredBlobs

    @classmethod
    def open(cls, table: PinnedTable, columns: Sequence[str]) -> StoredRows:
        dataset = open_pinned(table)
        return cls(dataset, tuple(columns), StoredBlobs(dataset))

    @property
    def bytes_per_row(self) -> int:
        """What a row takes in the data files, about; blobs in files of their own do not count."""
        fragments = self.dataset.get_fragments()
        size = sum(map(data_bytes, fragments))
        return size // max(1, sum(each.physical_rows for each in fragments))

    def take(self, row_ids: pa.Array | pa.ChunkedArray) -> pa.Table:
        """Rows by row id (uint64), in that order, all in memory."""
        wanted = row_ids.to_pylist()
        with reading(f"read rows of {self.dataset.uri}"):
            found = self.dataset._take_rows(wanted, columns=[*self.columns, *([_ADDRESS] if self._has_blobs else [])])
        places = found.column(_ADDRESS).to_pylist() if self._has_blobs else []
        arrays = [self._column(found, name, wanted, places) for name in self.columns]
        return pa.Table.from_arrays(arrays, names=list(self.columns))

    @property
    def _has_blobs(self) -> bool:
        return any(is_blob(self.dataset.schema.field(name)) for name in self.columns)

    def row_ids(self, places: Sequence[int]) -> pa.ChunkedArray:
        """Row ids (uint64) of rows by their places among all rows in storage order."""
        with reading(f"look up rows of {self.dataset.uri}"):
            return self.dataset.take(places, columns=["_rowid"]).column("_rowid")

    def addresses(self, row_ids: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
        """Physical addresses (uint64) of rows by row id, in that order; no data file is read."""
        with reading(f"look up rows of {self.dataset.uri}"):
            return self.dataset._take_rows(row_ids.to_pylist(), columns=[_ADDRESS]).column(_ADDRESS)

    def _column(self, rows: pa.Table, name: str, row_ids: list[int], places: list[int]) -> pa.Array | pa.ChunkedArray:
        column = rows.column(name)
        if not is_blob(self.dataset.schema.field(name)):
            return column
        return pa.array(self.blobs.take(name, column.to_pylist(), (row_ids, places)), BLOB)
