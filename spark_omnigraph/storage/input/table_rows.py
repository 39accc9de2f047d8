"""Rows of a table as they are read: a batch, and which rows of the range they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """A row that does not fit the table: 0-based place in the range, its text, and what is wrong with it."""

    line: int
    text: str
    message: str


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of a range with their 0-based places in it; `count` are all places that were read, also those of a header,
    of rows without any value, and of broken rows.
    """

    batch: pa.RecordBatch
    lines: npt.NDArray[np.int64]
    count: int
    broken: tuple[BrokenRow, ...] = ()


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[TableRows]:
    """The batches that have rows, with their places."""
    first = 0
    for batch in batches:
        if batch.num_rows:
            yield TableRows(batch, np.arange(first, first + batch.num_rows), batch.num_rows)
            first += batch.num_rows
