"""What a query reads: the tables of one snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType
from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.engine.table import Table
from spark_omnigraph.errors import NotFoundError
from spark_omnigraph.storage.tables.reader import ReadCache
from spark_omnigraph.storage.tables.scan import PinnedTable


@dataclass(slots=True)
class EngineSource:
    """One snapshot as the engine sees it. `pin` gives a table of the snapshot, or None when the snapshot lacks it.

    Tables are opened when they are first asked for, once for a source; `cache` keeps them open beyond it, and its
    memory bounds what is kept of them. `costs` decide between ways to the same rows.
    """

    catalog: Catalog
    pin: Callable[[TableKey], PinnedTable | None]
    cache: ReadCache = field(default_factory=ReadCache)
    costs: Costs = field(default_factory=Costs)
    share: tuple[int, int] | None = None
    """Positions [start, stop) of the leading scan that alone are looked at; the rows of all shares together are the
    answer. Only for plans that have such a scan.
    """
    _tables: dict[str, Table] = field(default_factory=dict)

    def entity(self, table_key: TableKey) -> EntityType:
        """The type of `node:T` or `edge:E`."""
        return self.catalog.require(table_key)

    def edge(self, name: str) -> EdgeType:
        """An edge type by name."""
        found = self.catalog.edges.get(name)
        if found is None:
            raise NotFoundError(f"edge type '{name}' is not in the schema")
        return found

    def table(self, table_key: TableKey) -> Table:
        """The rows of a type. A type that the snapshot does not have yet has none."""
        found = self._tables.get(table_key)
        if found is None:
            entity, pinned = self.entity(table_key), self.pin(table_key)
            found = Table(entity, self.cache.open(pinned) if pinned is not None else None, self.costs)
            self._tables[table_key] = found
        return found
