"""Interfaces into nodes, and `@key`, `@unique`, `@index` after a property into constraints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import get_args

from spark_omnigraph.lang.pg.ast import (
    ColumnRule,
    ColumnsConstraint,
    ConstraintDecl,
    InterfaceDecl,
    NodeDecl,
    PropertyDecl,
    Schema,
)
from spark_omnigraph.lang.pg.report import parse_error
from spark_omnigraph.lang.source import SourceText

_COLUMN_RULES: tuple[ColumnRule, ...] = get_args(ColumnRule)


def expand(source: SourceText, schema: Schema) -> Schema:
    """The schema in which every node and edge carries all of its properties and constraints itself.

    `SchemaParseError` when a node implements an interface that does not exist, or declares one of its properties
    with another type.
    """
    interfaces = {interface.name.text: interface for interface in schema.interfaces}
    return Schema(
        interfaces=schema.interfaces,
        nodes=tuple(_expand_node(source, node, interfaces) for node in schema.nodes),
        edges=tuple(
            replace(edge, constraints=(*edge.constraints, *_constraints(edge.properties))) for edge in schema.edges
        ),
    )


def _expand_node(source: SourceText, node: NodeDecl, interfaces: Mapping[str, InterfaceDecl]) -> NodeDecl:
    properties = {p.name.text: p for p in reversed(node.properties)}
    inherited: list[PropertyDecl] = []
    for name in node.implements:
        interface = interfaces.get(name.text)
        if interface is None:
            message = f"node {node.name.text} implements unknown interface '{name.text}'"
            raise parse_error(source, name.region, message)
        for theirs in interface.properties:
            ours = properties.get(theirs.name.text)
            if ours is None:
                properties[theirs.name.text] = theirs
                inherited.append(theirs)
            elif ours.type != theirs.type:
                message = (
                    f"node {node.name.text} property '{theirs.name.text}' has type {ours.type.display()}"
                    f" but interface {name.text} declares it as {theirs.type.display()}"
                )
                own = any(ours is prop for prop in node.properties)
                raise parse_error(source, ours.name.region if own else name.region, message)
    everything = (*node.properties, *inherited)
    return replace(node, properties=everything, constraints=(*node.constraints, *_constraints(everything)))


def _constraints(properties: Iterable[PropertyDecl]) -> Iterable[ConstraintDecl]:
    for prop in properties:
        for annotation in prop.annotations:
            for rule in _COLUMN_RULES:
                if annotation.name.text == rule and annotation.value is None:
                    yield ColumnsConstraint(rule, (prop.name,), annotation.region)
