"""All staged rows of one table, as the checks see them: key columns read back, and where each row came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.records.changes.ranks import UPDATE, RecordChanges
from spark_omnigraph.staging.receipt import ChangeLog, RangeReceipt, StagedFragment
from spark_omnigraph.storage.tables.keys import read_staged
from spark_omnigraph.storage.tables.staged import TableTarget

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where staged rows came from: range index and ordinal, one pair a row."""

    ranges: Rows
    ordinals: Rows


class RowsToCheck(Protocol):
    """New rows of one table as the checks see them: staged files of a load, or rows that a mutation holds in memory.

    `unit` is what messages call one of them. `changed` names the columns in which they may differ from the stored rows
    that they replace; None: every column. With `keeps_ends` edges have the ends that are stored.
    """

    target: TableTarget
    given_ids: bool
    unit: str
    dropped: npt.NDArray[np.bool_]

    @property
    def changed(self) -> frozenset[str] | None: ...

    @property
    def keeps_ends(self) -> bool: ...

    @property
    def table_key(self) -> TableKey: ...

    @property
    def input_rank(self) -> Rows: ...

    def column(self, name: str) -> pa.ChunkedArray: ...

    def files(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]: ...

    def load(self, names: Iterable[str]) -> None: ...

    def drop(self, rows: Rows) -> None: ...

    def take_back(self, rows: Rows) -> None: ...


class StagedTable:
    """Rows of one table in file order, numbered from 0 over all its fragments (in range order), and behind them rows
    of the input that are in no file, since they delete: of these only the id is known.

    Only key columns are read back. `dropped` marks rows that will not be committed: bad or superseded ones, and all
    that are in no file. `deleting` marks those among the latter that do delete.
    """

    changed: frozenset[str] | None = None
    keeps_ends = False

    def __init__(
        self,
        target: TableTarget,
        parts: Sequence[tuple[int, StagedFragment]],
        given_ids: bool,
        options: Mapping[str, str],
        logs: Mapping[int, ChangeLog] | None = None,
    ) -> None:
        self.target = target
        self.parts = tuple(parts)
        self.given_ids = given_ids
        self.unit = "record of the input"
        self.rows = sum(f.file.rows for _, f in parts)
        self._logs = logs or {}
        self._others = pa.chunked_array([log.ids for log in self._logs.values()], pa.string())
        self.dropped = np.arange(self.rows + len(self._others)) >= self.rows
        self.deleting = np.zeros(len(self.dropped), dtype=bool)
        self._options = options
        self._columns: dict[str, pa.ChunkedArray] = {}

    @property
    def table_key(self) -> TableKey:
        return self.target.table_key

    @property
    def hits(self) -> int:
        """Rows that replace stored ones."""
        return sum(f.hits for _, f in self.parts)

    @property
    def replacing(self) -> Rows:
        """Places of the rows that replace stored ones."""
        first = np.cumsum([0, *(f.file.rows for _, f in self.parts)])
        return _joined([np.arange(at, at + f.hits) for at, (_, f) in zip(first.tolist(), self.parts, strict=False)])

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of all rows, dropped ones too."""
        if name not in self._columns:
            self.load([name])
        return self._columns[name]

    def files(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Some columns file by file, with the number of the first row; nothing is kept."""
        first = 0
        for _, fragment in self.parts:
            yield first, read_staged(fragment.file, names, self._options)
            first += fragment.file.rows

    def load(self, names: Iterable[str]) -> None:
        """Reads columns that are not read yet, all in one pass over the files."""
        missing = [n for n in dict.fromkeys(names) if n not in self._columns]
        if not missing:
            return
        tables = [read_staged(f.file, missing, self._options) for _, f in self.parts]
        merged = pa.concat_tables(tables) if tables else pa.table(dict.fromkeys(missing, self._others[:0]))
        for name in missing:
            column = merged.column(name)
            others = self._others if name == "id" else pa.chunked_array([pa.nulls(len(self._others), column.type)])
            self._columns[name] = pa.chunked_array([*column.chunks, *others.chunks], column.type)

    @cached_property
    def origin(self) -> Origin:
        """That of all rows, those in no file too."""
        ranges = [np.full(f.file.rows, index, dtype=np.int64) for index, f in self.parts]
        ranges += [np.full(len(log.ordinals), index, dtype=np.int64) for index, log in self._logs.items()]
        ordinals = [f.row_ordinals() for _, f in self.parts]
        ordinals += [log.ordinals for log in self._logs.values()]
        return Origin(_joined(ranges), _joined(ordinals))

    @cached_property
    def changes(self) -> RecordChanges:
        """What the rows do, in mode `changes`."""
        found = RecordChanges.of(UPDATE, len(self.dropped))
        for index, log in self._logs.items():
            of_range = self.origin.ranges == index
            told = log.changes.take(self.origin.ordinals[of_range])
            found.ranks[of_range], found.versions[of_range] = told.ranks, told.versions
        return found

    @property
    def deleted_ids(self) -> pa.Array:
        """Ids of the rows that delete."""
        return self.column("id").filter(pa.array(self.deleting)).combine_chunks()

    @cached_property
    def input_rank(self) -> Rows:
        """Position of each row in input order: file, then line."""
        order = np.lexsort((self.origin.ordinals, self.origin.ranges))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order), dtype=np.int64)
        return rank

    def drop(self, rows: Rows) -> None:
        self.dropped[rows] = True

    def take_back(self, rows: Rows) -> None:
        """Rows that were dropped and are to be committed after all."""
        self.dropped[rows] = False

    def dropped_by_range(self) -> dict[int, Rows]:
        """Range index → ordinals of dropped rows that are in files."""
        rows = np.flatnonzero(self.dropped[: self.rows])
        ranges, ordinals = self.origin.ranges[rows], self.origin.ordinals[rows]
        return {int(r): ordinals[ranges == r] for r in np.unique(ranges)}


def gather(
    receipts: Sequence[RangeReceipt], targets: Mapping[str, TableTarget], options: Mapping[str, str]
) -> dict[str, StagedTable]:
    """Staged tables of all receipts, in table-key order."""
    parts: dict[str, list[tuple[int, StagedFragment]]] = {}
    logs: dict[str, dict[int, ChangeLog]] = {}
    given: set[str] = set()
    for receipt in sorted(receipts, key=lambda r: r.index):
        given |= receipt.given_ids
        for key, fragments in receipt.staged.items():
            parts.setdefault(key, []).extend((receipt.index, f) for f in fragments)
        for key, log in receipt.changes.items():
            logs.setdefault(key, {})[receipt.index] = ChangeLog.unpacked(log)
    return {
        key: StagedTable(targets[key], parts.get(key, ()), key in given, options, logs.get(key))
        for key in sorted(parts.keys() | logs.keys())
    }


def _joined(arrays: Sequence[Rows]) -> Rows:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
