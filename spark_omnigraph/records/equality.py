"""Equality of stored rows, by type and exactly: null equals null alone, NaN equals NaN, and the two zeros differ.

Nothing is rendered as text, so null is not the empty text, and no value can look like two.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bools = npt.NDArray[np.bool_]
"""bool[n]: an answer for each of n rows."""


def equal_rows(left: pa.Table, right: pa.Table) -> Bools:
    """bool[n]: for two tables of n rows and the same columns, whether row i of one equals row i of the other."""
    same = np.ones(left.num_rows, dtype=np.bool_)
    for name in left.column_names:
        same &= _equal(_array(left.column(name)), _array(right.column(name)))
    return same


def _array(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.storage if isinstance(found, pa.ExtensionArray) else found


def _equal(left: pa.Array, right: pa.Array) -> Bools:
    kind = left.type
    if pa.types.is_fixed_size_list(kind):
        return _with_nulls(left, right, _vectors(left, right, kind.list_size))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _with_nulls(left, right, _lists(left, right))
    if pa.types.is_struct(kind):
        parts = [_equal(pc.struct_field(left, i), pc.struct_field(right, i)) for i in range(kind.num_fields)]
        return _with_nulls(left, right, np.logical_and.reduce(parts) if parts else np.ones(len(left), dtype=np.bool_))
    if pa.types.is_floating(kind):
        return _with_nulls(left, right, _floats(left, right))
    return _with_nulls(left, right, _bools(pc.equal(left, right)))


def _with_nulls(left: pa.Array, right: pa.Array, values: Bools) -> Bools:
    one, other = _bools(left.is_valid()), _bools(right.is_valid())
    return np.where(one & other, values, ~one & ~other)


def _bools(answers: pa.Array) -> Bools:
    return np.asarray(answers.fill_null(False)).astype(np.bool_)


def _floats(left: pa.Array, right: pa.Array) -> Bools:
    one, other = (np.asarray(each.fill_null(0)) for each in (left, right))
    same: Bools = ((one == other) & (np.signbit(one) == np.signbit(other))) | (np.isnan(one) & np.isnan(other))
    return same


def _vectors(left: pa.Array, right: pa.Array, size: int) -> Bools:
    """The values of n vectors lie one behind the other, also those under a null vector."""
    if not size:
        return np.ones(len(left), dtype=np.bool_)
    items = [each.values.slice(each.offset * size, len(each) * size) for each in (left, right)]
    return np.asarray(_equal(*items).reshape(len(left), size).all(axis=1))


def _lists(left: pa.Array, right: pa.Array) -> Bools:
    """Lists of one length are compared item by item; a list is equal when the first unequal item lies behind it."""
    lengths = [np.asarray(pc.list_value_length(each).fill_null(0)) for each in (left, right)]
    same: Bools = lengths[0] == lengths[1]
    at = np.flatnonzero(same)
    pairs = [each.take(pa.array(at)) for each in (left, right)]
    unequal = np.concatenate([[0], np.cumsum(~_equal(*(each.flatten() for each in pairs)))])
    # Null lists have no items of their own in `flatten`, and none by `lengths`: the places agree.
    ends = np.concatenate([[0], np.cumsum(lengths[0][at])])
    same[at] = unequal[ends[1:]] == unequal[ends[:-1]]
    return same
