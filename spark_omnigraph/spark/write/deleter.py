"""Deleting the rows whose ids a frame has: tasks send ids, the driver's worker deletes them in one commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from spark_omnigraph.commit.contract import read_catalog
from spark_omnigraph.errors import TransactionCommittedError
from spark_omnigraph.graph.delete.by_id import DeleteReport, DeleteRequest
from spark_omnigraph.graph.delete.frame import DELETE_COLUMNS, FrameIds, check_delete_columns, delete_frame, frame_ids
from spark_omnigraph.graph.load.options import LoadReport
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.spark.errors import coded
from spark_omnigraph.spark.portable import Portable
from spark_omnigraph.spark.types import arrow_columns
from spark_omnigraph.spark.write.options import WriteOptions, current_query

_LOG = logging.getLogger(__name__)
Messages = list[WriterCommitMessage | None]
"""One of each task; None of one that failed."""


@dataclass
class Ids(WriterCommitMessage):
    """Distinct ids of one task; in a stream also the id of the query."""

    part: FrameIds
    query: str | None = None


class _Deleter(Portable):
    """What batch and stream share. Holds only picklable values."""

    def __init__(self, options: WriteOptions) -> None:
        self.write_options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Collects the ids of one partition."""
        with coded():
            return Ids(frame_ids(iterator, self.write_options.table_key), current_query())

    def delete(self, messages: Messages, transaction: Transaction | None) -> None:
        """Deletes the ids of all tasks in one commit."""
        asked, parts = self.write_options.request, [message.part for message in messages if isinstance(message, Ids)]
        request = DeleteRequest({}, asked.branch, asked.actor, transaction, asked.origin)
        log_outcome(lambda: delete_frame(self.write_options.open(), parts, request))


class DeletingWriter(_Deleter, DataSourceArrowWriter):
    """`save()` with `loadMode` delete."""

    def commit(self, messages: Messages) -> None:
        """Deletes, or refuses and changes nothing."""
        with coded():
            self.delete(messages, self.write_options.request.transaction)


class DeletingStreamWriter(_Deleter, DataSourceStreamArrowWriter):
    """A stream with `loadMode` delete: one commit for each micro-batch."""

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        """Deletes the ids of a batch, unless the graph has it already."""
        query = next((m.query for m in messages if isinstance(m, Ids) and m.query), None)
        with coded():
            self.delete(messages, self.write_options.batch_name(query, batchId))


def check_delete(options: WriteOptions, schema: StructType) -> None:
    """Refuses, before any task runs, a frame without ids and types that the graph lacks."""
    telling = StructType([field for field in schema.fields if field.name in DELETE_COLUMNS])
    check_delete_columns(read_catalog(options.open()), options.table_key, arrow_columns(telling))


def log_outcome(write: Callable[[], LoadReport | DeleteReport]) -> None:
    """Commits where nobody sees a report: logs what it warns of and what was left out, or that the write was committed
    before. Lines reach the standard error of the driver, or of the server of Spark Connect.
    """
    try:
        report = write()
    except TransactionCommittedError as again:
        _LOG.warning(again.message)
        return
    left_out = report.left_out if isinstance(report, LoadReport) else None
    for line in (*report.warnings, left_out):
        if line is not None:
            _LOG.warning(line)
