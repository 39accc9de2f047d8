"""The one order of everything in a schema, so that two texts that mean the same have the same hash.

All sorting is by UTF-8 bytes, which for Python strings is the order of code points.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spark_omnigraph.catalog.bounds import debug_bound
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


def canonical_interface(interface: InterfaceType) -> InterfaceType:
    """The interface with everything in it in canonical order."""
    return replace(interface, properties=_properties(interface.properties))


def canonical_node(node: NodeType) -> NodeType:
    """The node type with everything in it in canonical order."""
    return replace(
        node,
        properties=_properties(node.properties),
        constraints=_constraints(node.constraints),
        annotations=_annotations(node.annotations),
        implements=tuple(sorted(set(node.implements))),
    )


def canonical_edge(edge: EdgeType) -> EdgeType:
    """The edge type with everything in it in canonical order."""
    return replace(
        edge,
        properties=_properties(edge.properties),
        constraints=_constraints(edge.constraints),
        annotations=_annotations(edge.annotations),
    )


def stored_bounds(constraint: Range) -> tuple[Bound | None, Bound | None]:
    """`(min, max)` as the format records them.

    The format keeps the single bound of `..N` as a minimum. The catalog holds what the author wrote, a maximum
    alone, so only the recorded form is turned round.
    """
    if constraint.min is None:
        return constraint.max, None
    return constraint.min, constraint.max


def _properties(properties: Iterable[Property]) -> tuple[Property, ...]:
    ordered = sorted(properties, key=lambda p: p.name)
    return tuple(replace(p, type=_type(p.type), annotations=_annotations(p.annotations)) for p in ordered)


def _type(ptype: PropType) -> PropType:
    if ptype.enum_values is None:
        return ptype
    return replace(ptype, enum_values=tuple(sorted(set(ptype.enum_values))))


def _annotations(annotations: Iterable[Annotation]) -> tuple[Annotation, ...]:
    """By name, then by value, those without a value first; equal ones keep their order."""
    ordered = sorted(annotations, key=lambda a: (a.name, a.value is not None, a.value or ""))
    return tuple(replace(a, kwargs=tuple(sorted(a.kwargs))) for a in ordered)


def _constraints(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """With sorted columns, by kind and content; repeated ones stay."""
    return tuple(sorted(map(canonical_constraint, constraints), key=constraint_key))


def canonical_constraint(constraint: Constraint) -> Constraint:
    """The constraint with sorted columns."""
    match constraint:
        case Key():
            return Key(tuple(sorted(constraint.columns)))
        case Unique():
            return Unique(tuple(sorted(constraint.columns)))
        case Index():
            return Index(tuple(sorted(constraint.columns)))
        case Range() | Check():
            return constraint


def constraint_key(constraint: Constraint) -> str:
    """What a constraint says, as the text that constraints are sorted by: `unique:a,b`."""
    match constraint:
        case Key():
            return f"key:{','.join(constraint.columns)}"
        case Unique():
            return f"unique:{','.join(constraint.columns)}"
        case Index():
            return f"index:{','.join(constraint.columns)}"
        case Range():
            low, high = stored_bounds(constraint)
            return f"range:{constraint.property}:{debug_bound(low)}:{debug_bound(high)}"
        case Check():
            return f"check:{constraint.property}:{constraint.pattern}"
