"""Tasks and commit of a write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from spark_omnigraph.commit.contract import read_catalog
from spark_omnigraph.commit.stage import close_stage, open_stage, staging
from spark_omnigraph.errors import OmnigraphError
from spark_omnigraph.graph.load.frame import (
    StagedPart,
    capture_frame,
    discard_parts,
    enter_frame,
    finish_frame_load,
    plan_frame_load,
    staged_part,
)
from spark_omnigraph.graph.load.inputs import accepted
from spark_omnigraph.graph.load.load import LoadPlan
from spark_omnigraph.graph.load.options import decoding
from spark_omnigraph.records.frames.rules import plan_rows
from spark_omnigraph.spark.errors import coded, provider_of_process
from spark_omnigraph.spark.portable import Portable
from spark_omnigraph.spark.types import arrow_columns
from spark_omnigraph.spark.write.deleter import (
    DeletingStreamWriter,
    DeletingWriter,
    Messages,
    check_delete,
    log_outcome,
)
from spark_omnigraph.spark.write.options import (
    WriteOptions,
    current_batch,
    current_query,
    parse_write_options,
    tasks_beside,
)
from spark_omnigraph.staging.receipt import StageContext
from spark_omnigraph.staging.stage import stage_frame
from spark_omnigraph.storage.graph_store import GraphStore

_WAY_OUT = "`Graph.load` asks whom its options name, and `embed` gives stored rows their vectors"


@dataclass
class Staged(WriterCommitMessage):
    """What the attempt of a task that won has staged; in a stream also which query and batch it belongs to."""

    part: StagedPart
    query: str | None = None
    stage: str | None = None
    """Of a stream: the stage that all tasks of a batch share, for the commit to close."""


class GraphWriter(Portable, DataSourceArrowWriter):
    """Stages in tasks and commits in the driver's worker. Holds only picklable values: Spark copies it to each."""

    def __init__(self, options: WriteOptions, plan: LoadPlan, stage: str) -> None:
        self.write_options = options
        self.plan = plan
        self.stage = stage

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stages the rows of one partition."""
        with coded():
            return Staged(_stage(self.plan.context, self.write_options, iterator))

    def commit(self, messages: Messages) -> None:
        """Checks all rows together and commits them, or refuses and removes what was staged."""
        with _ending(self.write_options, (self.stage,)) as store:
            request = replace(self.write_options.request, stages=(self.stage,))
            log_outcome(lambda: finish_frame_load(store, request, self.plan, _parts(messages)))

    def abort(self, messages: Messages) -> None:
        """Removes staged files of a job whose tasks failed."""
        _give_up(self.write_options, messages, (self.stage,))


def plan_write(given: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
    """Checks options and columns before any task runs."""
    options = parse_write_options(given, overwrite)
    store = options.open()
    store.require_writable()
    if options.deletes:
        check_delete(options, schema)
        return DeletingWriter(options)
    columns = arrow_columns(schema)
    # Columns are checked first: forks of a branch are only made for a frame that fits.
    _check(store, options, columns)
    stage = open_stage(store)  # before a fork is made or looked for, so that clean-up leaves it alone
    try:
        with provider_of_process("process in which Spark plans the write", _WAY_OUT):
            plan = plan_frame_load(store, options.request, options.table_key)
        return GraphWriter(options, plan, stage)
    except OmnigraphError:
        close_stage(store, stage)
        raise


def _check(store: GraphStore, options: WriteOptions, columns: pa.Schema) -> None:
    chosen = options.request.options
    plan_rows(accepted(read_catalog(store), chosen), options.input, columns, decoding(chosen, options.request.mode))


def _stage(context: StageContext, options: WriteOptions, batches: Iterator[pa.RecordBatch]) -> StagedPart:
    task = TaskContext.get()
    index = task.partitionId() if task is not None else 0
    if context.fill is not None:
        # Those of a stream plan by themselves: the name of the query keeps their pace from batch to batch.
        context = replace(context, fill=context.fill.shared(options.embed_tasks or tasks_beside(), current_query()))
    return staged_part(context, stage_frame(context, options.input, batches, index))


def _parts(messages: Messages) -> list[StagedPart]:
    return [message.part for message in messages if isinstance(message, Staged)]


@contextmanager
def _ending(options: WriteOptions, stages: tuple[str, ...]) -> Iterator[GraphStore]:
    """The graph, for the last step of a write; then its stages are over."""
    with coded():
        store = options.open()
        try:
            yield store
        finally:
            for stage in stages:
                close_stage(store, stage)


def _give_up(options: WriteOptions, messages: Messages, stages: tuple[str, ...]) -> None:
    """Removes staged files of a job whose tasks failed.

    Spark calls this after a failed `commit` too, which then has all messages: what was staged may have been armed or
    published by then, and the commit has cleaned up itself as far as that is safe.
    """
    if any(message is None for message in messages):
        with _ending(options, stages) as store:
            discard_parts(store, _parts(messages))


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
        with coded():
            store = self.write_options.open()
            # Before a fork is looked for, so that clean-up leaves it and what is staged alone.
            stage = open_stage(store, shared=current_batch())
            context = self._capture(store).context
            # The schema may have changed since the query began.
            _check(store, self.write_options, self.columns)
            return Staged(_stage(context, self.write_options, iterator), current_query(), stage)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commits a batch, unless the graph has it already: Spark repeats a batch whose end it does not remember."""
        stages, options = _stages(messages), self.write_options
        with _ending(options, stages) as store, staging(store) as stage:
            query = next((m.query for m in messages if isinstance(m, Staged) and m.query), None)
            request = replace(
                options.request,
                options=replace(options.request.options, batch=batchId),
                transaction=options.batch_name(query, batchId),
                stages=(*stages, stage),
            )
            log_outcome(lambda: finish_frame_load(store, request, self._capture(store), _parts(messages)))

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        """Removes what the tasks of a batch staged that failed."""
        _give_up(self.write_options, messages, _stages(messages))

    def _capture(self, store: GraphStore) -> LoadPlan:
        with provider_of_process("processes of Spark that run the stream", _WAY_OUT):
            return capture_frame(store, self.write_options.request, self.write_options.table_key)


def _stages(messages: Messages) -> tuple[str, ...]:
    return tuple(sorted({message.stage for message in messages if isinstance(message, Staged) and message.stage}))


def plan_stream_write(given: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
    """Checks options and columns before a query starts, heals, and forks the tables that it will write on a branch.
    Spark calls it again for the commit of each batch, on the driver too.
    """
    options = parse_write_options(given, overwrite, stream=True)
    store = options.open()
    store.require_writable()
    if options.deletes:
        check_delete(options, schema)
        return DeletingStreamWriter(options)
    columns = arrow_columns(schema)
    _check(store, options, columns)
    enter_frame(store, options.request, options.table_key)
    return GraphStreamWriter(options, columns)
