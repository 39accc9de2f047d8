"""Comparisons in memory, without loss: integers and floats by value, strings by bytes, null never true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.lang.gq.exact import normalized
from spark_omnigraph.lang.gq.plan import Column, Comparator, Comparison, Constant, Operand, Value
from spark_omnigraph.records.arrow_schema import property_type

Mask = npt.NDArray[np.bool_]

_ON_SIGN: dict[Comparator, Callable[[npt.NDArray[np.int8]], Mask]] = {
    Comparator.EQUAL: lambda s: s == 0,
    Comparator.NOT_EQUAL: lambda s: s != 0,
    Comparator.LESS: lambda s: s == -1,
    Comparator.LESS_OR_EQUAL: lambda s: s <= 0,
    Comparator.GREATER: lambda s: s == 1,
    Comparator.GREATER_OR_EQUAL: lambda s: (s == 0) | (s == 1),
}
_ON_NUMBERS: dict[Comparator, Callable[[np.ndarray, np.ndarray], Mask]] = {
    Comparator.EQUAL: np.equal,
    Comparator.NOT_EQUAL: np.not_equal,
    Comparator.LESS: np.less,
    Comparator.LESS_OR_EQUAL: np.less_equal,
    Comparator.GREATER: np.greater,
    Comparator.GREATER_OR_EQUAL: np.greater_equal,
}
"""For numbers of one kind; of NaN only `!=` is true here too."""
_ON_TEXT = {
    Comparator.EQUAL: pc.equal,
    Comparator.NOT_EQUAL: pc.not_equal,
    Comparator.LESS: pc.less,
    Comparator.LESS_OR_EQUAL: pc.less_equal,
    Comparator.GREATER: pc.greater,
    Comparator.GREATER_OR_EQUAL: pc.greater_equal,
}
_WHOLE = frozenset({s for s in Scalar if s.is_numeric} | {Scalar.DATE, Scalar.DATETIME})
_UNORDERED = np.int8(2)
"""Sign of a comparison with NaN: only `!=` is true."""


@dataclass(frozen=True, slots=True)
class Side:
    """Values of one side: one a row, or one for all rows."""

    values: pa.Array
    scalar: Scalar


def constant_array(value: Value, ptype: PropType, count: int = 1) -> pa.Array:
    """A constant as a column."""
    of = pa.string() if ptype.scalar is Scalar.BLOB else property_type(ptype)
    if value is None:
        return pa.nulls(count, of)
    if pa.types.is_date64(of) or pa.types.is_date32(of):
        whole = pa.int64() if pa.types.is_date64(of) else pa.int32()
        return pa.array([value] * count, whole).view(of)
    if ptype.is_list and ptype.scalar in (Scalar.DATE, Scalar.DATETIME) and isinstance(value, tuple):
        items = [constant_array(one, PropType(ptype.scalar))[0] for one in value]
        return pa.array([items] * count, of)
    if count == 0:
        return pa.array([], of)  # a list cannot be repeated no times
    return pa.repeat(pa.scalar(list(value) if isinstance(value, tuple) else value, of), count)


def compare(comparison: Comparison, count: int, values: Callable[[Column], pa.Array]) -> Mask:
    """For which of `count` rows a comparison is true; `values` gives a column's value for each."""
    comparison = normalized(comparison)
    left, right = _side(comparison.left, values), _side(comparison.right, values)
    if left is None or right is None:
        return np.zeros(count, dtype=bool)
    comparator = comparison.comparator
    if comparator is Comparator.HAS_ITEM:
        found = _has_item(left, right, count)
    elif comparator in (Comparator.HAS_TEXT, Comparator.STARTS_WITH):
        found = _text(comparator, left.values, right.values)
    else:
        found = _ordered(comparator, left, right)
    return np.broadcast_to(found, count)


def _side(operand: Operand, values: Callable[[Column], pa.Array]) -> Side | None:
    """None for a null constant."""
    if isinstance(operand, Column):
        return Side(values(operand), operand.type.scalar)
    assert isinstance(operand, Constant)
    if operand.value is None:
        return None
    if operand.type.scalar in _WHOLE and isinstance(operand.value, int) and not operand.type.is_list:
        # A date may lie where no stored one can.
        wide = Scalar.U64 if operand.value >= 2**63 else Scalar.I64
        return Side(constant_array(operand.value, PropType(wide)), wide)
    if isinstance(operand.value, float):
        return Side(constant_array(operand.value, PropType(Scalar.F64)), Scalar.F64)
    return Side(constant_array(operand.value, operand.type), operand.type.scalar)


def _ordered(comparator: Comparator, left: Side, right: Side) -> Mask:
    if left.scalar in (Scalar.STRING, Scalar.BLOB):
        a = left.values if len(left.values) != 1 or len(right.values) == 1 else left.values[0]
        b = right.values if len(right.values) != 1 or isinstance(a, pa.Scalar) else right.values[0]
        return _true(_ON_TEXT[comparator](a, b))
    first, second = numbers(left.values), numbers(right.values)
    if first.dtype == second.dtype:
        found = _ON_NUMBERS[comparator](first, second)
    else:
        found = _ON_SIGN[comparator](_signs(first, second))
    for side in (left, right):
        if side.values.null_count:
            found = found & _valid(side.values)
    return found


def numbers(column: pa.Array) -> np.ndarray:
    """Values as int64, uint64 or float64; a null becomes some number."""
    of = column.type
    if pa.types.is_boolean(of):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(of):
        column = column.view(pa.int32())
    elif pa.types.is_date64(of):
        column = column.view(pa.int64())
    if column.null_count:
        column = column.fill_null(0)
    raw = column.to_numpy(zero_copy_only=False)
    if raw.dtype.kind == "f":
        return np.asarray(raw, dtype=np.float64)
    return np.asarray(raw, dtype=np.uint64 if raw.dtype == np.uint64 else np.int64)


def _signs(a: np.ndarray, b: np.ndarray) -> npt.NDArray[np.int8]:
    """-1, 0 or 1 where a is less than, equal to or greater than b."""
    kinds = a.dtype.kind + b.dtype.kind
    if kinds == "ff":
        signs = (a > b).astype(np.int8) - (a < b).astype(np.int8)
        return np.where(np.isnan(a) | np.isnan(b), _UNORDERED, signs)
    if kinds[0] == "f":
        signs = _signs(b, a)
        return np.where(signs == _UNORDERED, _UNORDERED, -signs)
    if kinds[1] == "f":
        return _against_floats(a, b)
    return (a > b).astype(np.int8) - (a < b).astype(np.int8)


def _against_floats(a: np.ndarray, b: np.ndarray) -> npt.NDArray[np.int8]:
    """Integers against floats: with the whole part exactly, then by the fraction."""
    low, high = (0.0, 2.0**64) if a.dtype == np.uint64 else (-(2.0**63), 2.0**63)
    inside = (b >= low) & (b < high)
    floor = np.floor(np.where(inside, b, 0.0))
    whole = floor.astype(a.dtype)
    signs = (a > whole).astype(np.int8) - (a < whole).astype(np.int8)
    signs = np.where((signs == 0) & (np.where(inside, b, 0.0) > floor), np.int8(-1), signs)
    signs = np.where(b >= high, np.int8(-1), signs)
    signs = np.where(b < low, np.int8(1), signs)
    return np.where(np.isnan(b), _UNORDERED, signs)


def _has_item(left: Side, right: Side, count: int) -> Mask:
    if len(left.values) == 1 and len(right.values) > 1:
        found = np.zeros(count, dtype=bool)
        for item in pc.list_flatten(left.values).drop_null():
            found |= _ordered(Comparator.EQUAL, right, Side(pa.array([item.as_py()], item.type), left.scalar))
        return found
    lists = left.values if len(left.values) == count else pa.concat_arrays([left.values] * count)
    parents = np.asarray(pc.list_parent_indices(lists))
    items = Side(pc.list_flatten(lists), left.scalar)
    wanted = right if len(right.values) == 1 else Side(right.values.take(pa.array(parents)), right.scalar)
    found = np.zeros(count, dtype=bool)
    if len(parents):
        found[parents[_ordered(Comparator.EQUAL, items, wanted)]] = True
    return found


def _text(comparator: Comparator, texts: pa.Array, parts: pa.Array) -> Mask:
    if len(parts) == 1:
        match = pc.starts_with if comparator is Comparator.STARTS_WITH else pc.match_substring
        part = parts[0].as_py()
        return np.zeros(len(texts), dtype=bool) if part is None else _true(match(texts, pattern=part))
    # Arrow has no search for a pattern of its own in each row.
    whole = texts.to_pylist() * (len(parts) if len(texts) == 1 else 1)
    pairs = zip(whole, parts.to_pylist(), strict=True)
    if comparator is Comparator.STARTS_WITH:
        return np.array([t is not None and p is not None and t.startswith(p) for t, p in pairs], dtype=bool)
    return np.array([t is not None and p is not None and p in t for t, p in pairs], dtype=bool)


def _valid(column: pa.Array) -> Mask:
    return np.asarray(column.is_valid())


def _true(found: pa.Array | pa.BooleanScalar) -> Mask:
    if isinstance(found, pa.Scalar):
        return np.array([bool(found.as_py())])
    return np.asarray(found.fill_null(False))
