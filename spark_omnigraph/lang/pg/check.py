"""The rules of the format: a schema that breaks one is no schema, for any engine that reads the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.errors import SchemaParseError
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
from spark_omnigraph.lang.pg.report import parse_error
from spark_omnigraph.lang.source import Name, Region, SourceText

Fail = Callable[[Region, str], SchemaParseError]
"""Makes the error for a place and a message."""

_REFUSED = {
    "list": ("key", "unique", "index", "embed"),
    "vector": ("key", "unique"),
    "blob": ("key", "unique", "index", "embed"),
}
"""Annotations that a property of such a type cannot have."""

_PROPERTY_ONLY = ("key", "unique", "index", "embed")
_END_COLUMNS = ("src", "dst")


def shape(ptype: PropType) -> str | None:
    """`list`, `vector` or `blob` for the types that are no plain values."""
    if ptype.is_list:
        return "list"
    if ptype.is_vector:
        return "vector"
    return "blob" if ptype.scalar is Scalar.BLOB else None


def check(source: SourceText, schema: Schema) -> None:
    """`SchemaParseError` for the first rule that an expanded schema breaks."""
    fail = partial(parse_error, source)
    for node in schema.nodes:
        _node_annotations(fail, node)
    for edge in schema.edges:
        _edge_annotations(fail, edge)
    for node in schema.nodes:
        _node_constraints(fail, node)
    for edge in schema.edges:
        _edge_constraints(fail, edge)


def check_property(fail: Fail, owner: str, prop: PropertyDecl, siblings: Mapping[str, PropertyDecl] | None) -> None:
    """The rules for annotations of a property; without `siblings` the source of `@embed` is not looked up."""
    target = f"{owner}.{prop.name.text}"
    _described(fail, prop.annotations, ("description",), f"property {target}")
    kind = shape(prop.type)
    seen: set[str] = set()
    for annotation in prop.annotations:
        name, place = annotation.name.text, annotation.region
        if kind is not None and name in _REFUSED[kind]:
            raise fail(place, f"@{name} is not supported on {kind} property {target}")
        if name == "instruction":
            raise fail(place, f"@instruction is only supported on node and edge types (property {target})")
        if name in seen and name in _PROPERTY_ONLY:
            raise fail(place, f"property {target} declares @{name} multiple times")
        seen.add(name)
        if name == "embed":
            _embed(fail, annotation, prop, target)
            if siblings is not None:
                _embed_source(fail, annotation, owner, prop, siblings)
            _embed_arguments(fail, annotation, target)


def _node_annotations(fail: Fail, node: NodeDecl) -> None:
    name = node.name.text
    for annotation in node.annotations:
        if annotation.name.text in _PROPERTY_ONLY:
            message = (
                f"@{annotation.name.text} is only supported on node properties or as body constraint (node {name})"
            )
            raise fail(annotation.region, message)
    _described(fail, node.annotations, ("description", "instruction"), f"node {name}")
    siblings = _by_name(node.properties)
    for prop in node.properties:
        check_property(fail, name, prop, siblings)


def _edge_annotations(fail: Fail, edge: EdgeDecl) -> None:
    name = edge.name.text
    for annotation in edge.annotations:
        if annotation.name.text in _PROPERTY_ONLY:
            raise fail(annotation.region, f"@{annotation.name.text} is not supported on edges (edge {name})")
    _described(fail, edge.annotations, ("description", "instruction"), f"edge {name}")
    siblings = _by_name(edge.properties)
    for prop in edge.properties:
        for annotation in prop.annotations:
            if annotation.name.text in ("key", "embed"):
                message = f"@{annotation.name.text} is not supported on edge properties (edge {name}.{prop.name.text})"
                raise fail(annotation.region, message)
        check_property(fail, name, prop, siblings)


def _described(fail: Fail, annotations: Iterable[AnnotationUse], names: tuple[str, ...], target: str) -> None:
    seen: set[str] = set()
    for annotation in annotations:
        name = annotation.name.text
        if name not in names:
            continue
        if name in seen:
            raise fail(annotation.region, f"{target} declares @{name} multiple times")
        if annotation.value is None or not annotation.value.strip():
            raise fail(annotation.region, f"@{name} on {target} requires a non-empty value")
        seen.add(name)


def _embed(fail: Fail, annotation: AnnotationUse, prop: PropertyDecl, target: str) -> None:
    if not prop.type.is_vector:
        raise fail(annotation.region, f"@embed is only supported on vector properties ({target})")
    if annotation.value is None:
        raise fail(annotation.region, f"@embed on {target} requires a source property name")
    if not annotation.value.strip():
        raise fail(annotation.region, f"@embed on {target} requires a non-empty source property name")


def _embed_source(
    fail: Fail, annotation: AnnotationUse, owner: str, prop: PropertyDecl, siblings: Mapping[str, PropertyDecl]
) -> None:
    source = siblings.get(annotation.value or "")
    if source is None:
        message = f"@embed on {owner}.{prop.name.text} references unknown source property {annotation.value}"
        raise fail(annotation.region, message)
    if source.type.is_list or source.type.scalar is not Scalar.STRING:
        raise fail(annotation.region, f"@embed source property {owner}.{source.name.text} must be String")


def _embed_arguments(fail: Fail, annotation: AnnotationUse, target: str) -> None:
    for argument in annotation.arguments:
        key = argument.key
        if key.text != "model":
            message = f"@embed on {target} has unknown argument '{key.text}=' (only 'model' is supported)"
            raise fail(key.region, message)


def _by_name(properties: Iterable[PropertyDecl]) -> dict[str, PropertyDecl]:
    return {prop.name.text: prop for prop in properties}


def _node_constraints(fail: Fail, node: NodeDecl) -> None:
    name, properties = node.name.text, _by_name(node.properties)
    keys = 0
    for constraint in node.constraints:
        match constraint:
            case ColumnsConstraint(rule="key"):
                keys += 1
                if keys > 1:
                    message = f"node type {name} has multiple @key constraints; only one is supported"
                    raise fail(constraint.region, message)
                for column in constraint.columns:
                    _key_column(fail, name, column, _known(fail, "key", name, column, properties).type)
            case ColumnsConstraint():
                for column in constraint.columns:
                    _column(fail, constraint, name, column, properties)
            case RangeConstraint() | CheckConstraint():
                _value_rule(fail, constraint, name, properties)


def _edge_constraints(fail: Fail, edge: EdgeDecl) -> None:
    name, properties = edge.name.text, _by_name(edge.properties)
    for constraint in edge.constraints:
        rule = rule_of(constraint)
        if not isinstance(constraint, ColumnsConstraint) or rule == "key":
            raise fail(constraint.region, f"@{rule} constraint is not supported on edges (edge {name})")
        for column in constraint.columns:
            if column.text not in _END_COLUMNS:
                _column(fail, constraint, name, column, properties)


def rule_of(constraint: ConstraintDecl) -> str:
    """The name that a constraint is written with."""
    match constraint:
        case ColumnsConstraint():
            return constraint.rule
        case RangeConstraint():
            return "range"
        case CheckConstraint():
            return "check"


def _known(fail: Fail, rule: str, owner: str, column: Name, properties: Mapping[str, PropertyDecl]) -> PropertyDecl:
    prop = properties.get(column.text)
    if prop is None:
        raise fail(column.region, f"@{rule} on {owner} references unknown property '{column.text}'")
    return prop


def _key_column(fail: Fail, owner: str, column: Name, ptype: PropType) -> None:
    if ptype.nullable:
        raise fail(column.region, f"@key property {owner}.{column.text} cannot be nullable")
    kind = shape(ptype)
    if kind is not None:
        raise fail(column.region, f"@key is not supported on {kind} property {owner}.{column.text}")


def _column(
    fail: Fail, constraint: ColumnsConstraint, owner: str, column: Name, properties: Mapping[str, PropertyDecl]
) -> None:
    prop = _known(fail, constraint.rule, owner, column, properties)
    if constraint.rule == "index" and prop.type.scalar is Scalar.BLOB:
        raise fail(column.region, f"@index is not supported on blob property {owner}.{column.text}")


def _value_rule(
    fail: Fail, constraint: RangeConstraint | CheckConstraint, owner: str, properties: Mapping[str, PropertyDecl]
) -> None:
    column = constraint.property
    ptype = _known(fail, rule_of(constraint), owner, column, properties).type
    if isinstance(constraint, RangeConstraint) and not ptype.scalar.is_numeric:
        raise fail(column.region, f"@range on {owner}.{column.text} requires a numeric type, got {ptype.display()}")
    if isinstance(constraint, CheckConstraint) and ptype.scalar is not Scalar.STRING:
        raise fail(column.region, f"@check on {owner}.{column.text} requires String type, got {ptype.display()}")
