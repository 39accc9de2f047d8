"""Tasks and commit of a write."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from spark_omnigraph.commit.contract import read_catalog
from spark_omnigraph.commit.lease import close_stage, open_stage, staging
from spark_omnigraph.errors import OmnigraphError, TransactionCommittedError
from spark_omnigraph.graph.load.frame import (
    StagedPart,
    capture_frame,
    discard_parts,
    enter_frame,
    finish_frame_load,
    plan_frame_load,
    staged_part,
)
from spark_omnigraph.graph.load.load import LoadPlan, LoadRequest
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.records.frames.decode import FrameDecoder, FramePlan, plan_frame
from spark_omnigraph.spark.errors import coded
from spark_omnigraph.spark.portable import Portable
from spark_omnigraph.spark.types import arrow_columns
from spark_omnigraph.spark.write.deleter import DeletingStreamWriter, DeletingWriter, check_delete
from spark_omnigraph.spark.write.options import WriteOptions, current_batch, current_query, parse_write_options
from spark_omnigraph.staging.stage import stage_frame
from spark_omnigraph.storage.graph_store import GraphStore

_LOG = logging.getLogger(__name__)


@dataclass
class Staged(WriterCommitMessage):
    """What the attempt of a task that won has staged; in a stream also which query and batch it belongs to."""

    part: StagedPart
    query: str | None = None
    stage: str | None = None
    """Of a stream: the stage that all tasks of a batch share, for the commit to close."""


class GraphWriter(Portable, DataSourceArrowWriter):
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
            receipt = stage_frame(context, decoder, iterator, task.partitionId() if task is not None else 0)
            return Staged(staged_part(context, receipt))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Checks all rows together and commits them, or refuses and removes what was staged."""
        with coded():
            store, request = self._store(), replace(self.write_options.request, stages=(self.stage,))
            try:
                report = finish_frame_load(store, request, self.plan, _parts(messages))
            except TransactionCommittedError as again:
                _LOG.warning(again.message)
                return
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
            discard_parts(store, _parts(messages))
            close_stage(store, self.stage)

    def _store(self) -> GraphStore:
        return GraphStore.open(self.write_options.uri, self.write_options.storage or None)


def plan_write(given: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
    """Checks options and columns before any task runs."""
    options = parse_write_options(given, overwrite)
    if options.deletes:
        check_delete(options, schema)
        return DeletingWriter(options)
    store = GraphStore.open(options.uri, options.storage or None)
    columns = arrow_columns(schema)
    # Columns are checked first: forks of a branch are only made for a frame that fits.
    frame = plan_frame(read_catalog(store), options.table_key, columns)
    stage = open_stage(store)  # before a fork is made or looked for, so that clean-up leaves it alone
    try:
        return GraphWriter(options, plan_frame_load(store, options.request, options.table_key), frame, stage)
    except OmnigraphError:
        close_stage(store, stage)
        raise


def _parts(messages: list[WriterCommitMessage | None]) -> list[StagedPart]:
    return [message.part for message in messages if isinstance(message, Staged)]


def _stages(messages: list[WriterCommitMessage | None]) -> tuple[str, ...]:
    return tuple(sorted({message.stage for message in messages if isinstance(message, Staged) and message.stage}))


def _close_stages(store: GraphStore, messages: list[WriterCommitMessage | None]) -> None:
    for stage in _stages(messages):
        close_stage(store, stage)


class GraphStreamWriter(Portable, DataSourceStreamArrowWriter):
    """One graph commit for each micro-batch. Tasks look by themselves at what stands when their batch begins, since
    Spark makes one writer for a query; they change nothing but by staging.

    Spark hands the id of a batch to `commit`, but that of the query only to tasks, which send it along.
    """

    def __init__(self, options: WriteOptions, columns: pa.Schema) -> None:
        self.write_options = options
        self.columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stages the rows of one partition of a batch."""
        task = TaskContext.get()
        with coded():
            store = self._store()
            # Before a fork is looked for, so that clean-up leaves it and what is staged alone.
            stage = open_stage(store, shared=current_batch())
            context = self._plan(store).context
            # The schema may have changed since the query began.
            frame = plan_frame(context.catalog, self.write_options.table_key, self.columns)
            decoder = FrameDecoder(context.catalog, context.decode, frame)
            receipt = stage_frame(context, decoder, iterator, task.partitionId() if task is not None else 0)
            return Staged(staged_part(context, receipt), current_query(), stage)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commits a batch, unless the graph has it already: Spark repeats a batch whose end it does not remember."""
        with coded():
            store = self._store()
            with staging(store) as stage:
                request = replace(self._named(messages, batchId), stages=(*_stages(messages), stage))
                try:
                    report = finish_frame_load(store, request, self._plan(store), _parts(messages))
                except TransactionCommittedError as again:
                    _LOG.warning(again.message)
                    return
                finally:
                    _close_stages(store, messages)
        for warning in report.warnings:
            _LOG.warning(warning)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Removes what the tasks of a batch staged that failed; see `GraphWriter.abort`."""
        if all(message is not None for message in messages):
            return
        with coded():
            store = self._store()
            discard_parts(store, _parts(messages))
            _close_stages(store, messages)

    def _named(self, messages: list[WriterCommitMessage | None], batch: int) -> LoadRequest:
        request = self.write_options.request
        request = replace(request, options=replace(request.options, batch=batch))
        query = next((m.query for m in messages if isinstance(m, Staged) and m.query), None)
        app_id = self.write_options.app_id or query
        return request if app_id is None else replace(request, transaction=Transaction(app_id, batch))

    def _plan(self, store: GraphStore) -> LoadPlan:
        return capture_frame(store, self.write_options.request, self.write_options.table_key)

    def _store(self) -> GraphStore:
        return GraphStore.open(self.write_options.uri, self.write_options.storage or None)


def plan_stream_write(given: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
    """Checks options and columns before a query starts, heals, and forks the tables that it will write on a branch.
    Spark calls it again for the commit of each batch, on the driver too.
    """
    options = parse_write_options(given, overwrite, stream=True)
    if options.deletes:
        check_delete(options, schema)
        return DeletingStreamWriter(options)
    store = GraphStore.open(options.uri, options.storage or None)
    columns = arrow_columns(schema)
    plan_frame(read_catalog(store), options.table_key, columns)
    enter_frame(store, options.request, options.table_key)
    return GraphStreamWriter(options, columns)
