"""Orders of rows: nulls smallest, numbers by value (NaN largest), strings by bytes, false < true."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.engine.compare import numbers
from spark_omnigraph.storage.table_reader import Positions

Ranks = npt.NDArray[np.int64]

_SIGN = np.int64(-(2**63))
_NAN = np.int64(2**63 - 1)


def ranks(column: pa.Array) -> Ranks:
    """Numbers in the order of the values, equal for equal values; a null has any."""
    of = column.type
    if pa.types.is_null(of):
        return np.zeros(len(column), dtype=np.int64)
    if pa.types.is_string(of) or pa.types.is_large_string(of):
        return np.asarray(pc.rank(column, sort_keys="ascending", tiebreaker="dense")).astype(np.int64)
    if pa.types.is_nested(of):
        return _list_ranks(column)
    raw = numbers(column)
    if raw.dtype.kind == "f":
        return _float_ranks(raw)
    return (raw ^ np.uint64(1 << 63)).view(np.int64) if raw.dtype == np.uint64 else raw


def _float_ranks(values: npt.NDArray[np.float64]) -> Ranks:
    """The bits of a float order like its value once those of negative numbers are turned round; zeros are one."""
    bits = (values + 0.0).view(np.int64)
    found = np.where(bits < 0, _SIGN - bits, bits)
    return np.where(np.isnan(values), _NAN, found)


def _list_ranks(column: pa.Array) -> Ranks:
    """Lists item by item, a null item before all others, a list before those that it begins."""
    keys = [tuple((v is not None, v if v is not None else 0) for v in row or ()) for row in column.to_pylist()]
    place = {key: number for number, key in enumerate(sorted(set(keys)))}
    return np.array([place[key] for key in keys], dtype=np.int64)


def ordered(keys: Sequence[tuple[pa.Array, bool]], count: int) -> Positions:
    """Numbers of rows in the order of the keys (column, descending), the first key first; stable."""
    levels: list[np.ndarray] = []
    for column, descending in keys:
        valid = np.asarray(column.is_valid())
        rank = np.where(valid, ranks(column), 0)
        if not valid.all():
            levels.append(~valid if descending else valid)
        levels.append(~rank if descending else rank)
    if not levels:
        return np.arange(count)
    return np.lexsort(levels[::-1])


def codes(columns: Sequence[pa.Array], count: int) -> tuple[Ranks, Positions]:
    """A group number for each row, groups numbered in order of their first row, and the first row of each group.

    Rows are of one group when all columns are equal; null equals null.
    """
    group = np.zeros(count, dtype=np.int64)
    for column in columns:
        valid = np.asarray(column.is_valid())
        _, own = np.unique(np.where(valid, ranks(column), 0), return_inverse=True)
        own = np.where(valid, own + 1, 0)
        _, group = np.unique(group * (int(own.max(initial=0)) + 1) + own, return_inverse=True)
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    by_row = np.argsort(first, kind="stable")
    number = np.empty(len(first), dtype=np.int64)
    number[by_row] = np.arange(len(first))
    return number[group], first[by_row]
