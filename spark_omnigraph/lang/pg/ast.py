"""Syntax tree of a schema text. Every part knows its place, so that any rule can point at what breaks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_omnigraph.catalog.types import Bound, Cardinality, PropType
from spark_omnigraph.lang.source import Name, Region

ColumnRule = Literal["key", "unique", "index"]


@dataclass(frozen=True, slots=True)
class Argument:
    """`key = literal` of an annotation."""

    key: Name
    value: str


@dataclass(frozen=True, slots=True)
class AnnotationUse:
    """`@name`, `@name(value)` or `@name(value, key = literal, …)`."""

    name: Name
    value: str | None
    arguments: tuple[Argument, ...]
    region: Region


@dataclass(frozen=True, slots=True)
class PropertyDecl:
    """`name: type @annotation …`"""

    name: Name
    type: PropType
    annotations: tuple[AnnotationUse, ...]


@dataclass(frozen=True, slots=True)
class ColumnsConstraint:
    """`@key(…)`, `@unique(…)` or `@index(…)`, in a body or written as an annotation of its one property."""

    rule: ColumnRule
    columns: tuple[Name, ...]
    region: Region


@dataclass(frozen=True, slots=True)
class RangeConstraint:
    """`@range(property, min..max)`; `surplus` is what stands after the bounds and means nothing."""

    property: Name
    min: Bound | None
    max: Bound | None
    region: Region
    surplus: Region | None = None


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    """`@check(property, "pattern")`; `surplus` as for a range."""

    property: Name
    pattern: str
    region: Region
    surplus: Region | None = None


ConstraintDecl = ColumnsConstraint | RangeConstraint | CheckConstraint


@dataclass(frozen=True, slots=True)
class InterfaceDecl:
    """`interface Name { … }`"""

    name: Name
    properties: tuple[PropertyDecl, ...]


@dataclass(frozen=True, slots=True)
class NodeDecl:
    """`node Name … { … }`; expansion adds the properties and constraints that interfaces bring."""

    name: Name
    annotations: tuple[AnnotationUse, ...]
    implements: tuple[Name, ...]
    properties: tuple[PropertyDecl, ...]
    constraints: tuple[ConstraintDecl, ...]


@dataclass(frozen=True, slots=True)
class EdgeDecl:
    """`edge Name: From -> To …`"""

    name: Name
    from_type: Name
    to_type: Name
    cardinality: Cardinality
    annotations: tuple[AnnotationUse, ...]
    properties: tuple[PropertyDecl, ...]
    constraints: tuple[ConstraintDecl, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """All declarations by kind, each in the order of the text."""

    interfaces: tuple[InterfaceDecl, ...]
    nodes: tuple[NodeDecl, ...]
    edges: tuple[EdgeDecl, ...]
