"""Types of a graph as tables for other programs: Parquet files, and Delta tables that follow the graph.

Each type is one table: `id`, of edges `src` and `dst`, and its properties. Nothing is lost on the way: U32 becomes a
64-bit integer, U64 a decimal of 20 digits, DateTime an instant in microseconds, an enum a string, a vector a list.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq

from spark_omnigraph.catalog.types import Catalog, EntityType
from spark_omnigraph.errors import BadRequestError, VersionExpiredError
from spark_omnigraph.graph.arguments import PATH, SWITCH, require
from spark_omnigraph.graph.changes.diff import changed_tables
from spark_omnigraph.graph.export.rows import changed_parts, shown_columns, stored_parts
from spark_omnigraph.graph.read.export import chosen_types
from spark_omnigraph.graph.read.history import commit_history
from spark_omnigraph.graph.read.scan import pinned_rows
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.records.frames.layouts import plain_schema
from spark_omnigraph.records.mode import choice
from spark_omnigraph.storage.delta_write import OPERATION, Followed, FollowingTable, LocalTable, Part, RowCounts
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.objects.whole_file import whole_path
from spark_omnigraph.storage.uri import DELTA, is_inside, plain
from spark_omnigraph.words import TextEnum
from spark_omnigraph.write.executor import Executor


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
    store: GraphStore,
    catalog: Catalog,
    snapshot: Snapshot,
    request: TablesRequest,
    writer: TableWriter | None = None,
) -> dict[str, WrittenTable]:
    """Writes each type of a state to `OUTPUT/nodes/TYPE` or `OUTPUT/edges/TYPE`; what was written, by table key.

    Tables are written one after the other, each whole or not at all, by the tasks of `writer` or by this process; each
    says which version of the graph it shows.
    Raises VersionExpiredError when an incremental one begins at a state that was let expire, ConflictError when
    somebody writes a table meanwhile, BadRequestError, NotFoundError.
    """
    place = request.output.removeprefix(DELTA).rstrip("/")
    if is_inside(place, store.root):
        raise BadRequestError(
            f"'{place}' lies inside the graph {store.root}, whose files are its own: name another place"
        )
    if request.incremental and request.format is not TableFormat.DELTA:
        raise BadRequestError("only Delta tables know which state they show: write 'parquet' whole")
    if request.format is TableFormat.PARQUET and writer is not None:
        raise BadRequestError("files of Parquet are written by this process: leave the executor out, or write 'delta'")
    done: dict[str, WrittenTable] = {}
    for entity in chosen_types(catalog, request.types, ()):
        kind, name = entity.table_key.kind, entity.name
        shown = _ExportedType(store, snapshot, entity, request.with_blobs)
        if request.format is TableFormat.PARQUET:
            done[entity.table_key] = shown.to_parquet(f"{plain(place)}/{kind}s/{name}.parquet")
        else:
            table = f"{place}/{kind}s/{name}"
            done[entity.table_key] = shown.to_delta(catalog, table, request.incremental, writer or _LocalWriter())
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
    executor: Executor | None,
) -> dict[str, WrittenTable]:
    """`write_tables` of arguments, which it checks. One that writes no tables itself stands for this process."""
    require("incremental", incremental, SWITCH)
    require("with_blobs", with_blobs, SWITCH)
    require("output", output, PATH)
    request = TablesRequest(os.fspath(output), choice("format", format, TableFormat), types, incremental, with_blobs)
    return write_tables(store, catalog, snapshot, request, executor if isinstance(executor, TableWriter) else None)


@runtime_checkable
class TableWriter(Protocol):
    """An executor that writes Delta tables itself."""

    @property
    def parallelism(self) -> int:
        """Tasks that run at once."""

    def delta_table(self, followed: Followed) -> FollowingTable:
        """The table."""


class _LocalWriter:
    """Writes from this process."""

    parallelism = 1

    def delta_table(self, followed: Followed) -> FollowingTable:
        return LocalTable(followed)


class _ExportedType:
    """One type of a state."""

    def __init__(self, store: GraphStore, snapshot: Snapshot, entity: EntityType, with_blobs: bool) -> None:
        self._store, self._snapshot, self._entity = store, snapshot, entity
        self._schema = shown_columns(entity, with_blobs)

    def to_parquet(self, place: str) -> WrittenTable:
        metadata = {**self._facts("omnigraph."), "omnigraph.manifest_version": str(self._snapshot.version)}
        schema, counts = self._schema.with_metadata(metadata), RowCounts()
        with whole_path(place, self._store.storage_options) as part, pq.ParquetWriter(part, schema) as out:
            for batch in counts.counted(self._parts(1)):
                out.write_batch(batch.cast(schema))
        return WrittenTable(place, ExportOutcome.WHOLE, counts.rows)

    def to_delta(self, catalog: Catalog, place: str, incremental: bool, writer: TableWriter) -> WrittenTable:
        version = self._snapshot.version
        followed = Followed(place, self._follows(), self._facts(), self._store.storage_options)
        target = writer.delta_table(followed)
        since, columns = target.look()
        if since is not None and since >= version:
            return WrittenTable(place, ExportOutcome.SAME, 0, since=since)
        parts = None
        if incremental and since is not None and _same_columns(columns, self._schema):
            parts = self._changes(catalog, since)
        if parts and not target.can_merge():
            parts = None
        if parts is None:
            done = target.replace(self._schema, self._parts(writer.parallelism), version)
            return WrittenTable(place, ExportOutcome.WHOLE, done.rows, since=since)
        if not parts:
            target.note(version)
            return WrittenTable(place, ExportOutcome.SAME, 0, since=since)
        done = target.merge(self._schema.append(pa.field(OPERATION, pa.string())), parts, version)
        return WrittenTable(place, ExportOutcome.CHANGES, done.rows, done.deleted, since)

    def _facts(self, prefix: str = "") -> dict[str, str]:
        branch, key = display(self._snapshot.branch), self._entity.table_key
        return {f"{prefix}graph": self._store.root, f"{prefix}branch": branch, f"{prefix}type": key}

    def _follows(self) -> str:
        """What the table follows: a graph, or a branch, that was made anew is another one."""
        branch = self._snapshot.branch
        graph = commit_history(self._store, None)[-1].id
        line = "main" if branch is None else self._store.branch_refs()[branch].id
        return f"{graph}:{line}:{self._entity.table_key}"

    def _parts(self, slots: int) -> list[Part]:
        return stored_parts(pinned_rows(self._store, self._snapshot, self._entity.table_key), self._schema, slots)

    def _changes(self, catalog: Catalog, since: int) -> list[Part] | None:
        """What changed since a version; None where rows of now are not those of then that were changed: a table, or a
        column, came in place of another one.
        """
        try:
            before = self._store.snapshot(self._snapshot.branch, since)
            found = changed_tables(self._store, catalog, before, self._snapshot)
        except VersionExpiredError as error:
            raise VersionExpiredError(f"{error.message}; write the tables whole, without 'incremental'") from error
        tables = [table for table in found if table.entity.table_key == self._entity.table_key]
        if len(tables) > 1 or not all(table.same_columns() for table in tables):
            return None
        return changed_parts(tables[0], self._schema) if tables else []


def _same_columns(found: pa.Schema | None, wanted: pa.Schema) -> bool:
    """Whether a table has these columns, whatever its reader calls the items of a list."""
    if found is None:
        return False
    return bool(found.names == wanted.names and plain_schema(found).types == plain_schema(wanted).types)
