"""Rules T3, T7 and their kin: which values can be compared with, or assigned to, which."""

from __future__ import annotations

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.errors import QueryTypeError
from spark_omnigraph.lang.gq.check.scope import BlockScope, compatible, constant, item_type, now
from spark_omnigraph.lang.gq.check.searches import text_match
from spark_omnigraph.lang.gq.plan import Column, Comparator, Comparison, Constant, Operand, Predicate
from spark_omnigraph.lang.gq.syntax.ast import (
    AliasReference,
    Assigned,
    Binding,
    Expr,
    FilterClause,
    ListLiteral,
    Literal,
    NowCall,
    PropertyAccess,
    PropertyMatch,
    TextCall,
    Variable,
    WhereClause,
    region_of,
)
from spark_omnigraph.lang.gq.syntax.expressions import NULL, null_hint
from spark_omnigraph.lang.source import Region
from spark_omnigraph.words import nearest

_DATED_LITERALS = {Scalar.DATE: 'date("2026-01-31")', Scalar.DATETIME: 'datetime("2026-01-31T12:00:00Z")'}


def binding_predicates(scope: BlockScope, binding: Binding, variable: str) -> tuple[Predicate, ...]:
    """The inline predicates of a binding: equality, for list properties membership."""
    found: list[Predicate] = []
    entity = scope.bound[variable]
    for match in binding.matches:
        prop = entity.property(match.name.text)
        if prop is None:
            raise scope.no_property("T2", entity, match.name)
        if prop.type.scalar is Scalar.BLOB:
            message = f"T3: blob property `{entity.name}.{prop.name}` cannot be used in match patterns"
            raise scope.error(match.name.region, message)
        column = Column(variable, prop.name, prop.type)
        if prop.type.is_vector:
            raise scope.error(region_of(match.value), _vector_equality(prop.name, prop.type, match.value))
        value = _match_value(scope, match, prop.type)
        comparator = Comparator.HAS_ITEM if prop.type.is_list else Comparator.EQUAL
        found.append(Comparison(comparator, column, value))
    return tuple(found)


def operand_value(scope: BlockScope, value: Assigned) -> Operand:
    """A literal, a declared parameter or `now()` as an operand."""
    if isinstance(value, NowCall):
        return now()
    if isinstance(value, Variable):
        found = scope.parameter(value.name.text)
        if found is None:
            close = nearest(f"${value.name.text}", [f"${name}" for name in scope.params])
            message = f"T6: variable `${value.name.text}` is not bound and not a declared query parameter{close}"
            raise scope.error(value.name.region, message)
        return found
    return constant(scope, value)


def check_enum(scope: BlockScope, name: str, declared: PropType, value: Operand, region: Region) -> None:
    """T3 for a literal that is none of the values of an enum."""
    if declared.enum_values is None or not isinstance(value, Constant):
        return
    for one in value.value if isinstance(value.value, tuple) else (value.value,):
        if one not in declared.enum_values:
            allowed = ", ".join(declared.enum_values)
            raise scope.error(region, f"T3: property `{name}` expects one of [{allowed}], got '{one}'")


def filter_predicate(scope: BlockScope, clause: FilterClause) -> Predicate:
    """The predicate of a filter line."""
    if isinstance(clause.left, TextCall):
        return _searched(scope, clause, clause.left)
    region = region_of(clause.left).to(region_of(clause.right))
    left, right = _operand(scope, clause.left, clause, region), _operand(scope, clause.right, clause, region)
    if clause.comparator is Comparator.HAS_ITEM:
        return _contains(scope, left, right, region)
    _refuse_containers(scope, left.type, right.type, region)
    if not compatible(left.type, right.type):
        raise _incomparable(scope, left.type, right.type, region)
    if clause.comparator is Comparator.STARTS_WITH and left.type.scalar is not Scalar.STRING:
        raise scope.error(region, f"T7: starts_with requires a String property on the left, got {left.type.display()}")
    return Comparison(clause.comparator, left, right)


def where_predicate(scope: BlockScope, where: WhereClause, column: Column) -> Comparison:
    """The predicate of a mutation about a column, which its text may call by another name."""
    region = region_of(where.value)
    name, declared = where.property.text, column.type
    right = operand_value(scope, where.value)
    if not compatible(declared, right.type):
        raise scope.error(region, _not_equal(name, declared, right))
    _refuse_containers(scope, declared, right.type, region)
    check_enum(scope, name, declared, right, region)
    return Comparison(where.comparator, column, right)


def _match_value(scope: BlockScope, match: PropertyMatch, declared: PropType) -> Operand:
    value, region = operand_value(scope, match.value), region_of(match.value)
    name = match.name.text
    if not declared.is_list:
        if not compatible(declared, value.type):
            raise scope.error(region, _not_equal(name, declared, value))
        check_enum(scope, name, declared, value, region)
        return value
    is_literal = isinstance(value, Constant)
    if value.type.is_list or value.type.is_vector:
        rule, kind = (
            ("T3", "scalar value to match list membership")
            if is_literal
            else (
                "T7",
                "scalar parameter for membership matching",
            )
        )
        raise scope.error(region, f"{rule}: list equality is not supported for property `{name}`; use a {kind}")
    if not compatible(item_type(declared), value.type):
        shown, got = declared.display(), value.type.display()
        raise scope.error(
            region,
            f"T3: property `{name}` has type {shown} but membership match got {got}"
            if is_literal
            else f"T7: cannot compare {got} membership against {shown} for property `{name}`",
        )
    return value


def dated_hint(declared: PropType, given: PropType) -> str:
    """How a day or an instant is written, after a message about a text that stands for one."""
    if given.scalar is not Scalar.STRING or declared.scalar not in _DATED_LITERALS:
        return ""
    return f"; write it as {_DATED_LITERALS[declared.scalar]}"


def _not_equal(name: str, declared: PropType, value: Operand) -> str:
    if isinstance(value, Constant):
        hint = dated_hint(declared, value.type)
        return f"T3: property `{name}` has type {declared.display()} but got {value.type.display()}{hint}"
    return _not_assignable(value.type, declared, name)


def _not_assignable(given: PropType, declared: PropType, name: str) -> str:
    return f"T7: cannot assign/compare {given.display()} with {declared.display()} for property `{name}`"


def _vector_equality(name: str, declared: PropType, value: Assigned) -> str:
    if isinstance(value, ListLiteral) and len(value.items) != declared.dimension:
        count = len(value.items)
        return f"T3: property `{name}` has type {declared.display()} but got vector literal with {count} elements"
    if isinstance(value, Literal):
        return f"T3: property `{name}` has type {declared.display()} but got {value.type.display()}"
    return f"T7: vector comparisons in filters are not supported for property `{name}`; order by nearest() instead"


def _searched(scope: BlockScope, clause: FilterClause, call: TextCall) -> Predicate:
    right = clause.right
    if clause.comparator is Comparator.EQUAL and isinstance(right, Literal) and right.value is True:
        return text_match(scope, call)
    message = f"T7: {call.form}() can only be compared with `= true`; write it as a clause of its own"
    raise scope.error(call.region.to(region_of(right)), message)


def _operand(scope: BlockScope, part: Expr, clause: FilterClause, region: Region) -> Operand:
    if isinstance(part, PropertyAccess):
        return scope.column(part)
    if isinstance(part, Literal | ListLiteral):
        return constant(scope, part)
    if isinstance(part, NowCall):
        return now()
    if isinstance(part, Variable):
        found = None if part.name.text in scope.bound else scope.parameter(part.name.text)
        if found is not None:
            return found
        if part.name.text not in scope.bound:
            raise scope.unbound("T6: ", part.name, scope.params)
    shown = f"{_shown(scope, clause.left)} and {_shown(scope, clause.right)}"
    other = clause.left if part is clause.right else clause.right
    is_null = isinstance(part, AliasReference) and part.name.text == NULL
    hint = null_hint(other) if is_null and isinstance(other, PropertyAccess) else ""
    raise scope.error(region, f"T7: filter comparisons require scalar operands, got {shown}{hint}")


def _shown(scope: BlockScope, part: Expr) -> str:
    if isinstance(part, Variable):
        entity = scope.bound.get(part.name.text)
        if entity is not None:
            return f"{entity.table_key.kind} `{entity.name}`"
        found = scope.parameter(part.name.text)
        return f"`${part.name.text}`" if found is None else found.type.display()
    if isinstance(part, PropertyAccess):
        return scope.column(part).type.display()
    if isinstance(part, Literal | ListLiteral):
        return constant(scope, part).type.display()
    return scope.source.text[region_of(part).start : region_of(part).end]


def _contains(scope: BlockScope, left: Operand, right: Operand, region: Region) -> Comparison:
    if left.type.is_vector:
        raise scope.error(region, "T7: vector membership filters are not supported")
    if right.type.is_list or right.type.is_vector:
        raise scope.error(region, "T7: contains requires a scalar right operand")
    if left.type.is_list:
        if not compatible(item_type(left.type), right.type):
            message = f"T7: cannot test membership of {right.type.display()} in {left.type.display()}"
            raise scope.error(region, message)
        return Comparison(Comparator.HAS_ITEM, left, right)
    if left.type.scalar is not Scalar.STRING:
        form = "contains requires a list property (membership) or a String property (substring) on the left"
        raise scope.error(region, f"T7: {form}, got {left.type.display()}")
    if right.type.scalar is not Scalar.STRING:
        raise _incomparable(scope, left.type, right.type, region)
    return Comparison(Comparator.HAS_TEXT, left, right)


def _refuse_containers(scope: BlockScope, left: PropType, right: PropType, region: Region) -> None:
    if left.is_list or right.is_list:
        message = "T7: list comparisons in filters are not supported; use `contains` for list membership"
        raise scope.error(region, message)
    if left.is_vector or right.is_vector:
        raise scope.error(region, "T7: vector comparisons in filters are not supported")
    if Scalar.BLOB in (left.scalar, right.scalar):
        raise scope.error(region, "T7: blob comparisons in filters are not supported")


def _incomparable(scope: BlockScope, left: PropType, right: PropType, region: Region) -> QueryTypeError:
    hint = dated_hint(left, right) or dated_hint(right, left)
    return scope.error(region, f"T7: cannot compare {left.display()} with {right.display()}{hint}")
