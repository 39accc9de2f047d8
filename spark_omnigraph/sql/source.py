"""What a statement may read: states of a graph by the names of schemas, types by the names of tables."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, EntityType
from spark_omnigraph.errors import QueryTypeError
from spark_omnigraph.storage.tables.reader import ReadCache
from spark_omnigraph.storage.tables.scan import PinnedTable
from spark_omnigraph.words import nearest


@dataclass(frozen=True, slots=True)
class StateTables:
    """The types of one state; `pin` gives the table of a type, None where the state has none yet."""

    catalog: Catalog
    pin: Callable[[TableKey], PinnedTable | None]

    def names(self) -> dict[str, EntityType]:
        """Types by the names that are listed: those of the schema, and keys where a node and an edge type share one."""
        found: dict[str, EntityType] = {}
        for entity in self.catalog.tables():
            shared = entity.name in self.catalog.nodes and entity.name in self.catalog.edges
            found[str(entity.table_key) if shared else entity.name] = entity
        return found

    def type(self, name: str) -> EntityType:
        """A type by its name or its key. QueryTypeError names the nearest, or the two that it may be."""
        known = self.names()
        found = known.get(name) or self.catalog.table(name)
        if found is not None:
            return found
        if name in self.catalog.nodes:
            raise QueryTypeError(f'\'{name}\' is a node type and an edge type: write "node:{name}" or "edge:{name}"')
        raise QueryTypeError(f"there is no table '{name}'{nearest(name, known)}")


@dataclass(frozen=True, slots=True)
class SqlSource:
    """What a statement may read: states by the names of schemas, of which `default` needs no name."""

    default: str
    listed: Callable[[], Collection[str]]
    """Names of all states that have one of their own."""
    state: Callable[[str], StateTables]
    """A state by name. NotFoundError, BadRequestError."""
    cache: ReadCache
