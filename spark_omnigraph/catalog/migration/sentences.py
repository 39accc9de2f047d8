"""A step as a person reads it."""

from __future__ import annotations

import json

from spark_omnigraph.catalog.migration.steps import (
    AddConstraint,
    AddEnum,
    AddProperty,
    AddType,
    ChangeCardinality,
    DropMode,
    DropProperty,
    DropType,
    ExtendEnum,
    Fill,
    FromColumn,
    NarrowEnum,
    PropertyStep,
    RelaxProperty,
    RemoveConstraint,
    RemoveEnum,
    RenameProperty,
    RenameType,
    RequireProperty,
    SchemaStep,
    Unsupported,
    UpdateTypeMetadata,
    WidenProperty,
)
from spark_omnigraph.catalog.types import Check, Constraint, Range


def sentence(step: SchemaStep) -> str:
    """What the step does, in a few words.

    >>> sentence(RenameType("node", "Kite", "Glider"))
    "rename node type 'Kite' to 'Glider'"
    """
    match step:
        case Unsupported():
            return f"not supported: {step.entity}"
        case AddType() | DropType() | RenameType() | UpdateTypeMetadata():
            return _of_type(step)
        case RenameProperty(type_name=owner, old=old, new=new):
            return f"rename {owner}.{old} to {new}"
        case AddConstraint(type_name=owner, constraint=constraint):
            return f"add {constraint_text(constraint)} to {owner}"
        case RemoveConstraint(type_name=owner, constraint=constraint):
            return f"remove {constraint_text(constraint)} from {owner}"
        case ChangeCardinality(type_name=owner, old=before, new=after):
            return f"change @card of {owner} from {before.display()} to {after.display()}"
        case PropertyStep():
            return _of_property(step, f"{step.type_name}.{step.property_name}")
        case _:
            return step.kind


def _of_type(step: AddType | DropType | RenameType | UpdateTypeMetadata) -> str:
    what = "interface" if step.type_kind == "interface" else f"{step.type_kind} type"
    match step:
        case RenameType(old=old, new=new):
            return f"rename {what} '{old}' to '{new}'"
        case AddType(name=name):
            return f"add {what} '{name}'"
        case DropType(name=name, mode=mode):
            return f"drop {what} '{name}'{_how(mode)}"
        case UpdateTypeMetadata(name=name):
            return f"describe {what} '{name}' anew"


def _of_property(step: PropertyStep, place: str) -> str:
    match step:
        case AddProperty(property_type=ptype, value=value):
            return f"add {place}: {ptype.display()}{_from(value)}"
        case DropProperty(mode=mode):
            return f"drop {place}{_how(mode)}"
        case WidenProperty(old=old, new=new):
            return f"widen {place} from {old.display()} to {new.display()}"
        case RequireProperty(value=value):
            return f"require {place}{_from(value, 'null becomes ')}"
        case RelaxProperty():
            return f"allow null in {place}"
        case ExtendEnum(added_values=values):
            return f"allow {', '.join(values)} in {place}"
        case NarrowEnum(removed_values=values):
            return f"allow {', '.join(values)} in {place} no more"
        case AddEnum(values=values):
            return f"allow only {', '.join(values)} in {place}"
        case RemoveEnum():
            return f"allow any text in {place}"
        case _:
            return f"describe {place} anew"


def constraint_text(constraint: Constraint) -> str:
    """The constraint as it is written in a schema."""
    match constraint:
        case Range(name, low, high):
            return f"@range({name}, {'' if low is None else low}..{'' if high is None else high})"
        case Check(name, pattern):
            return f"@check({name}, {json.dumps(pattern, ensure_ascii=False)})"
        case _:
            return f"@{type(constraint).__name__.lower()}({', '.join(constraint.columns)})"


def _how(mode: DropMode) -> str:
    return " for good" if mode is DropMode.HARD else ""


def _from(value: Fill | None, words: str = "") -> str:
    if value is None:
        return ""
    shown = f"that of {value.column}" if isinstance(value, FromColumn) else json.dumps(value.value, ensure_ascii=False)
    return f" ({words or 'stored rows get '}{shown})"
