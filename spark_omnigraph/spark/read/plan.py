"""A `load()`, worked out: options → what to read, pinned and checked, with the frame's schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.commit.contract import view
from spark_omnigraph.graph.read.history import ReadTarget, resolve
from spark_omnigraph.graph.read.query import Prepared, QueryTask, bound_plan, prepare, query_task
from spark_omnigraph.graph.read.scan import (
    TABLES,
    TypeAt,
    branches_table,
    commits_table,
    consumers_table,
    recoveries_table,
    tables_table,
    tags_table,
    type_at,
)
from spark_omnigraph.lang.gq.plan import Plan
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.predicates.user_filter import filter_sql
from spark_omnigraph.spark.errors import provider_of_process
from spark_omnigraph.spark.read.options import MetaTable, ReadOptions, parse_read_options
from spark_omnigraph.spark.types import answer_schema, check_user_schema, frame_schema, select_columns
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.scan import PinnedTable, TableScan, check_filter
from spark_omnigraph.storage.tables.staged import packed

if TYPE_CHECKING:
    from spark_omnigraph.spark.read.conflicts import ConflictsTask

COUNT_FRAME = StructType([StructField("type", StringType(), False), StructField("count", LongType(), False)])


@dataclass(frozen=True, slots=True)
class CountTask:
    """A count that needs a scan: rows of one pinned table that a predicate keeps."""

    table_key: TableKey
    table: PinnedTable
    where: str


@dataclass(frozen=True, slots=True)
class TablesTask:
    """The list of the types of one snapshot. Its task finds it, when it knows which columns are wanted."""

    uri: str
    snapshot: Snapshot
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    def run(self, columns: Sequence[str]) -> pa.Table:
        """The columns, in the given order."""
        store = GraphStore.open(self.uri, self.storage or None)
        return tables_table(store, self.snapshot, columns).select(list(columns))


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What the tasks of one `load()` do. `source` is a scan, a count, a query, a list of tables, conflicts, or a small
    result that is known.
    """

    frame: StructType
    owner: str
    source: TableScan | CountTask | QueryTask | TablesTask | ConflictsTask | bytes

    def for_schema(self, asked: StructType) -> ReadPlan:
        """The same read under a schema that the user gave: it prunes and orders columns, types must be the graph's."""
        check_user_schema(self.frame, asked, self.owner)
        if isinstance(self.source, TableScan):
            return replace(self, frame=asked, source=replace(self.source, columns=tuple(asked.names)))
        return replace(self, frame=asked)


def plan_read(given: Mapping[str, str], now: datetime | None = None) -> ReadPlan:
    """Checks everything that can be checked without reading rows, and pins the snapshot.

    Raises BadRequestError and NotFoundError for options, columns, predicates, types and versions that do not fit.
    """
    options = parse_read_options(given)
    store = GraphStore.open(options.uri, options.storage or None)
    if options.meta is MetaTable.COMMITS:
        return _known(commits_table(store, options.branch), "table 'commits'")
    if options.meta is MetaTable.BRANCHES:
        return _known(branches_table(store), "table 'branches'")
    if options.meta is MetaTable.RECOVERIES:
        return _known(recoveries_table(store), "table 'recoveries'")
    if options.meta is MetaTable.TAGS:
        return _known(tags_table(store), "table 'tags'")
    if options.meta is MetaTable.CONSUMERS:
        return _known(consumers_table(store), "table 'consumers'")
    if options.meta is MetaTable.CONFLICTS:
        from spark_omnigraph.spark.read.conflicts import conflicts_task  # noqa: PLC0415 - other reads merge nothing

        frame, conflicts = conflicts_task(store, options)
        return ReadPlan(frame, "table 'conflicts'", conflicts)
    target = ReadTarget(options.branch, options.version, options.snapshot, options.as_of, options.tag)
    contract, snapshot = view(store, lambda: resolve(store, target))
    if options.meta is MetaTable.TABLES:
        task = TablesTask(options.uri, snapshot, options.storage)
        return ReadPlan(from_arrow_schema(TABLES), "table 'tables'", task)
    if options.query is not None:
        return _plan_query(store, contract.catalog, snapshot, options, now)
    if options.table_key is None:
        return _known_counts({key: entry.row_count for key, entry in snapshot.entries.items()})
    return _plan_type(store, contract.catalog, snapshot, options, now or datetime.now(timezone.utc))


def _plan_type(
    store: GraphStore, catalog: Catalog, snapshot: Snapshot, options: ReadOptions, now: datetime
) -> ReadPlan:
    assert options.table_key is not None
    found = type_at(store, catalog, snapshot, options.table_key)
    where = filter_sql(options.filter, options.where, found.entity, now)
    if where is not None:
        check_filter(found.table, where)
    if options.count:
        return _count(options.table_key, found, where)
    owner = f"'{found.entity.name}'"
    frame = frame_schema(found.entity)
    if options.columns is not None:
        frame = select_columns(frame, options.columns, owner)
    return ReadPlan(frame, owner, TableScan(found.table, tuple(frame.names), where, options.limit))


def _plan_query(
    store: GraphStore, catalog: Catalog, snapshot: Snapshot, options: ReadOptions, now: datetime | None
) -> ReadPlan:
    prepared = prepare(catalog, options.query or "", options.query_name)
    task = query_task(store, catalog, snapshot, _bound(prepared, options.params, now))
    return ReadPlan(answer_schema(task.plan.columns), f"query '{task.plan.query}'", task)


def _bound(prepared: Prepared, params: Mapping[str, object] | None, now: datetime | None) -> Plan:
    way_out = "`read_query` and `Graph.query` ask from your own"
    with provider_of_process("process in which Spark plans the query", way_out):
        return bound_plan(prepared, params, now)


def _count(table_key: TableKey, found: TypeAt, where: str | None) -> ReadPlan:
    if where is None:
        return _known_counts({table_key: found.rows})
    return ReadPlan(COUNT_FRAME, "a count", CountTask(table_key, found.table, where))


def _known_counts(counts: Mapping[str, int]) -> ReadPlan:
    rows = pa.table({"type": list(counts), "count": pa.array(counts.values(), pa.int64())})
    return ReadPlan(COUNT_FRAME, "a count", packed(rows))


def _known(rows: pa.Table, owner: str) -> ReadPlan:
    return ReadPlan(from_arrow_schema(rows.schema), owner, packed(rows))
