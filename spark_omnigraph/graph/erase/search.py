"""Where a row is: in versions of tables that types have now or had before, and in files that no version names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spark_omnigraph.branch.control import list_branches, parse_branch
from spark_omnigraph.branch.orphans import Shown, find_orphans, stray_tables, what_is_shown
from spark_omnigraph.branch.tags import Place
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.migration.planner import plan_schema
from spark_omnigraph.catalog.migration.steps import RenameType
from spark_omnigraph.catalog.types import Catalog, EdgeType
from spark_omnigraph.commit.contract import former_catalogs, read_catalog
from spark_omnigraph.errors import StorageError
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.storage.buried import Buried, index_files
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import branch_path
from spark_omnigraph.storage.objects.small import StoredObject
from spark_omnigraph.storage.residue import DatasetFiles, find_residue
from spark_omnigraph.storage.versions import stored_since


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """A version of a table that holds the row."""

    table: str
    branch: str
    version: int


@dataclass(frozen=True, slots=True)
class Search:
    """For one row, by table: how the row and the edges that touch it are found. `present` are tables of types that
    there are, `former` those that a change of the schema has renamed or dropped.
    """

    store: GraphStore
    present: Mapping[str, Buried]
    former: Mapping[str, Buried]

    @classmethod
    def of(cls, store: GraphStore, table: TableKey, entity_id: str) -> Search:
        """NotFoundError for a type that there is not."""
        catalog = read_catalog(store)
        present, former = _conditions(catalog, table, entity_id), dict[str, Buried]()
        name, newer = catalog.require(table).name, catalog
        for older in former_catalogs(store):
            steps = (step for step in plan_schema(older, newer).steps if isinstance(step, RenameType))
            name = next((s.old for s in steps if (s.type_kind, s.new) == (table.kind, name)), name)
            key, newer = TableKey(f"{table.kind}:{name}"), older
            if older.table(key) is not None:
                former |= {k: v for k, v in _conditions(older, key, entity_id).items() if k not in former}
        return cls(store, present, {k: v for k, v in former.items() if catalog.table(k) is None})

    def rows(self) -> dict[str, dict[str, int]]:
        """Rows that each branch shows now, by table."""
        found: dict[str, dict[str, int]] = {}
        for name in list_branches(self.store):
            entries = self.store.snapshot(parse_branch(name)).entries
            for key, rows in self.present.items():
                entry = entries.get(TableKey(key))
                count = 0 if entry is None else int(self.store.open_table(entry).count_rows(rows.condition))
                if count:
                    found.setdefault(name, {})[key] = count
        return found

    def held(self) -> dict[Place, HeldVersion]:
        """All stored versions of all lines that hold the row."""
        shown = what_is_shown(self.store)
        found = {}
        for location, key, rows in self._tables(shown):
            for branch in sorted(shown.pins.get(location, {}), key=lambda line: line or ""):
                for version in self._holding(location, branch, rows):
                    found[location, branch, version] = HeldVersion(key, display(branch), version)
        return found

    def _tables(self, shown: Shown) -> Iterator[tuple[str, str, Buried]]:
        both = {**self.former, **self.present}
        for location, keys in sorted(shown.tables.items()):
            yield from ((location, key, both[key]) for key in sorted(keys & both.keys()))

    def _holding(self, location: str, branch: Branch, rows: Buried) -> Iterator[int]:
        indexes = index_files(self.store, location)
        folder = branch_path(location, branch)
        for version in stored_since(self.store.objects, folder):
            if rows.is_in(self.store.open_dataset(folder, version), indexes):
                yield version

    def loose(self) -> list[str]:
        """Files of these tables that no version names, which may hold the row as well, and why they may be there."""
        shown = what_is_shown(self.store)
        found = []
        for location in sorted({location for location, _, _ in self._tables(shown)}):
            try:
                unnamed = [each.path for part in self._unnamed(location, shown) for each in part]
            except StorageError as error:
                found.append(f"{location}: {error.message}")
                continue
            if unnamed:
                found.append(
                    f"{len(unnamed)} files of {location} that no version names ({unnamed[0]}): of a write under way or "
                    "interrupted; run it again when that is over"
                )
        for location in stray_tables(self.store, shown):
            found.append(f"{location}: files of a change of the schema that is under way, or died; run recover")
        tables = ("nodes/", "edges/")
        pieces = [each.path for each in self.store.objects.pieces() if each.path.startswith(tables)]
        return found + [f"{path}: a file that was not written to its end; remove it" for path in pieces]

    def _unnamed(self, location: str, shown: Shown) -> Iterator[tuple[StoredObject, ...]]:
        yield from (orphan.objects for orphan in find_orphans(self.store, location, shown))
        yield from (each.objects for each in find_residue(self.store, DatasetFiles.read(self.store, location)))


def _conditions(catalog: Catalog, table: TableKey, entity_id: str) -> dict[str, Buried]:
    """By table: where the row and the edges that touch it are found."""
    entity = catalog.require(table)
    found = {str(table): Buried(("id",), entity_id)}
    if isinstance(entity, EdgeType):
        return found
    for edge in catalog.edges_touching(entity.name):
        ends = tuple(c for c, name in (("src", edge.from_type), ("dst", edge.to_type)) if name == entity.name)
        found[str(edge.table_key)] = Buried(ends, entity_id)
    return found
