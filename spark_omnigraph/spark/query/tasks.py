"""What tasks of the Spark engine do: scans and text searches, by the embedded engine's own functions.

One task, one number: that of a group of fragments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from spark_omnigraph.catalog.types import EntityType
from spark_omnigraph.engine.compare import compare
from spark_omnigraph.engine.pushdown import Pushed
from spark_omnigraph.engine.search import distances, hits_among, hits_of, query_vector
from spark_omnigraph.engine.table import Table, as_declared
from spark_omnigraph.errors import QueryEngineError
from spark_omnigraph.graph.read.query import QueryTask
from spark_omnigraph.lang.gq.needs import needs_of
from spark_omnigraph.lang.gq.plan import IDENTITY, Bm25, Column, Comparison, Nearest, TextMatch
from spark_omnigraph.spark.errors import coded
from spark_omnigraph.spark.portable import TaskBody
from spark_omnigraph.spark.types import arrow_target, to_frame
from spark_omnigraph.storage.tables.reader import ReadCache
from spark_omnigraph.storage.tables.scan import BATCH_ROWS, PinnedTable, TableScan, read_batches

ANSWER_ROWS = 8192
"""Rows of an answer of the embedded engine that Spark is handed at a time."""
_KEPT_ROWS = 1 << 16
"""Rows among which the best are kept before there is another look."""


@dataclass(frozen=True, slots=True)
class ScanTask:
    """Rows of groups of fragments: `columns`, then a score for each of `distances`, under the names of `frame`.

    `pushed` is asked of Lance and of the rows that come back. Of a task only the `best` rows by its one distance are
    wanted, and those that are as good as the last of them.
    """

    table: PinnedTable
    entity: EntityType
    stored: frozenset[str]
    columns: tuple[str, ...]
    pushed: Pushed
    distances: tuple[Nearest, ...]
    best: int | None
    groups: tuple[tuple[int, ...] | None, ...]
    frame: StructType

    def rows(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of one group."""
        shown = map(self._shown, self._read(number))
        target = arrow_target(self.frame)
        for batch in shown if self.best is None else _best(shown, self.best):
            if batch.num_rows:
                yield to_frame(batch, target)

    def _read(self, number: int) -> Iterator[pa.RecordBatch]:
        asked = {name for _, name in needs_of(self.pushed.rest).columns} | {d.column.name for d in self.distances}
        names = tuple(sorted({*self.columns, *asked} & self.stored)) or (IDENTITY,)
        return read_batches(TableScan(self.table, names, self.pushed.where, None, self.groups[number], BATCH_ROWS))

    def _shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        def values(column: Column) -> pa.Array:
            return self._column(batch, column.name)

        for predicate in self.pushed.rest:
            if isinstance(predicate, Comparison) and batch.num_rows:
                batch = batch.filter(pa.array(compare(predicate, batch.num_rows, values)))
        arrays = [self._column(batch, name) for name in self.columns]
        arrays += [_scores(each, self._column(batch, each.column.name)) for each in self.distances]
        return pa.RecordBatch.from_arrays(arrays, names=self.frame.names)

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        found = batch.column(name) if name in self.stored else pa.nulls(batch.num_rows)
        return as_declared(self.entity, name, found)


def _scores(by: Nearest, vectors: pa.Array) -> pa.Array:
    query = query_vector(by.column, by.query)
    if query is None:
        return pa.nulls(len(vectors), pa.float64())
    found = distances(vectors, query)
    return pa.array(found, pa.float64(), mask=np.isnan(found))


def _best(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """The rows of which the last column, a score, is among the least; all that are as good as the last of them."""
    kept: list[pa.RecordBatch] = []
    for batch in batches:
        kept.append(batch)
        if sum(each.num_rows for each in kept) > max(_KEPT_ROWS, 4 * most):
            kept = _least(kept, most)
    yield from _least(kept, most)


def _least(batches: list[pa.RecordBatch], most: int) -> list[pa.RecordBatch]:
    if not batches or not most:
        return []
    whole = pa.Table.from_batches(batches).combine_chunks()
    scores = whole.column(whole.num_columns - 1).to_numpy(zero_copy_only=False)
    known = np.sort(scores[~np.isnan(scores)])
    bound = known[min(most, len(known)) - 1] if len(known) else -np.inf
    return list(whole.filter(pa.array(scores <= bound)).to_batches())


@dataclass(frozen=True, slots=True)
class HitsTask:
    """Ids of the rows that a text search finds, and their scores: of groups of fragments, or of the whole table."""

    table: PinnedTable
    entity: EntityType
    search: Bm25 | TextMatch
    groups: tuple[tuple[int, ...] | None, ...]
    frame: StructType

    def rows(self, number: int) -> Iterator[pa.RecordBatch]:
        """Those of one group."""
        table = Table(self.entity, ReadCache().open(self.table))
        target = arrow_target(self.frame)
        for ids, scores in self._found(table, self.groups[number]):
            batch = pa.RecordBatch.from_arrays([ids, scores], names=self.frame.names)
            yield to_frame(batch, target)

    def _found(self, table: Table, group: tuple[int, ...] | None) -> Iterator[tuple[pa.Array, pa.Array]]:
        if group is not None:
            among = hits_among(table, self.search, group)
            for batch in among.to_batches(ANSWER_ROWS) if among is not None else ():
                yield batch.column(0), batch.column(1).cast(pa.float64())
            return
        found = hits_of(table, self.search)
        for start in range(0, len(found.positions), ANSWER_ROWS):
            run = slice(start, start + ANSWER_ROWS)
            [ids] = table.columns(found.positions[run], [IDENTITY])
            yield ids, pa.array(found.scores[run], pa.float64())


@dataclass(frozen=True, slots=True)
class AnswerTask:
    """The rows of a query that the embedded engine finds, in shares of its leading scan."""

    query: QueryTask
    shares: tuple[tuple[int, int] | None, ...]
    frame: StructType

    def rows(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of one share."""
        target = arrow_target(self.frame)
        try:
            found = self.query.run(self.shares[number])
        except QueryEngineError as error:
            raise QueryEngineError(f"{error.message}; engine 'spark' has no such bound") from error
        for batch in found.to_batches(ANSWER_ROWS):
            yield to_frame(batch, target)


Task = ScanTask | HitsTask | AnswerTask


class NumberedTasks(TaskBody):
    """A task, done for every number that comes."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of all numbers."""
        with coded():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from self.task.rows(number)
