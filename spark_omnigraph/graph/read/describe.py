"""`describe`: what a graph holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from spark_omnigraph.branch.control import list_branches
from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType, Index, Unique
from spark_omnigraph.draw.card import Card, grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.draw.picture import SchemaPicture, mermaid
from spark_omnigraph.draw.svg import svg
from spark_omnigraph.graph.read.facts import Facts
from spark_omnigraph.graph.read.picture import picture_of
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.manifest.copied import CopyOrigin, copy_origin
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.compaction import Wear, wear
from spark_omnigraph.storage.tables.index import coverage
from spark_omnigraph.write.indexes import IndexProgress, table_status

MANY_FILES = 16
"""Files that a compaction saves from which it pays."""
MANY_ROWS = 10_000
"""Rows that an index leaves out from which it is worth extending, if they are a share of the table, too."""
WORN_SHARE = 0.1
"""Share of masked or unindexed rows from which upkeep pays; with so many masked ones Lance writes a file anew."""


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """An index that a table has: over which columns, of what kind, and how many of all rows it covers."""

    columns: tuple[str, ...]
    kind: str
    rows: int
    total: int

    def to_dict(self) -> dict[str, object]:
        return {"columns": list(self.columns), "kind": self.kind, "rows": self.rows, "total": self.total}


@dataclass(frozen=True, slots=True)
class TableUpkeep:
    """What `optimize` would mend: files now and afterwards, rows that are masked in them, and the most rows that one of
    the indexes leaves out. `pays` says whether that is so much that reads gain from it.
    """

    files: int
    files_after: int
    masked_rows: int
    unindexed_rows: int
    pays: bool

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table as one state shows it: indexes by name, and by column which are missing or deferred."""

    rows: int
    version: int
    branch: str
    path: str
    indexes: Mapping[str, StoredIndex]
    indexes_pending: Mapping[str, IndexProgress]
    upkeep: TableUpkeep

    def to_dict(self) -> dict[str, object]:
        return {
            "rows": self.rows,
            "version": self.version,
            "table_branch": self.branch,
            "path": self.path,
            "indexes": {name: index.to_dict() for name, index in self.indexes.items()},
            "indexes_pending": {column: str(progress) for column, progress in self.indexes_pending.items()},
            "upkeep": self.upkeep.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class TypeDescription:
    """A node or edge type: its properties with their types, constraints over columns, and its table, None where the
    state has none. Node types may have a `key`; edge types have the names of the types at their ends.
    """

    properties: Mapping[str, str]
    unique: tuple[tuple[str, ...], ...]
    index: tuple[tuple[str, ...], ...]
    table: TableDescription | None
    key: tuple[str, ...] | None = None
    from_type: str | None = None
    to_type: str | None = None
    cardinality: str | None = None

    def figures(self) -> tuple[int | None, int | None, int, int]:
        """Rows, version, number of properties, number of indexes."""
        table = self.table
        rows, version, indexes = (None, None, 0) if table is None else (table.rows, table.version, len(table.indexes))
        return rows, version, len(self.properties), indexes

    def to_dict(self) -> dict[str, object]:
        """Plain values; constraints where there are any, and the members of the table beside those of the type."""
        facts: dict[str, object] = {"key": self.key and list(self.key)}
        if self.from_type is not None:
            facts = {"from": self.from_type, "to": self.to_type, "cardinality": self.cardinality}
        facts["properties"] = dict(self.properties)
        for name, constraints in (("unique", self.unique), ("index", self.index)):
            if constraints:
                facts[name] = [list(columns) for columns in constraints]
        return facts if self.table is None else {**facts, **self.table.to_dict()}


@dataclass(frozen=True, slots=True, repr=False)
class GraphDescription(Displayed, Facts):
    """What a graph holds at one state, types by name. `warnings` tell what this state is known to lack."""

    graph: str
    branch: str
    manifest_version: int
    schema_hash: str
    branches: tuple[str, ...]
    nodes: Mapping[str, TypeDescription]
    edges: Mapping[str, TypeDescription]
    warnings: tuple[str, ...] = ()
    copy_of: CopyOrigin | None = None
    picture: SchemaPicture = field(default_factory=SchemaPicture)
    """The types as they are drawn."""

    def svg(self) -> str:
        """The types with their properties, ends and counts as a picture, a whole file of SVG."""
        return svg(self.picture)

    def mermaid(self) -> str:
        """The types with their properties, ends and counts as a diagram of Mermaid."""
        return mermaid(self.picture)

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON; `copy_of` for a copy, `warnings` where there are any."""
        facts: dict[str, object] = {
            "graph": self.graph,
            "branch": self.branch,
            "manifest_version": self.manifest_version,
            "schema_hash": self.schema_hash,
            "branches": list(self.branches),
            "nodes": {name: node.to_dict() for name, node in self.nodes.items()},
            "edges": {name: edge.to_dict() for name, edge in self.edges.items()},
        }
        if self.copy_of is not None:
            facts["copy_of"] = self.copy_of.to_dict()
        return {**facts, "warnings": list(self.warnings)} if self.warnings else facts

    def _card(self) -> Card:
        types = {
            **{f"node:{n}": each for n, each in self.nodes.items()},
            **{f"edge:{n}": e for n, e in self.edges.items()},
        }
        rows = ((key, *each.figures()) for key, each in types.items())
        columns = ("type", "rows", "version", "properties", "indexes")
        return Card(
            "GraphDescription",
            f"{self.graph}, version {self.manifest_version} of {self.branch}",
            {"branches": ", ".join(self.branches)},
            without_empty(grid("Types", columns, rows, len(types))),
            self.warnings,
            self.picture,
        )


def describe_graph(
    store: GraphStore, catalog: Catalog, snapshot: Snapshot, warnings: tuple[str, ...] = ()
) -> GraphDescription:
    """Types with their properties, constraints, row counts, table versions and index coverage; branches."""
    return GraphDescription(
        store.root,
        display(snapshot.branch),
        snapshot.version,
        catalog.ir_hash,
        tuple(list_branches(store)),
        {name: _type(store, node, snapshot) for name, node in catalog.nodes.items()},
        {name: _type(store, edge, snapshot) for name, edge in catalog.edges.items()},
        warnings,
        copy_origin(store.manifest_rows(store.manifest(None))),
        picture_of(catalog, {key: entry.row_count for key, entry in snapshot.entries.items()}),
    )


def _type(store: GraphStore, entity: EntityType, snapshot: Snapshot) -> TypeDescription:
    entry = snapshot.entries.get(entity.table_key)
    ends = (entity.from_type, entity.to_type, entity.cardinality.display()) if isinstance(entity, EdgeType) else ()
    return TypeDescription(
        {p.name: p.type.display() for p in entity.properties},
        tuple(c.columns for c in entity.constraints if isinstance(c, Unique)),
        tuple(c.columns for c in entity.constraints if isinstance(c, Index)),
        None if entry is None else _table(store, entity, entry),
        entity.key,
        *ends,
    )


def _table(store: GraphStore, entity: EntityType, entry: TableEntry) -> TableDescription:
    total = entry.row_count
    dataset = store.open_table(entry)
    found = coverage(dataset)
    pending = [s for s in table_status(store, entity, entry) if s.name is None and total]
    return TableDescription(
        total,
        entry.version,
        display(entry.branch),
        entry.location,
        {index.name: StoredIndex(index.columns, index.kind, index.rows, total) for index in found},
        {status.column: status.progress for status in pending},
        _upkeep(wear(dataset), total, max([0, *(total - index.rows for index in found)])),
    )


def _upkeep(worn: Wear, rows: int, unindexed: int) -> TableUpkeep:
    """Each look-up opens every file, reads over masked rows, and scans what indexes leave out."""
    pays = (
        worn.files - worn.files_after >= MANY_FILES
        or worn.masked_rows > WORN_SHARE * (rows + worn.masked_rows)
        or (unindexed > WORN_SHARE * rows and unindexed >= MANY_ROWS)
    )
    return TableUpkeep(worn.files, worn.files_after, worn.masked_rows, unindexed, pays)
