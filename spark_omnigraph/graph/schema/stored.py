"""Stored rows of one table as a schema change would leave them: what tasks count of a part, and the columns of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.graph.schema.projection import Projection
from spark_omnigraph.graph.schema.rules import RowRule
from spark_omnigraph.progress.meter import in_phase
from spark_omnigraph.storage.tables.scan import BATCH_BYTES, PinnedTable, TableScan, read_batches
from spark_omnigraph.storage.tables.staged import TableTarget
from spark_omnigraph.validate.batch import BatchChecker
from spark_omnigraph.write.staged_table import Rows

_RUN_ROWS = 1 << 17


@dataclass(frozen=True, slots=True)
class RowQuestions:
    """What the rows of one table are asked one by one: rules that they may break, and stored columns of which those
    that hold a value are counted. Picklable.
    """

    table: PinnedTable
    projection: Projection
    rules: tuple[RowRule, ...]
    counted: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Stored columns that the answers need."""
        needed = self.projection.needed(name for rule in self.rules for name in rule.columns)
        return tuple(dict.fromkeys((*needed, *self.counted)))


@dataclass(frozen=True, slots=True, eq=False)
class RowAnswers:
    """The answers of some fragments: how many rows there are; of each rule, which rows break it (a bit each, packed)
    and how often by the names of rules; and how many rows hold a value in each counted column.
    """

    rows: int
    broken: tuple[npt.NDArray[np.uint8], ...]
    per_rule: Counter[str]
    valued: tuple[int, ...]

    def places(self, rule: int) -> Rows:
        """int64[n]: the rows that break a rule, counted from the first of these fragments."""
        return np.flatnonzero(np.unpackbits(self.broken[rule], count=self.rows))


@in_phase("check")
def answer(asked: RowQuestions, fragments: tuple[int, ...] | None) -> RowAnswers:
    """Reads the needed columns of some fragments once, or of all (None). Runs on an executor."""
    checkers = [BatchChecker(rule.entity) for rule in asked.rules]
    masks: list[list[npt.NDArray[np.bool_]]] = [[np.zeros(0, dtype=np.bool_)] for _ in checkers]
    per_rule: Counter[str] = Counter()
    valued = [0] * len(asked.counted)
    rows = 0
    scan = TableScan(asked.table, asked.columns, fragments=fragments, batch_rows=_RUN_ROWS)
    for run in _runs(read_batches(scan)):
        rows += run.num_rows
        held = (run.num_rows - run.column(name).null_count for name in asked.counted)
        valued = [count + more for count, more in zip(valued, held, strict=True)]
        for rule, checker, mask in zip(asked.rules, checkers, masks, strict=True):
            bad = np.zeros(run.num_rows, dtype=np.bool_)
            for found in checker.broken(asked.projection.of(run, rule.columns)):
                per_rule[str(found.rule)] += len(found.rows)
                bad[found.rows] = True
            mask.append(bad)
    return RowAnswers(rows, tuple(np.packbits(np.concatenate(each)) for each in masks), per_rule, tuple(valued))


def _runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches in runs that are asked at once: a question costs about the same for few rows and for some more."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _RUN_ROWS or size >= BATCH_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


@dataclass(slots=True, eq=False)
class StoredTable:
    """All rows of a stored table as if they had just been written (`RowsToCheck`), in storage order."""

    table_key: TableKey
    table: PinnedTable
    target: TableTarget
    projection: Projection
    given_ids: bool = True
    unit: str = "row of the table"
    changed: frozenset[str] | None = None
    keeps_ends: bool = False
    dropped: npt.NDArray[np.bool_] = field(init=False)
    _columns: dict[str, pa.ChunkedArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dropped = np.zeros(self.target.row_count, dtype=np.bool_)

    @property
    def input_rank(self) -> Rows:
        return np.arange(len(self.dropped), dtype=np.int64)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of all rows, as the desired schema has it."""
        self.load([name])
        return self._columns[name]

    def files(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Some columns batch by batch, with the number of the first row; nothing is kept."""
        first = 0
        for batch in read_batches(TableScan(self.table, tuple(self.projection.needed(names)))):
            yield first, self.projection.of(batch, names)
            first += batch.num_rows

    def load(self, names: Iterable[str]) -> None:
        """Reads columns that are not read yet, in one scan."""
        missing = [name for name in dict.fromkeys(names) if name not in self._columns]
        if missing:
            read = pa.concat_tables([rows for _, rows in self.files(missing)])
            self._columns |= {name: read.column(name) for name in missing}

    def drop(self, rows: Rows) -> None:
        self.dropped[rows] = True

    def take_back(self, rows: Rows) -> None:
        self.dropped[rows] = False
