"""Rules for schemas that are about to be accepted, beyond those of the format.

They refuse what other engines accept and then ignore, misread or stumble over later. A graph that exists keeps the
schema it was made with, so these rules are not asked of a text that is read back from one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from spark_omnigraph.catalog.identity import LANCE_COLUMNS
from spark_omnigraph.catalog.types import Bound
from spark_omnigraph.lang.pg.ast import (
    AnnotationUse,
    CheckConstraint,
    ColumnsConstraint,
    ConstraintDecl,
    EdgeDecl,
    NodeDecl,
    PropertyDecl,
    RangeConstraint,
    Schema,
)
from spark_omnigraph.lang.pg.check import Fail, check_property, rule_of, shape
from spark_omnigraph.lang.pg.near_miss import advice, resembles
from spark_omnigraph.lang.pg.report import parse_error
from spark_omnigraph.lang.source import Name, SourceText

_EDGE_COLUMNS = frozenset({"src", "dst"})
_MAX_DIMENSION = 65_536
"""Items of a vector: 256 KiB a row. Each row holds all of them, also where it has none, so that a batch of rows with a
longer one does not fit into memory.
"""


def check_new(source: SourceText, schema: Schema) -> None:
    """`SchemaParseError` for the first house rule that an expanded schema breaks."""
    fail = partial(parse_error, source)
    for interface in schema.interfaces:
        for prop in interface.properties:
            _property(fail, interface.name.text, prop)
            check_property(fail, interface.name.text, prop, siblings=None)
    _distinct(fail, (node.name for node in schema.nodes), "node types")
    for node in schema.nodes:
        _type(fail, node, f"node {node.name.text}")
    for edge in schema.edges:
        for prop in edge.properties:
            if prop.name.text.lower() in _EDGE_COLUMNS:
                message = _reserved(prop.name.text, "every edge has that column")
                raise fail(prop.name.region, f"{message} (edge {edge.name.text}.{prop.name.text})")
        _type(fail, edge, f"edge {edge.name.text}")


def _distinct(fail: Fail, names: Iterable[Name], what: str) -> None:
    """Refuses names that differ in case alone: Spark and SQL take them for one."""
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(name.text.lower(), name.text)
        if other != name.text:
            message = f"{what} '{other}' and '{name.text}' differ in case alone, which Spark and SQL do not tell apart"
            raise fail(name.region, f"{message}; give one another name")


def _reserved(name: str, why: str) -> str:
    alone = "" if name.islower() else " in any case"
    return f"property name '{name}' is reserved{alone}: {why}"


def _type(fail: Fail, decl: NodeDecl | EdgeDecl, target: str) -> None:
    for annotation in decl.annotations:
        _annotation(fail, annotation, target)
    _rename(fail, decl.annotations, target)
    for prop in decl.properties:
        _property(fail, decl.name.text, prop)
    _distinct(fail, (prop.name for prop in decl.properties), f"properties of {decl.name.text}")
    types = {prop.name.text: prop for prop in decl.properties}
    for constraint in decl.constraints:
        _constraint(fail, decl.name.text, constraint, types)


def _property(fail: Fail, owner: str, prop: PropertyDecl) -> None:
    name, target = prop.name.text, f"{owner}.{prop.name.text}"
    if name.lower() == "id":
        raise fail(prop.name.region, f"{_reserved(name, 'every node and edge has that column')} ({target})")
    if prop.type.dimension is not None and prop.type.dimension > _MAX_DIMENSION:
        room = f"each row of it would take {prop.type.dimension * 4 / 1e6:,.1f} MB"
        raise fail(prop.name.region, f"Vector dimension of {target} is above {_MAX_DIMENSION}: {room}")
    if name.lower() in LANCE_COLUMNS:
        raise fail(prop.name.region, f"property name '{name}' is reserved for a column that Lance makes up ({target})")
    for annotation in prop.annotations:
        _annotation(fail, annotation, f"property {target}")
    _rename(fail, prop.annotations, f"property {target}")


def _annotation(fail: Fail, annotation: AnnotationUse, target: str) -> None:
    name = annotation.name.text
    known = resembles(name)
    if known is not None:
        message = f"unknown annotation @{name} on {target}, did you mean @{known}? {advice(known)}"
        raise fail(annotation.region, message)
    if name in ("card", "range", "check"):
        raise fail(annotation.region, f"@{name} on {target} has no effect in this form; {advice(name)}")
    seen: set[str] = set()
    for argument in annotation.arguments:
        if argument.key.text in seen:
            raise fail(argument.key.region, f"@{name} on {target} has argument '{argument.key.text}=' twice")
        seen.add(argument.key.text)


def _rename(fail: Fail, annotations: Iterable[AnnotationUse], target: str) -> None:
    renames = [annotation for annotation in annotations if annotation.name.text == "rename_from"]
    for rename in renames:
        if rename.value is None or not rename.value.strip() or rename.arguments:
            raise fail(rename.region, f"@rename_from on {target} requires exactly one non-empty value, the old name")
    if len(renames) > 1:
        raise fail(renames[1].region, f"{target} declares @rename_from multiple times")


def _constraint(fail: Fail, owner: str, constraint: ConstraintDecl, properties: dict[str, PropertyDecl]) -> None:
    if isinstance(constraint, ColumnsConstraint):
        _columns(fail, owner, constraint, properties)
        return
    rule, target = rule_of(constraint), f"{owner}.{constraint.property.text}"
    if properties[constraint.property.text].type.is_list:
        raise fail(constraint.property.region, f"@{rule} is not supported on list property {target}")
    if constraint.surplus is not None:
        raise fail(constraint.surplus, f"@{rule} on {target} takes two arguments; write {_example(constraint)}")
    if isinstance(constraint, RangeConstraint):
        _range(fail, target, constraint)


def _columns(fail: Fail, owner: str, constraint: ColumnsConstraint, properties: dict[str, PropertyDecl]) -> None:
    seen: set[str] = set()
    for column in constraint.columns:
        name = column.text
        if name in seen:
            raise fail(column.region, f"@{constraint.rule} on {owner} names property '{name}' twice")
        seen.add(name)
        prop = properties.get(name)
        kind = None if prop is None else shape(prop.type)
        if constraint.rule == "unique" and kind is not None:
            raise fail(column.region, f"@unique is not supported on {kind} property {owner}.{name}")


def _range(fail: Fail, target: str, constraint: RangeConstraint) -> None:
    low, high = constraint.min, constraint.max
    if low is None and high is not None:
        raise fail(
            constraint.region,
            f"@range on {target} needs a lower bound: the schema format records '..{_written(high)}' as a minimum, "
            f"and other engines would enforce that; write both, as in {_example(constraint)}",
        )
    if low is not None and high is not None and low > high:
        raise fail(constraint.region, f"@range on {target} has min ({_written(low)}) above max ({_written(high)})")


def _example(constraint: RangeConstraint | CheckConstraint) -> str:
    name = constraint.property.text
    if isinstance(constraint, CheckConstraint):
        return f'@check({name}, "regex")'
    low, high = constraint.min, constraint.max
    if low is None:
        low = high - 1 if high is not None and high <= 0 else 0
    return f"@range({name}, {_written(low)}..{'' if high is None else _written(high)})"


def _written(bound: Bound) -> str:
    return repr(bound)
