"""Data out: every row as a record that can be loaded again, and single rows by id."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Sequence

import pyarrow as pa

from spark_omnigraph.catalog.dates import INSTANT_MAX, INSTANT_MIN, moment, moment_text
from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType, Scalar
from spark_omnigraph.errors import BadRequestError, NotFoundError
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.predicates.sql import is_text_of
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.rows import rows_in_id_order
from spark_omnigraph.words import is_text, nearest

Row = dict[str, object]


def export_records(
    store: GraphStore,
    catalog: Catalog,
    snapshot: Snapshot,
    types: Sequence[str] | None = None,
    tables: Sequence[str] | None = None,
) -> Iterator[str]:
    """JSON lines of the chosen type names and table keys (all when none is given): tables in key order, rows by id.

    Dates are days since the epoch, date-times ISO text to the millisecond with Z, blobs their URI or `base64:` text.
    """
    for entity in chosen_types(catalog, types or (), tables or ()):
        entry = snapshot.entries.get(entity.table_key)
        if entry is None:
            continue
        dataset = store.open_table(entry)
        for batch in rows_in_id_order(dataset, _blob_columns(entity, dataset.schema.names)):
            for row in _rows(entity, batch):
                yield json.dumps(_record(entity, row), ensure_ascii=False, allow_nan=False)


def read_entity(store: GraphStore, catalog: Catalog, snapshot: Snapshot, table_key: str, entity_id: str) -> Row | None:
    """One row by id, with the values that export writes; None when table or row do not exist. BadRequestError for an id
    that is no text.
    """
    entity, entry = catalog.table(table_key), snapshot.entries.get(table_key)
    if not isinstance(entity_id, str):
        raise BadRequestError(f"the id of a '{table_key}' is a text, not {as_shown(entity_id)}")
    if entity is None or entry is None or not is_text(entity_id):
        return None
    dataset = store.open_table(entry)
    blobs = _blob_columns(entity, dataset.schema.names)
    for batch in rows_in_id_order(dataset, blobs, is_text_of("id", [entity_id])):
        for row in _rows(entity, batch):
            return row
    return None


def chosen_types(catalog: Catalog, types: Sequence[str], tables: Sequence[str]) -> list[EntityType]:
    """Types by names and by table keys, all when none is given, in key order. NotFoundError for an unknown one."""
    names = {entity.name for entity in catalog.tables()}
    for name in types:
        if name not in names:
            raise NotFoundError(f"unknown export type '{name}'{nearest(name, names)}")
    for key in tables:
        if catalog.table(key) is None:
            raise NotFoundError(f"unknown export table '{key}'{nearest(key, [e.table_key for e in catalog.tables()])}")
    everything = not types and not tables
    chosen = [e for e in catalog.tables() if everything or e.name in types or e.table_key in tables]
    return sorted(chosen, key=lambda e: e.table_key)


def _blob_columns(entity: EntityType, stored: Collection[str]) -> list[str]:
    return [p.name for p in entity.properties if p.type.scalar is Scalar.BLOB and p.name in stored]


def _record(entity: EntityType, row: Row) -> Row:
    if isinstance(entity, EdgeType):
        data = {k: v for k, v in row.items() if k not in ("src", "dst")}
        return {"edge": entity.name, "from": row["src"], "to": row["dst"], "data": data}
    return {"type": entity.name, "data": row}


def _rows(entity: EntityType, batch: pa.RecordBatch) -> Iterator[Row]:
    stored = dict(zip(batch.schema.names, batch.columns, strict=True))
    absent = pa.nulls(batch.num_rows)  # a property that came after this version, in a graph that kept no former schema
    found = {name: stored.get(name, absent) for name in entity.columns}
    columns = {name: _finite(entity, name, plain_values(entity, name, column)) for name, column in found.items()}
    for i in range(batch.num_rows):
        yield {name: values[i] for name, values in columns.items()}


def plain_values(entity: EntityType, name: str, column: pa.Array) -> list[object]:
    """Values of a stored column as export writes them: dates as days, date-times as text."""
    prop = entity.property(name)
    if prop is None:
        return list(column.to_pylist())
    if prop.type.scalar is Scalar.DATE:
        return _mapped(column, pa.date32(), pa.int32(), lambda days: days)
    if prop.type.scalar is Scalar.DATETIME:
        return _mapped(column, pa.date64(), pa.int64(), _datetime_text)
    return list(column.to_pylist())


def _finite(entity: EntityType, name: str, values: list[object]) -> list[object]:
    prop = entity.property(name)
    is_float = prop is not None and prop.type.scalar in (Scalar.F32, Scalar.F64)
    if is_float and not all(_is_finite(v) for v in values):
        raise BadRequestError(
            f"property '{entity.name}.{name}' holds a value that is not finite, which JSON cannot carry: read the type "
            "as a frame or with a query to Parquet, or put a finite value in its place"
        )
    return values


def _mapped(column: pa.Array, stored: pa.DataType, plain: pa.DataType, render: Callable[[int], object]) -> list[object]:
    """Values of a column, or of its list items, as integers handed to `render`."""
    if pa.types.is_list(column.type):
        items = column.cast(pa.list_(plain)) if column.type.value_type == stored else column
        return [None if v is None else [None if x is None else render(x) for x in v] for v in items.to_pylist()]
    numbers = column.cast(plain) if column.type == stored else column
    return [None if v is None else render(v) for v in numbers.to_pylist()]


def _datetime_text(millis: int) -> str | int:
    """The text of an instant; outside of the years 1 to 9999, which have none, the milliseconds."""
    return moment_text(moment(millis * 1000)) if INSTANT_MIN <= millis <= INSTANT_MAX else millis


def _is_finite(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_finite(v) for v in value)
    return not isinstance(value, float) or math.isfinite(value)
