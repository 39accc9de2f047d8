"""What a schema change writes of each table: columns by a layout, or all rows anew; nothing is visible yet.

| table                         | what is staged                                                       |
|-------------------------------|----------------------------------------------------------------------|
| comes                         | nothing; an empty version above whatever the name has shown before   |
| goes                          | nothing                                                              |
| renamed                       | all rows, fragment by fragment, into the folder of the new name      |
| loses a property for good     | all rows, fragment by fragment, so that the files are without it     |
| stays                         | files of columns that get values of their own; mostly none           |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from spark_omnigraph.catalog.identity import TableKey, table_path
from spark_omnigraph.catalog.migration.planner import TableMigration
from spark_omnigraph.catalog.migration.properties import ColumnSource
from spark_omnigraph.catalog.migration.steps import (
    DropMode,
    DropProperty,
    DropType,
    FixedValue,
    FromColumn,
    RenameType,
)
from spark_omnigraph.catalog.types import EntityType
from spark_omnigraph.commit.plan import TableWrite
from spark_omnigraph.commit.schema.removal import DroppedVersions, empty_above
from spark_omnigraph.errors import InternalError
from spark_omnigraph.manifest.rows import RowKind
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.progress.meter import in_phase
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.storage.faults import alone
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.columns import (
    LaidColumn,
    Layout,
    TableSource,
    fragment_ids,
    parts_to_write,
    stage_columns,
    stage_copy,
)
from spark_omnigraph.storage.tables.commits import TableChange, create_dataset
from spark_omnigraph.storage.tables.staged import StagedFile, TableTarget
from spark_omnigraph.write.candidates import target_of
from spark_omnigraph.write.executor import Executor
from spark_omnigraph.write.staged_files import StagedFiles


@dataclass(slots=True)
class StagedChange:
    """What all tables of a schema change come to."""

    writes: list[TableWrite] = field(default_factory=list)
    dropped: dict[TableKey, int] = field(default_factory=dict)


def removals_of(snapshot: Snapshot, diffs: Iterable[TableMigration]) -> tuple[DroppedVersions, ...]:
    """The versions that go for good once a change of these tables is published."""
    found = []
    for diff in diffs:
        modes = [step.mode for step in diff.steps if isinstance(step, DropProperty | DropType)]
        if diff.old is not None and DropMode.HARD in modes:
            entry = snapshot.entry(diff.old.table_key)
            stays = diff.new is not None and diff.new.name == diff.old.name
            # The version that hides a table is among what goes.
            found.append(DroppedVersions(entry.location, entry.version if stays else entry.version + 1))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class TableStager:
    """Stages tables on what a snapshot of main shows."""

    store: GraphStore
    snapshot: Snapshot
    executor: Executor
    files: StagedFiles

    def stage(self, diffs: Iterable[TableMigration]) -> StagedChange:
        """Stages each table that a step writes. HEAD moves of new tables alone, which nothing shows."""
        change = StagedChange()
        for diff in diffs:
            self._table(diff, change)
        return change

    def _table(self, diff: TableMigration, change: StagedChange) -> None:
        old, new = diff.old, diff.new
        if new is None or (old is not None and old.name != new.name):
            self._hide(diff, change)
        if new is None:
            return
        if old is None:
            change.writes.append(self._new(new, Layout(tuple(map(LaidColumn, physical_schema(new)))), ()))
            return
        layout, entry = layout_of(old, new, diff.columns), self.snapshot.entry(old.table_key)
        source = TableSource(target_of(self.store, self.snapshot, old.table_key, None), self.store.storage_options)
        # Another engine may have stored other types, or nulls where there may be none.
        stored = source.dataset.schema if layout.filled else physical_schema(old)
        beside = layout_beside(diff, layout, stored)
        if old.name != new.name:
            change.writes.append(self._new(new, layout, self._copied(source, layout, new.table_key)))
        elif beside is None:
            staged = TableChange(self._copied(source, layout, new.table_key), replace_all=True, layout=layout)
            change.writes.append(TableWrite(entry, None, staged))
        elif not _is_stored_so(old, new, layout):
            parts = parts_to_write(source, beside)
            staged = TableChange(self._staged(partial(_fill, source, beside), parts), layout=beside)
            change.writes.append(TableWrite(entry, None, staged))

    def _hide(self, diff: TableMigration, change: StagedChange) -> None:
        if diff.old is None:
            raise InternalError("a table that is not there cannot be dropped")
        entry = self.snapshot.entry(diff.old.table_key)
        change.dropped[entry.table_key] = entry.version

    def _new(self, entity: EntityType, layout: Layout, files: tuple[StagedFile, ...]) -> TableWrite:
        entry = self._vessel(entity.table_key, layout)
        return TableWrite(entry, None, TableChange(files, replace_all=True, layout=layout), is_new=True)

    def _vessel(self, key: TableKey, layout: Layout) -> TableEntry:
        """The dataset of a type that comes: its own one where the name was in use before, at a version above all that
        it has shown, since a version that a tombstone covers is never seen.
        """
        path, store = table_path(key), self.store
        if not store.objects.has_prefix(f"{path}/_versions"):
            with alone(f"'{key}' cannot be made"):
                create_dataset(store.location.join(path), layout.schema, None, store.location.options)
        rows = store.manifest_rows(store.manifest(None))
        told = [row.table_version or 0 for row in rows if row.table_key == key and row.kind in _NUMBERED]
        dataset = empty_above(store.open_dataset(path), max(told, default=0) - 1, layout)
        return TableEntry(key, path, int(dataset.version), None, 0)

    def _copied(self, source: TableSource, layout: Layout, key: TableKey) -> tuple[StagedFile, ...]:
        path = table_path(key)
        target = TableTarget(key, self.store.table_uri(path, None), 0, 0)
        if source.target.uri != target.uri:
            self._vessel(key, layout)
        return self._staged(partial(_copy, source, layout, target), fragment_ids(source))

    def _staged(self, work: partial[StagedFile | None], parts: list[int]) -> tuple[StagedFile, ...]:
        found: list[StagedFile] = []
        for file in self.executor.map(work, parts):
            if file is not None:
                self.files.add([file])
                found.append(file)
        return tuple(found)


_NUMBERED = (RowKind.VERSION, RowKind.TOMBSTONE)


@in_phase("rewrite")
def _fill(source: TableSource, layout: Layout, fragment: int) -> StagedFile | None:
    return stage_columns(source, fragment, layout)


@in_phase("rewrite")
def _copy(source: TableSource, layout: Layout, target: TableTarget, fragment: int) -> StagedFile | None:
    return stage_copy(source, fragment, layout, target)


def layout_of(old: EntityType, new: EntityType, sources: Iterable[ColumnSource]) -> Layout:
    """The columns of a type that stays, by where their values come from."""
    by_name = {source.prop.name: source for source in sources}
    return Layout(tuple(_column(stored, by_name.get(stored.name), old) for stored in physical_schema(new)))


def layout_beside(diff: TableMigration, layout: Layout, stored: pa.Schema) -> Layout | None:
    """The layout of a type that stays, by what is written beside the files of a table with these columns; None where
    all its rows are written anew.
    """
    is_hard = any(isinstance(step, DropProperty) and step.mode is DropMode.HARD for step in diff.steps)
    is_renamed = any(isinstance(step, RenameType) for step in diff.steps)
    return None if is_hard or is_renamed or layout.needs_rows(stored) else layout.beside_files(stored)


def _column(stored: pa.Field, source: ColumnSource | None, old: EntityType) -> LaidColumn:
    if source is None:
        return LaidColumn(stored, stored.name)  # the id and the ends of edges
    former = None if source.stored is None else old.property(source.stored)
    if former is not None and former.type.scalar is source.prop.type.scalar and source.fill is None:
        return LaidColumn(stored, source.stored)
    origins = [] if source.stored is None else [source.stored]
    if isinstance(source.fill, FromColumn):
        origins.append(source.fill.column)
    value = pa.scalar(source.fill.value, stored.type) if isinstance(source.fill, FixedValue) else None
    return LaidColumn(stored, None, tuple(origins), value)


def _is_stored_so(old: EntityType, new: EntityType, layout: Layout) -> bool:
    """Whether a table has these columns already."""
    same = all(column.source == column.field.name for column in layout.columns)
    return same and physical_schema(old).equals(physical_schema(new))
