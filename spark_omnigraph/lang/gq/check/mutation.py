"""The type check of a mutation: rules T3, T7, T10 to T14 and T16, then the rule that deletes stand alone (D2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_omnigraph.catalog.types import (
    Catalog,
    EdgeType,
    EntityType,
    NodeType,
    PropType,
    Scalar,
    embedding_source,
)
from spark_omnigraph.lang.gq.check.comparisons import check_enum, where_predicate
from spark_omnigraph.lang.gq.check.scope import BlockScope, compatible, constant, declared_params, now
from spark_omnigraph.lang.gq.check.typed import STRING
from spark_omnigraph.lang.gq.plan import Column, Comparison, Constant, Operand
from spark_omnigraph.lang.gq.report import request_error
from spark_omnigraph.lang.gq.syntax.ast import (
    Assigned,
    Delete,
    Insert,
    NowCall,
    PropertyMatch,
    Query,
    Statement,
    Variable,
    WhereClause,
    region_of,
)

ENDPOINTS = {"from": "src", "to": "dst"}
"""Names of an edge's ends in the language, and the columns that store them."""


@dataclass(frozen=True, slots=True)
class TypedInsert:
    """A new row. For edges `values` has `src` and `dst` too."""

    line: int
    entity: EntityType
    values: Mapping[str, Operand]


@dataclass(frozen=True, slots=True)
class TypedUpdate:
    """New values for the nodes that satisfy the predicate, whose column belongs to no variable."""

    line: int
    entity: NodeType
    values: Mapping[str, Operand]
    where: Comparison


@dataclass(frozen=True, slots=True)
class TypedDelete:
    """The rows that satisfy the predicate go; of a node, its edges too."""

    line: int
    entity: EntityType
    where: Comparison


TypedStatement = TypedInsert | TypedUpdate | TypedDelete
"""`line` is where the statement stands in the query text."""


@dataclass(frozen=True, slots=True)
class TypedMutation:
    """A checked mutation: either only deletes, or none."""

    name: str
    params: Mapping[str, PropType]
    statements: tuple[TypedStatement, ...]


def check_mutation(catalog: Catalog, query: Query) -> TypedMutation:
    """A mutation with all names resolved.

    QueryTypeError for the first rule it breaks; BadRequestError for a read, a mix of deletes with other statements, and
    a change of a key.
    """
    mutation = type_mutation(catalog, query)
    for statement in mutation.statements:
        if isinstance(statement, TypedUpdate):
            for name in statement.entity.key or ():
                if name in statement.values:
                    raise request_error(f"cannot update @key property '{name}' — delete and re-insert instead")
    return mutation


def type_mutation(catalog: Catalog, query: Query) -> TypedMutation:
    """A mutation with all names resolved, which may still change a key; otherwise as `check_mutation`."""
    if not isinstance(query.body, tuple):
        raise request_error(
            f"mutation execution called on a read query; use query instead ('{query.name.text}' changes nothing)"
        )
    params = declared_params(query)
    scope = BlockScope(query.source, catalog, params)
    statements = tuple(_statement(scope, statement) for statement in query.body)
    deletes = sum(isinstance(s, TypedDelete) for s in statements)
    if 0 < deletes < len(statements):
        raise request_error(
            f"mutation '{query.name.text}' on the same query mixes inserts/updates and deletes; split into separate "
            "mutations: (1) inserts and updates, then (2) deletes."
        )
    return TypedMutation(query.name.text, params, statements)


def _statement(scope: BlockScope, statement: Statement) -> TypedStatement:
    if not isinstance(statement, Delete):
        _refuse_repeats(scope, statement.assignments)
    entity, line = _entity(scope, statement), scope.source.span(statement.type_name.region).line
    if isinstance(statement, Insert):
        return _insert(scope, statement, entity, line)
    if isinstance(statement, Delete):
        return TypedDelete(line, entity, _where(scope, entity, statement.where))
    if isinstance(entity, EdgeType):
        message = f"T16: update mutation for edge type `{entity.name}` is not supported"
        raise scope.error(statement.type_name.region, message)
    values = _assignments(scope, entity, statement.assignments)
    return TypedUpdate(line, entity, values, _where(scope, entity, statement.where))


def _entity(scope: BlockScope, statement: Statement) -> EntityType:
    """The type a statement names; of a node and an edge type with one name, the node."""
    name = statement.type_name.text
    found = scope.catalog.nodes.get(name) or scope.catalog.edges.get(name)
    if found is None:
        raise scope.error(statement.type_name.region, f"T10: unknown node/edge type `{name}`")
    return found


def _insert(scope: BlockScope, statement: Insert, entity: EntityType, line: int) -> TypedInsert:
    values = _assignments(scope, entity, statement.assignments)
    region = statement.type_name.region
    if isinstance(entity, EdgeType):
        for written, stored in ENDPOINTS.items():
            if stored not in values:
                message = f"T12: insert for `{entity.name}` must provide required endpoint `{written}`"
                raise scope.error(region, message)
    for prop in entity.properties:
        if prop.type.nullable or prop.name in values:
            continue
        source = embedding_source(prop)
        if source is None or source not in values:
            either = "" if source is None else f" or @embed source `{source}`"
            message = f"T12: insert for `{entity.name}` must provide non-nullable property `{prop.name}`{either}"
            raise scope.error(region, message)
    return TypedInsert(line, entity, values)


def _refuse_repeats(scope: BlockScope, matches: tuple[PropertyMatch, ...]) -> None:
    seen: set[str] = set()
    for match in matches:
        if match.name.text in seen:
            raise scope.error(match.name.region, f"T13: duplicate assignment for property `{match.name.text}`")
        seen.add(match.name.text)


def _assignments(scope: BlockScope, entity: EntityType, matches: tuple[PropertyMatch, ...]) -> dict[str, Operand]:
    values: dict[str, Operand] = {}
    for match in matches:
        stored, declared = _target(scope, entity, match)
        values[stored] = _assigned(scope, match.name.text, declared, match.value)
    return values


def _target(scope: BlockScope, entity: EntityType, match: PropertyMatch) -> tuple[str, PropType]:
    name = match.name.text
    prop = entity.property(name)
    if prop is not None:
        return name, prop.type
    if isinstance(entity, EdgeType) and name in ENDPOINTS:
        return ENDPOINTS[name], STRING
    raise scope.error(match.name.region, f"T11: type `{entity.name}` has no property `{name}`")


def _assigned(scope: BlockScope, name: str, declared: PropType, value: Assigned) -> Operand:
    region = region_of(value)
    operand = _operand(scope, value)
    if isinstance(operand, Constant):
        misfit = _literal_misfit(declared, operand)
        if misfit is not None:
            raise scope.error(region, f"T3: property `{name}` has type {declared.display()} but got {misfit}")
        check_enum(scope, name, declared, operand, region)
        return _as_vector(operand, declared) if declared.is_vector else operand
    if not _fits(declared, operand.type):
        given = operand.type.display()
        message = f"T7: cannot assign/compare {given} with {declared.display()} for property `{name}`"
        raise scope.error(region, message)
    return operand


def _operand(scope: BlockScope, value: Assigned) -> Operand:
    if isinstance(value, NowCall):
        return now()
    if not isinstance(value, Variable):
        return constant(scope, value)
    found = scope.parameter(value.name.text)
    if found is None:
        message = f"T14: mutation variable `${value.name.text}` must be a declared query parameter"
        raise scope.error(value.name.region, message)
    return found


def _literal_misfit(declared: PropType, value: Constant) -> str | None:
    """How a literal is shown that does not fit, or None when it does."""
    if declared.is_vector:
        items = value.value if isinstance(value.value, tuple) else None
        if items is None or not (value.type.scalar.is_numeric or not items):
            return value.type.display()
        return None if len(items) == declared.dimension else f"vector literal with {len(items)} elements"
    if declared.is_list and value.type.is_list and not value.value:
        return None
    fits = declared.scalar is not Scalar.BLOB and compatible(declared, value.type)
    return None if fits else value.type.display()


def _as_vector(value: Constant, declared: PropType) -> Constant:
    items = value.value if isinstance(value.value, tuple) else ()
    # Not made floats here: an integer that no component can hold is refused where the row is made.
    return Constant(items, PropType(Scalar.VECTOR, dimension=declared.dimension))


def _fits(declared: PropType, given: PropType) -> bool:
    if declared.scalar is Scalar.BLOB and not given.is_list:
        return given.scalar in (Scalar.STRING, Scalar.BLOB)
    return compatible(declared, given)


def _where(scope: BlockScope, entity: EntityType, where: WhereClause) -> Comparison:
    name = where.property.text
    prop = entity.property(name)
    if prop is not None:
        if prop.type.scalar is Scalar.BLOB:
            message = f"T11: blob property `{name}` cannot be used in WHERE predicates"
            raise scope.error(where.property.region, message)
        column = Column("", name, prop.type)
    elif isinstance(entity, EdgeType) and name in ENDPOINTS:
        column = Column("", ENDPOINTS[name], STRING)
    else:
        raise scope.error(where.property.region, f"T11: type `{entity.name}` has no property `{name}`")
    if isinstance(where.value, Variable) and scope.parameter(where.value.name.text) is None:
        message = f"T14: mutation variable `${where.value.name.text}` must be a declared query parameter"
        raise scope.error(where.value.name.region, message)
    return where_predicate(scope, where, column)
