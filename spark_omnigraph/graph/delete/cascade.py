"""Staged deletes: which stored rows a write takes away, the edges that lose an end included. Nothing moves here."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType, NodeType
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.commits import Addresses, TableChange
from spark_omnigraph.storage.tables.handles import Dataset
from spark_omnigraph.storage.tables.keys import Found, rows_where, rows_with

_NOTHING = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class Removed:
    """Rows that one step took away, and how many of the ids that it was given no row has."""

    nodes: int = 0
    edges: int = 0
    missing: int = 0


class Deletion:
    """Rows of a snapshot to take away, found one after another; a row counts once, where it was first found.

    `looked_at` names every table that was searched: a row that another writer adds there may be one to take away too.
    """

    def __init__(self, store: GraphStore, catalog: Catalog, snapshot: Snapshot) -> None:
        self.looked_at: set[str] = set()
        self._store = store
        self._catalog = catalog
        self._snapshot = snapshot
        self._addresses: dict[str, Addresses] = {}
        self._ids: dict[str, list[pa.Array]] = {}
        self._opened: dict[str, Dataset] = {}

    def where(self, entity: EntityType, condition: str) -> Removed:
        """Takes away the rows of a type that meet a Lance filter."""
        dataset = self._dataset(entity.table_key)
        return self._take(entity, rows_where(dataset, condition)) if dataset is not None else Removed()

    def ids(self, entity: EntityType, ids: pa.Array) -> Removed:
        """Takes away the rows of a type that have these distinct ids."""
        dataset = self._dataset(entity.table_key)
        if dataset is None:
            return Removed(missing=len(ids))
        found = rows_with(dataset, ["id"], ids)
        return replace(self._take(entity, found), missing=len(ids) - len(found.ids))

    def changes(self) -> dict[str, TableChange]:
        """All rows to take away, by table in key order."""
        return {key: TableChange(removed=self._addresses[key]) for key in sorted(self._addresses)}

    def taken(self, key: str) -> pa.Array:
        """Ids of the rows of a table that were taken away."""
        return pa.concat_arrays([pa.array([], pa.string()), *self._ids.get(key, ())])

    def _take(self, entity: EntityType, found: Found) -> Removed:
        ids = self._new(entity.table_key, found)
        if isinstance(entity, EdgeType):
            return Removed(edges=len(ids))
        return Removed(
            len(ids), sum(self._cascade(entity, edge, ids) for edge in self._touching(entity)) if len(ids) else 0
        )

    def _touching(self, node: NodeType) -> tuple[EdgeType, ...]:
        return self._catalog.edges_touching(node.name)

    def _cascade(self, node: NodeType, edge: EdgeType, ids: pa.Array) -> int:
        dataset = self._dataset(edge.table_key)
        if dataset is None:
            return 0
        ends = [c for c, name in (("src", edge.from_type), ("dst", edge.to_type)) if name == node.name]
        return len(self._new(edge.table_key, rows_with(dataset, ends, ids)))

    def _new(self, key: str, found: Found) -> pa.Array:
        """Ids of the rows that were not taken away before."""
        known = self._addresses.get(key, _NOTHING)
        is_new = ~np.isin(found.addresses, known)
        if is_new.any():
            self._addresses[key] = np.union1d(known, found.addresses[is_new])
        ids = found.ids.filter(pa.array(is_new))
        self._ids.setdefault(key, []).append(ids)
        return ids

    def _dataset(self, key: str) -> Dataset | None:
        """The table as the snapshot shows it; None when it has no row."""
        entry = self._snapshot.entries.get(key)
        if entry is None:
            return None
        self.looked_at.add(key)
        if not entry.row_count:
            return None
        if key not in self._opened:
            self._opened[key] = self._store.open_table(entry)
        return self._opened[key]
