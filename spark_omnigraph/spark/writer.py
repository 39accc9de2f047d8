"""Tasks and commit of a write."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from spark_omnigraph.commit.lease import close_stage, open_stage
from spark_omnigraph.errors import OmnigraphError
from spark_omnigraph.graph.contract import read_catalog
from spark_omnigraph.graph.frame_load import discard_receipts, finish_frame_load, plan_frame_load
from spark_omnigraph.graph.load import LoadPlan
from spark_omnigraph.records.frame import FrameDecoder, FramePlan, plan_frame
from spark_omnigraph.spark.errors import coded
from spark_omnigraph.spark.write_options import WriteOptions, parse_write_options
from spark_omnigraph.staging import RangeReceipt, stage_frame
from spark_omnigraph.storage.graph_store import GraphStore

_LOG = logging.getLogger(__name__)


@dataclass
class Staged(WriterCommitMessage):
    """What the attempt of a task that won has staged."""

    receipt: RangeReceipt


class GraphWriter(DataSourceArrowWriter):
    """Stages in tasks and commits in the driver's worker. Holds only picklable values: Spark copies it to each."""

    def __init__(self, options: WriteOptions, plan: LoadPlan, frame: FramePlan, stage: str) -> None:
        self.write_options = options
        self.plan = plan
        self.frame = frame
        self.stage = stage

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stages the rows of one partition."""
        context, task = self.plan.context, TaskContext.get()
        with coded():
            decoder = FrameDecoder(context.catalog, context.decode, self.frame)
            return Staged(stage_frame(context, decoder, iterator, task.partitionId() if task is not None else 0))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Checks all rows together and commits them, or refuses and removes what was staged."""
        with coded():
            store = self._store()
            try:
                report = finish_frame_load(store, self.write_options.request, self.plan, _receipts(messages))
            finally:
                close_stage(store, self.stage)
        for warning in report.warnings:
            _LOG.warning(warning)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Removes staged files of a job whose tasks failed.

        Spark calls this after a failed `commit` too, which then has all messages: what was staged may have been armed
        or published by then, and the commit has cleaned up itself as far as that is safe.
        """
        if all(message is not None for message in messages):
            return
        with coded():
            store = self._store()
            discard_receipts(store, self.plan, _receipts(messages))
            close_stage(store, self.stage)

    def _store(self) -> GraphStore:
        return GraphStore.open(self.write_options.uri, self.write_options.storage or None)


def plan_write(given: Mapping[str, str], schema: StructType, overwrite: bool) -> GraphWriter:
    """Checks options and columns before any task runs."""
    options = parse_write_options(given, overwrite)
    store = GraphStore.open(options.uri, options.storage or None)
    columns = to_arrow_schema(schema, timezone="UTC")
    # Columns are checked first: forks of a branch are only made for a frame that fits.
    frame = plan_frame(read_catalog(store), options.table_key, columns)
    stage = open_stage(store)  # before a fork is made or looked for, so that clean-up leaves it alone
    try:
        return GraphWriter(options, plan_frame_load(store, options.request, options.table_key), frame, stage)
    except OmnigraphError:
        close_stage(store, stage)
        raise


def _receipts(messages: list[WriterCommitMessage | None]) -> list[RangeReceipt]:
    return [message.receipt for message in messages if isinstance(message, Staged)]
