"""A snapshot: one complete, immutable view of a graph, reduced from manifest rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import DamagedError, NotFoundError
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.rows import ManifestRow, RowKind, SchemaEpoch, TableId
from spark_omnigraph.redaction import excerpt


@dataclass(frozen=True, slots=True)
class GraphMark:
    """By what the graph and the branch of a snapshot are told from others that take their place: a file of the manifest
    as a path below the root, and the newest commit that it names, or one that the log has where it names none.
    """

    root: str
    branch: Branch
    file: str
    commit: str | None


@dataclass(frozen=True, slots=True)
class TableEntry:
    """Which version of one table a snapshot shows; `branch` None means the main line of the dataset."""

    table_key: TableKey
    location: str
    version: int
    branch: Branch
    row_count: int
    origin: GraphMark | None = field(default=None, compare=False, repr=False)
    """Of the snapshot, where it was read from a store."""
    identity: TableId | None = None
    """Of the table, in formats whose tables have ids: it goes by these, and may have had other names."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All visible tables of a branch at one manifest version; `branch` None is main."""

    branch: Branch
    version: int
    entries: Mapping[str, TableEntry]
    mark: str = field(default="", compare=False, repr=False)
    """Which content the manifest has at that version, where it was read from a store."""
    epoch: SchemaEpoch | None = field(default=None, compare=False, repr=False)
    """Of the schema that was accepted then, where another one is now; else of the last one before the present one."""

    is_unrecorded: bool = field(default=False, compare=False, repr=False)
    """It is an older state of a format whose writers keep no former schema: its tables alone tell of that."""

    def read_from(self, mark: str, origin: GraphMark | None) -> Snapshot:
        """The same snapshot with what tells it from another one in its place."""
        return replace(self, mark=mark, entries={k: replace(e, origin=origin) for k, e in self.entries.items()})

    def entry(self, table_key: str) -> TableEntry:
        """The table of a type that is to be written; NotFoundError when the manifest has none."""
        found = self.entries.get(table_key)
        if found is None:
            raise no_table(TableKey(table_key))
        return found

    def same_table(self, entry: TableEntry | None) -> TableEntry | None:
        """The table that another snapshot shows as `entry`, under whatever name; None when this one has it not."""
        if entry is None or entry.identity is None:
            return None if entry is None else self.entries.get(entry.table_key)
        return next((each for each in self.entries.values() if each.identity == entry.identity), None)

    def pin(self, table_key: str) -> int:
        """Visible version of a table, 0 when it has none."""
        entry = self.entries.get(table_key)
        return entry.version if entry is not None else 0

    @property
    def former(self) -> SchemaEpoch | None:
        """Of the schema that was accepted then, where the graph has another one now."""
        return self.epoch if self.epoch is not None and self.epoch.until >= self.version else None

    def place(self, table_key: str) -> tuple[str, Branch, int] | None:
        """Dataset, line and version of a table, None when it has none: what is at one place has the same rows."""
        entry = self.entries.get(table_key)
        return None if entry is None else (entry.location, entry.branch, entry.version)


def no_table(table_key: TableKey) -> NotFoundError:
    """What to raise where a type of the schema is to be written that the manifest knows no table of."""
    return NotFoundError(
        f"{table_key.spelled} is in the schema, but the manifest has no table for it: a schema change was "
        "interrupted, or the schema files belong to another graph"
    )


def _by_name(row: ManifestRow) -> Hashable:
    return row.table_key


def reduce_rows(
    branch: Branch, version: int, rows: Iterable[ManifestRow], table_of: Callable[[ManifestRow], Hashable] = _by_name
) -> Snapshot:
    """Snapshot of manifest rows: per table the greatest version that no tombstone covers.

    `table_of` says which table a row is of; the row that registers the table says its path and its name. Rows of
    unknown kinds are ignored. DamagedError for a version whose table is not registered, for two tables of one name, and
    for a row that lacks a value or leads out of the graph.
    """
    where = f"manifest version {version} of branch '{display(branch)}'"
    tables: dict[Hashable, ManifestRow] = {}
    newest: dict[Hashable, ManifestRow] = {}
    tombstones: dict[Hashable, int] = {}
    for row in rows:
        if row.fault is not None:
            raise damaged(row, where)
        if row.kind == RowKind.TABLE:
            tables[table_of(row)] = row
        elif row.kind == RowKind.VERSION:
            best = newest.get(table_of(row))
            number = _required(row.table_version, row, where)
            if best is None or number > _required(best.table_version, best, where):
                newest[table_of(row)] = row
        elif row.kind == RowKind.TOMBSTONE:
            covered = _required(row.table_version, row, where)
            tombstones[table_of(row)] = max(tombstones.get(table_of(row), 0), covered)
    entries: dict[TableKey, TableEntry] = {}
    for table, row in newest.items():
        number = _required(row.table_version, row, where)
        if tombstones.get(table, -1) >= number:
            continue
        entry = _entry(tables.get(table), row, number, where)
        if entry.table_key in entries:
            raise damaged(replace(row, fault=f"it shows a second table '{excerpt(entry.table_key)}'"), where)
        entries[entry.table_key] = entry
    return Snapshot(branch, version, dict(sorted(entries.items())))


def _entry(table: ManifestRow | None, row: ManifestRow, number: int, where: str) -> TableEntry:
    if table is None:
        raise damaged(replace(row, fault="there is no table row for its table"), where)
    location, count = _required(table.location, table, where), _required(row.row_count, row, where)
    return TableEntry(table.table_key, location, number, row.table_branch, count, identity=table.identity)


def damaged(row: ManifestRow, where: str) -> DamagedError:
    """What to raise, or to report, of a row that is not acted on."""
    return DamagedError(
        f"{where} has a row '{excerpt(row.object_id)}' that is not acted on: {row.fault}. No engine writes such a row; "
        "older versions may be read. Put __manifest back from a backup, or restore with Lance the version below "
        "the one that brought the row"
    )


_T = TypeVar("_T")


def _required(value: _T | None, row: ManifestRow, where: str) -> _T:
    if value is None:
        raise damaged(replace(row, fault=f"it lacks a value that a {row.kind} needs"), where)
    return value
