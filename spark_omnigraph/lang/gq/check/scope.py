"""What names mean while a query is checked: the catalog, declared parameters, variables bound so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spark_omnigraph.catalog.dates import parse_date, parse_datetime
from spark_omnigraph.catalog.types import Catalog, EntityType, NodeType, PropType, Scalar
from spark_omnigraph.errors import QueryTypeError
from spark_omnigraph.lang.gq.check.typed import ANONYMOUS_PREFIX, NOW, STRING
from spark_omnigraph.lang.gq.plan import IDENTITY, Column, Constant, Parameter, Value
from spark_omnigraph.lang.gq.report import request_error, type_error
from spark_omnigraph.lang.gq.syntax.ast import ANONYMOUS, ListLiteral, Literal, PropertyAccess, Query, region_of
from spark_omnigraph.lang.source import Name, Region, SourceText
from spark_omnigraph.words import nearest


@dataclass(slots=True)
class BlockScope:
    """Names of one block. A negation works on a copy: what it binds is not seen outside."""

    source: SourceText
    catalog: Catalog
    params: Mapping[str, PropType]
    bound: dict[str, EntityType] = field(default_factory=dict)
    anonymous: list[str] = field(default_factory=list)
    """Names given to `$_` so far, shared by all blocks."""

    def inner(self) -> BlockScope:
        """The scope of a negation."""
        return BlockScope(self.source, self.catalog, self.params, dict(self.bound), self.anonymous)

    def error(self, region: Region, message: str) -> QueryTypeError:
        return type_error(self.source, region, message)

    def node(self, name: str) -> NodeType | None:
        """Node type of a variable, or None when it is not bound to one."""
        found = self.bound.get(name)
        return found if isinstance(found, NodeType) else None

    def bind(self, variable: Name, entity: EntityType) -> str:
        """Binds a variable, or sees that it is bound to the same type; the name it has from here on."""
        if variable.text == ANONYMOUS:
            name = f"{ANONYMOUS_PREFIX}{len(self.anonymous) + 1}"
            self.anonymous.append(name)
            self.bound[name] = entity
            return name
        known = self.bound.setdefault(variable.text, entity)
        if known != entity:
            message = (
                f"variable `${variable.text}` already bound to type `{known.name}`, cannot rebind to `{entity.name}`"
            )
            raise self.error(variable.region, message)
        return variable.text

    def column(self, access: PropertyAccess) -> Column:
        """A property of a bound variable; T6 for anything else."""
        entity = self.bound.get(access.variable.text)
        if entity is None or access.variable.text == ANONYMOUS:
            raise self.unbound("T6: ", access.variable)
        found = entity.property(access.property.text)
        if found is None:
            raise self.no_property("T6", entity, access.property)
        return Column(access.variable.text, found.name, found.type)

    def unbound(self, rule: str, variable: Name, known: Iterable[str] = ()) -> QueryTypeError:
        """The error for a variable that nothing binds; `known` are names that would do too."""
        names = [name for name in (*self.bound, *known) if not name.startswith(ANONYMOUS_PREFIX)]
        close = nearest(f"${variable.text}", [f"${name}" for name in names])
        return self.error(variable.region, f"{rule}variable `${variable.text}` is not bound{close}")

    def no_property(self, rule: str, entity: EntityType, name: Name) -> QueryTypeError:
        """The error for a property that a type lacks."""
        close = nearest(name.text, [prop.name for prop in entity.properties])
        return self.error(name.region, f"{rule}: type `{entity.name}` has no property `{name.text}`{close}")

    def identity(self, variable: str) -> Column:
        """The id of a bound variable."""
        return Column(variable, IDENTITY, STRING)

    def parameter(self, name: str) -> Parameter | None:
        """A declared parameter."""
        found = self.params.get(name)
        return None if found is None else Parameter(name, found)


def declared_params(query: Query) -> dict[str, PropType]:
    """Types of the declared parameters; of two with one name the later counts. The name behind `now()` is reserved."""
    for param in query.params:
        if param.name.text == NOW:
            message = f"parameter name `${NOW}` is reserved for runtime timestamp injection"
            raise type_error(query.source, param.name.region, message)
    return {param.name.text: param.type for param in query.params}


def now() -> Parameter:
    """The instant of the query."""
    return Parameter(NOW, PropType(Scalar.DATETIME))


def constant(scope: BlockScope, literal: Literal | ListLiteral) -> Constant:
    """A literal as a value. A list has the type of its first item, `[]` is a list of strings."""
    if isinstance(literal, Literal):
        return Constant(_scalar(literal), literal.type)
    items: list[Constant] = []
    for item in literal.items:
        if isinstance(item, ListLiteral):
            raise scope.error(item.region, "nested list literals are not supported")
        items.append(constant(scope, item))
        if not compatible(items[0].type, items[-1].type):
            raise scope.error(region_of(item), "list literal elements must share a compatible scalar type")
    scalar = items[0].type.scalar if items else Scalar.STRING
    if any(item.type.scalar is Scalar.F64 for item in items):
        scalar = Scalar.F64
    values: tuple[Value, ...] = tuple(item.value for item in items)
    if scalar is Scalar.F64:
        values = tuple(_float_item(scope, item, v) for item, v in zip(literal.items, values, strict=True))
    return Constant(values, PropType(scalar, is_list=True))


def _float_item(scope: BlockScope, item: Literal | ListLiteral, value: Value) -> Value:
    if not isinstance(value, int):
        return value
    if int(float(value)) != value:
        raise scope.error(region_of(item), f"a list with floats cannot hold {value}, which no 64-bit float equals")
    return float(value)


def compatible(left: PropType, right: PropType) -> bool:
    """Whether values of the types can be compared: both lists or neither, the same scalar or two numeric ones."""
    if left.is_list != right.is_list:
        return False
    if left.is_vector or right.is_vector:
        return left.scalar is right.scalar and left.dimension == right.dimension
    return left.scalar is right.scalar or (left.scalar.is_numeric and right.scalar.is_numeric)


def item_type(of: PropType) -> PropType:
    """Type of a list's items."""
    return PropType(of.scalar, nullable=True, enum_values=of.enum_values)


def _scalar(literal: Literal) -> Value:
    if literal.type.scalar is Scalar.DATE:
        return instant(str(literal.value), Scalar.DATE)
    if literal.type.scalar is Scalar.DATETIME:
        return instant(str(literal.value), Scalar.DATETIME)
    return literal.value


def instant(text: str, scalar: Scalar) -> int:
    """Days of a Date text or milliseconds of a DateTime text; BadRequestError for any other text."""
    found = parse_date(text) if scalar is Scalar.DATE else parse_datetime(text)
    if found is None:
        form = "YYYY-MM-DD" if scalar is Scalar.DATE else "YYYY-MM-DDTHH:MM:SS[.mmm][Z|±HH:MM]"
        raise request_error(f"invalid {scalar} literal '{text}': expected {form}")
    return found
