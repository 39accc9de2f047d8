"""What a reader outside this process needs: one type of one snapshot, pinned; and the graph's own lists as tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import astuple, dataclass, replace

import pyarrow as pa

from spark_omnigraph.branch.consumers import list_consumers
from spark_omnigraph.branch.info import branch_infos
from spark_omnigraph.branch.tags import list_tags
from spark_omnigraph.catalog.types import Catalog, EntityType
from spark_omnigraph.commit.contract import contract_at, read_catalog, read_contract
from spark_omnigraph.errors import NotFoundError
from spark_omnigraph.graph.read.history import commit_history
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.manifest.facts import CommitFacts, encode_facts
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.manifest.commit_log import read_recoveries
from spark_omnigraph.storage.tables.scan import PinnedTable, column_names, fragment_sizes
from spark_omnigraph.write.indexes import IndexProgress, table_status

COMMITS = pa.schema(
    [
        pa.field("commit", pa.string(), nullable=False),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("manifest_version", pa.int64(), nullable=False),
        pa.field("parent", pa.string()),
        pa.field("merged_parent", pa.string()),
        pa.field("actor", pa.string()),
        pa.field("created_at", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("operation", pa.string()),
        pa.field("mode", pa.string()),
        pa.field("inserted", pa.int64()),
        pa.field("updated", pa.int64()),
        pa.field("deleted", pa.int64()),
        pa.field("bad", pa.int64()),
        pa.field("seconds", pa.float64()),
        pa.field("job", pa.string()),
        pa.field("run_id", pa.string()),
        pa.field("app_id", pa.string()),
        pa.field("txn_app_id", pa.string()),
        pa.field("txn_version", pa.int64()),
        pa.field("input_digest", pa.string()),
        pa.field("metadata", pa.map_(pa.string(), pa.string())),
        pa.field("facts", pa.string()),
    ]
)
"""The columns from `operation` on are facts, null where a commit has none; `facts` is all of them, counts of each table
too, as JSON.
"""
BRANCHES = pa.schema(
    [
        pa.field("branch", pa.string(), nullable=False),
        pa.field("parent", pa.string()),
        pa.field("manifest_version", pa.int64(), nullable=False),
        pa.field("head", pa.string()),
        pa.field("own_tables", pa.list_(pa.string()), nullable=False),
        pa.field("ahead", pa.int64(), nullable=False),
        pa.field("behind", pa.int64(), nullable=False),
        pa.field("merged_into", pa.list_(pa.string()), nullable=False),
    ]
)
TABLES = pa.schema(
    [
        pa.field("table", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("manifest_version", pa.int64(), nullable=False),
        pa.field("table_version", pa.int64(), nullable=False),
        pa.field("table_branch", pa.string(), nullable=False),
        pa.field("fragments", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("indexes", pa.int64(), nullable=False),
        pa.field("indexes_complete", pa.int64(), nullable=False),
    ]
)
STORED = frozenset({"fragments", "bytes", "indexes", "indexes_complete"})
"""Columns of the list of tables that only the tables themselves know."""
TAGS = pa.schema(
    [
        pa.field("tag", pa.string(), nullable=False),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("manifest_version", pa.int64(), nullable=False),
        pa.field("commit", pa.string()),
        pa.field("created_at", pa.timestamp("us", "UTC"), nullable=False),
    ]
)
CONSUMERS = pa.schema(
    [
        pa.field("consumer", pa.string(), nullable=False),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("manifest_version", pa.int64(), nullable=False),
        pa.field("updated_at", pa.timestamp("us", "UTC"), nullable=False),
    ]
)
RECOVERIES = pa.schema(
    [
        pa.field("commit", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("for_actor", pa.string()),
        pa.field("operation", pa.string(), nullable=False),
        pa.field("writer", pa.string(), nullable=False),
        pa.field("outcomes", pa.string(), nullable=False),
        pa.field("created_at", pa.timestamp("us", "UTC"), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class TypeAt:
    """One node or edge type as a snapshot shows it; `entity` has the properties that the pinned version stores."""

    entity: EntityType
    table: PinnedTable
    rows: int

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns: `id`, for edges `src` and `dst`, then the properties."""
        return self.entity.columns


def type_at(store: GraphStore, catalog: Catalog, snapshot: Snapshot, table_key: str) -> TypeAt:
    """A type by table key, pinned to a snapshot. NotFoundError when the schema or the snapshot lacks it."""
    entity = catalog.require(table_key)
    entry = snapshot.entries.get(table_key)
    if entry is None:
        raise _not_shown(entity, snapshot)
    table = pin(store, entry)
    stored = set(column_names(table))
    properties = tuple(p for p in entity.properties if p.name in stored)
    return TypeAt(replace(entity, properties=properties), table, entry.row_count)


def row_count(store: GraphStore, snapshot: Snapshot, table_key: str) -> int:
    """Stored rows of a type, from the manifest alone. NotFoundError as `type_at`."""
    entry = snapshot.entries.get(table_key)
    if entry is None:
        raise _not_shown(read_catalog(store).require(table_key), snapshot)
    return entry.row_count


def _not_shown(entity: EntityType, snapshot: Snapshot) -> NotFoundError:
    return NotFoundError(f"{entity.table_key.spelled} does not exist at manifest version {snapshot.version}")


def pin(store: GraphStore, entry: TableEntry) -> PinnedTable:
    """What travels to a task instead of an open dataset."""
    return PinnedTable(
        store.table_uri(entry.location, entry.branch), entry.version, store.storage_options, entry.origin
    )


def pinned_rows(store: GraphStore, snapshot: Snapshot, table_key: str) -> PinnedTable | None:
    """The table of a type, None where a snapshot has no row of it."""
    entry = snapshot.entries.get(table_key)
    return None if entry is None or not entry.row_count else pin(store, entry)


def commits_table(store: GraphStore, branch: str | None) -> pa.Table:
    """Commits that a branch sees with their facts, newest first."""
    rows = [
        (
            *(c.id, display(c.branch), c.manifest_version, c.parent, c.merged_parent, c.actor, c.created_micros),
            *_fact_columns(c.facts),
        )
        for c in commit_history(store, branch)
    ]
    return _table(rows, COMMITS)


def _fact_columns(facts: CommitFacts | None) -> tuple[object, ...]:
    if facts is None:
        return (None,) * int(len(COMMITS) - COMMITS.get_field_index("operation"))
    origin, name = facts.origin, facts.transaction
    return (
        *(facts.operation, facts.mode, *astuple(facts.totals()), facts.seconds),
        *(origin.job, origin.run_id, origin.app_id),
        *((None, None) if name is None else (name.app_id, name.version)),
        *(facts.input_digest, list(origin.metadata.items()), encode_facts(facts)),
    )


def branches_table(store: GraphStore) -> pa.Table:
    """All branches, main first: a row for each `BranchInfo`."""
    return _table((astuple(info) for info in branch_infos(store)), BRANCHES)


def tags_table(store: GraphStore) -> pa.Table:
    """All tags, by name."""
    tags = list_tags(store).values()
    return _table(((t.name, display(t.branch), t.manifest_version, t.commit, t.created_micros) for t in tags), TAGS)


def consumers_table(store: GraphStore) -> pa.Table:
    """All consumers by name, and up to which version they have read their branch."""
    store.manifest(None)
    rows = ((c.name, display(c.branch), c.version, c.updated_micros) for c in list_consumers(store))
    return _table(rows, CONSUMERS)


def recoveries_table(store: GraphStore) -> pa.Table:
    """Interrupted writes that were finished or undone, oldest first; `outcomes` is JSON."""
    store.manifest(None)
    return _table((astuple(audit) for audit in read_recoveries(store.location)), RECOVERIES)


def tables_table(store: GraphStore, snapshot: Snapshot, columns: Collection[str] | None = None) -> pa.Table:
    """All types of a snapshot with their row counts, pins, files and indexes, nodes first; `columns` leaves others out.

    `indexes` are those that the schema asks for, `indexes_complete` those that cover every row. The columns of `STORED`
    open every table; the rest comes from the manifest.
    """
    entries = sorted(snapshot.entries.values(), key=lambda e: (e.table_key.kind != "node", e.table_key))
    is_opened = columns is None or not STORED.isdisjoint(columns)
    catalog = contract_at(store, snapshot, read_contract(store)).catalog if is_opened else None
    rows: list[tuple[object, ...]] = []
    for entry in entries:
        key, line = entry.table_key, display(snapshot.branch)
        pins = (line, snapshot.version, entry.version, display(entry.branch))
        stored = () if catalog is None else _stored(store, catalog, entry)
        rows.append((key, key.kind, key.type_name, entry.row_count, *pins, *stored))
    known = TABLES if is_opened else pa.schema([field for field in TABLES if field.name not in STORED])
    table = _table(rows, known)
    return table if columns is None else table.select([name for name in TABLES.names if name in columns])


def _stored(store: GraphStore, catalog: Catalog, entry: TableEntry) -> tuple[int, int, int, int]:
    sizes = fragment_sizes(pin(store, entry))
    entity = catalog.table(entry.table_key)
    indexes = [] if entity is None else table_status(store, entity, entry)
    complete = sum(status.progress is IndexProgress.COMPLETE for status in indexes)
    return len(sizes), sum(size.bytes for size in sizes), len(indexes), complete


def _table(rows: Iterable[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    listed = list(rows)
    columns = [pa.array([row[i] for row in listed], field.type) for i, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)
