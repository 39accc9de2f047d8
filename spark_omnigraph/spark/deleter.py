"""Deleting the rows whose ids a frame has: tasks send ids, the driver's worker deletes them in one commit."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StringType, StructType

from spark_omnigraph.errors import BadRequestError, NotFoundError, TransactionCommittedError
from spark_omnigraph.graph.contract import read_catalog
from spark_omnigraph.graph.delete_ids import DeleteRequest, delete_ids
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.spark.errors import coded
from spark_omnigraph.spark.write_options import WriteOptions, current_query
from spark_omnigraph.storage.graph_store import GraphStore

_LOG = logging.getLogger(__name__)


@dataclass
class Ids(WriterCommitMessage):
    """Distinct ids of one task; in a stream also the id of the query."""

    ids: list[str]
    nulls: int
    query: str | None = None


class _Deleter:
    """What batch and stream share. Holds only picklable values."""

    def __init__(self, options: WriteOptions) -> None:
        self.write_options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Collects the ids of one partition."""
        found: set[str] = set()
        nulls = 0
        for batch in iterator:
            ids = batch.column("id")
            nulls += ids.null_count
            found.update(pc.unique(ids.drop_null()).to_pylist())
        return Ids(sorted(found), nulls, current_query())

    def delete(self, messages: list[WriterCommitMessage | None], transaction: Transaction | None) -> None:
        """Deletes the ids of all tasks in one commit."""
        told = [message for message in messages if isinstance(message, Ids)]
        table_key, request = self.write_options.table_key, self.write_options.request
        assert table_key is not None
        nulls = sum(message.nulls for message in told)
        if nulls:
            raise BadRequestError(f"{nulls} rows of the frame to delete have no id; filter them out first")
        ids = pa.array([one for message in told for one in message.ids], pa.string())
        store = GraphStore.open(self.write_options.uri, self.write_options.storage or None)
        try:
            report = delete_ids(store, DeleteRequest({table_key: ids}, request.branch, request.actor, transaction))
        except TransactionCommittedError as again:
            _LOG.warning(again.message)
            return
        for warning in report.warnings:
            _LOG.warning(warning)


class DeletingWriter(_Deleter, DataSourceArrowWriter):
    """`save()` with `loadMode` delete."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Deletes, or refuses and changes nothing."""
        with coded():
            self.delete(messages, self.write_options.request.transaction)


class DeletingStreamWriter(_Deleter, DataSourceStreamArrowWriter):
    """A stream with `loadMode` delete: one commit for each micro-batch."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Deletes the ids of a batch, unless the graph has it already."""
        query = next((m.query for m in messages if isinstance(m, Ids) and m.query), None)
        app_id = self.write_options.app_id or query
        with coded():
            self.delete(messages, None if app_id is None else Transaction(app_id, batchId))


def check_delete(options: WriteOptions, schema: StructType) -> None:
    """Refuses, before any task runs, a frame without ids and options that mean nothing here."""
    if options.table_key is None:
        raise BadRequestError("loadMode 'delete' takes ids of one type: name it with the option 'node' or 'edge'")
    catalog = read_catalog(GraphStore.open(options.uri, options.storage or None))
    if catalog.table(options.table_key) is None:
        raise NotFoundError(f"{options.table_key.replace(':', ' type ', 1)} is not in the schema")
    fields = {field.name: field.dataType for field in schema.fields}
    if not isinstance(fields.get("id"), StringType):
        found = f"is {fields['id'].simpleString()}" if "id" in fields else "is missing"
        raise BadRequestError(f"loadMode 'delete' needs a string column 'id', which {found}; other columns are ignored")
