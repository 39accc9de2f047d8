"""Ids of edges that follow from their ends: made of rows, and compared with those that stored edges have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.bad_rows import Mistake, Rule
from spark_omnigraph.catalog.types import END_MEMBERS, Catalog, EdgeType, EntityType, Property, Scalar
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.records.columns import one_array
from spark_omnigraph.records.jsonl.decode import DecodedTable
from spark_omnigraph.records.keys import column_text, composite_ids
from spark_omnigraph.records.mode import LoadMode
from spark_omnigraph.redaction import cut
from spark_omnigraph.staging.receipt import KnownEdges, StageContext
from spark_omnigraph.storage.tables.keys import rows_among
from spark_omnigraph.storage.tables.staged import TableTarget
from spark_omnigraph.words import nearest

_NO_EDGES = pa.record_batch({"id": pa.array([], pa.string()), "by_ends": pa.array([], pa.string())})


def check_edge_id(catalog: Catalog, columns: Sequence[str] | None) -> None:
    """BadRequestError for a property that no edge type has, or of which no id can be made."""
    for name in columns or ():
        having = [edge for edge in catalog.edges.values() if edge.property(name) is not None]
        if not having:
            known = {p.name for edge in catalog.edges.values() for p in edge.properties}
            raise BadRequestError(f"edge_id: no edge type has a property '{name}'{nearest(name, known)}")
        if not any(_single(edge.property(name)) for edge in having):
            _scalar(having[0], name)


def identify(
    entity: EntityType, table: DecodedTable, columns: Sequence[str]
) -> tuple[DecodedTable, dict[int, Mistake]]:
    """Rows of an edge type with the ids that follow from their ends and these properties, and those that have another
    id of their own. Rows that delete may have nothing but an id, which stays.
    """
    if not isinstance(entity, EdgeType):
        return table, {}
    ids, own = edge_ids(entity, table.table, columns), one_array(table.table.column("id"))
    other = table.named & np.asarray(pc.not_equal(own, ids).fill_null(False))
    mistakes = {
        row: Mistake(
            "id", Rule.ID_MISMATCH, f"id '{cut(own[row].as_py())}' is not '{cut(ids[row].as_py())}', which the ends say"
        )
        for row in np.flatnonzero(other).tolist()
    }
    rows = table.table.set_column(0, table.table.schema.field(0), pc.coalesce(ids, own))
    return replace(table, table=rows, named=np.ones(len(table.lines), dtype=bool)), mistakes


def edge_ids(edge: EdgeType, rows: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> pa.Array:
    """Compact JSON arrays of the ends of edges and the texts of these properties, row by row; null without an end."""
    ends = [_one(rows.column(name)) for name in END_MEMBERS]
    scalars = {name: _scalar(edge, name) for name in columns}  # says that a column is missing, and how
    texts = [column_text(_one(rows.column(name)), scalar) for name, scalar in scalars.items()]
    return composite_ids([*ends, *texts], required=len(ends))


def with_stored_ids(context: StageContext, key: str, rows: pa.Table) -> tuple[pa.Table, KnownEdges]:
    """Rows that are to be stored, with the ids of stored edges that have the same ends where they are adopted, and what
    is known of those.
    """
    edge, columns, target = context.entity(key), context.decode.edge_id, context.target(key)
    if columns is None or not isinstance(edge, EdgeType) or context.mode is LoadMode.OVERWRITE or not target.row_count:
        return rows, KnownEdges()
    ids, sources = one_array(rows.column("id")), one_array(rows.column("src")).drop_null().unique()
    wanted, found, options = ids.unique(), [_NO_EDGES], context.storage_options
    for batch in rows_among(target.open(options), ["id", "src", "dst", *columns], ["src"], sources):
        pairs = pa.record_batch({"id": batch.column("id"), "by_ends": edge_ids(edge, batch, columns)})
        found.append(pairs.filter(pc.is_in(pairs.column("by_ends"), value_set=wanted)))
    stored = pa.Table.from_batches(found).combine_chunks()
    foreign = stored.filter(pc.not_equal(stored.column("id"), stored.column("by_ends")))
    strange = pc.invert(pc.is_in(ids, value_set=one_array(stored.column("by_ends"))))
    taken = _taken(target, rows.filter(strange), options)
    if not foreign.num_rows:
        return rows, KnownEdges(taken=taken)
    counts = stored.column("by_ends").value_counts()
    # An edge with the id that follows from its ends is one of several, too, where another has the same ends.
    known = KnownEdges(foreign.num_rows, int(pc.sum(pc.greater(counts.field("counts"), 1)).as_py()), taken)
    if not context.adopt_edges:
        return rows, known
    place = pc.index_in(ids, value_set=one_array(foreign.column("by_ends")))
    adopted = pc.coalesce(one_array(foreign.column("id")).take(place), ids)
    return rows.set_column(0, rows.schema.field(0), adopted), known


def _taken(target: TableTarget, rows: pa.Table, options: Mapping[str, str]) -> int:
    """How many stored edges have the id of one of the rows, and other ends. A row that deletes may have no ends."""
    rows = rows.filter(rows.column("src").is_valid())
    if not rows.num_rows:
        return 0
    ids, count = one_array(rows.column("id")), 0
    for batch in rows_among(target.open(options), ["id", "src", "dst"], ["id"], ids.unique()):
        place = pc.index_in(batch.column("id"), value_set=ids)
        moves = [pc.not_equal(batch.column(end), one_array(rows.column(end)).take(place)) for end in ("src", "dst")]
        count += int(pc.sum(pc.or_(*moves)).as_py() or 0)
    return count


def _single(prop: Property | None) -> bool:
    return prop is not None and not (prop.type.is_list or prop.type.is_vector or prop.type.scalar is Scalar.BLOB)


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return one_array(column) if isinstance(column, pa.ChunkedArray) else column


def _scalar(edge: EdgeType, name: str) -> Scalar:
    prop = edge.property(name)
    if prop is None:
        raise BadRequestError(
            f"edge_id: edge type '{edge.name}' has no property '{name}', which ids are to follow from"
        )
    if not _single(prop):
        raise BadRequestError(f"edge_id: no id follows from '{edge.name}.{name}', which is no single value")
    return prop.type.scalar
