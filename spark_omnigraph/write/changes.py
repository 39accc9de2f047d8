"""Checks of a write that upserts and deletes: which change of a row counts, and the rules over the state at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.catalog.types import Catalog, EntityType
from spark_omnigraph.records.changes.ranks import Netted, netted
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.redaction import cut
from spark_omnigraph.storage.tables.staged import TableTarget
from spark_omnigraph.validate.key_index import all_distinct
from spark_omnigraph.write.checker import Finding, WriteChecker
from spark_omnigraph.write.staged_table import Rows, RowsToCheck, StagedTable

_NOTHING: Rows = np.empty(0, dtype=np.int64)

IdsByTable = Mapping[str, pa.Array]
"""Distinct ids (string[n])."""


class ChangeChecker(WriteChecker):
    """Checks upserts as those of a merge are, beside what the deletes leave: deletes come first.

    `cascade` is told which stored nodes go, and says which stored edges go with them.
    """

    def __init__(
        self,
        catalog: Catalog,
        on_duplicate: OnDuplicate,
        staged: Mapping[str, StagedTable],
        targets: Mapping[str, TableTarget],
        options: Mapping[str, str],
        cascade: Callable[[IdsByTable], IdsByTable],
    ) -> None:
        super().__init__(catalog, LoadMode.CHANGES, on_duplicate, staged, targets, options)
        self._tables = staged
        self._cascade = cascade
        self._cascaded: IdsByTable = {}
        self._gone: dict[str, pa.Array] = {}
        self.gone = self._gone

    def _nodes_checked(self) -> None:
        nodes = (node.table_key for node in self._catalog.nodes.values())
        self._cascaded = self._cascade({key: self._tables[key].deleted_ids for key in nodes if key in self._tables})

    def _check_ids(self, table: RowsToCheck, entity: EntityType) -> list[Finding]:
        of = self._tables[table.table_key]
        net = net_changes(of, self._takes_last(entity))
        self._superseded[of.table_key] = net.superseded
        of.drop(np.concatenate([net.superseded, net.repeats]))
        self._mark_gone(of)
        if not len(net.repeats):
            return []
        ids, deletes = of.column("id"), of.changes.deletes

        def message(i: int) -> str:
            row, holder = int(net.repeats[i]), int(net.holders[i])
            told = f"'{cut(ids[row].as_py())}' of {entity.name}"
            if deletes[row] != deletes[holder]:
                return f"{told} is written and deleted by the input, and no version says which comes last"
            return f"{told} repeats another record of the input"

        field = (entity.key or ("id",))[0]
        return [Finding(of.table_key, field, Rule.KEY_DUPLICATE, net.repeats, message, net.holders, ids)]

    def _check_rules(
        self, table: RowsToCheck, entity: EntityType, mentioned: frozenset[str], refused: Sequence[Finding]
    ) -> list[Finding]:
        if not self._tables[table.table_key].rows:
            return []
        return super()._check_rules(table, entity, mentioned, refused)

    def _take_back(self, table: RowsToCheck, rows: Rows) -> None:
        of = self._tables[table.table_key]
        deletes = of.changes.deletes[rows]
        of.take_back(rows[~deletes])
        of.deleting[rows[deletes]] = True
        self._mark_gone(of)

    def _mark_gone(self, table: StagedTable) -> None:
        parts = [ids for ids in (self._cascaded.get(table.table_key), table.deleted_ids) if ids is not None]
        self._gone[table.table_key] = pa.concat_arrays(parts)


def net_changes(table: StagedTable, last_wins: bool) -> Netted:
    """Which rows of a table do not count; those of the others that delete are marked."""
    ids = table.column("id")
    net = Netted(_NOTHING, _NOTHING, _NOTHING)
    if not all_distinct(ids):
        groups = np.asarray(ids.combine_chunks().dictionary_encode().indices)
        at = np.flatnonzero(np.bincount(groups)[groups] > 1)
        found = netted(groups[at], table.changes.take(at), table.input_rank[at], last_wins)
        net = Netted(at[found.superseded], at[found.repeats], at[found.holders])
    table.deleting[:] = table.changes.deletes
    table.deleting[net.superseded] = table.deleting[net.repeats] = False
    return net
