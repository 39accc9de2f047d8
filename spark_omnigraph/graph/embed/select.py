"""Which rows of a property are to get a vector, and of which text: found in one scan, told by digests alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.embed.record_texts import record_text, rendered
from spark_omnigraph.graph.embed.compare import compare
from spark_omnigraph.graph.embed.request import EmbedMode, EmbedRequest, EmbedTarget
from spark_omnigraph.graph.embed.seen import place_of, seen
from spark_omnigraph.graph.read.scan import pin
from spark_omnigraph.predicates.sql import not_null, quote_name
from spark_omnigraph.predicates.user_filter import filter_sql
from spark_omnigraph.records.record_text import plain_values
from spark_omnigraph.staging.asking import Asking, without_blank
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.scan import BATCH_ROWS, UPDATED, PinnedTable, check_filter, placed_rows
from spark_omnigraph.write.candidates import Base

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
NONE = ROWS.empty_table()

BATCH_BYTES = 4 << 20
"""Vectors that are looked at at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Rows of one property. `rows` are `ROWS`; `known` are others with a vector of which nobody knows what it was made
    of, where these count as up to date, and their `key` is what the ledger calls that vector.
    """

    target: EmbedTarget
    table: PinnedTable
    rows: pa.Table
    total: int
    missing: int
    stale: int
    blank: int
    known: pa.Table


def texts_of(target: EmbedTarget, rows: pa.Table | pa.RecordBatch) -> pa.Array:
    """The text of each row, null where it is blank."""
    if target.is_rendered:
        values = zip(*(plain_values(rows.column(name)) for name in target.columns), strict=True)
        texts = [
            record_text(target.entity.name, target.columns, each) if any(map(rendered, each)) else None
            for each in values
        ]
        return pa.array(texts, pa.string())
    column = rows.column(target.columns[0])
    return without_blank(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)


def select(store: GraphStore, base: Base, request: EmbedRequest, target: EmbedTarget, done: pa.Array) -> Selection:
    """Rows that the request means, without the ids that are `done`."""
    entry = base.snapshot.entry(target.entity.table_key)
    table = pin(store, entry)
    where = filter_sql(request.where, (), target.entity, request.now)
    if where is not None:
        check_filter(table, where)
    scan = _Scan(table, target, None if request.mode is EmbedMode.CLEAN else _asking(request, target))
    lacking = f"{quote_name(target.prop)} IS NULL"
    if request.mode is EmbedMode.CLEAN:
        found = scan.rows(_both(where, not_null(target.prop)))
        return Selection(target, table, _without(found, done), entry.row_count, 0, 0, 0, NONE)
    if request.mode is EmbedMode.MISSING:
        where = _both(where, lacking)
    elif request.mode is EmbedMode.STALE and (version := seen(store, base, request, target)) is not None:
        where = _both(where, f"{UPDATED} > {version}")
    found = scan.rows(where)
    blank = found.column("key").null_count
    rows = _without(found.filter(pc.is_valid(found.column("key"))) if blank else found, done)
    if request.mode is EmbedMode.MISSING:
        return Selection(target, table, rows, entry.row_count, rows.num_rows, 0, blank, NONE)
    selection = Selection(target, table, rows, entry.row_count, 0, 0, blank, NONE)
    return _stale(request, selection, scan.vectors(where), place_of(store, base, target))


def _asking(request: EmbedRequest, target: EmbedTarget) -> Asking:
    return Asking(request.embedder(), target.dimension, request.store)


def _stale(request: EmbedRequest, selection: Selection, vectors: Iterator[pa.RecordBatch], place: str) -> Selection:
    """Leaves out what is up to date, unless all rows are meant: rows whose vector is the answer to their text, and
    those that were adopted with the text and the vector that they have.
    """
    rows, answers = selection.rows, request.store.answers(selection.target.dimension)
    ids, adopted = request.store.recorded(place)
    compared = compare(rows, answers, vectors, with_digests=bool(len(ids)) or request.adopt)
    marks = compared.marks(rows.column("key").combine_chunks())
    before = adopted.take(pc.index_in(rows.column("id").combine_chunks(), value_set=ids))
    stale = compared.is_other & ~np.asarray(pc.fill_null(pc.equal(before, marks), False))
    known = NONE
    if request.adopt:
        unknown = stale & ~compared.is_answer(answers)
        known = _filtered(rows.set_column(1, "key", marks), unknown)
        stale &= ~unknown
    kept = rows if request.mode is EmbedMode.ALL else _filtered(rows, stale | ~compared.has_vector)
    missing = int((~compared.has_vector).sum())
    return replace(selection, rows=kept, missing=missing, stale=int(stale.sum()), known=known)


def _filtered(rows: pa.Table, which: npt.NDArray[np.bool_]) -> pa.Table:
    return rows.filter(pa.array(which))


@dataclass(frozen=True, slots=True)
class _Scan:
    """One table, read for one property, in batches in which its vectors have room. Without `asking` texts are none."""

    table: PinnedTable
    target: EmbedTarget
    asking: Asking | None

    def rows(self, where: str | None) -> pa.Table:
        """`ROWS` of what a filter keeps."""
        columns = list(dict.fromkeys(("id", *self.target.columns)))
        return pa.Table.from_batches([self._named(batch) for batch in self._batches(columns, where)], ROWS)

    def vectors(self, where: str | None) -> Iterator[pa.RecordBatch]:
        """The vectors of what a filter keeps, with `_rowid`."""
        return self._batches([self.target.prop], where)

    def _batches(self, columns: list[str], where: str | None) -> Iterator[pa.RecordBatch]:
        return placed_rows(self.table, columns, where, rows_at_once(self.target.dimension))

    def _named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        nothing = pa.nulls(batch.num_rows, pa.string())
        texts = nothing if self.asking is None else texts_of(self.target, batch)
        keys = nothing if self.asking is None else self.asking.keys(texts)
        sizes = pc.fill_null(pc.binary_length(texts), 0).cast(pa.int64())
        columns = [batch.column("id"), keys, sizes, batch.column("_rowid"), batch.column("_rowaddr")]
        return pa.RecordBatch.from_arrays(columns, schema=ROWS)


def rows_at_once(dimension: int) -> int:
    """Rows whose vectors are in memory at once, while nothing but them is looked at."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES // (4 * dimension)))


def _both(one: str | None, other: str | None) -> str | None:
    parts = [f"({part})" for part in (one, other) if part is not None]
    return " AND ".join(parts) or None


def _without(rows: pa.Table, done: pa.Array) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows.column("id"), value_set=done))) if len(done) else rows
