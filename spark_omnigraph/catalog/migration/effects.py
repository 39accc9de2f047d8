"""What a step does to stored rows: how much of a table it writes, whether rows may break it, who sees it."""

from __future__ import annotations

from spark_omnigraph.catalog.migration.steps import (
    AddConstraint,
    AddEnum,
    AddProperty,
    ChangeCardinality,
    DropMode,
    DropProperty,
    NarrowEnum,
    RemoveEnum,
    RenameProperty,
    RenameType,
    RequireProperty,
    SchemaStep,
    WidenProperty,
)
from spark_omnigraph.catalog.types import Index
from spark_omnigraph.words import TextEnum


class StepWork(TextEnum):
    """What an apply writes of a table that stays."""

    NOTHING = "nothing"
    """The schema files alone, or an index."""
    COLUMNS = "columns"
    """The list of its columns, whatever the number of its rows."""
    VALUES = "values"
    """One column of all its rows."""
    ROWS = "rows"
    """All its rows."""


def work_of(step: SchemaStep) -> StepWork:
    """What the step writes."""
    match step:
        case RenameType() | DropProperty(mode=DropMode.HARD):
            return StepWork.ROWS
        case AddProperty(value=value) | RequireProperty(value=value) if value is not None:
            return StepWork.VALUES
        case WidenProperty():
            return StepWork.VALUES
        case AddProperty() | RenameProperty() | DropProperty():
            return StepWork.COLUMNS
        case _:
            return StepWork.NOTHING


def shows_updates(step: SchemaStep) -> bool:
    """Whether the change feed shows every row of the table as updated: it gets a value, or is written anew. A renamed
    type is another table, whose rows all come with it.
    """
    return work_of(step) in (StepWork.VALUES, StepWork.ROWS) and not isinstance(step, RenameType)


def asks_indexes(step: SchemaStep) -> bool:
    """Whether an index may be missing afterwards: one that comes, one of another kind, or of values written anew."""
    match step:
        case AddConstraint(constraint=constraint):
            return isinstance(constraint, Index)
        case AddEnum() | RemoveEnum():
            return True
        case _:
            return work_of(step) in (StepWork.VALUES, StepWork.ROWS)


def is_rule(step: SchemaStep) -> bool:
    """Whether stored rows may break what the step asks of them."""
    match step:
        case AddConstraint(constraint=constraint):
            return not isinstance(constraint, Index)
        case ChangeCardinality():
            return step.tightens
        case AddProperty(value=value):
            return value is not None
        case _:
            return isinstance(step, RequireProperty | NarrowEnum | AddEnum)
