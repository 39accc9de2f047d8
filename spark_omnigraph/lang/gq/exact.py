"""Comparisons of columns with literals in one exact form, the same for every engine."""

from __future__ import annotations

import math
from dataclasses import replace

from spark_omnigraph.catalog.numbers import Real, integer_of, single
from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.lang.gq.plan import Column, Comparator, Comparison, Constant, Value

FLIPPED = {
    Comparator.EQUAL: Comparator.EQUAL,
    Comparator.NOT_EQUAL: Comparator.NOT_EQUAL,
    Comparator.LESS: Comparator.GREATER,
    Comparator.LESS_OR_EQUAL: Comparator.GREATER_OR_EQUAL,
    Comparator.GREATER: Comparator.LESS,
    Comparator.GREATER_OR_EQUAL: Comparator.LESS_OR_EQUAL,
}
"""What is asked when the sides change places."""
_WITH_FRACTION = {
    Comparator.LESS: Comparator.LESS_OR_EQUAL,
    Comparator.LESS_OR_EQUAL: Comparator.LESS_OR_EQUAL,
    Comparator.GREATER: Comparator.GREATER,
    Comparator.GREATER_OR_EQUAL: Comparator.GREATER,
}
"""What is asked of the integer below instead of a number with a fraction."""


def normalized(comparison: Comparison) -> Comparison:
    """The column on the left where the other side is a constant, and a float that meets an F32 column rounded to F32:
    a reader who stored 0.1 there finds it by 0.1.
    """
    left, right = comparison.left, comparison.right
    flipped = FLIPPED.get(comparison.comparator)
    if flipped is not None and isinstance(left, Constant) and isinstance(right, Column):
        comparison = replace(comparison, comparator=flipped, left=right, right=left)
        left, right = right, left
    if isinstance(left, Column) and left.type.scalar is Scalar.F32 and isinstance(right, Constant):
        return replace(comparison, right=replace(right, value=_as_single(right.value)))
    if isinstance(left, Column) and left.type.scalar.is_integer and not left.type.is_list:
        return _by_digits(comparison)
    return comparison


def _by_digits(comparison: Comparison) -> Comparison:
    """A column of integers with a literal whose float may be another number: what the literal's digits mean."""
    right, comparator = comparison.right, comparison.comparator
    if not isinstance(right, Constant) or not isinstance(right.value, Real) or not 0 <= right.value < 2**64:
        return comparison
    whole = integer_of(right.value.text)
    if whole is not None:
        return replace(comparison, right=Constant(whole, PropType(Scalar.I64)))
    if comparator in (Comparator.EQUAL, Comparator.NOT_EQUAL):
        # No integer is one with a fraction, as none is NaN.
        return replace(comparison, right=replace(right, value=math.nan))
    below = integer_of(right.value.text.partition(".")[0])
    if below is None or comparator not in _WITH_FRACTION:
        return comparison
    return Comparison(_WITH_FRACTION[comparator], comparison.left, Constant(below, PropType(Scalar.I64)))


def _as_single(value: Value) -> Value:
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    rounded = single(value)
    return rounded if math.isfinite(rounded) else value
