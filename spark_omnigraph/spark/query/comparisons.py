"""Comparisons as columns of Spark, with the meaning that `engine.compare` has: exact, and null never true.

Spark alone would say that NaN equals itself and that 2**53 + 1 equals the float 2**53.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, NoReturn

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import DecimalType, DoubleType

from spark_omnigraph.catalog.types import Scalar
from spark_omnigraph.engine.compare import compare
from spark_omnigraph.errors import InternalError
from spark_omnigraph.lang.gq.exact import FLIPPED, normalized
from spark_omnigraph.lang.gq.plan import Column, Comparator, Comparison, Constant, Operand, Value
from spark_omnigraph.spark.query.frame import Frame, array, plain
from spark_omnigraph.words import TextEnum

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

_OPERATORS: Mapping[Comparator, Callable[[SparkColumn, SparkColumn], SparkColumn]] = {
    Comparator.EQUAL: operator.eq,
    Comparator.NOT_EQUAL: operator.ne,
    Comparator.LESS: operator.lt,
    Comparator.LESS_OR_EQUAL: operator.le,
    Comparator.GREATER: operator.gt,
    Comparator.GREATER_OR_EQUAL: operator.ge,
}
_HALF, _FAR = 2.0**63, 2.0**64
"""From where on a float is more than any integer with a sign, and than any without one."""
_UNORDERED = 2
"""Sign of a comparison with NaN: only `!=` is true."""


class _Compared(TextEnum):
    """What values are compared as."""

    PLAIN = "plain"
    WHOLE = "whole"
    UNSIGNED = "unsigned"
    """Integers beyond 63 bits, without a sign."""
    FLOAT = "float"


@dataclass(frozen=True, slots=True)
class _Side:
    column: SparkColumn
    kind: _Compared


_KINDS = {
    **dict.fromkeys((Scalar.I32, Scalar.I64, Scalar.U32, Scalar.DATE, Scalar.DATETIME), _Compared.WHOLE),
    **dict.fromkeys((Scalar.F32, Scalar.F64), _Compared.FLOAT),
    Scalar.U64: _Compared.UNSIGNED,
}


def comparison_column(comparison: Comparison, frame: Frame) -> SparkColumn:
    """True for the rows of a frame that satisfy a comparison, false or null for all others."""
    asked = normalized(comparison)
    sides = asked.left, asked.right
    if any(isinstance(side, Constant) and side.value is None for side in sides):
        return F.lit(False)
    if not any(isinstance(side, Column) for side in sides):
        return F.lit(bool(compare(asked, 1, _no_column)[0]))
    comparator = asked.comparator
    if comparator is Comparator.HAS_ITEM:
        return _has_item(asked, frame)
    left, right = (_side(side, frame) for side in sides)
    if comparator is Comparator.HAS_TEXT:
        return F.contains(left.column, right.column)
    if comparator is Comparator.STARTS_WITH:
        return F.startswith(left.column, right.column)
    return _ordered(comparator, left, right)


def _no_column(column: Column) -> NoReturn:
    raise InternalError(f"${column.variable}.{column.name} is no constant")


def _side(operand: Operand, frame: Frame) -> _Side:
    if isinstance(operand, Column):
        return _Side(frame.column(operand), _KINDS.get(operand.type.scalar, _Compared.PLAIN))
    if not isinstance(operand, Constant):
        raise InternalError(f"parameter '{operand.name}' is not bound to a value")
    return _constant(operand.value)


def _constant(value: Value) -> _Side:
    return _Side(plain(value), _kind(value))


def _kind(value: Value) -> _Compared:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _Compared.PLAIN
    if isinstance(value, float):
        return _Compared.FLOAT
    return _Compared.UNSIGNED if value >= 2**63 else _Compared.WHOLE


def _has_item(asked: Comparison, frame: Frame) -> SparkColumn:
    """Every item is asked, since Spark's own search for one takes NaN for equal."""
    item = _side(asked.right, frame)
    if isinstance(asked.left, Column):
        kind = _KINDS.get(asked.left.type.scalar, _Compared.PLAIN)
        found = frame.column(asked.left)
        return F.exists(found, lambda one: F.coalesce(_ordered(Comparator.EQUAL, _Side(one, kind), item), F.lit(False)))
    assert isinstance(asked.left, Constant)
    value = asked.left.value
    items = [one for one in value if one is not None] if isinstance(value, tuple) else []
    by_kind = {kind: [one for one in items if _kind(one) is kind] for kind in _Compared}
    among = [_is_among(item, kind, those) for kind, those in by_kind.items() if those]
    return reduce(operator.or_, among, F.lit(False))


def _is_among(item: _Side, kind: _Compared, items: Sequence[Value]) -> SparkColumn:
    return F.exists(array(items), lambda one: _ordered(Comparator.EQUAL, item, _Side(one, kind)))


def _ordered(comparator: Comparator, left: _Side, right: _Side) -> SparkColumn:
    apply = _OPERATORS[comparator]
    floats = (left.kind is _Compared.FLOAT, right.kind is _Compared.FLOAT)
    if not any(floats):
        return apply(left.column, right.column)
    if all(floats):
        return _floats(comparator, left.column.cast(DoubleType()), right.column.cast(DoubleType()))
    if floats[0]:
        left, right, comparator = right, left, FLIPPED[comparator]
    return _on_sign(comparator, left, right.column.cast(DoubleType()))


def _floats(comparator: Comparator, left: SparkColumn, right: SparkColumn) -> SparkColumn:
    found = _OPERATORS[comparator](left, right)
    unordered = F.isnan(left) | F.isnan(right)
    if comparator is Comparator.NOT_EQUAL:
        return left.isNotNull() & right.isNotNull() & (found | unordered)
    return found & ~unordered


def _on_sign(comparator: Comparator, whole: _Side, real: SparkColumn) -> SparkColumn:
    """Integers against floats: with the whole part exactly, then by the fraction."""
    low, high = (0.0, _FAR) if whole.kind is _Compared.UNSIGNED else (-_HALF, _HALF)
    inside = F.when((real >= F.lit(low)) & (real < F.lit(high)), real)
    near = F.when(inside < F.lit(_HALF), inside)
    floor = F.floor(near)
    exact = floor if whole.kind is not _Compared.UNSIGNED else _unsigned(floor, inside)
    sign = (
        F.when(F.isnan(real), _UNORDERED)
        .when(real >= F.lit(high), -1)
        .when(real < F.lit(low), 1)
        .when(whole.column > exact, 1)
        .when(whole.column < exact, -1)
        .when(near > floor.cast(DoubleType()), -1)
        .otherwise(0)
    )
    signs = {
        Comparator.EQUAL: (0,),
        Comparator.NOT_EQUAL: (-1, 1, _UNORDERED),
        Comparator.LESS: (-1,),
        Comparator.LESS_OR_EQUAL: (-1, 0),
        Comparator.GREATER: (1,),
        Comparator.GREATER_OR_EQUAL: (0, 1),
    }
    return whole.column.isNotNull() & real.isNotNull() & sign.isin(*signs[comparator])


def _unsigned(floor: SparkColumn, inside: SparkColumn) -> SparkColumn:
    """Whole parts below 2**64 of floats, `floor` of those below 2**63. Spark's own cast of a float to a decimal goes by
    the digits that are shown, which are not all of them.
    """
    beyond = F.floor(inside - F.lit(_HALF)).cast(DecimalType(20, 0)) + plain(2**63)
    return F.coalesce(floor.cast(DecimalType(20, 0)), beyond)
