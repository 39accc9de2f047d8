"""Which rows of a property are to get a vector, and of which text: found in one scan, told by digests alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.embed.record_texts import record_text, rendered
from spark_omnigraph.graph.embed.request import EmbedMode, EmbedRequest, EmbedTarget
from spark_omnigraph.graph.read.scan import pin
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.predicates.sql import not_null, quote_name
from spark_omnigraph.predicates.user_filter import filter_sql
from spark_omnigraph.records.record_text import plain_values
from spark_omnigraph.staging.asking import Asking
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.scan import PinnedTable, check_filter, placed_rows

ROWS = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("key", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("row", pa.uint64()),
        pa.field("address", pa.uint64()),
    ]
)
"""Rows to embed: `key` names the answer that each is to have, `size` are the bytes of its text."""


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Rows of one property. `rows` are `ROWS`; `known` those of them that have a vector of which nobody knows what it
    was made of, where these count as up to date.
    """

    target: EmbedTarget
    table: PinnedTable
    rows: pa.Table
    total: int
    missing: int
    stale: int
    blank: int
    known: pa.Table


def texts_of(target: EmbedTarget, rows: pa.Table | pa.RecordBatch) -> list[str | None]:
    """The text of each row, None where it is blank."""
    if target.is_rendered:
        values = zip(*(plain_values(rows.column(name)) for name in target.columns), strict=True)
        return [
            record_text(target.entity.name, target.columns, each) if any(map(rendered, each)) else None
            for each in values
        ]
    texts = rows.column(target.columns[0]).to_pylist()
    return [None if text is None or not text.strip() else text for text in texts]


def place_of(store: GraphStore, request: EmbedRequest, target: EmbedTarget) -> str:
    """What the ledger calls the rows of a property."""
    return f"{store.root}|{display(request.branch)}|{target.entity.table_key}.{target.prop}"


def select(
    store: GraphStore, snapshot: Snapshot, request: EmbedRequest, target: EmbedTarget, done: pa.Array
) -> Selection:
    """Rows that the request means, without the ids that are `done`."""
    entry = snapshot.entry(target.entity.table_key)
    table = pin(store, entry)
    where = filter_sql(request.where, (), target.entity, request.now)
    if where is not None:
        check_filter(table, where)
    vector = not_null(target.prop)
    lacking = f"{quote_name(target.prop)} IS NULL"
    if request.mode is EmbedMode.CLEAN:
        found = _scan(table, ["id"], _both(where, vector), lambda batch: [None] * batch.num_rows, str)
        return Selection(target, table, _without(found, done), entry.row_count, 0, 0, 0, ROWS.empty_table())
    make = Asking(request.embedder(), target.dimension, request.store).key()
    wanted = _both(where, lacking if request.mode is EmbedMode.MISSING else None)
    columns = list(dict.fromkeys(("id", *target.columns)))
    found = _scan(table, columns, wanted, lambda batch: texts_of(target, batch), make)
    blank = found.column("key").null_count
    rows = _without(found.filter(pc.is_valid(found.column("key"))), done)
    if request.mode is EmbedMode.MISSING:
        return Selection(target, table, rows, entry.row_count, rows.num_rows, 0, blank, ROWS.empty_table())
    bare = [batch.column("_rowid") for batch in placed_rows(table, [], _both(where, lacking))]
    missing = np.asarray(pc.is_in(rows.column("row"), value_set=pa.chunked_array(bare, pa.uint64()).combine_chunks()))
    selection = Selection(target, table, rows, entry.row_count, int(missing.sum()), 0, blank, ROWS.empty_table())
    return _stale(store, request, selection, missing)


def _stale(store: GraphStore, request: EmbedRequest, selection: Selection, missing: np.ndarray) -> Selection:
    """Leaves out what is up to date, unless all rows are meant."""
    rows = selection.rows
    ids, keys = request.store.recorded(place_of(store, request, selection.target))
    at = pc.index_in(rows.column("id").combine_chunks(), value_set=ids)
    same = np.asarray(pc.fill_null(pc.equal(keys.take(at), rows.column("key").combine_chunks()), False))
    unknown = np.asarray(pc.is_null(at)) & ~missing
    known = rows.filter(pa.array(unknown)) if request.adopt else ROWS.empty_table()
    stale = ~missing & ~same & ~(unknown if request.adopt else np.zeros(len(unknown), bool))
    kept = rows if request.mode is EmbedMode.ALL else rows.filter(pa.array(missing | stale))
    return replace(selection, rows=kept, stale=int(stale.sum()), known=known)


def _scan(
    table: PinnedTable,
    columns: list[str],
    where: str | None,
    texts: Callable[[pa.RecordBatch], list[str | None]],
    key: Callable[[str], str],
) -> pa.Table:
    return pa.Table.from_batches(list(_batches(table, columns, where, texts, key)), ROWS)


def _batches(
    table: PinnedTable,
    columns: list[str],
    where: str | None,
    texts: Callable[[pa.RecordBatch], list[str | None]],
    key: Callable[[str], str],
) -> Iterator[pa.RecordBatch]:
    for batch in placed_rows(table, columns, where):
        found = texts(batch)
        named: dict[str | None, str] = {text: key(text) for text in found if text is not None}
        sizes = {text: len(text.encode()) for text in named if text is not None}
        yield pa.RecordBatch.from_arrays(
            [
                batch.column("id"),
                pa.array([named.get(text) for text in found], pa.string()),
                pa.array([0 if text is None else sizes[text] for text in found], pa.int64()),
                batch.column("_rowid"),
                batch.column("_rowaddr"),
            ],
            schema=ROWS,
        )


def _both(one: str | None, other: str | None) -> str | None:
    parts = [f"({part})" for part in (one, other) if part is not None]
    return " AND ".join(parts) or None


def _without(rows: pa.Table, done: pa.Array) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows.column("id"), value_set=done))) if len(done) else rows
