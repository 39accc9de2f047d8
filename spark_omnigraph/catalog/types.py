"""The accepted schema as values: types, properties, constraints. Everything is frozen and picklable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import BadRequestError, NotFoundError
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.words import TextEnum, nearest

GIVEN = "given:"
"""How the name of a column of patches begins that says which of them have a property; no property is called so."""
END_MEMBERS = {"src": "from", "dst": "to"}
"""What records call the columns of the ends of edges."""


class Scalar(TextEnum):
    """Scalar types of the schema language; the value is the name in `.pg` and in the schema IR."""

    STRING = "String"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE = "Date"
    DATETIME = "DateTime"
    BLOB = "Blob"
    VECTOR = "Vector"

    @property
    def is_numeric(self) -> bool:
        return self in _NUMERIC

    @property
    def is_integer(self) -> bool:
        return self in _INTEGER


INTEGER_RANGES: Mapping[Scalar, tuple[int, int]] = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}
"""Smallest and largest value of each integer type."""
ARROW_NAMES: Mapping[Scalar, str] = {
    Scalar.I32: "Int32",
    Scalar.I64: "Int64",
    Scalar.U32: "UInt32",
    Scalar.U64: "UInt64",
    Scalar.F32: "Float32",
    Scalar.F64: "Float64",
}
"""What the types of numbers are called where they are stored."""
_INTEGER = frozenset(INTEGER_RANGES)
_NUMERIC = _INTEGER | {Scalar.F32, Scalar.F64}


@dataclass(frozen=True, slots=True)
class PropType:
    """Type of a property. `dimension` is set for vectors only, `enum_values` (sorted) for enums only."""

    scalar: Scalar
    nullable: bool = False
    is_list: bool = False
    enum_values: tuple[str, ...] | None = None
    dimension: int | None = None

    @property
    def is_enum(self) -> bool:
        return self.enum_values is not None

    @property
    def is_vector(self) -> bool:
        return self.scalar is Scalar.VECTOR

    def display(self) -> str:
        """Text used in messages and `describe`: `enum(a, b)`, `[I32]?`, `Vector(3)`."""
        if self.enum_values is not None:
            base = f"enum({', '.join(self.enum_values)})"
        elif self.is_vector:
            base = f"Vector({self.dimension})"
        else:
            base = str(self.scalar)
        return f"{f'[{base}]' if self.is_list else base}{'?' if self.nullable else ''}"


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@name(value, key=…)`; `kwargs` is sorted by key."""

    name: str
    value: str | None = None
    kwargs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a type; `prop_id` depends on the names of owner and property."""

    name: str
    prop_id: int
    type: PropType
    annotations: tuple[Annotation, ...] = ()


def embedding_source(prop: Property) -> str | None:
    """The property whose texts the vectors of this one are made from: what `@embed` names, or None without it."""
    return next((each.value for each in prop.annotations if each.name == "embed"), None)


def embedding_model(prop: Property) -> str | None:
    """The model that `@embed` records, or None."""
    return next((dict(each.kwargs).get("model") for each in prop.annotations if each.name == "embed"), None)


Bound = int | float


@dataclass(frozen=True, slots=True)
class Key:
    """`@key`: the identity of a node; columns in canonical order."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unique:
    """`@unique`: no two rows share the tuple."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """`@index`: rows are looked up by these columns."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """`@range`: inclusive bounds; None is open."""

    property: str
    min: Bound | None
    max: Bound | None


@dataclass(frozen=True, slots=True)
class Check:
    """`@check`: the value contains a match of the pattern."""

    property: str
    pattern: str


Constraint = Key | Unique | Index | Range | Check


@dataclass(frozen=True, slots=True)
class Cardinality:
    """Edges per source node; `max` None is open."""

    min: int = 0
    max: int | None = None

    @property
    def is_open(self) -> bool:
        return self.min == 0 and self.max is None

    def display(self) -> str:
        return f"{self.min}..{'*' if self.max is None else self.max}"


@dataclass(frozen=True, slots=True)
class InterfaceType:
    """An interface; it has no table."""

    name: str
    type_id: int
    properties: tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class NodeType:
    """A node type; `properties` are sorted by name and include those of its interfaces."""

    name: str
    type_id: int
    properties: tuple[Property, ...]
    constraints: tuple[Constraint, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    implements: tuple[str, ...] = ()

    @property
    def table_key(self) -> TableKey:
        return TableKey.node(self.name)

    @property
    def key(self) -> tuple[str, ...] | None:
        """Columns of `@key` in canonical (sorted) order, or None."""
        return next((c.columns for c in self.constraints if isinstance(c, Key)), None)

    @property
    def identity(self) -> tuple[str, ...]:
        """Columns before the properties: the id."""
        return ("id",)

    @property
    def columns(self) -> tuple[str, ...]:
        """All stored columns, in their order."""
        return (*self.identity, *(p.name for p in self.properties))

    def property(self, name: str) -> Property | None:
        return next((p for p in self.properties if p.name == name), None)


@dataclass(frozen=True, slots=True)
class EdgeType:
    """An edge type between two node types; `properties` are sorted by name."""

    name: str
    type_id: int
    from_type: str
    to_type: str
    cardinality: Cardinality
    properties: tuple[Property, ...]
    constraints: tuple[Constraint, ...] = ()
    annotations: tuple[Annotation, ...] = ()

    @property
    def table_key(self) -> TableKey:
        return TableKey.edge(self.name)

    @property
    def key(self) -> None:
        """Edges have no `@key`."""
        return None

    @property
    def identity(self) -> tuple[str, ...]:
        """Columns before the properties: the id and both ends."""
        return ("id", "src", "dst")

    @property
    def columns(self) -> tuple[str, ...]:
        """All stored columns, in their order."""
        return (*self.identity, *(p.name for p in self.properties))

    def property(self, name: str) -> Property | None:
        return next((p for p in self.properties if p.name == name), None)


EntityType = NodeType | EdgeType


@dataclass(frozen=True, slots=True)
class Catalog:
    """The accepted schema. Mappings are in name order (bytes); `ir_hash` is the recorded `sha256:…` text."""

    nodes: Mapping[str, NodeType]
    edges: Mapping[str, EdgeType]
    interfaces: Mapping[str, InterfaceType]
    ir_hash: str

    def tables(self) -> Iterator[EntityType]:
        """All types that have a table: nodes, then edges, in name order."""
        yield from self.nodes.values()
        yield from self.edges.values()

    def table(self, table_key: str) -> EntityType | None:
        """Type of `node:X` or `edge:X`, or None."""
        key = TableKey(table_key)
        if key.kind == "node":
            return self.nodes.get(key.type_name)
        return self.edges.get(key.type_name) if key.kind == "edge" else None

    def require(self, table_key: str) -> EntityType:
        """Type of `node:X` or `edge:X`. NotFoundError says which is nearest, or how a type is named."""
        if not isinstance(table_key, str):
            raise BadRequestError(f"a table is named by a text such as 'node:Person', not {as_shown(table_key)}")
        found = self.table(table_key)
        if found is not None:
            return found
        key = TableKey(table_key)
        keys = {entity.name: entity.table_key for entity in self.tables()}
        name = key.type_name if ":" in key else table_key
        if key.kind not in ("node", "edge"):
            near = nearest(name, keys) or "; a table is 'node:' or 'edge:' with the name of a type"
            hint = f"; write '{keys[name]}'" if name in keys else near
            raise NotFoundError(f"table '{table_key}' is not in the schema{hint}")
        known = self.nodes if key.kind == "node" else self.edges
        hint = f"; there is '{keys[name]}'" if name in keys else nearest(name, known)
        raise NotFoundError(f"{key.spelled} is not in the schema{hint}")

    def edge_by_word(self, word: str) -> EdgeType | None:
        """Edge type by exact name, else by name without case (names are unique without case)."""
        edge = self.edges.get(word)
        if edge is not None:
            return edge
        folded = word.lower()
        return next((e for e in self.edges.values() if e.name.lower() == folded), None)

    def with_optional(self, which: Callable[[Property], bool]) -> Catalog:
        """The same schema with these properties as ones that may be null."""

        def loosened(prop: Property) -> Property:
            return replace(prop, type=replace(prop.type, nullable=True)) if which(prop) else prop

        nodes = {n: replace(e, properties=tuple(map(loosened, e.properties))) for n, e in self.nodes.items()}
        edges = {n: replace(e, properties=tuple(map(loosened, e.properties))) for n, e in self.edges.items()}
        return replace(self, nodes=nodes, edges=edges)

    def edges_touching(self, node_type: str) -> tuple[EdgeType, ...]:
        """Edge types that start or end at a node type."""
        return tuple(e for e in self.edges.values() if node_type in (e.from_type, e.to_type))
