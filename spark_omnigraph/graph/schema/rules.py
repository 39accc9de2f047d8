"""The steps that stored rows may break, as questions of the checks that every write asks.

What one row answers is asked of `BatchChecker`, for a type that has the one rule; what rows do to each other is asked
of `WriteChecker`, as if all rows of the table had just been written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_omnigraph.catalog.migration.effects import is_rule
from spark_omnigraph.catalog.migration.planner import TableDiff
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
    PropType,
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


def rules_of(diff: TableDiff) -> tuple[list[RowRule], list[TableRule]]:
    """The rules among the steps of a table that stays, in their order."""
    rows: list[RowRule] = []
    table: list[TableRule] = []
    if diff.old is not None and diff.new is not None:
        for step in filter(is_rule, diff.steps):
            table += [TableRule(step, probe) for probe in _probes(step, diff.new)]
            alone = _alone(step, diff.new)
            rows += [] if alone is None else [RowRule(step, alone)]
    return rows, table


def _probes(step: SchemaStep, new: EntityType) -> tuple[UniqueProbe | CardinalityProbe, ...]:
    """What has to be asked of the whole table; nothing of a unique group that is the key, since ids differ."""
    if isinstance(step, AddConstraint) and isinstance(step.constraint, Unique):
        key = tuple(each for each in new.constraints if isinstance(each, Key))
        return unique_probes(replace(new, constraints=(*key, step.constraint)))
    if isinstance(step, ChangeCardinality) and isinstance(new, EdgeType):
        return cardinality_probes(new)
    return ()


def _alone(step: SchemaStep, new: EntityType) -> EntityType | None:
    """The type with the one rule of the step, None for a step that single rows do not answer."""
    match step:
        case AddConstraint(constraint=Range(name) | Check(name) as constraint):
            return _with(new, replace(_property(new, name), type=_free(new, name)), (constraint,))
        case AddProperty(property_name=name):
            return _with(new, _property(new, name))
        case RequireProperty(property_name=name):
            return _with(new, replace(_property(new, name), type=replace(_property(new, name).type, enum_values=None)))
        case NarrowEnum(property_name=name) | AddEnum(property_name=name):
            return _with(new, replace(_property(new, name), type=replace(_property(new, name).type, nullable=True)))
        case _:
            return None


def _with(new: EntityType, prop: Property, constraints: tuple[Constraint, ...] = ()) -> EntityType:
    return replace(new, properties=(prop,), constraints=constraints)


def _free(new: EntityType, name: str) -> PropType:
    """The type of a property without rules of its own."""
    return replace(_property(new, name).type, nullable=True, enum_values=None)


def _property(new: EntityType, name: str) -> Property:
    found = new.property(name)
    if found is None:
        raise InternalError(f"a step names the property '{new.name}.{name}', which the desired schema lacks")
    return found
