"""The change feed: rows that each commit of a branch inserted, updated and deleted, in the order of the commits."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType, Scalar
from spark_omnigraph.errors import NotFoundError, StorageError, VersionExpiredError
from spark_omnigraph.graph.changes.diff import Image, TableDiff, changed_tables
from spark_omnigraph.graph.read.export import plain_values
from spark_omnigraph.graph.read.history import list_commits
from spark_omnigraph.graph.read.scan import pin
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.lineage import Commit, head
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.records.arrow_schema import property_type
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.scan import stored_versions

COMMIT_COLUMNS = (
    pa.field("_change_type", pa.string(), nullable=False),
    pa.field("_commit_version", pa.int64(), nullable=False),
    pa.field("_commit_id", pa.string(), nullable=False),
    pa.field("_commit_timestamp", pa.timestamp("us", "UTC"), nullable=False),
)
"""Behind the columns of the rows: which image of a changed row this is, and which commit changed it."""

ENVELOPE = pa.schema(
    [
        pa.field("table", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("src", pa.string()),
        pa.field("dst", pa.string()),
        pa.field("data", pa.string(), nullable=False),
        *COMMIT_COLUMNS,
    ]
)
"""Changes of all types together: `data` is the row as JSON, with the values that export writes."""


@dataclass(frozen=True, slots=True)
class FeedTask:
    """One table that one commit changed. Picklable; whoever reads it needs no graph, only the table's two versions."""

    change: TableDiff
    entity: EntityType
    """The type as the schema is now; properties that the versions lack are null."""
    commit: Commit


def first_parents(store: GraphStore, branch: Branch) -> list[Commit]:
    """The commits that made a branch what it is, oldest first: its own, then those of where it was forked from."""
    by_id = {commit.id: commit for commit in list_commits(store, branch)}
    line: list[Commit] = []
    commit = head(by_id.values())
    while commit is not None:
        line.append(commit)
        commit = by_id.get(commit.parent) if commit.parent is not None else None
    return line[::-1]


def feed_tasks(
    store: GraphStore, catalog: Catalog, commits: list[Commit], first: int, last: int, table_key: TableKey | None
) -> list[FeedTask]:
    """What the commits of manifest versions `first` to `last` changed, of one table or of all.

    `commits` are those of `first_parents`. VersionExpiredError when a version that must be compared is not stored
    any more; it says where the feed can start.
    """
    found: list[FeedTask] = []
    before: Snapshot | None = None
    for parent, commit in pairwise(commits):
        if not first <= commit.manifest_version <= last:
            continue
        try:
            before, after = before or _state(store, parent), _state(store, commit)
            changes = changed_tables(store, catalog, before, after)
        except (NotFoundError, StorageError) as error:
            oldest = _oldest_start(store, commits)
            if oldest is None or oldest <= commit.manifest_version:
                raise
            raise VersionExpiredError(
                f"what version {commit.manifest_version} changed is not stored any more: a clean-up removed older "
                f"versions of tables; the change feed can start at version {oldest}"
            ) from error
        for change in changes:
            if table_key in (None, change.entity.table_key):
                entity = catalog.table(change.entity.table_key)
                assert entity is not None
                found.append(FeedTask(change, entity, commit))
        before = after
    return found


def _state(store: GraphStore, commit: Commit) -> Snapshot:
    return store.snapshot(commit.branch, commit.manifest_version)


def _oldest_start(store: GraphStore, commits: list[Commit]) -> int | None:
    """The oldest version that a feed up to now can start at, by the versions that are stored; None when none is."""
    kept: dict[str, frozenset[int]] = {}
    oldest = None
    for parent, commit in list(pairwise(commits))[::-1]:
        try:
            pins = [pin(store, entry) for entry in _state(store, parent).entries.values()]
        except (NotFoundError, StorageError):
            break
        kept.update({table.uri: stored_versions(table) for table in pins if table.uri not in kept})
        if any(table.version not in kept[table.uri] for table in pins):
            break
        oldest = commit.manifest_version
    return oldest


def check_start(store: GraphStore, branch: Branch, first: int) -> None:
    """NotFoundError for a start behind the version that comes next."""
    newest = int(store.manifest(branch).version)
    if first > newest + 1:
        raise NotFoundError(f"manifest version {first} does not exist yet: the newest is {newest}")


def read_typed(task: FeedTask) -> Iterator[pa.RecordBatch]:
    """Changed rows with all columns of their type, then the commit's."""
    wanted = task.entity.columns
    stored = task.change.columns
    for image, batch in task.change.images(stored):
        arrays = [
            _as_declared(task.entity, name, batch.column(name) if name in stored else pa.nulls(batch.num_rows))
            for name in wanted
        ]
        yield _with_commit(task, image, arrays, wanted, batch.num_rows)


def read_envelopes(task: FeedTask) -> Iterator[pa.RecordBatch]:
    """Changed rows as `ENVELOPE`."""
    is_edge = isinstance(task.entity, EdgeType)
    for image, batch in task.change.images(task.change.columns):
        ends = [batch.column(n) if is_edge else pa.nulls(batch.num_rows, pa.string()) for n in ("src", "dst")]
        table = pa.array([task.entity.table_key] * batch.num_rows)
        arrays = [table, batch.column("id"), *ends, _json_rows(task.entity, batch)]
        yield _with_commit(task, image, arrays, ("table", "id", "src", "dst", "data"), batch.num_rows)


def _with_commit(
    task: FeedTask, image: Image, arrays: list[pa.Array], names: tuple[str, ...], rows: int
) -> pa.RecordBatch:
    commit = task.commit
    facts = (str(image), commit.manifest_version, commit.id, commit.created_micros)
    repeated = [pa.array([value] * rows, field.type) for value, field in zip(facts, COMMIT_COLUMNS, strict=True)]
    return pa.RecordBatch.from_arrays([*arrays, *repeated], names=[*names, *(f.name for f in COMMIT_COLUMNS)])


def _as_declared(entity: EntityType, name: str, column: pa.Array) -> pa.Array:
    """A column in the type that it has now; a former version may have stored a narrower one, or none."""
    found = entity.property(name)
    if found is None:
        return column
    kind = pa.large_binary() if found.type.scalar is Scalar.BLOB else property_type(found.type)
    return column if column.type == kind else column.cast(kind)


def _json_rows(entity: EntityType, batch: pa.RecordBatch) -> pa.Array:
    names = [name for name in batch.schema.names if name not in ("src", "dst")]
    columns = [plain_values(entity, name, batch.column(name)) for name in names]
    rows = zip(*columns, strict=True)
    return pa.array([json.dumps(dict(zip(names, map(_plain, row), strict=True)), ensure_ascii=False) for row in rows])


def _plain(value: object) -> object:
    """What JSON cannot carry, as text: bytes as in export, floats that are not finite by their names."""
    if isinstance(value, bytes):
        return f"base64:{base64.b64encode(value).decode()}"
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
