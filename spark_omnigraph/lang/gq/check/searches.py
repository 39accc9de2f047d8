"""Rules T15 and T19 to T21: text searches, nearest neighbours, full-text scores and their fusion."""

from __future__ import annotations

from spark_omnigraph.catalog.types import EdgeType, PropType, Scalar, embedding_model
from spark_omnigraph.lang.gq.check.scope import BlockScope, constant
from spark_omnigraph.lang.gq.plan import (
    Bm25,
    Column,
    Constant,
    Fuse,
    Nearest,
    Operand,
    Ranking,
    TextForm,
    TextMatch,
)
from spark_omnigraph.lang.gq.syntax.ast import (
    Bm25Call,
    Expr,
    ListLiteral,
    Literal,
    NearestCall,
    PropertyAccess,
    RrfCall,
    TextCall,
    Variable,
    region_of,
)

DEFAULT_K = 60
DEFAULT_EDITS = 2


def text_match(scope: BlockScope, call: TextCall) -> TextMatch:
    """T19 for search and fuzzy, T20 for match_text."""
    rule = "T20" if call.form is TextForm.MATCH_TEXT else "T19"
    column = _text_field(scope, call.field, rule, str(call.form))
    query = _text_query(scope, call.query, rule, str(call.form))
    if call.form is not TextForm.FUZZY:
        return TextMatch(call.form, column, query)
    edits: Operand = Constant(DEFAULT_EDITS, PropType(Scalar.I64))
    if call.max_edits is not None:
        edits = _integer(scope, call.max_edits, f"{rule}: fuzzy max_edits must be an integer scalar")
    return TextMatch(call.form, column, query, edits)


def ranking(scope: BlockScope, call: NearestCall | Bm25Call | RrfCall) -> Ranking:
    """A ranking of the result: nearest, bm25 or their fusion."""
    if isinstance(call, NearestCall):
        return _nearest(scope, call)
    if isinstance(call, Bm25Call):
        return _bm25(scope, call)
    primary, secondary = _arm(scope, call.primary), _arm(scope, call.secondary)
    k: Operand = Constant(DEFAULT_K, PropType(Scalar.I64))
    if call.k is not None:
        k = _integer(scope, call.k, "T21: rrf k must be an integer scalar")
        if isinstance(k, Constant) and isinstance(k.value, int) and k.value <= 0:
            raise scope.error(region_of(call.k), "T21: rrf k must be greater than 0")
    return Fuse(primary, secondary, k)


def _arm(scope: BlockScope, call: NearestCall | Bm25Call) -> Nearest | Bm25:
    return _nearest(scope, call) if isinstance(call, NearestCall) else _bm25(scope, call)


def _bm25(scope: BlockScope, call: Bm25Call) -> Bm25:
    return Bm25(_text_field(scope, call.field, "T20", "bm25"), _text_query(scope, call.query, "T20", "bm25"))


def _nearest(scope: BlockScope, call: NearestCall) -> Nearest:
    name = call.target.variable.text
    entity = scope.bound.get(name)
    if entity is None:
        raise scope.error(call.target.variable.region, f"T15: variable `${name}` is not bound")
    _refuse_edge(scope, call.target, "nearest")
    prop = entity.property(call.target.property.text)
    if prop is None:
        message = f"T15: type `{entity.name}` has no property `{call.target.property.text}`"
        raise scope.error(call.target.property.region, message)
    if not prop.type.is_vector:
        shown = f"{entity.name}.{prop.name}: {prop.type.display()}"
        raise scope.error(region_of(call.target), f"T15: nearest requires a Vector property, got {shown}")
    query = _vector_query(scope, call.query, prop.type)
    return Nearest(Column(name, prop.name, prop.type), query, embedding_model(prop))


def _vector_query(scope: BlockScope, part: Expr, declared: PropType) -> Operand:
    mismatch = f"T15: nearest vector dimension mismatch: property is Vector({declared.dimension}), query "
    if isinstance(part, ListLiteral):
        value = constant(scope, part)
        if not value.type.scalar.is_numeric or not isinstance(value.value, tuple):
            raise scope.error(part.region, "T15: nearest query must be Vector(n) or String, got a list of other values")
        if len(value.value) != declared.dimension:
            raise scope.error(part.region, f"{mismatch}literal has {len(value.value)} elements")
        numbers = tuple(float(v) for v in value.value if isinstance(v, int | float))
        return Constant(numbers, PropType(Scalar.VECTOR, dimension=declared.dimension))
    found = _operand(scope, part)
    if found is not None and found.type.is_vector and not found.type.is_list:
        if found.type.dimension != declared.dimension:
            raise scope.error(region_of(part), f"{mismatch}is Vector({found.type.dimension})")
        return found
    if found is None or found.type.scalar is not Scalar.STRING or found.type.is_list:
        message = f"T15: nearest query must be Vector(n) or String, got {_type_text(scope, part, found)}"
        raise scope.error(region_of(part), message)
    return found


def _text_field(scope: BlockScope, part: Expr, rule: str, function: str) -> Column:
    if not isinstance(part, PropertyAccess):
        message = f"{rule}: {function} field must be a property, got {_type_text(scope, part, _operand(scope, part))}"
        raise scope.error(region_of(part), message)
    column = scope.column(part)
    _refuse_edge(scope, part, function)
    if column.type.scalar is not Scalar.STRING or column.type.is_list:
        message = f"{rule}: {function} field must be String, got {column.type.display()}"
        raise scope.error(region_of(part), message)
    return column


def _refuse_edge(scope: BlockScope, access: PropertyAccess, function: str) -> None:
    if isinstance(scope.bound.get(access.variable.text), EdgeType):
        message = f"T23: {function}() works on nodes, and `${access.variable.text}` stands for an edge"
        raise scope.error(region_of(access), message)


def _text_query(scope: BlockScope, part: Expr, rule: str, function: str) -> Operand:
    found = _operand(scope, part)
    if found is None or found.type.scalar is not Scalar.STRING or found.type.is_list:
        message = f"{rule}: {function} query must be String, got {_type_text(scope, part, found)}"
        raise scope.error(region_of(part), message)
    return found


def _integer(scope: BlockScope, part: Expr, message: str) -> Operand:
    found = _operand(scope, part)
    if found is None or not found.type.scalar.is_integer or found.type.is_list:
        raise scope.error(region_of(part), f"{message}, got {_type_text(scope, part, found)}")
    return found


def _operand(scope: BlockScope, part: Expr) -> Operand | None:
    """A literal or a declared parameter: a search asks one question for all rows."""
    if isinstance(part, Literal | ListLiteral):
        return constant(scope, part)
    if isinstance(part, Variable) and part.name.text not in scope.bound:
        return scope.parameter(part.name.text)
    return None


def _type_text(scope: BlockScope, part: Expr, found: Operand | None) -> str:
    if found is not None:
        return found.type.display()
    if isinstance(part, PropertyAccess):
        return f"the property {scope.column(part).type.display()} (a literal or a parameter is needed)"
    region = region_of(part)
    return f"`{scope.source.text[region.start : region.end]}` (a literal or a parameter is needed)"
