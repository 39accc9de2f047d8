"""Syntax tree → catalog: ids, canonical order, hash."""

from __future__ import annotations

from collections.abc import Iterable

from spark_omnigraph.catalog.consistency import Contradiction, contradictions
from spark_omnigraph.catalog.identity import Kind, prop_id, type_id
from spark_omnigraph.catalog.ir import assemble
from spark_omnigraph.catalog.types import (
    Annotation,
    Catalog,
    Check,
    Constraint,
    EdgeType,
    Index,
    InterfaceType,
    Key,
    NodeType,
    Property,
    Range,
    Unique,
)
from spark_omnigraph.lang.pg.ast import (
    AnnotationUse,
    CheckConstraint,
    ColumnRule,
    ColumnsConstraint,
    ConstraintDecl,
    EdgeDecl,
    InterfaceDecl,
    NodeDecl,
    PropertyDecl,
    RangeConstraint,
    Schema,
)
from spark_omnigraph.lang.pg.report import catalog_error
from spark_omnigraph.lang.source import Name, Region, SourceText

_COLUMN_RULES: dict[ColumnRule, type[Key] | type[Unique] | type[Index]] = {
    "key": Key,
    "unique": Unique,
    "index": Index,
}


def lower(source: SourceText, schema: Schema) -> Catalog:
    """The catalog of an expanded schema that keeps the rules; `CatalogError` when its types contradict each other."""
    interfaces = [_interface(decl) for decl in schema.interfaces]
    nodes = [_node(decl) for decl in schema.nodes]
    edges = [_edge(decl) for decl in schema.edges]
    for found in contradictions(interfaces, nodes, edges):
        raise catalog_error(source, _place(schema, found), found.message)
    return assemble(interfaces, nodes, edges)


def _interface(decl: InterfaceDecl) -> InterfaceType:
    name = decl.name.text
    return InterfaceType(name, type_id("interface", name), _properties("interface", name, decl.properties))


def _node(decl: NodeDecl) -> NodeType:
    name = decl.name.text
    return NodeType(
        name=name,
        type_id=type_id("node", name),
        properties=_properties("node", name, decl.properties),
        constraints=tuple(map(_constraint, decl.constraints)),
        annotations=tuple(map(_annotation, decl.annotations)),
        implements=tuple(interface.text for interface in decl.implements),
    )


def _edge(decl: EdgeDecl) -> EdgeType:
    name = decl.name.text
    return EdgeType(
        name=name,
        type_id=type_id("edge", name),
        from_type=decl.from_type.text,
        to_type=decl.to_type.text,
        cardinality=decl.cardinality,
        properties=_properties("edge", name, decl.properties),
        constraints=tuple(map(_constraint, decl.constraints)),
        annotations=tuple(map(_annotation, decl.annotations)),
    )


def _properties(kind: Kind, owner: str, properties: Iterable[PropertyDecl]) -> tuple[Property, ...]:
    return tuple(
        Property(p.name.text, prop_id(kind, owner, p.name.text), p.type, tuple(map(_annotation, p.annotations)))
        for p in properties
    )


def _annotation(use: AnnotationUse) -> Annotation:
    """The value of an annotation; of a repeated keyword argument the last one counts."""
    arguments = {argument.key.text: argument.value for argument in use.arguments}
    return Annotation(use.name.text, use.value, tuple(arguments.items()))


def _constraint(decl: ConstraintDecl) -> Constraint:
    match decl:
        case ColumnsConstraint():
            return _COLUMN_RULES[decl.rule](tuple(column.text for column in decl.columns))
        case RangeConstraint():
            return Range(decl.property.text, decl.min, decl.max)
        case CheckConstraint():
            return Check(decl.property.text, decl.pattern)


def _place(schema: Schema, found: Contradiction) -> Region:
    """Where the later of two contradicting declarations stands."""
    decls: dict[Kind, tuple[InterfaceDecl | NodeDecl | EdgeDecl, ...]] = {
        "interface": schema.interfaces,
        "node": schema.nodes,
        "edge": schema.edges,
    }
    named = [decl for decl in decls[found.kind] if decl.name.text == found.name]
    parts = [name for decl in named for name in _parts(decl) if name.text == found.part]
    return (parts or [decl.name for decl in named])[-1].region


def _parts(decl: InterfaceDecl | NodeDecl | EdgeDecl) -> list[Name]:
    properties = [prop.name for prop in decl.properties]
    return [decl.to_type, decl.from_type, *properties] if isinstance(decl, EdgeDecl) else properties
