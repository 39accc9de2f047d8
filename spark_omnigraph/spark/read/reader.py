"""Partitions and tasks of a read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_omnigraph.graph.read.query import QueryTask
from spark_omnigraph.spark.errors import coded
from spark_omnigraph.spark.portable import Portable
from spark_omnigraph.spark.read.plan import CountTask, ReadPlan, TablesTask
from spark_omnigraph.spark.types import arrow_target, to_frame
from spark_omnigraph.storage.tables.scan import TableScan, count_rows, fragment_sizes, group_fragments, read_batches
from spark_omnigraph.write.executor import available_cores

QUERY_BATCH_ROWS = 8192
"""Rows of a query's result that Spark is handed at a time."""


@dataclass(frozen=True)
class FragmentGroup(InputPartition):
    """Fragments that one task reads; None stands for the whole source."""

    ids: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Share(InputPartition):
    """Rows of the leading scan of a query on which one task's part of the answer begins; None stands for all."""

    rows: tuple[int, int] | None = None


class GraphReader(Portable, DataSourceReader):
    """Reads a plan. What it holds is pinned and picklable, so each task opens its dataset once, at that version."""

    def __init__(self, plan: ReadPlan) -> None:
        self.plan = plan

    def partitions(self) -> Sequence[InputPartition]:
        source = self.plan.source
        if isinstance(source, QueryTask):
            return [Share(rows) for rows in source.shares(available_cores())]
        if not isinstance(source, TableScan) or source.limit is not None:
            return [FragmentGroup()]
        # No session is in reach here. The driver's cores are the task slots of a local one, and a fair guess elsewhere.
        with coded():
            return [FragmentGroup(ids) for ids in group_fragments(fragment_sizes(source.table), available_cores())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark turns an empty list of partitions into one partition without a value: an empty table.
        if not isinstance(partition, (FragmentGroup, Share)):
            return
        target = arrow_target(self.plan.frame)
        with coded():
            for batch in _batches(self.plan, partition):
                if batch.num_rows:
                    yield to_frame(batch, target)


def _batches(plan: ReadPlan, part: FragmentGroup | Share) -> Iterator[pa.RecordBatch]:
    names = plan.frame.names
    if isinstance(plan.source, QueryTask):
        share = part.rows if isinstance(part, Share) else None
        return iter(plan.source.run(share).select(names).to_batches(QUERY_BATCH_ROWS))
    if isinstance(plan.source, TableScan):
        fragments = part.ids if isinstance(part, FragmentGroup) else None
        return read_batches(replace(plan.source, fragments=fragments))
    if isinstance(plan.source, CountTask):
        task = plan.source
        counted = {"type": [task.table_key], "count": [count_rows(task.table, task.where)]}
        return iter([pa.record_batch({name: counted[name] for name in names})])
    if isinstance(plan.source, TablesTask):
        return iter(plan.source.run(names).to_batches())
    if isinstance(plan.source, bytes):
        return iter(pa.ipc.open_stream(plan.source).read_all().select(names).to_batches())
    return plan.source.run(names)
