"""Missing indexes: derived state, built as a write of its own that makes no commit.

When a load is changing one of the tables right now, the indexes are left for the next time: an index never holds up
data, and a missing one never changes an answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from spark_omnigraph.catalog.types import EdgeType, EntityType, Index, Key, Property, Scalar
from spark_omnigraph.commit.lease import staging
from spark_omnigraph.commit.plan import Identity, PreparedCommit, TableWrite, WriterKind
from spark_omnigraph.commit.protocol import commit
from spark_omnigraph.errors import ConflictError
from spark_omnigraph.graph.contract import current_hash, read_catalog
from spark_omnigraph.manifest.snapshot import TableEntry
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.commits import TableChange
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.index import WantedIndex, build_segments, coverage

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


def ensure_indices(store: GraphStore, branch: str | None, tables: Iterable[str] | None = None) -> list[str]:
    """Builds missing indexes of these tables (all by default) that the branch owns, in one write.

    Returns `table.column` names; none when a load got in the way, which the next call makes up for.
    """
    catalog, snapshot = read_catalog(store), store.snapshot(branch)
    lacking: list[tuple[TableEntry, list[WantedIndex]]] = []
    for key in sorted(tables if tables is not None else snapshot.entries):
        entry, entity = snapshot.entries.get(key), catalog.table(key)
        if entry is None or entity is None or not entry.row_count or entry.branch != branch:
            continue
        missing = _missing(store, entity, entry)
        if missing:
            lacking.append((entry, missing))
    if not lacking:
        return []
    with staging(store):
        return _build(store, branch, catalog.ir_hash, lacking)


def _build(
    store: GraphStore, branch: str | None, schema_hash: str, lacking: list[tuple[TableEntry, list[WantedIndex]]]
) -> list[str]:
    writes: list[TableWrite] = []
    built: list[str] = []
    for entry, missing in lacking:
        segments = build_segments(store.open_table(entry), missing)
        if segments:
            writes.append(TableWrite(entry, branch, TableChange(segments=tuple(segments)), entry.row_count))
            built += [f"{entry.table_key}.{want.column}" for want in missing]
    if not writes:
        return []
    identity = Identity(new_ulid(), None, None, WriterKind.ENSURE_INDICES)
    prepared = PreparedCommit(identity, branch, schema_hash, tuple(writes))
    try:
        commit(store, prepared, lambda: current_hash(store))
    except ConflictError:
        return []
    return built


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


def _missing(store: GraphStore, entity: EntityType, entry: TableEntry) -> list[WantedIndex]:
    present = {c.columns for c in coverage(store.open_table(entry))}
    return [w for w in wanted_indexes(entity) if (w.column,) not in present]
