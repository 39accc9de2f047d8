"""Missing indexes: derived state, built as a write of its own that makes no commit.

When a load is changing one of the tables right now, the indexes are left for the next time: an index never holds up
data, and a missing one never changes an answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType, Index, Key, Property, Scalar
from spark_omnigraph.commit.lease import staging
from spark_omnigraph.commit.plan import Identity, PreparedCommit, TableWrite, WriterKind
from spark_omnigraph.commit.protocol import commit
from spark_omnigraph.errors import ConflictError, TextEnum
from spark_omnigraph.graph.contract import current_hash, read_catalog
from spark_omnigraph.graph.executor import available_cores
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.commits import TableChange
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.index import MOST_SEGMENTS, WantedIndex, build, coverage, has_values, is_due

_BTREE_SCALARS = frozenset(
    {
        Scalar.BOOL,
        Scalar.I32,
        Scalar.I64,
        Scalar.U32,
        Scalar.U64,
        Scalar.F32,
        Scalar.F64,
        Scalar.DATE,
        Scalar.DATETIME,
    }
)


ATTEMPTS = 3
"""Times that `ensure_indices` begins again when other writes get in the way."""


class Progress(TextEnum):
    """How far an index is."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    MISSING = "missing"
    DEFERRED = "deferred"
    """A vector column that holds no value yet."""


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """One index that the schema asks for: how many of the table's rows it covers. `name` is None when it is missing."""

    table_key: str
    column: str
    kind: str
    name: str | None
    rows: int
    total: int
    progress: Progress


def index_status(store: GraphStore, catalog: Catalog, snapshot: Snapshot) -> list[IndexStatus]:
    """All indexes that the schema asks for, by table and column."""
    return [
        status
        for key in sorted(snapshot.entries)
        if (entity := catalog.table(key)) is not None
        for status in table_status(store, entity, snapshot.entries[key])
    ]


def table_status(store: GraphStore, entity: EntityType, entry: TableEntry) -> list[IndexStatus]:
    """The indexes that one table should have."""
    dataset = store.open_table(entry)
    indexes = coverage(dataset)
    found = []
    for want in wanted_indexes(entity):
        index = next((i for i in indexes if want.is_met_by(i)), None)
        name, rows = (index.name, index.rows) if index is not None else (None, 0)
        if index is not None:
            progress = Progress.PARTIAL if index.uncovered else Progress.COMPLETE
        elif want.kind == "IVF_FLAT" and not has_values(dataset, want.column):
            progress = Progress.DEFERRED
        else:
            progress = Progress.MISSING if entry.row_count else Progress.COMPLETE
        found.append(IndexStatus(entry.table_key, want.column, want.kind, name, rows, entry.row_count, progress))
    return found


def ensure_indices(
    store: GraphStore,
    branch: str | None,
    tables: Iterable[str] | None = None,
    *,
    extend: bool = False,
    attempts: int = 1,
    most_segments: int = MOST_SEGMENTS,
) -> list[str]:
    """Builds missing indexes of these tables (all by default) that the branch owns, in one write; with `extend`, also
    the parts that existing ones lack, and those of too many segments anew.

    Returns `table.column` names; none when other writes got in the way, which the next call makes up for.
    """
    limit = most_segments if extend else None
    for _ in range(attempts):
        catalog, snapshot = read_catalog(store), store.snapshot(branch)
        wanted: list[tuple[TableEntry, list[WantedIndex]]] = []
        for key in sorted(tables if tables is not None else snapshot.entries):
            entry, entity = snapshot.entries.get(key), catalog.table(key)
            if entry is not None and entity is not None and entry.row_count and entry.branch == branch:
                wants = wanted_indexes(entity)
                indexes = coverage(store.open_table(entry))
                if any(is_due(want, indexes, limit) for want in wants):
                    wanted.append((entry, wants))
        if not wanted:
            return []
        try:
            with staging(store) as stage:
                prepared, built = _build(store, branch, catalog.ir_hash, wanted, limit)
                if prepared.writes:
                    commit(store, replace(prepared, stages=(stage,)), lambda: current_hash(store))
                return built
        except ConflictError:
            continue
    return []


def _build(
    store: GraphStore,
    branch: str | None,
    schema_hash: str,
    wanted: list[tuple[TableEntry, list[WantedIndex]]],
    limit: int | None,
) -> tuple[PreparedCommit, list[str]]:
    tasks = [(entry, want) for entry, wants in wanted for want in wants]
    # Lance builds outside the interpreter lock, most kinds on one core; a handle serves one build at a time.
    with ThreadPoolExecutor(max_workers=available_cores()) as pool:
        builds = list(pool.map(lambda task: build(store.open_table(task[0]), task[1], limit), tasks))
    writes: list[TableWrite] = []
    built: list[str] = []
    for entry, _ in wanted:
        parts = [b for (of, _), b in zip(tasks, builds, strict=True) if of is entry and b.segments]
        if parts:
            change = TableChange(
                segments=tuple(segment for part in parts for segment in part.segments),
                replaced_segments=tuple(old for part in parts for old in part.replaced),
            )
            writes.append(TableWrite(entry, branch, change, entry.row_count))
            built += [f"{entry.table_key}.{part.column}" for part in parts]
    identity = Identity(new_ulid(), None, None, WriterKind.ENSURE_INDICES)
    return PreparedCommit(identity, branch, schema_hash, tuple(writes)), built


def wanted_indexes(entity: EntityType) -> list[WantedIndex]:
    """Indexes of a table by the rules of the storage format, section 9.1."""
    wanted = [WantedIndex("id", "BTREE")]
    if isinstance(entity, EdgeType):
        return [*wanted, WantedIndex("src", "BTREE"), WantedIndex("dst", "BTREE")]
    for constraint in entity.constraints:
        if isinstance(constraint, (Key, Index)) and len(constraint.columns) == 1:
            prop = entity.property(constraint.columns[0])
            kind = _kind(prop) if prop is not None else None
            if prop is not None and kind is not None:
                wanted.append(WantedIndex(prop.name, kind))
    return list(dict.fromkeys(wanted))


def _kind(prop: Property) -> str | None:
    if prop.type.is_list:
        return None
    if prop.type.is_vector:
        return "IVF_FLAT"
    if prop.type.scalar is Scalar.STRING:
        return "BTREE" if prop.type.is_enum else "INVERTED"
    return "BTREE" if prop.type.scalar in _BTREE_SCALARS else None
