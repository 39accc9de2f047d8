"""The steps that stored rows may break, as questions of the checks that every write asks.

What one row answers is asked of `BatchChecker`, for a type that has the one rule; what rows do to each other is asked
of `WriteChecker`, as if all rows of the table had just been written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_omnigraph.catalog.migration.effects import is_rule
from spark_omnigraph.catalog.migration.planner import TableMigration
from spark_omnigraph.catalog.migration.steps import (
    AddConstraint,
    AddEnum,
    AddProperty,
    ChangeCardinality,
    NarrowEnum,
    RequireProperty,
    SchemaStep,
)
from spark_omnigraph.catalog.types import (
    Check,
    Constraint,
    EdgeType,
    EntityType,
    Key,
    Property,
    Range,
    Unique,
)
from spark_omnigraph.errors import InternalError
from spark_omnigraph.validate.probes import CardinalityProbe, UniqueProbe, cardinality_probes, unique_probes


@dataclass(frozen=True, slots=True)
class RowRule:
    """A step that each row keeps or breaks by itself: `entity` is the desired type with this rule and no other."""

    step: SchemaStep
    entity: EntityType

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(prop.name for prop in self.entity.properties)


@dataclass(frozen=True, slots=True)
class TableRule:
    """A step that rows of the table keep or break together."""

    step: SchemaStep
    probe: UniqueProbe | CardinalityProbe

    @property
    def columns(self) -> tuple[str, ...]:
        return self.probe.columns if isinstance(self.probe, UniqueProbe) else ("src",)


def rules_of(diff: TableMigration) -> tuple[list[RowRule], list[TableRule]]:
    """The rules among the steps of a table that stays, in their order. A step that gives rows a value has to keep every
    rule of its property that comes with no step of its own.
    """
    rows: list[RowRule] = []
    table: list[TableRule] = []
    if diff.old is not None and diff.new is not None:
        for step in filter(is_rule, diff.steps):
            table += [TableRule(step, probe) for probe in _probes(step, diff, diff.new)]
            alone = _alone(step, diff, diff.new)
            rows += [] if alone is None else [RowRule(step, alone)]
    return rows, table


def _probes(step: SchemaStep, diff: TableMigration, new: EntityType) -> tuple[UniqueProbe | CardinalityProbe, ...]:
    """What has to be asked of the whole table; nothing of a unique group that is the key, since ids differ."""
    key = tuple(each for each in new.constraints if isinstance(each, Key))
    if isinstance(step, AddConstraint) and isinstance(step.constraint, Unique):
        return unique_probes(replace(new, constraints=(*key, step.constraint)))
    if isinstance(step, AddProperty | RequireProperty) and step.value is not None:
        unique = [each for each in _standing(diff, new) if isinstance(each, Unique)]
        given = tuple(each for each in unique if step.property_name in each.columns)
        return unique_probes(replace(new, constraints=(*key, *given)))
    if isinstance(step, ChangeCardinality) and isinstance(new, EdgeType):
        return cardinality_probes(new)
    return ()


def _alone(step: SchemaStep, diff: TableMigration, new: EntityType) -> EntityType | None:
    """The type with the one rule of the step, None for a step that single rows do not answer."""
    match step:
        case AddConstraint(constraint=Range(name) | Check(name) as constraint):
            return _with(new, _property(new, name, nullable=True, enum=False), (constraint,))
        case AddProperty(property_name=name) | RequireProperty(property_name=name) if step.value is not None:
            steps = [each for each in diff.steps if isinstance(each, NarrowEnum | AddEnum)]
            enum = all(each.property_name != name for each in steps)
            bounds = [each for each in _standing(diff, new) if isinstance(each, Range | Check)]
            given = tuple(each for each in bounds if each.property == name)
            prop = _property(new, name, nullable=False, enum=enum)
            is_free = prop.type.nullable and prop.type.enum_values is None and not given
            return None if is_free else _with(new, prop, given)
        case RequireProperty(property_name=name):
            return _with(new, _property(new, name, nullable=False, enum=False))
        case NarrowEnum(property_name=name) | AddEnum(property_name=name):
            return _with(new, _property(new, name, nullable=True, enum=True))
        case _:
            return None


def _standing(diff: TableMigration, new: EntityType) -> list[Constraint]:
    """The constraints that no step adds."""
    added = [step.constraint for step in diff.steps if isinstance(step, AddConstraint)]
    return [each for each in new.constraints if each not in added]


def _with(new: EntityType, prop: Property, constraints: tuple[Constraint, ...] = ()) -> EntityType:
    return replace(new, properties=(prop,), constraints=constraints)


def _property(new: EntityType, name: str, *, nullable: bool, enum: bool) -> Property:
    """The property with these rules of its type and no other: that it is no enum, and that it may be null."""
    found = new.property(name)
    if found is None:
        raise InternalError(f"a step names the property '{new.name}.{name}', which the desired schema lacks")
    kind = found.type
    allowed = kind.enum_values if enum else None
    return replace(found, type=replace(kind, nullable=nullable or kind.nullable, enum_values=allowed))
