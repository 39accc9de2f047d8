"""Whole tables of a graph of any format, as they are stored in the one that is written, in streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from spark_omnigraph.catalog.identity import table_path
from spark_omnigraph.catalog.types import EntityType, Scalar
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.errors import StorageError
from spark_omnigraph.graph.convert.digest import TableDigest, digest_of
from spark_omnigraph.manifest.rows import ManifestRow, table_row, version_row
from spark_omnigraph.manifest.snapshot import TableEntry
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.storage.faults import alone
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import manifest_file
from spark_omnigraph.storage.tables.commits import create_dataset
from spark_omnigraph.storage.tables.rows import rows_to_write

FIRST_VERSION = 1
"""The version at which a converted table stands."""


def stored_batches(store: GraphStore, entity: EntityType, entry: TableEntry | None) -> Iterator[pa.RecordBatch]:
    """The rows of a table in the columns that a type has, in stored order; a column that is not stored is null."""
    if entry is None:
        return
    schema, dataset = physical_schema(entity), store.open_table(entry)
    names = set(dataset.schema.names)
    blobs = [p.name for p in entity.properties if p.type.scalar is Scalar.BLOB and p.name in names]
    for batch in rows_to_write(dataset, blobs, in_id_order=False):
        found = dict(zip(batch.schema.names, batch.columns, strict=True))
        arrays = [_as(found.get(field.name), field.type, batch.num_rows) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _as(column: pa.Array | None, kind: pa.DataType, rows: int) -> pa.Array:
    if column is None:
        return pa.nulls(rows, kind)
    return column if column.type == kind else column.cast(kind)


def digest_table(store: GraphStore, entity: EntityType, entry: TableEntry | None) -> TableDigest:
    """The digest of a table as a graph shows it."""
    return digest_of(entity, stored_batches(store, entity, entry))


def write_table(
    source: GraphStore, place: GraphStore, entity: EntityType, entry: TableEntry | None, hold: Callable[[], None]
) -> tuple[list[ManifestRow], TableDigest, bool]:
    """A table of the source as a new dataset, read back and compared: the rows by which a manifest shows it, its
    digest, and whether this run wrote it. What is there already and has the same rows stays.
    """
    path, found = table_path(entity.table_key), TableDigest(entity)
    is_there = place.objects.get(f"{path}/{manifest_file(FIRST_VERSION)}", limit=None) is not None
    if is_there:
        found = digest_table(source, entity, entry)
        is_there = digest_of(entity, _written(place, entity, path, found.rows)) == found
    if not is_there:
        place.objects.purge(path, hold)
        found = TableDigest(entity)
        rows = pa.RecordBatchReader.from_batches(
            physical_schema(entity), _watched(found, stored_batches(source, entity, entry), hold)
        )
        with alone(f"'{entity.table_key}' cannot be written"):
            create_dataset(place.location.join(path), physical_schema(entity), rows, place.location.options)
        reach(CrashPoint.CONVERT_TABLE)
        require_same(entity, found, digest_of(entity, _written(place, entity, path, found.rows)))
    update = place.table_update(entity.table_key, path, None, FIRST_VERSION, found.rows)
    return [table_row(entity.table_key, path), version_row(update)], found, not is_there


def require_same(entity: EntityType, wanted: TableDigest, found: TableDigest) -> None:
    """StorageError when what arrived is not what was sent."""
    if (wanted.rows, wanted.text) != (found.rows, found.text):
        raise StorageError(
            f"storage: '{entity.table_key}' has {wanted.rows:,} rows of digest {wanted.text} at the source, and "
            f"{found.rows:,} of {found.text} where it was converted to; run the conversion again"
        )


def _watched(
    found: TableDigest, batches: Iterator[pa.RecordBatch], hold: Callable[[], None]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        hold()
        found.add(batch)
        yield batch


def _written(place: GraphStore, entity: EntityType, path: str, rows: int) -> Iterator[pa.RecordBatch]:
    return stored_batches(place, entity, TableEntry(entity.table_key, path, FIRST_VERSION, None, rows))
