"""The rules of the schema over all that one mutation wrote, once, at its end: by the checks of a load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

import pyarrow as pa

from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.errors import ConstraintError
from spark_omnigraph.graph.mutate.pending import PendingRows, PendingTable
from spark_omnigraph.graph.mutate.statements import Statements
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.keys import stored_among
from spark_omnigraph.storage.tables.staged import TableTarget
from spark_omnigraph.validate.batch import BatchChecker
from spark_omnigraph.write.candidates import target_of
from spark_omnigraph.write.checker import Finding, WriteChecker
from spark_omnigraph.write.personal import personal_message

_NAMED = 5
"""Violations that an error spells out."""

Place = Callable[[], str]
"""Finds which statement a violation belongs to; only those that are spelled out are asked."""
Said = tuple[str, Place]


def check_pending(store: GraphStore, snapshot: Snapshot, statements: Statements) -> None:
    """Raises ConstraintError for what the pending rows break, as they are together with the rows that stay stored.

    Values of the rows come first: required, range, pattern, enum. Then unique values, ends of edges, numbers of edges.
    """
    pending = statements.pending.written()
    if not pending:
        return
    catalog = statements.catalog
    _refuse(said for rows in pending.values() for said in _of_rows(rows, catalog))
    targets = {key: target_of(store, snapshot, key, entry.branch) for key, entry in snapshot.entries.items()}
    _refuse(_unborn(store, targets, statements))
    own = {key: target_of(store, snapshot, key, snapshot.entry(key).branch) for key in pending}
    tables = {key: PendingTable(rows, own[key]) for key, rows in pending.items()}
    # Rows replace stored ones by id, which is what a merge does.
    checker = WriteChecker(catalog, LoadMode.MERGE, OnDuplicate.LAST, tables, targets, store.storage_options)
    found = checker.run(frozenset(pending)).findings
    _refuse(said for finding in found for said in _of_finding(finding, pending[finding.table_key], catalog))


def _of_rows(rows: PendingRows, catalog: Catalog) -> Iterator[Said]:
    name = rows.entity.name
    for v in BatchChecker(rows.entity).check(rows.table()):
        yield personal_message(v.message, catalog, name, v.field), partial(rows.place_of, v.row)


def _of_finding(finding: Finding, rows: PendingRows, catalog: Catalog) -> Iterator[Said]:
    name = rows.entity.name
    for i, row in enumerate(finding.rows):
        yield personal_message(finding.message(i), catalog, name, finding.field), partial(rows.place_of, int(row))


def _unborn(store: GraphStore, targets: dict[str, TableTarget], statements: Statements) -> Iterator[Said]:
    """Ends of edges that only a later statement makes, and that are not stored either."""
    for (column, node_key), ends in sorted(statements.unborn.items()):
        later = ends.keys() & statements.pending.inserted(node_key)
        if not later:
            continue
        wanted = pa.array(sorted(later), pa.string())
        target = targets.get(node_key)
        stored: list[str] = []
        if target is not None and target.row_count:
            stored = stored_among(target.open(store.storage_options), "id", wanted).to_pylist()
        for end in sorted(later - set(stored)):
            name = node_key.type_name
            message = f"{column} '{end}' not found in {name}, since a later statement makes it: put that one first"
            yield personal_message(message, statements.catalog, name), partial(ends.__getitem__, end)


def _refuse(found: Iterable[Said]) -> None:
    distinct: dict[str, Place] = {}
    for message, place in found:
        distinct.setdefault(message, place)
    if distinct:
        named = [f"{message} ({place()})" for message, place in islice(distinct.items(), _NAMED)]
        more = [f"and {len(distinct) - _NAMED} more"] if len(distinct) > _NAMED else []
        raise ConstraintError("; ".join(named + more))
