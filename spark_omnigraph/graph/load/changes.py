"""The deletes of mode `changes`: which stored rows go, with them which edges, and whether that many may."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

import numpy as np

from spark_omnigraph.errors import TooManyDeletesError
from spark_omnigraph.graph.delete.cascade import Deletion
from spark_omnigraph.graph.load.options import LoadOptions, TableCounts, share_of, shown_share
from spark_omnigraph.records.mode import OnDuplicate
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.write.candidates import Base
from spark_omnigraph.write.changes import IdsByTable, net_changes
from spark_omnigraph.write.staged_table import StagedTable


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Stored rows that a load takes away: masks by table; by table how many of them records name, and how many rows
    that they name are not stored; and the tables that were searched.
    """

    masks: Mapping[str, TableChange]
    named: Mapping[str, int]
    missing: Mapping[str, int]
    looked_at: Set[str]

    def beside(self, changes: Mapping[str, TableChange]) -> dict[str, TableChange]:
        """The changes of a load that takes these rows away, too."""
        merged = {key: self.masks.get(key, TableChange()) for key in sorted({*changes, *self.masks})}
        for key, change in changes.items():
            masks = [each for each in (change.removed, merged[key].removed) if each is not None]
            merged[key] = replace(change, removed=np.unique(np.concatenate(masks)) if masks else None)
        return merged

    def counted(self, key: str, counts: TableCounts, table: StagedTable | None) -> TableCounts:
        """With the rows of a table that go; a row that an upsert writes again does not."""
        mask = self.masks.get(key)
        gone = np.empty(0, dtype=np.uint64) if mask is None or mask.removed is None else mask.removed
        for _, fragment in table.parts if table is not None else ():
            gone = np.setdiff1d(gone, fragment.removed_addresses())
        named = self.named.get(key, 0)
        return replace(counts, deleted=len(gone), cascaded=len(gone) - named, missing=self.missing.get(key, 0))


class LoadDeletes:
    """The deletes of one attempt, on the snapshot that it is planned on."""

    def __init__(self, store: GraphStore, base: Base) -> None:
        self._catalog = base.contract.catalog
        self._snapshot = base.snapshot
        self._deletion = Deletion(store, self._catalog, base.snapshot)
        self._named: dict[str, int] = {}
        self._missing: dict[str, int] = {}

    def take(self, ids: IdsByTable) -> IdsByTable:
        """Takes away the rows of these ids, with nodes their edges; ids of the edges that go so far, by table."""
        for key, of_table in ids.items():
            if not len(of_table):
                continue
            removed = self._deletion.ids(self._catalog.require(key), of_table)
            self._missing[key] = removed.missing
            self._named[key] = len(of_table) - removed.missing
        return {edge.table_key: self._deletion.taken(edge.table_key) for edge in self._catalog.edges.values()}

    def done(self, tables: Mapping[str, StagedTable], options: LoadOptions) -> DeletedRows:
        """All rows that go, of edges those that records name too. TooManyDeletesError when the options allow fewer."""
        self.take({key: table.deleted_ids for key, table in tables.items() if key.startswith("edge:")})
        self._refuse_too_many(options)
        return DeletedRows(self._deletion.changes(), self._named, self._missing, frozenset(self._deletion.looked_at))

    def look(self, tables: Mapping[str, StagedTable], options: LoadOptions) -> None:
        """The same question before anything is staged: `tables` are of rows that were looked at alone."""
        for table in tables.values():
            net_changes(table, options.on_duplicate is OnDuplicate.LAST)
        self.take({key: table.deleted_ids for key, table in tables.items()})
        self._refuse_too_many(options)

    def _refuse_too_many(self, options: LoadOptions) -> None:
        stored = {key: self._snapshot.entry(key).row_count for key in self._named}
        limit = options.max_deletes
        if isinstance(limit, float):
            over = any(count > share_of(limit, stored[key]) for key, count in self._named.items())
        else:
            over = limit is not None and sum(self._named.values()) > limit
        if over and limit is not None:
            raise TooManyDeletesError(_refusal(self._named, stored, limit), sum(self._named.values()))


def _refusal(named: Mapping[str, int], stored: Mapping[str, int], limit: int | float) -> str:
    counts = ", ".join(f"{key} {count:,} of {stored[key]:,}" for key, count in sorted(named.items()) if count)
    total = sum(named.values())
    rows = "1 stored row" if total == 1 else f"{total:,} stored rows"
    most = f"{shown_share(limit)} of the rows of a type" if isinstance(limit, float) else f"{limit:,}"
    return (
        f"changes refused, nothing changed: {rows} would be deleted ({counts}), edges "
        f"that go with their nodes not counted, where {most} may be"
    )
