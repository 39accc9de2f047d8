"""Values on their way into a table: files in its folder that no dataset names, written and read by column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.file import LanceFileReader

from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.tables.staged import StagedFile, TableTarget, write_file

Places = npt.NDArray[np.int64]
"""int64[n]: places of values in a source, -1 for null."""


class ValueReader(Protocol):
    """Values by their places, read many times."""

    def take(self, rows: Places) -> pa.Array:
        """Values in the order of the places."""


class ValueSource(Protocol):
    """Where new values of a column come from. Picklable: tasks open it."""

    def reader(self) -> ValueReader:
        """Opened once."""


def stage_values(target: TableTarget, rows: pa.Table, options: Mapping[str, str]) -> StagedFile:
    """Writes rows that are to be read again before the table is written. They are no fragment and never become one."""
    uri = f"{target.uri}/data/{uuid4().hex}.lance"
    with reading(f"stage values for '{target.table_key}'"):
        write_file(uri, rows.schema, rows.to_batches(), (), options)
    return StagedFile("", uri, rows.num_rows)


@dataclass(frozen=True, slots=True)
class StagedColumn:
    """A column of staged values: places count through its files in their order."""

    files: tuple[StagedFile, ...]
    column: str
    type: pa.DataType
    options: Mapping[str, str]

    def reader(self) -> StagedColumnReader:
        return StagedColumnReader(self)


class StagedColumnReader:
    """Values of a column of staged files; of a few rows nothing else is read."""

    def __init__(self, source: StagedColumn) -> None:
        self._source = source
        self._first = np.cumsum([0, *(file.rows for file in source.files)])
        self._opened: dict[int, LanceFileReader] = {}

    def take(self, rows: Places) -> pa.Array:
        """Values in the order of the places, null for -1."""
        there = rows >= 0
        wanted, back = np.unique(rows[there], return_inverse=True)
        parts = [pa.array([], self._source.type)]
        with reading(f"read staged values of '{self._source.column}'"):
            for number, (start, stop) in enumerate(self._bounds(wanted)):
                if start < stop:
                    parts += self._read(number, (wanted[start:stop] - self._first[number]).tolist())
        places = np.zeros(len(rows), dtype=np.int64)
        places[there] = back
        return pa.concat_arrays(parts).take(pa.array(places, mask=~there))

    def _bounds(self, wanted: Places) -> Iterator[tuple[int, int]]:
        ends = np.searchsorted(wanted, self._first)
        yield from zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)

    def _read(self, number: int, rows: Sequence[int]) -> list[pa.Array]:
        if number not in self._opened:
            file, options = self._source.files[number], dict(self._source.options) or None
            self._opened[number] = LanceFileReader(file.uri, storage_options=options, columns=[self._source.column])
        found = self._opened[number].take_rows(rows).to_table().column(0)
        return [_as_stored(chunk, self._source.type) for chunk in found.chunks]


def _as_stored(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Staged values in the type of their column; Arrow's own cast of lists that are all null crashes."""
    if not pa.types.is_fixed_size_list(kind):
        return column.cast(kind)
    there = np.asarray(column.is_valid())
    vectors = pa.FixedSizeListArray.from_arrays(column.filter(pa.array(there)).flatten(), type=kind)
    return vectors.take(pa.array(np.cumsum(there) - 1, mask=~there))
