"""Types of a graph as tables for other programs: Parquet files, and Delta tables that follow the graph.

Each type is one table: `id`, of edges `src` and `dst`, and its properties. Nothing is lost on the way: U32 becomes a
64-bit integer, U64 a decimal of 20 digits, DateTime an instant in microseconds, an enum a string, a vector a list.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_omnigraph.catalog.types import Catalog, EntityType, Scalar
from spark_omnigraph.errors import BadRequestError, StorageError, VersionExpiredError
from spark_omnigraph.graph.arguments import PATH, SWITCH, require
from spark_omnigraph.graph.changes.diff import Image, TableDiff, changed_tables
from spark_omnigraph.graph.read.export import chosen_types
from spark_omnigraph.graph.read.history import commit_history
from spark_omnigraph.graph.read.scan import pinned_rows
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.records.mode import choice
from spark_omnigraph.storage.delta_write import OPERATION, Following
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.objects.whole_file import whole_path
from spark_omnigraph.storage.tables.scan import TableScan, column_names, read_batches
from spark_omnigraph.storage.uri import DELTA, is_inside, plain
from spark_omnigraph.words import TextEnum

_SCALARS: Mapping[Scalar, pa.DataType] = {
    Scalar.STRING: pa.string(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.int64(),
    Scalar.U64: pa.decimal128(20, 0),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.DATETIME: pa.timestamp("us", "UTC"),
    Scalar.BLOB: pa.binary(),
    Scalar.VECTOR: pa.list_(pa.float32()),
}


class TableFormat(TextEnum):
    """What tables are written as."""

    DELTA = "delta"
    PARQUET = "parquet"


class ExportOutcome(TextEnum):
    """What became of a table."""

    WHOLE = "whole"
    """All its rows were written."""
    CHANGES = "changes"
    """The rows that differ from what it showed were."""
    SAME = "same"
    """It shows the state already, or no row differs."""


@dataclass(frozen=True, slots=True)
class TablesRequest:
    """Which types, as what and to where. `incremental` is of Delta alone."""

    output: str
    format: TableFormat
    types: Sequence[str] = ()
    incremental: bool = False
    with_blobs: bool = False


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table that was written: its place, what was done, and how many rows; it showed the version `since` before."""

    uri: str
    outcome: ExportOutcome
    rows: int
    deleted: int = 0
    since: int | None = None


def write_tables(
    store: GraphStore, catalog: Catalog, snapshot: Snapshot, request: TablesRequest
) -> dict[str, WrittenTable]:
    """Writes each type of a state to `OUTPUT/nodes/TYPE` or `OUTPUT/edges/TYPE`; what was written, by table key.

    Tables are written one after the other, each whole or not at all; each says which version of the graph it shows.
    Raises VersionExpiredError when an incremental one begins at a state that was let expire, ConflictError when
    somebody writes a table meanwhile, BadRequestError, NotFoundError.
    """
    place = plain(request.output.removeprefix(DELTA)).rstrip("/")
    if is_inside(place, store.root):
        raise BadRequestError(
            f"'{place}' lies inside the graph {store.root}, whose files are its own: name another place"
        )
    if request.incremental and request.format is not TableFormat.DELTA:
        raise BadRequestError("only Delta tables know which state they show: write 'parquet' whole")
    done: dict[str, WrittenTable] = {}
    for entity in chosen_types(catalog, request.types, ()):
        kind, name = entity.table_key.kind, entity.name
        shown = _ExportedType(store, snapshot, entity, request.with_blobs)
        if request.format is TableFormat.PARQUET:
            done[entity.table_key] = shown.to_parquet(f"{place}/{kind}s/{name}.parquet")
        else:
            done[entity.table_key] = shown.to_delta(catalog, f"{place}/{kind}s/{name}", request.incremental)
    return done


def export_types(  # noqa: PLR0913 - as many as the call has
    store: GraphStore,
    catalog: Catalog,
    snapshot: Snapshot,
    output: str | os.PathLike[str],
    format: str,
    types: Sequence[str],
    incremental: bool,
    with_blobs: bool,
) -> dict[str, WrittenTable]:
    """`write_tables` of arguments, which it checks."""
    require("incremental", incremental, SWITCH)
    require("with_blobs", with_blobs, SWITCH)
    require("output", output, PATH)
    request = TablesRequest(os.fspath(output), choice("format", format, TableFormat), types, incremental, with_blobs)
    return write_tables(store, catalog, snapshot, request)


class _ExportedType:
    """One type of a state."""

    def __init__(self, store: GraphStore, snapshot: Snapshot, entity: EntityType, with_blobs: bool) -> None:
        self._store, self._snapshot, self._entity = store, snapshot, entity
        kinds = {prop.name: prop.type for prop in entity.properties}
        fields = []
        for name in entity.columns:
            kind = kinds.get(name)
            if kind is not None and kind.scalar is Scalar.BLOB and not with_blobs:
                continue
            item = pa.string() if kind is None or kind.scalar is None else _SCALARS[kind.scalar]
            fields.append(pa.field(name, pa.list_(item) if kind is not None and kind.is_list else item))
        self._schema = pa.schema(fields)

    def to_parquet(self, place: str) -> WrittenTable:
        metadata = {**self._facts(), "omnigraph.manifest_version": str(self._snapshot.version)}
        schema, rows = self._schema.with_metadata(metadata), 0
        with whole_path(place, self._store.storage_options) as part, pq.ParquetWriter(part, schema) as out:
            for batch in self._rows():
                out.write_batch(batch.cast(schema) if batch.schema != schema else batch)
                rows += batch.num_rows
        return WrittenTable(place, ExportOutcome.WHOLE, rows)

    def to_delta(self, catalog: Catalog, place: str, incremental: bool) -> WrittenTable:
        version = self._snapshot.version
        target = Following(place, self._application(), self._facts(), self._store.storage_options)
        since, columns = target.shown()
        if since is not None and since >= version:
            return WrittenTable(place, ExportOutcome.SAME, 0, since=since)
        counted, tables = _Counted(), None
        if incremental and since is not None and columns is not None and columns.names == self._schema.names:
            tables = self._differing(catalog, since)
        if tables is None or len(tables) > 1:  # a table that came in place of another one shares no row with it
            target.replace(self._schema, counted.of(self._rows()), version)
            return WrittenTable(place, ExportOutcome.WHOLE, counted.rows, since=since)
        changes = self._changes(tables)
        first = next(changes, None)
        if first is None:
            target.note(version)
            return WrittenTable(place, ExportOutcome.SAME, 0, since=since)
        target.merge(first.schema, counted.of(chain((first,), changes)), version)
        return WrittenTable(place, ExportOutcome.CHANGES, counted.rows - counted.gone, counted.gone, since)

    def _facts(self) -> dict[str, str]:
        branch, key = display(self._snapshot.branch), self._entity.table_key
        return {"omnigraph.graph": self._store.root, "omnigraph.branch": branch, "omnigraph.type": key}

    def _application(self) -> str:
        """What the table follows: a graph, or a branch, that was made anew is another one."""
        branch = self._snapshot.branch
        graph = commit_history(self._store, None)[-1].id
        line = "main" if branch is None else self._store.branch_refs()[branch].id
        return f"omnigraph:export:{graph}:{line}:{self._entity.table_key}"

    def _rows(self) -> Iterator[pa.RecordBatch]:
        table = pinned_rows(self._store, self._snapshot, self._entity.table_key)
        if table is not None:
            stored = tuple(name for name in self._schema.names if name in column_names(table))
            for batch in read_batches(TableScan(table, stored)):
                yield self._as_shown(batch)

    def _differing(self, catalog: Catalog, since: int) -> list[TableDiff]:
        try:
            before = self._store.snapshot(self._snapshot.branch, since)
        except VersionExpiredError as error:
            raise VersionExpiredError(f"{error.message}; write the tables whole, without 'incremental'") from error
        found = changed_tables(self._store, catalog, before, self._snapshot)
        return [table for table in found if table.entity.table_key == self._entity.table_key]

    def _changes(self, tables: Sequence[TableDiff]) -> Iterator[pa.RecordBatch]:
        for table in tables:
            for image, batch in table.images(tuple(n for n in self._schema.names if n in table.columns)):
                if image is not Image.UPDATE_BEFORE:
                    word = pa.repeat("d" if image is Image.DELETE else "u", batch.num_rows)
                    yield self._as_shown(batch).append_column(OPERATION, word)

    def _as_shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        names = batch.schema.names
        columns = [
            _cast(batch.column(field.name), field) if field.name in names else pa.nulls(batch.num_rows, field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


class _Counted:
    """Counts rows on their way."""

    rows = gone = 0

    def of(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.rows += batch.num_rows
            if OPERATION in batch.schema.names:
                self.gone += pc.sum(pc.equal(batch.column(OPERATION), "d")).as_py() or 0
            yield batch


def _cast(column: pa.Array, wanted: pa.Field) -> pa.Array:
    try:
        return column.cast(wanted.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise StorageError(
            f"storage: column '{wanted.name}' holds a value that a table cannot have: {error}"
        ) from error
