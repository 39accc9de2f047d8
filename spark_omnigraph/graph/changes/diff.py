"""What changed between two states of a graph: as a list of changes, and row by row with values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, EntityType, Property
from spark_omnigraph.draw.card import Card, grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.arguments import instance_of, require
from spark_omnigraph.graph.read.scan import pin
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.records.arrow_schema import stored_type
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.changes import RowChanges, read_rows, row_changes
from spark_omnigraph.storage.tables.scan import PinnedTable, column_ids, open_pinned
from spark_omnigraph.words import TextEnum, nearest
from spark_omnigraph.write.attempts import lost_columns_named


class Operation(TextEnum):
    """What happened to a row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class Image(TextEnum):
    """Which state of a changed row is shown: Delta's words of a change feed."""

    INSERT = "insert"
    UPDATE_BEFORE = "update_preimage"
    UPDATE_AFTER = "update_postimage"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row that differs. `manifest_version` is that of the state it was last changed in, as far as this is known:
    the later of the two that were compared. `src` and `dst` are those of edges.
    """

    table_key: TableKey
    id: str
    op: Operation
    manifest_version: int
    src: str | None = None
    dst: str | None = None

    @property
    def kind(self) -> str:
        return self.table_key.kind

    @property
    def type_name(self) -> str:
        return self.table_key.type_name

    def to_dict(self) -> dict[str, object]:
        """Plain values; `endpoints` for edges only."""
        facts: dict[str, object] = {
            "table_key": self.table_key,
            "kind": self.kind,
            "type_name": self.type_name,
            "id": self.id,
            "op": str(self.op),
            "manifest_version": self.manifest_version,
        }
        if self.src is not None:
            facts["endpoints"] = {"src": self.src, "dst": self.dst}
        return facts


@dataclass(frozen=True, slots=True, repr=False)
class Diff(Displayed):
    """The net difference of two states: rows that came and went between them leave no trace. Iteration yields its
    changes, `len` counts them.
    """

    from_version: int
    to_version: int
    branch: Branch
    changes: tuple[RowChange, ...]

    def stats(self) -> dict[str, object]:
        """Numbers of inserts, updates and deletes, and the names of the types they belong to."""
        counts = Counter(change.op for change in self.changes)
        return {
            "inserts": counts[Operation.INSERT],
            "updates": counts[Operation.UPDATE],
            "deletes": counts[Operation.DELETE],
            "types_affected": sorted({change.type_name for change in self.changes}),
        }

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {
            "from_version": self.from_version,
            "to_version": self.to_version,
            "branch": self.branch,
            "changes": [change.to_dict() for change in self.changes],
            "stats": self.stats(),
        }

    def __iter__(self) -> Iterator[RowChange]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def _card(self) -> Card:
        counts = self.stats()
        said = ", ".join(f"{counts[name]:,} {name}" for name in ("inserts", "updates", "deletes"))
        by_type = Counter((change.table_key, change.op) for change in self.changes)
        rows = ((str(c.table_key), str(c.op), c.id, c.src, c.dst) for c in self.changes)
        return Card(
            "Diff",
            f"version {self.from_version} to {self.to_version} of {display(self.branch)}: {said}",
            grids=without_empty(
                grid(
                    "By type", ("type", "change", "rows"), ((*k, n) for k, n in sorted(by_type.items())), len(by_type)
                ),
                grid("Changes", ("type", "change", "id", "from", "to"), rows, len(self.changes)),
            ),
        )


@dataclass(frozen=True, slots=True)
class DiffFilter:
    """Which changes are wanted; None is all."""

    kinds: Collection[str] | None = None
    type_names: Collection[str] | None = None
    ops: Collection[str] | None = None

    def __post_init__(self) -> None:
        _check("kind", self.kinds, ("node", "edge"))
        _check("operation", self.ops, tuple(str(op) for op in Operation))

    def wants_table(self, table_key: TableKey) -> bool:
        if self.kinds is not None and table_key.kind not in self.kinds:
            return False
        return self.type_names is None or table_key.type_name in self.type_names

    def wants(self, op: Operation) -> bool:
        return self.ops is None or str(op) in self.ops


@dataclass(frozen=True, slots=True)
class TableDiff:
    """A table that differs between two states. Picklable: whoever reads the rows opens the two versions himself."""

    entity: EntityType
    before: PinnedTable | None
    after: PinnedTable | None
    same_line: bool
    """Both versions are of one line and in order, so that row versions say what was written between them."""

    def rows(self) -> RowChanges:
        return row_changes(self.before, self.after, self.same_line)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.entity.columns

    def same_columns(self) -> bool:
        """Whether both versions store the same columns. One that was dropped and came again has other values in rows
        that nobody wrote.
        """
        if self.before is None or self.after is None:
            return True
        old, new = column_ids(self.before), column_ids(self.after)
        return all(old[name] == new[name] for name in old.keys() & new.keys())

    def images(self, columns: tuple[str, ...]) -> Iterator[tuple[Image, pa.RecordBatch]]:
        """Changed rows with their values: inserted, updated (before, then after), deleted."""
        rows = self.rows()
        parts = (
            (Image.INSERT, self.after, rows.inserted),
            (Image.UPDATE_BEFORE, self.before, rows.replaced),
            (Image.UPDATE_AFTER, self.after, rows.updated),
            (Image.DELETE, self.before, rows.deleted),
        )
        for image, table, wanted in parts:
            if table is not None and len(wanted):
                for batch in read_rows(table, wanted, columns):
                    yield image, batch


def changed_tables(store: GraphStore, catalog: Catalog, before: Snapshot, after: Snapshot) -> list[TableDiff]:
    """Tables whose pins differ between two snapshots, in key order; some may turn out to have the same rows."""
    found = []
    for entity in sorted(catalog.tables(), key=lambda e: e.table_key):
        for old, new in _pairs(before, after, entity.table_key):
            if old is not None and new is not None and _place(old) == _place(new):
                continue
            same_line = old is not None and new is not None and old.branch == new.branch and old.version < new.version
            pins = [None if each is None or not each.row_count else pin(store, each) for each in (old, new)]
            if pins != [None, None]:
                found.append(_with_stored_columns(TableDiff(entity, pins[0], pins[1], same_line)))
    return found


def _pairs(before: Snapshot, after: Snapshot, table_key: TableKey) -> list[tuple[TableEntry | None, TableEntry | None]]:
    """What a type was and is. A table that came in place of another one of its name shares no row with it: all of one
    went, and all of the other came.
    """
    old, new = before.entries.get(table_key), after.entries.get(table_key)
    if old is not None and new is not None and old.identity == new.identity:
        return [(old, new)]
    gone = old if after.same_table(old) is None else None
    return [pair for pair in ((gone, None), (before.same_table(new), new)) if pair != (None, None)]


def _place(entry: TableEntry) -> tuple[str, Branch, int]:
    return entry.location, entry.branch, entry.version


def diff(
    store: GraphStore, catalog: Catalog, before: Snapshot, after: Snapshot, wanted: DiffFilter | None = None
) -> Diff:
    """The net changes from one snapshot to another, tables in key order, within one inserts, updates, deletes."""
    if wanted is not None:
        require("only", wanted, instance_of(DiffFilter))
    chosen = wanted or DiffFilter()
    _check("type", chosen.type_names, tuple(entity.name for entity in catalog.tables()))
    changes: list[RowChange] = []
    with lost_columns_named(store, after.branch):
        for table in changed_tables(store, catalog, before, after):
            if chosen.wants_table(table.entity.table_key):
                changes.extend(_listed(table, chosen, after.version))
    return Diff(before.version, after.version, after.branch, tuple(changes))


def _listed(table: TableDiff, wanted: DiffFilter, version: int) -> Iterator[RowChange]:
    rows = table.rows()
    columns = table.entity.identity
    parts = (
        (Operation.INSERT, table.after, rows.inserted),
        (Operation.UPDATE, table.after, rows.updated),
        (Operation.DELETE, table.before, rows.deleted),
    )
    for op, source, ids in parts:
        if source is None or not len(ids) or not wanted.wants(op):
            continue
        for batch in read_rows(source, ids, columns):
            for row in batch.to_pylist():
                yield RowChange(table.entity.table_key, row["id"], op, version, row.get("src"), row.get("dst"))


def _with_stored_columns(table: TableDiff) -> TableDiff:
    """The type with the properties that every version involved stores, as values of their type or of one that fits."""
    versions = [open_pinned(pinned).schema for pinned in (table.before, table.after) if pinned is not None]
    properties = tuple(p for p in table.entity.properties if all(_stores(columns, p) for columns in versions))
    return replace(table, entity=replace(table.entity, properties=properties))


def _stores(columns: pa.Schema, prop: Property) -> bool:
    """Another table of the same name may have had a property of the same name with other values."""
    found = stored_type(columns.field(prop.name)) if prop.name in columns.names else None
    if found is None or found.is_list != prop.type.is_list:
        return False
    return found.scalar is prop.type.scalar or (found.scalar.is_numeric and prop.type.scalar.is_numeric)


def _check(what: str, given: Collection[str] | None, known: tuple[str, ...]) -> None:
    for one in given or ():
        if one not in known:
            raise BadRequestError(f"unknown {what} '{one}'{nearest(one, known)} (known: {', '.join(known)})")
