"""Tables of a snapshot opened for queries: rows by filter, and columns of rows by their position.

The position of a row counts the rows of its version, from 0, in stored order; a version never changes, so positions
stand for rows as long as the version does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from weakref import finalize

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.memory import LruCache, Memory, process_memory
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.tables.handles import file_path
from spark_omnigraph.storage.tables.index import IndexCoverage, coverage
from spark_omnigraph.storage.tables.scan import PinnedTable, open_pinned

if TYPE_CHECKING:
    from lance.lance import _Session

Positions = npt.NDArray[np.int64]
"""`int64[n]`: places of rows, in the order of whoever holds them."""

INDEX_SHARE, METADATA_SHARE = 5, 20
"""Lance keeps one part in so many of the memory of the indexes of a graph's tables, and of their metadata."""
OPENED = 256
"""Tables of a graph that stay open."""
WEIGHED_EVERY = 1.0
"""Seconds after which what Lance keeps is weighed anew: Lance looks at each thing that it keeps."""

_OFFSET = "_rowoffset"


class TableReader:
    """One table at one version, opened once; may be used from several threads."""

    def __init__(self, table: PinnedTable, memory: Memory | None = None, session: _Session | None = None) -> None:
        self.table = table
        self.memory = memory if memory is not None else process_memory()
        self.dataset = open_pinned(table, session)

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
                (file_path(f), fragment.deletion_file())
                for fragment in self.dataset.get_fragments()
                for f in fragment.data_files()
            ]
        return self.table.uri, self.table.version, hash(tuple(files))

    def provider(self) -> object:
        """The table for a context of DataFusion, of the major release that Lance is built with: columns, filters and
        limits go down into the scan.
        """
        return lance.FFILanceTableProvider(self.dataset)

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


class _Key(NamedTuple):
    uri: str
    version: int
    options: tuple[tuple[str, str], ...]
    origin: str


class _Opened:
    """Tables of one graph, and the session in which Lance keeps what it read of them."""

    def __init__(self, memory: Memory) -> None:
        budget = memory.budget
        self.session: _Session = lance.Session(budget // INDEX_SHARE, budget // METADATA_SHARE)  # type: ignore[attr-defined]  # public, though its stub is not
        self.tables: LruCache[_Key, TableReader] = LruCache(OPENED)
        self.weighed = monotonic()


class ReadCache:
    """Tables of one graph that were opened before. `memory` holds them, beside what others keep there."""

    def __init__(self, memory: Memory | None = None) -> None:
        self.memory = memory if memory is not None else process_memory()
        self._key = object()
        # Of a graph that nobody has any more, nothing is kept.
        finalize(self, self.memory.forget, _Opened, self._key).atexit = False

    def open(self, table: PinnedTable) -> TableReader:
        """A table at its version; StorageError when it cannot be opened."""
        origin = "" if table.origin is None else table.origin.file
        key = _Key(table.uri, table.version, tuple(sorted(table.options.items())), origin)
        opened = self.memory.get(_Opened, self._key)
        if opened is None:
            opened = _Opened(self.memory)
        found = opened.tables.get(key)
        if found is not None and monotonic() - opened.weighed < WEIGHED_EVERY:
            return found
        # A session grows as it is used.
        opened.weighed = monotonic()
        self.memory.put(_Opened, self._key, opened, opened.session.size_bytes())
        if found is None:
            found = TableReader(table, self.memory, opened.session)
            opened.tables.put(key, found)
        return found

    def forget(self) -> None:
        """Closes everything: the same versions may hold other rows now."""
        self.memory.forget(_Opened, self._key)
