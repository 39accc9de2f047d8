"""The JSON document of the schema IR → catalog values.

This is its shape alone. Whether a document of this shape is one that the values would be written as, order and
spelling included, is for the reader of the whole to find out: by writing them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct, ValidationError, field

from spark_omnigraph.catalog.identity import Kind, prop_id, type_id
from spark_omnigraph.catalog.types import (
    Annotation,
    Bound,
    Cardinality,
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
    Scalar,
    Unique,
)

_Id = Annotated[int, Meta(ge=1, le=2**32 - 1)]
_Count = Annotated[int, Meta(ge=0, le=2**32 - 1)]
_Dimension = Annotated[int, Meta(ge=1, le=2**31 - 1)]
_I64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class _Vector(Struct, forbid_unknown_fields=True):
    dimension: _Dimension = field(name="Vector")


class TypeShape(Struct, forbid_unknown_fields=True):
    """The type of a property; the same in every version of the document."""

    scalar: Scalar | _Vector
    nullable: bool
    is_list: bool = field(name="list")
    enum_values: tuple[str, ...] | None

    def build(self) -> PropType:
        if isinstance(self.scalar, _Vector):
            return PropType(Scalar.VECTOR, self.nullable, self.is_list, self.enum_values, self.scalar.dimension)
        return PropType(self.scalar, self.nullable, self.is_list, self.enum_values)


class _Annotation(Struct, forbid_unknown_fields=True):
    name: str
    value: str | None
    kwargs: dict[str, str] = {}

    def build(self) -> Annotation:
        return Annotation(self.name, self.value, tuple(self.kwargs.items()))


class _Property(Struct, forbid_unknown_fields=True):
    name: str
    prop_id: _Id
    prop_type: TypeShape
    annotations: list[_Annotation]


class _Bound(Struct, forbid_unknown_fields=True):
    integer: _I64 | None = field(name="Integer", default=None)
    real: float | None = field(name="Float", default=None)

    def build(self) -> Bound | None:
        return self.real if self.integer is None else self.integer


class _Range(Struct, forbid_unknown_fields=True):
    property: str
    min: _Bound | None
    max: _Bound | None

    def build(self) -> Range:
        low = None if self.min is None else self.min.build()
        high = None if self.max is None else self.max.build()
        return Range(self.property, low, high)


class _Check(Struct, forbid_unknown_fields=True):
    property: str
    pattern: str


class _Constraint(Struct, forbid_unknown_fields=True):
    key: tuple[str, ...] | None = field(name="Key", default=None)
    unique: tuple[str, ...] | None = field(name="Unique", default=None)
    index: tuple[str, ...] | None = field(name="Index", default=None)
    range: _Range | None = field(name="Range", default=None)
    check: _Check | None = field(name="Check", default=None)

    def build(self) -> Constraint:
        found: list[Constraint] = []
        if self.key is not None:
            found.append(Key(self.key))
        if self.unique is not None:
            found.append(Unique(self.unique))
        if self.index is not None:
            found.append(Index(self.index))
        if self.range is not None:
            found.append(self.range.build())
        if self.check is not None:
            found.append(Check(self.check.property, self.check.pattern))
        if len(found) != 1:
            raise ValidationError("a constraint that is not of one kind")
        return found[0]


class _Cardinality(Struct, forbid_unknown_fields=True):
    min: _Count
    max: _Count | None


class _Interface(Struct, forbid_unknown_fields=True):
    name: str
    type_id: _Id
    properties: list[_Property]


class _Node(Struct, forbid_unknown_fields=True):
    name: str
    type_id: _Id
    annotations: list[_Annotation]
    implements: tuple[str, ...]
    properties: list[_Property]
    constraints: list[_Constraint]


class _Edge(Struct, forbid_unknown_fields=True):
    name: str
    type_id: _Id
    from_type: str
    to_type: str
    cardinality: _Cardinality
    annotations: list[_Annotation]
    properties: list[_Property]
    constraints: list[_Constraint]


class Version(Struct):
    """The one member that every version of the document has."""

    ir_version: int


class Document(Struct, forbid_unknown_fields=True):
    """The whole document. Ids are computed from the names, never taken from it."""

    ir_version: int
    interfaces: list[_Interface]
    nodes: list[_Node]
    edges: list[_Edge]

    def interface_types(self) -> list[InterfaceType]:
        return [
            InterfaceType(i.name, type_id("interface", i.name), _properties("interface", i.name, i.properties))
            for i in self.interfaces
        ]

    def node_types(self) -> list[NodeType]:
        return [
            NodeType(
                name=n.name,
                type_id=type_id("node", n.name),
                properties=_properties("node", n.name, n.properties),
                constraints=tuple(c.build() for c in n.constraints),
                annotations=tuple(a.build() for a in n.annotations),
                implements=n.implements,
            )
            for n in self.nodes
        ]

    def edge_types(self) -> list[EdgeType]:
        return [
            EdgeType(
                name=e.name,
                type_id=type_id("edge", e.name),
                from_type=e.from_type,
                to_type=e.to_type,
                cardinality=Cardinality(e.cardinality.min, e.cardinality.max),
                properties=_properties("edge", e.name, e.properties),
                constraints=tuple(c.build() for c in e.constraints),
                annotations=tuple(a.build() for a in e.annotations),
            )
            for e in self.edges
        ]


def _properties(kind: Kind, owner: str, properties: Iterable[_Property]) -> tuple[Property, ...]:
    return tuple(
        Property(p.name, prop_id(kind, owner, p.name), p.prop_type.build(), tuple(a.build() for a in p.annotations))
        for p in properties
    )
