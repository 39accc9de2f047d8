"""A step as the JSON object that plans show: the reference's members, and ours for what it has not."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

from spark_omnigraph.catalog.ir_document import annotation_document, constraint_document, type_document
from spark_omnigraph.catalog.migration.steps import FixedValue, FromColumn, SchemaStep
from spark_omnigraph.catalog.types import Annotation, Cardinality, Constraint, PropType

_NAMES = {"old": "from", "new": "to"}
_CONSTRAINTS = get_args(Constraint)


def document(step: SchemaStep) -> dict[str, object]:
    """`{"kind": …}` with the members of the step; a member without a value is left out.

    >>> from spark_omnigraph.catalog.migration.steps import RenameType
    >>> document(RenameType("node", "Kite", "Glider"))
    {'kind': 'rename_type', 'type_kind': 'node', 'from': 'Kite', 'to': 'Glider'}
    """
    shown: dict[str, object] = {"kind": step.kind}
    for field in fields(step):
        value = getattr(step, field.name)
        if isinstance(value, FromColumn):
            shown["value_from"] = value.column
        elif value is not None:
            shown[_NAMES.get(field.name, field.name)] = _json(value)
    return shown


def _json(value: object) -> object:
    if isinstance(value, PropType):
        return type_document(value)
    if isinstance(value, Cardinality):
        return value.display()
    if isinstance(value, FixedValue):
        return value.value
    if isinstance(value, _CONSTRAINTS):
        return constraint_document(value)
    if isinstance(value, tuple):
        return [annotation_document(each) if isinstance(each, Annotation) else each for each in value]
    return str(value)
