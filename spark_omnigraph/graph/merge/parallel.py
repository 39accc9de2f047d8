"""Equal edges that both sides inserted: they are two edges, and the merge says how many there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import Catalog, EntityType
from spark_omnigraph.graph.merge.rows import TableDelta, TableSides
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.records.equality import equal_rows
from spark_omnigraph.storage.tables.keys import find_rows, read_staged, rows_among, stored_among
from spark_omnigraph.storage.tables.scan import PinnedTable, open_pinned
from spark_omnigraph.storage.tables.stored_rows import StoredRows

_PAIRS = 8192
"""Pairs of edges whose values are in memory at once."""
_ENDS = ("id", "src", "dst")


def parallel_edges(catalog: Catalog, deltas: Mapping[str, TableDelta], options: Mapping[str, str]) -> Iterator[str]:
    """A warning for each edge type of which the source inserts edges that equal one that the target inserted."""
    for edge in sorted(catalog.edges.values(), key=lambda e: e.table_key):
        delta = deltas.get(edge.table_key)
        if delta is not None and delta.files and delta.sides.target not in (None, *delta.sides.bases):
            count = _count(delta, options)
            if count:
                yield f"parallel_edges: {count} of {edge.table_key}, each equal to one that the target inserted too"


def _count(delta: TableDelta, options: Mapping[str, str]) -> int:
    sides = delta.sides
    if sides.source is None or sides.target is None:
        return 0
    staged = pa.concat_tables([read_staged(file, _ENDS, options) for file in delta.files])
    staged = _inserted(staged.rename_columns(["source", "src", "dst"]), "source", sides)
    starts = staged.column("src").combine_chunks().unique()
    equal = [pa.array([], pa.string())]
    for batch in rows_among(open_pinned(sides.target), [*_ENDS, "_rowid"], ["src"], starts) if len(starts) else ():
        both = staged.join(pa.table(batch), keys=["src", "dst"], join_type="inner")
        both = both.filter(pc.not_equal(both.column("source"), both.column("id")))
        both = _inserted(both, "id", sides).sort_by("source")
        parts = (both.slice(at, _PAIRS) for at in range(0, both.num_rows, _PAIRS))
        equal += [_equal(part, delta.sides.entity, sides.source, sides.target) for part in parts]
    return len(pa.chunked_array(equal, pa.string()).unique())


def _inserted(rows: pa.Table, column: str, sides: TableSides) -> pa.Table:
    """Rows whose edge no base has."""
    for base in sides.bases:
        if base is not None and rows.num_rows:
            old = stored_among(open_pinned(base), "id", rows.column(column).combine_chunks().unique())
            rows = rows.filter(pc.invert(pc.is_in(rows.column(column), value_set=old)))
    return rows


def _equal(pairs: pa.Table, entity: EntityType, source: PinnedTable, target: PinnedTable) -> pa.Array:
    """Ids of the source's edges that have the values of the target's."""
    names = [name for name in physical_schema(entity).names if name not in _ENDS]
    theirs, ours = StoredRows.open(source, names), StoredRows.open(target, names)
    found = find_rows(theirs.dataset, pairs.column("source"))
    pairs = pairs.filter(pa.array(found.hit))  # a row that was given in a decision may be none of the source's
    if names and pairs.num_rows:
        same = equal_rows(theirs.take(pa.array(found.row_ids)), ours.take(pairs.column("_rowid")))
        pairs = pairs.filter(pa.array(np.asarray(same)))
    return pairs.column("source").combine_chunks()
