"""New rows of a table and stored ones, held in memory, as the checks of a write ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.storage.tables.staged import TableTarget

Rows = npt.NDArray[np.int64]


class FakeTable:
    """Rows in input order, unless `rank` says another one; `per_file` of them lie in one staged file."""

    def __init__(
        self,
        key: str,
        columns: Mapping[str, Sequence[object]],
        *,
        rank: Sequence[int] | None = None,
        per_file: int = 2,
        target: TableTarget | None = None,
    ) -> None:
        self._table = pa.table({name: pa.chunked_array([values]) for name, values in columns.items()})
        self._per_file = per_file
        self.target = target if target is not None else empty_target(key)
        self.given_ids = "id" in columns
        self.unit = "record of the input"
        self.changed: frozenset[str] | None = None
        self.keeps_ends = False
        self.dropped = np.zeros(self._table.num_rows, dtype=bool)
        self.input_rank: Rows = np.asarray(range(self._table.num_rows) if rank is None else rank, dtype=np.int64)

    @property
    def table_key(self) -> TableKey:
        return self.target.table_key

    def column(self, name: str) -> pa.ChunkedArray:
        return self._table.column(name)

    def files(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        for first in range(0, self._table.num_rows, self._per_file):
            yield first, self._table.select(names).slice(first, self._per_file)

    def load(self, names: Iterable[str]) -> None:
        """All is there."""

    def drop(self, rows: Rows) -> None:
        self.dropped[rows] = True

    def take_back(self, rows: Rows) -> None:
        self.dropped[rows] = False


def empty_target(key: str) -> TableTarget:
    """A table that has no row yet; opening it fails, since nothing is there."""
    return TableTarget(TableKey(key), f"memory/{key}", 1, 0)
