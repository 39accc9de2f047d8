"""Partitions and tasks of a read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_omnigraph.graph.read.query import QueryTask
from spark_omnigraph.spark.errors import coded
from spark_omnigraph.spark.portable import Portable
from spark_omnigraph.spark.read.plan import CountTask, ReadPlan, TablesTask
from spark_omnigraph.spark.types import arrow_target, to_frame
from spark_omnigraph.storage.tables.scan import FragmentSize, TableScan, count_rows, fragment_sizes, read_batches
from spark_omnigraph.write.executor import available_cores

PARTITION_BYTES = 64 << 20
PARTITION_ROWS = 1_500_000
"""What a partition holds at most, about: a task costs as much as reading some hundred thousand rows."""

TASK_ROWS = 100_000
"""Fewer rows are not worth a task of their own."""

QUERY_BATCH_ROWS = 8192
"""Rows of a query's result that Spark is handed at a time."""


@dataclass(frozen=True)
class FragmentGroup(InputPartition):
    """Fragments that one task reads; None stands for the whole source."""

    ids: tuple[int, ...] | None = None


class GraphReader(Portable, DataSourceReader):
    """Reads a plan. What it holds is pinned and picklable, so each task opens its dataset once, at that version."""

    def __init__(self, plan: ReadPlan) -> None:
        self.plan = plan

    def partitions(self) -> Sequence[InputPartition]:
        source = self.plan.source
        if not isinstance(source, TableScan) or source.limit is not None:
            return [FragmentGroup()]
        # No session is in reach here. The driver's cores are the task slots of a local one, and a fair guess elsewhere.
        with coded():
            return [FragmentGroup(ids) for ids in group_fragments(fragment_sizes(source.table), available_cores())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark turns an empty list of partitions into one partition without a value: an empty table.
        if not isinstance(partition, FragmentGroup):
            return
        target = arrow_target(self.plan.frame)
        with coded():
            for batch in _batches(self.plan, partition):
                if batch.num_rows:
                    yield to_frame(batch, target)


def group_fragments(sizes: Sequence[FragmentSize], slots: int) -> list[tuple[int, ...]]:
    """Neighbouring fragments in groups of about the same size, no group much above a partition's; empty ones left out.

    There are at least as many groups as task `slots`, as far as the fragments go and a task has enough rows to do.
    """
    alive = [size for size in sizes if size.rows]
    loads = [max(size.rows / PARTITION_ROWS, size.bytes / PARTITION_BYTES) for size in alive]
    total = sum(loads)
    busy = min(slots, sum(size.rows for size in alive) // TASK_ROWS)
    count = max(math.ceil(total), busy, 1)
    groups: dict[int, list[int]] = {}
    before = 0.0
    for size, load in zip(alive, loads, strict=True):
        middle = before + load / 2
        groups.setdefault(int(middle / total * count), []).append(size.id)
        before += load
    return [tuple(ids) for ids in groups.values()]


def _batches(plan: ReadPlan, group: FragmentGroup) -> Iterator[pa.RecordBatch]:
    if isinstance(plan.source, TableScan):
        return read_batches(replace(plan.source, fragments=group.ids))
    names = plan.frame.names
    if isinstance(plan.source, CountTask):
        task = plan.source
        counted = {"type": [task.table_key], "count": [count_rows(task.table, task.where)]}
        return iter([pa.record_batch({name: counted[name] for name in names})])
    if isinstance(plan.source, QueryTask):
        return iter(plan.source.run().select(names).to_batches(QUERY_BATCH_ROWS))
    if isinstance(plan.source, TablesTask):
        return iter(plan.source.run(names).to_batches())
    if isinstance(plan.source, bytes):
        return iter(pa.ipc.open_stream(plan.source).read_all().select(names).to_batches())
    return plan.source.run(names)
