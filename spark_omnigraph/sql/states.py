"""States of a graph as schemas of SQL, and their types as tables that are opened when a statement names them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
from datafusion import DataFrame, SessionContext, col, lit
from datafusion.catalog import CatalogProvider, SchemaProvider, Table

from spark_omnigraph.catalog.types import EntityType, Scalar
from spark_omnigraph.errors import OmnigraphError
from spark_omnigraph.records.arrow_schema import physical_schema, shown_type
from spark_omnigraph.sql.source import SqlSource, StateTables
from spark_omnigraph.storage.tables.reader import TableReader

_T = TypeVar("_T")


@dataclass(slots=True)
class States:
    """The states that one statement has named so far, each looked for once, and what went wrong meanwhile.

    DataFusion hears of a fault only that something is not there.
    """

    source: SqlSource
    context: SessionContext
    check: Callable[[], None]
    """Abandoned where nobody waits for the planning any more."""
    faults: list[OmnigraphError] = field(default_factory=list)
    _found: dict[str, StateTables | None] = field(default_factory=dict)
    _readers: list[TableReader] = field(default_factory=list)

    def state(self, name: str) -> StateTables | None:
        """A state by the name of its schema."""
        if name not in self._found:
            self._found[name] = self._told(lambda: self.source.state(name))
        return self._found[name]

    def names(self) -> set[str]:
        """Names of all schemas."""
        return {self.source.default, *(self._told(self.source.listed) or ())}

    def table(self, state: StateTables, name: str) -> Table | None:
        """A type as a table. Abandoned."""
        self.check()
        return self._told(lambda: self._view(state, state.type(name)))

    def _view(self, state: StateTables, entity: EntityType) -> Table:
        """All columns but blobs, in the types in which they leave; what the stored version lacks is null.

        A view, so that no statement has a place to write to.
        """
        pinned = state.pin(entity.table_key)
        if pinned is None:
            stored: pa.Schema = pa.schema([])
            rows = self.context.read_empty()
        else:
            reader = self.source.cache.open(pinned)
            self._readers.append(reader)
            stored = reader.dataset.schema
            rows = self.context.read_table(reader.provider())
        return Table(_shown(rows, entity, stored))

    def _told(self, work: Callable[[], _T]) -> _T | None:
        try:
            return work()
        except OmnigraphError as error:
            self.faults.append(error)
            return None


def _shown(rows: DataFrame, entity: EntityType, stored: pa.Schema) -> DataFrame:
    blobs = {p.name for p in entity.properties if p.type.scalar is Scalar.BLOB}
    types = {p.name: shown_type(p.type) for p in entity.properties}
    columns = []
    for declared in physical_schema(entity):
        name = declared.name
        if name in blobs:
            continue
        of = types.get(name, declared.type)
        if name not in stored.names:
            columns.append(lit(None).cast(of).alias(name))
        elif stored.field(name).type == of:
            columns.append(col(f'"{name}"'))
        else:
            columns.append(col(f'"{name}"').cast(of).alias(name))
    return rows.select(*columns)


class GraphCatalog(CatalogProvider):
    """The graph: a schema for each state that a statement names."""

    def __init__(self, states: States) -> None:
        self.states = states

    def schema_names(self) -> set[str]:
        """Those that are listed; others can be named all the same."""
        return self.states.names()

    def schema(self, name: str) -> SchemaProvider | None:  # type: ignore[override]  # it is documented so
        """One state."""
        found = self.states.state(name)
        return None if found is None else StateSchema(self.states, found)


class StateSchema(SchemaProvider):
    """One state: a table for each type."""

    owner_name = None  # type: ignore[assignment]  # DataFusion reads it as an attribute

    def __init__(self, states: States, state: StateTables) -> None:
        self.states = states
        self.state = state

    @property
    def table_names(self) -> list[str]:  # type: ignore[override]  # a method or a set would hide all tables
        """Names of all types."""
        return list(self.state.names())

    def table(self, name: str) -> Table | None:
        """The type of that name."""
        return self.states.table(self.state, name)

    def table_exist(self, name: str) -> bool:
        """Whether there is such a type."""
        return name in self.state.names() or self.state.catalog.table(name) is not None
