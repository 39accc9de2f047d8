"""Catalog values → the JSON document of the schema IR, in its exact key order and spelling."""

from __future__ import annotations

import json
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import TypeAlias

from spark_omnigraph.catalog.bounds import json_float
from spark_omnigraph.catalog.canonical import stored_bounds
from spark_omnigraph.catalog.types import (
    Annotation,
    Bound,
    Check,
    Constraint,
    EdgeType,
    Index,
    InterfaceType,
    Key,
    NodeType,
    Property,
    PropType,
    Range,
    Unique,
)

IR_VERSION = 1

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def document(interfaces: Iterable[InterfaceType], nodes: Iterable[NodeType], edges: Iterable[EdgeType]) -> Json:
    """The IR of types that stand in canonical order."""
    return {
        "ir_version": IR_VERSION,
        "interfaces": [_interface(i) for i in interfaces],
        "nodes": [_node(n) for n in nodes],
        "edges": [_edge(e) for e in edges],
    }


def compact(value: Json) -> str:
    """JSON without white space: the text that the schema hash covers."""
    if isinstance(value, dict):
        return f"{{{','.join(f'{_string(k)}:{compact(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(map(compact, value))}]"
    return _atom(value)


def pretty(value: Json, indent: str = "") -> str:
    """JSON with an indentation of two spaces and no line break at the end."""
    inner = f"{indent}  "
    if isinstance(value, dict) and value:
        members = ",\n".join(f"{inner}{_string(k)}: {pretty(v, inner)}" for k, v in value.items())
        return f"{{\n{members}\n{indent}}}"
    if isinstance(value, list) and value:
        items = ",\n".join(f"{inner}{pretty(v, inner)}" for v in value)
        return f"[\n{items}\n{indent}]"
    return compact(value)


_string = encode_basestring


def _atom(value: bool | int | float | str | None) -> str:
    if isinstance(value, str):
        return _string(value)
    return json_float(value) if isinstance(value, float) else json.dumps(value)


def _interface(interface: InterfaceType) -> Json:
    return {
        "name": interface.name,
        "type_id": interface.type_id,
        "properties": [_property(p) for p in interface.properties],
    }


def _node(node: NodeType) -> Json:
    return {
        "name": node.name,
        "type_id": node.type_id,
        "annotations": [annotation_document(a) for a in node.annotations],
        "implements": list(node.implements),
        "properties": [_property(p) for p in node.properties],
        "constraints": [constraint_document(c) for c in node.constraints],
    }


def _edge(edge: EdgeType) -> Json:
    return {
        "name": edge.name,
        "type_id": edge.type_id,
        "from_type": edge.from_type,
        "to_type": edge.to_type,
        "cardinality": {"min": edge.cardinality.min, "max": edge.cardinality.max},
        "annotations": [annotation_document(a) for a in edge.annotations],
        "properties": [_property(p) for p in edge.properties],
        "constraints": [constraint_document(c) for c in edge.constraints],
    }


def _property(prop: Property) -> Json:
    return {
        "name": prop.name,
        "prop_id": prop.prop_id,
        "prop_type": type_document(prop.type),
        "annotations": [annotation_document(a) for a in prop.annotations],
    }


def type_document(ptype: PropType) -> Json:
    """A type as the IR spells it."""
    return {
        "scalar": {"Vector": ptype.dimension} if ptype.is_vector else str(ptype.scalar),
        "nullable": ptype.nullable,
        "list": ptype.is_list,
        "enum_values": None if ptype.enum_values is None else list(ptype.enum_values),
    }


def annotation_document(annotation: Annotation) -> Json:
    """An annotation as the IR spells it."""
    shown: dict[str, Json] = {"name": annotation.name, "value": annotation.value}
    if annotation.kwargs:
        shown["kwargs"] = dict(annotation.kwargs)
    return shown


def constraint_document(constraint: Constraint) -> Json:
    """A constraint as the IR spells it."""
    match constraint:
        case Key():
            return {"Key": list(constraint.columns)}
        case Unique():
            return {"Unique": list(constraint.columns)}
        case Index():
            return {"Index": list(constraint.columns)}
        case Range():
            low, high = stored_bounds(constraint)
            return {"Range": {"property": constraint.property, "min": _bound(low), "max": _bound(high)}}
        case Check():
            return {"Check": {"property": constraint.property, "pattern": constraint.pattern}}


def _bound(bound: Bound | None) -> Json:
    if bound is None:
        return None
    return {"Integer": bound} if isinstance(bound, int) else {"Float": bound}
