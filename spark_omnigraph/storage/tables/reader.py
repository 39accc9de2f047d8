"""Tables of a snapshot opened for queries: rows by filter, and columns of rows by their position.

The position of a row counts the rows of its version, from 0, in stored order; a version never changes, so positions
stand for rows as long as the version does.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.tables.index import IndexCoverage, coverage
from spark_omnigraph.storage.tables.scan import PinnedTable

if TYPE_CHECKING:
    from lance.lance import _Session

Positions = npt.NDArray[np.int64]
"""Places of rows, in the order of whoever holds them."""

INDEX_CACHE_BYTES = 512 << 20
METADATA_CACHE_BYTES = 128 << 20
OPENED = 256
"""Tables that stay open in one cache."""

_OFFSET = "_rowoffset"


class TableReader:
    """One table at one version, opened once; may be used from several threads."""

    def __init__(self, table: PinnedTable, session: _Session | None = None) -> None:
        self.table = table
        self.rewritten: dict[str, Positions] = {}
        """By the name of an index: rows that it may know by older values; see `storage.rewritten`."""
        with reading(f"open {table.uri} at version {table.version}"):
            self.dataset = lance.dataset(
                table.uri, version=table.version, storage_options=dict(table.options) or None, session=session
            )

    @cached_property
    def names(self) -> frozenset[str]:
        """Columns that this version stores."""
        return frozenset(self.dataset.schema.names)

    @cached_property
    def rows(self) -> int:
        """Rows of this version."""
        with reading(f"count {self.table.uri}"):
            return int(self.dataset.count_rows())

    @cached_property
    def indexes(self) -> list[IndexCoverage]:
        """Indexes of this version, and what they cover."""
        return coverage(self.dataset)

    @cached_property
    def identity(self) -> tuple[object, ...]:
        """Tells this content from any other, also from that of a graph or a branch made anew in the same place."""
        with reading(f"list fragments of {self.table.uri}"):
            files = [
                (f.path, fragment.deletion_file())
                for fragment in self.dataset.get_fragments()
                for f in fragment.data_files()
            ]
        return self.table.uri, self.table.version, hash(tuple(files))

    def find(self, where: str, by_index: bool = True) -> Positions:
        """Positions of the rows that Lance SQL keeps, ascending; by scalar indexes where there are any, or without."""
        with reading(f"scan {self.table.uri}"):
            found = self.dataset.scanner(columns=[_OFFSET], filter=where, use_scalar_index=by_index).to_table()
        return np.sort(found.column(_OFFSET).to_numpy().astype(np.int64))

    def plan(self, where: str) -> str:
        """How Lance would find these rows: names the indexes that it uses."""
        with reading(f"plan a scan of {self.table.uri}"):
            return str(self.dataset.scanner(columns=[_OFFSET], filter=where).explain_plan())

    def where(self, where: str, columns: Sequence[str]) -> tuple[Positions, pa.Table]:
        """Positions and columns of the rows that Lance SQL keeps."""
        with reading(f"scan {self.table.uri}"):
            found = self.dataset.scanner(columns=[*columns, _OFFSET], filter=where).to_table()
        return found.column(_OFFSET).to_numpy().astype(np.int64), found.select(list(columns))

    def columns(self, columns: Sequence[str]) -> pa.Table:
        """Columns of all rows, in order of position."""
        with reading(f"scan {self.table.uri}"):
            return self.dataset.scanner(columns=list(columns), scan_in_order=True).to_table()

    def take(self, positions: Positions, columns: Sequence[str]) -> pa.Table:
        """Columns of some rows, in the order of `positions`."""
        with reading(f"take rows of {self.table.uri}"):
            return self.dataset.take(positions.tolist(), columns=list(columns))


@dataclass(frozen=True, slots=True)
class _Key:
    uri: str
    version: int
    options: tuple[tuple[str, str], ...]


class ReadCache:
    """Tables that were opened before, and what Lance keeps of their indexes; the least used go first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._opened: OrderedDict[_Key, TableReader] = OrderedDict()
        self._session: _Session | None = None

    def open(self, table: PinnedTable) -> TableReader:
        """A table at its version; StorageError when it cannot be opened."""
        key = _Key(table.uri, table.version, tuple(sorted(table.options.items())))
        with self._lock:
            found = self._opened.get(key)
            if found is not None:
                self._opened.move_to_end(key)
                return found
            if self._session is None:
                self._session = lance.Session(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES)  # type: ignore[attr-defined]  # public, though its stub is not
        opened = TableReader(table, self._session)
        with self._lock:
            self._opened[key] = opened
            while len(self._opened) > OPENED:
                self._opened.popitem(last=False)
        return opened

    def forget(self) -> None:
        """Closes everything: the same versions may hold other rows now."""
        with self._lock:
            self._opened.clear()
            self._session = None
