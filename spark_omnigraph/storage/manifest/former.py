"""The schema of an older state, made out from its tables: where no writer of a format keeps former schemas, what stood
then is told by the names in the manifest and by the columns of the datasets.

A type whose table has the columns that it has now is the type of now, under its name of then. Of another one the
rules of now hold as far as it had their columns; rules that are gone, and values of an enumeration, nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from spark_omnigraph.catalog.identity import Kind, TableKey, prop_id, type_id
from spark_omnigraph.catalog.ir import assemble
from spark_omnigraph.catalog.types import (
    Cardinality,
    Catalog,
    Constraint,
    EdgeType,
    EntityType,
    Index,
    Key,
    NodeType,
    Property,
    PropType,
    Unique,
)
from spark_omnigraph.errors import DamagedError
from spark_omnigraph.manifest.rows import TableId
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.records.arrow_schema import stored_type

UNKNOWN = "?"
"""What an end of an edge type is called that is gone, since nothing tells which types it led to."""
_IDS = ("id", "src", "dst")


def former_catalog(
    stored: Mapping[str, pa.Schema], snapshot: Snapshot, present: Catalog, tables: Mapping[TableKey, TableId] | None
) -> Catalog:
    """The types that a snapshot shows, whose tables have `stored` columns. `tables` are the ids of those of now, in
    formats whose tables have ids.
    """
    maker = _Maker(snapshot, present, tables)
    made = [maker.type_of(entry, stored[entry.table_key]) for entry in snapshot.entries.values()]
    if made == [present.table(each.table_key) for each in made] and len(made) == len(list(present.tables())):
        return present
    nodes = [each for each in made if isinstance(each, NodeType)]
    return assemble(present.interfaces.values(), nodes, [each for each in made if isinstance(each, EdgeType)])


def schema_text_of(catalog: Catalog) -> str:
    """The types of a catalog as `.pg` text, with keys and without other rules."""
    lines = ["// Made out from the tables of an older state: rules other than keys are not told."]
    for entity in catalog.tables():
        body = [f"    {prop.name}: {prop.type.display()}" for prop in entity.properties]
        if entity.key:
            body.append(f"    @key({', '.join(entity.key)})")
        head = f"node {entity.name}"
        if isinstance(entity, EdgeType):
            head = f"edge {entity.name}: {entity.from_type} -> {entity.to_type}"
        lines += [f"{head} {{", *body, "}"]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class _Maker:
    snapshot: Snapshot
    present: Catalog
    tables: Mapping[TableKey, TableId] | None

    def type_of(self, entry: TableEntry, columns: pa.Schema) -> EntityType:
        """The type of one table."""
        now, key = self._now(entry), entry.table_key
        stored = {field.name: field for field in columns if field.name not in _IDS}
        if now is not None and {p.name: _storage(p.type) for p in now.properties} == {
            name: _storage(_read(key, field)) for name, field in stored.items()
        }:
            return self._named(now, key)
        kind: Kind = "node" if key.kind == "node" else "edge"
        properties = tuple(_property(kind, key, field, now) for _, field in sorted(stored.items()))
        rules = () if now is None else tuple(rule for rule in now.constraints if _of(rule) <= stored.keys())
        if kind == "node":
            return NodeType(key.type_name, type_id("node", key.type_name), properties, rules)
        ends = (now.from_type, now.to_type) if isinstance(now, EdgeType) else (UNKNOWN, UNKNOWN)
        held = now.cardinality if isinstance(now, EdgeType) else Cardinality()
        edge = EdgeType(key.type_name, type_id("edge", key.type_name), *ends, held, properties, rules)
        return self._named(edge, key)

    def _now(self, entry: TableEntry) -> EntityType | None:
        """The type of now that has the table, or had its rows copied when it got its name."""
        if self.tables is not None:
            names = (name for name, identity in self.tables.items() if identity == entry.identity)
            return next((self.present.table(name) for name in names), None)
        known = self.present.table(entry.table_key)
        return known or next((t for t in self.present.tables() if entry.table_key in _names(t)), None)

    def _named(self, entity: EntityType, key: TableKey) -> EntityType:
        if isinstance(entity, NodeType):
            return replace(entity, name=key.type_name, type_id=type_id("node", key.type_name))
        source, target = self._then(entity.from_type), self._then(entity.to_type)
        number = type_id("edge", key.type_name)
        return replace(entity, name=key.type_name, type_id=number, from_type=source, to_type=target)

    def _then(self, name: str) -> str:
        """What a node type of now was called."""
        key = TableKey.node(name)
        if self.tables is not None:
            shown = (e.table_key for e in self.snapshot.entries.values() if e.identity == self.tables.get(key))
        else:
            entity = self.present.table(key)
            shown = (each for each in (() if entity is None else _names(entity)) if each in self.snapshot.entries)
        return next((each.type_name for each in shown), UNKNOWN)


def _names(entity: EntityType) -> tuple[TableKey, ...]:
    """The name of a type, and the one that its schema says it had."""
    former = (each.value for each in entity.annotations if each.name == "rename_from" and each.value)
    return (entity.table_key, *(TableKey(f"{entity.table_key.kind}:{name}") for name in former))


def _property(kind: Kind, key: TableKey, field: pa.Field, now: EntityType | None) -> Property:
    found, known = _read(key, field), None if now is None else now.property(field.name)
    number = prop_id(kind, key.type_name, field.name)
    if known is not None and _storage(known.type) == _storage(found):
        return replace(known, prop_id=number)
    return Property(field.name, number, found)


def _read(key: TableKey, field: pa.Field) -> PropType:
    found = stored_type(field)
    if found is None:
        raise DamagedError(f"column '{field.name}' of '{key}' has the type {field.type}, which no property has")
    return found


def _storage(ptype: PropType) -> tuple[object, ...]:
    return ptype.scalar, ptype.is_list, ptype.dimension


def _of(rule: Constraint) -> frozenset[str]:
    return frozenset(rule.columns if isinstance(rule, (Key, Unique, Index)) else (rule.property,))


def is_same(found: Iterable[TableEntry], tables: Mapping[TableKey, TableId]) -> bool:
    """Whether a snapshot shows the tables of a schema."""
    return {entry.table_key: entry.identity for entry in found} == dict(tables)
