"""Partitions and tasks of a read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_omnigraph.graph.query import QueryTask
from spark_omnigraph.spark.errors import coded
from spark_omnigraph.spark.plan import CountTask, ReadPlan
from spark_omnigraph.spark.types import arrow_target, to_frame
from spark_omnigraph.storage.scan import FragmentSize, Scan, count_rows, fragment_sizes, read_batches

PARTITION_BYTES = 64 << 20
PARTITION_ROWS = 500_000
"""A partition is closed at the first of the two: narrow rows keep all task slots busy, wide ones stay small."""

QUERY_BATCH_ROWS = 8192
"""Rows of a query's result that Spark is handed at a time."""


@dataclass(frozen=True)
class FragmentGroup(InputPartition):
    """Fragments that one task reads; None stands for the whole source."""

    ids: tuple[int, ...] | None = None


class GraphReader(DataSourceReader):
    """Reads a plan. What it holds is pinned and picklable, so each task opens its dataset once, at that version."""

    def __init__(self, plan: ReadPlan) -> None:
        self.plan = plan

    def partitions(self) -> Sequence[InputPartition]:
        source = self.plan.source
        if not isinstance(source, Scan) or source.limit is not None:
            return [FragmentGroup()]
        with coded():
            return [FragmentGroup(ids) for ids in group_fragments(fragment_sizes(source.table))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark turns an empty list of partitions into one partition without a value: an empty table.
        if not isinstance(partition, FragmentGroup):
            return
        target = arrow_target(self.plan.frame)
        with coded():
            for batch in _batches(self.plan, partition):
                if batch.num_rows:
                    yield to_frame(batch, target)


def group_fragments(
    sizes: Sequence[FragmentSize], most_bytes: int = PARTITION_BYTES, most_rows: int = PARTITION_ROWS
) -> list[tuple[int, ...]]:
    """Neighbouring fragments together until a group has the bytes or the rows of a partition; empty ones left out."""
    groups: list[tuple[int, ...]] = []
    ids: list[int] = []
    stored, rows = 0, 0
    for size in sizes:
        if not size.rows:
            continue
        ids.append(size.id)
        stored, rows = stored + size.bytes, rows + size.rows
        if stored >= most_bytes or rows >= most_rows:
            groups.append(tuple(ids))
            ids, stored, rows = [], 0, 0
    if ids:
        groups.append(tuple(ids))
    return groups


def _batches(plan: ReadPlan, group: FragmentGroup) -> Iterator[pa.RecordBatch]:
    if isinstance(plan.source, Scan):
        return read_batches(replace(plan.source, fragments=group.ids))
    names = plan.frame.names
    if isinstance(plan.source, CountTask):
        task = plan.source
        counted = {"type": [task.table_key], "count": [count_rows(task.table, task.where)]}
        return iter([pa.record_batch({name: counted[name] for name in names})])
    if isinstance(plan.source, QueryTask):
        return iter(plan.source.run().select(names).to_batches(QUERY_BATCH_ROWS))
    rows = pa.ipc.open_stream(plan.source).read_all()
    return iter(rows.select(names).to_batches())
