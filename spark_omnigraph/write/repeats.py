"""Rows of one table that share values: what repeats what."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.write.staged_table import Rows, RowsToCheck


def repeats(columns: Sequence[pa.ChunkedArray], table: RowsToCheck, keep_last: bool) -> tuple[Rows, Rows]:
    """Rows that share a tuple with another live row, all but the one kept: the first or the last in input order; and
    for each the one kept.

    Tuples with a null are exempt; dropped rows do not count.
    """
    valid = ~table.dropped
    for column in columns:
        valid = valid & np.asarray(column.is_valid())
    live = np.flatnonzero(valid)
    names = [f"c{i}" for i in range(len(columns))]
    rows = pa.table({n: c.take(pa.array(live)) for n, c in zip(names, columns, strict=True)})
    groups = rows.append_column("row", pa.array(live)).group_by(names).aggregate([("row", "count")])
    repeated = groups.filter(pc.greater(groups.column("row_count"), 1)).select(names)
    if not repeated.num_rows:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    repeated = repeated.append_column("group", pa.array(np.arange(repeated.num_rows)))
    joined = rows.append_column("row", pa.array(live)).join(repeated, keys=names, join_type="inner")
    at, group = np.asarray(joined.column("row")), np.asarray(joined.column("group"))
    rank = table.input_rank[at]
    order = np.lexsort((-rank if keep_last else rank, group))
    at, group = at[order], group[order]
    is_first = np.ones(len(at), dtype=bool)
    is_first[1:] = group[1:] != group[:-1]
    later, kept = at[~is_first], at[is_first][np.cumsum(is_first) - 1][~is_first]
    order = np.argsort(table.input_rank[later])
    return later[order], kept[order]


def held_by_live(columns: Sequence[pa.ChunkedArray], table: RowsToCheck, rows: Rows) -> tuple[Rows, Rows]:
    """Those of the rows whose tuple an earlier live row holds, and for each that row."""
    if not len(rows):
        return rows, rows
    names = [f"c{i}" for i in range(len(columns))]
    live = pa.array(np.flatnonzero(~table.dropped))
    held = pa.table({n: c.take(live) for n, c in zip(names, columns, strict=True)}).append_column("holder", live)
    at = pa.array(rows)
    wanted = pa.table({n: c.take(at) for n, c in zip(names, columns, strict=True)}).append_column("row", at)
    both = wanted.join(held, keys=names, join_type="inner")
    found, holders = np.asarray(both.column("row")), np.asarray(both.column("holder"))
    rank = table.input_rank
    earlier = rank[holders] < rank[found]
    order = np.argsort(rank[found[earlier]])
    return found[earlier][order], holders[earlier][order]


def one_zero(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The column with both zeros as one: they are equal to every comparison and in keys, but not to a hash."""
    return pc.add(column, pa.scalar(0, column.type)) if pa.types.is_floating(column.type) else column
