"""The difference of two schemas as steps: interfaces, nodes, edges; of each the desired types by name, then drops.

accepted, desired ──match──▶ pairs ──properties, metadata, constraints──▶ steps, and for each table its columns' sources
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from spark_omnigraph.catalog.canonical import canonical_constraint, constraint_key
from spark_omnigraph.catalog.identity import Kind, TableKey
from spark_omnigraph.catalog.migration.document import document
from spark_omnigraph.catalog.migration.matching import Match, leftover, pair_by_name
from spark_omnigraph.catalog.migration.metadata import metadata_step
from spark_omnigraph.catalog.migration.properties import ColumnSource, PropertyPlanner, Values
from spark_omnigraph.catalog.migration.steps import (
    AddConstraint,
    AddProperty,
    AddType,
    ChangeCardinality,
    DropMode,
    DropType,
    RemoveConstraint,
    RenameType,
    RequireProperty,
    SchemaStep,
    Unsupported,
    UpdateTypeMetadata,
)
from spark_omnigraph.catalog.types import (
    Catalog,
    Check,
    Constraint,
    EdgeType,
    EntityType,
    Index,
    InterfaceType,
    Key,
    NodeType,
    Range,
    Unique,
)
from spark_omnigraph.errors import BadRequestError

_NO_VALUES: Values = MappingProxyType({})
_V1 = "is not supported in schema migration v1"
T = TypeVar("T", bound=EntityType)


@dataclass(frozen=True, slots=True)
class TableMigration:
    """The steps of one table. `old` is None for a type that comes, `new` for one that goes; `columns`, for one that
    stays, are the sources of the properties of `new`, in their order.
    """

    old: EntityType | None
    new: EntityType | None
    steps: tuple[SchemaStep, ...]
    columns: tuple[ColumnSource, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaPlan:
    """What leads from the accepted to the desired schema. `tables` are those that a step is of."""

    accepted: Catalog
    desired: Catalog
    steps: tuple[SchemaStep, ...]
    tables: tuple[TableMigration, ...]

    @property
    def unsupported(self) -> tuple[Unsupported, ...]:
        return tuple(step for step in self.steps if isinstance(step, Unsupported))

    @property
    def supported(self) -> bool:
        """Whether an apply can do all of it; one step that it cannot do stops the whole plan."""
        return not self.unsupported

    def to_dict(self) -> dict[str, object]:
        steps = [document(step) for step in self.steps]
        return {"supported": self.supported, "step_count": len(steps), "steps": steps}


def plan_schema(
    accepted: Catalog, desired: Catalog, values: Values = _NO_VALUES, *, allow_data_loss: bool = False
) -> SchemaPlan:
    """The steps between two schemas; the same ones for the same schemas.

    `values` are for stored rows, by table and property of the desired schema. Raises BadRequestError for one that no
    step takes and for one that cannot be that of its property. With `allow_data_loss` what is dropped is gone at once.
    """
    mode = DropMode.HARD if allow_data_loss else DropMode.SOFT
    planner = _Planner(values, mode)
    steps = list(planner.interfaces(accepted.interfaces, desired.interfaces))
    nodes = pair_by_name("node", accepted.nodes, desired.nodes)
    planner.node_names = {found.old.name: found.new.name for found in nodes if found.old is not None}
    tables = [*planner.tables("node", accepted.nodes, nodes)]
    tables += planner.tables("edge", accepted.edges, pair_by_name("edge", accepted.edges, desired.edges))
    steps += [step for table in tables for step in table.steps]
    _refuse_unused(values, steps)
    return SchemaPlan(accepted, desired, tuple(steps), tuple(table for table in tables if table.steps))


def _refuse_unused(values: Values, steps: list[SchemaStep]) -> None:
    used = {
        (step.table_key, step.property_name)
        for step in steps
        if isinstance(step, AddProperty | RequireProperty) and step.value is not None
    }
    refused = {step.table_key for step in steps if isinstance(step, Unsupported)}  # which says more
    for key, name in values:
        if (key, name) not in used and key not in refused:
            place = f"{key.type_name}.{name}"
            raise BadRequestError(
                f"no stored row takes the value of '{place}': the schema change neither adds that property to a type "
                "that stays nor requires it of one"
            )


class _Planner:
    def __init__(self, values: Values, mode: DropMode) -> None:
        self._values = values
        self._mode = mode
        self.node_names: Mapping[str, str] = {}
        """New names of the node types that stay, by the old ones."""

    def interfaces(
        self, accepted: Mapping[str, InterfaceType], desired: Mapping[str, InterfaceType]
    ) -> Iterator[SchemaStep]:
        for name, new in desired.items():
            old = accepted.get(name)
            if old is None:
                yield AddType("interface", name)
            else:
                yield from PropertyPlanner("interface", old, new, {}).steps(self._mode)
        for name in accepted:
            if name not in desired:
                key = TableKey(f"interface:{name}")
                yield Unsupported(key, f"removing interface '{name}' {_V1}")

    def tables(self, kind: Kind, accepted: Mapping[str, T], matches: list[Match[T]]) -> Iterator[TableMigration]:
        for found in matches:
            yield self._table(kind, found)
        for gone in leftover(accepted, matches):
            yield TableMigration(gone, None, (DropType(kind, gone.name, self._mode),))

    def _table(self, kind: Kind, found: Match[T]) -> TableMigration:
        old, new = found.old, found.new
        if found.refusal is not None:
            return TableMigration(old, new, (Unsupported(new.table_key, found.refusal),))
        if old is None:
            return TableMigration(None, new, (AddType(kind, new.name),))
        properties = PropertyPlanner(kind, old, new, self._values)
        steps = [
            *self._declaration(kind, old, new, properties.renames),
            *properties.steps(self._mode),
            *_constraints(kind, old, new, properties.renames),
        ]
        return TableMigration(old, new, tuple(steps), properties.sources())

    def _declaration(
        self, kind: Kind, old: EntityType, new: EntityType, renames: Mapping[str, str]
    ) -> Iterator[SchemaStep]:
        if old.name != new.name:
            yield RenameType(kind, old.name, new.name)
        if isinstance(old, EdgeType) and isinstance(new, EdgeType):
            yield from self._ends(old, new)
        if isinstance(old, NodeType) and isinstance(new, NodeType) and old.implements != new.implements:
            reason = f"changing implemented interfaces on node '{new.name}' {_V1}"
            yield Unsupported(new.table_key, reason)
        yield from metadata_step(
            old.annotations,
            new.annotations,
            renames,
            lambda notes: UpdateTypeMetadata(kind, new.name, notes),
            lambda reason: Unsupported(new.table_key, f"{reason} on {kind} '{new.name}' {_V1}"),
        )

    def _ends(self, old: EdgeType, new: EdgeType) -> Iterator[SchemaStep]:
        before = tuple(self.node_names.get(each, each) for each in (old.from_type, old.to_type))
        if before != (new.from_type, new.to_type):
            yield Unsupported(new.table_key, f"changing edge endpoints on '{new.name}' {_V1}")
        if old.cardinality != new.cardinality:
            yield ChangeCardinality("edge", new.name, old.cardinality, new.cardinality)


def _constraints(kind: Kind, old: EntityType, new: EntityType, renames: Mapping[str, str]) -> Iterator[SchemaStep]:
    """Removed ones, then added ones, by their keys. A key is never changed, for ids of rows are made of it."""
    for key in (each for each in old.constraints if isinstance(each, Key)):
        names = [renames.get(each, each) for each in key.columns]
        if names != sorted(names):  # ids are made of the values in the order of names
            listed = ", ".join(names)
            yield Unsupported(new.table_key, f"another order of names in the key of '{new.name}' ({listed}) {_V1}")
    before = {constraint_key(each): each for each in (_renamed(c, renames) for c in old.constraints)}
    after = {constraint_key(each): each for each in new.constraints}
    for text in sorted(before.keys() - after.keys()):
        if isinstance(before[text], Key):
            yield Unsupported(new.table_key, f"removing constraints from '{new.name}' ({text}) {_V1}")
        else:
            yield RemoveConstraint(kind, new.name, before[text])
    for text in sorted(after.keys() - before.keys()):
        if isinstance(after[text], Key):
            yield Unsupported(new.table_key, f"adding constraint '{text}' to '{new.name}' {_V1}")
        else:
            yield AddConstraint(kind, new.name, after[text])


def _renamed(constraint: Constraint, renames: Mapping[str, str]) -> Constraint:
    match constraint:
        case Key(columns) | Unique(columns) | Index(columns):
            return canonical_constraint(type(constraint)(tuple(renames.get(each, each) for each in columns)))
        case Range(name, low, high):
            return Range(renames.get(name, name), low, high)
        case Check(name, pattern):
            return Check(renames.get(name, name), pattern)
