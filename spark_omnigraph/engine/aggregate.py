"""Groups of rows and their counts, sums, averages, least and greatest values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_omnigraph.engine.bindings import Bindings
from spark_omnigraph.engine.compare import constant_array, numbers
from spark_omnigraph.engine.order import Numbered, Ranks, groups, ranks
from spark_omnigraph.errors import InternalError
from spark_omnigraph.lang.gq.plan import (
    IDENTITY,
    Aggregate,
    Aggregated,
    AggregateFunction,
    Column,
    Constant,
    Output,
)


def aggregate(operator: Aggregate, rows: Bindings) -> list[pa.Array]:
    """The columns of the result, groups in order of their first row."""
    keys = [_key(c) for c in operator.columns if isinstance(c, Output)]
    arguments = [_argument(c) for c in operator.columns if isinstance(c, Aggregated)]
    rows.load((c.variable, c.name) for c in arguments if c is not None)
    group, first = groups([_numbers(key, rows) for key in keys], rows.count)
    count = len(first) if keys else 1
    firsts = rows.take(first).narrowed()
    firsts.load((key.variable, key.name) for key in keys if isinstance(key, Column))
    shown = iter([_values(key, firsts) for key in keys])
    summarized = iter(arguments)
    found = []
    for column in operator.columns:
        if isinstance(column, Output):
            found.append(next(shown))
            continue
        argument = next(summarized)
        if argument is None:
            found.append(pa.array(np.bincount(group, minlength=count), pa.int64()))
        else:
            found.append(_summary(column.function, rows.column(argument.variable, argument.name), group, count))
    return found


def _argument(column: Aggregated) -> Column | None:
    """What is summarized. Ids are never null, so that counting them is counting the rows: None."""
    counts_rows = column.function is AggregateFunction.COUNT and column.argument.name == IDENTITY
    return None if counts_rows else column.argument


def _key(column: Output) -> Column | Constant:
    if not isinstance(column.value, Column | Constant):
        raise InternalError(f"'{column.name}' beside an aggregate is neither a column nor a constant")
    return column.value


def _numbers(key: Column | Constant, rows: Bindings) -> Numbered:
    if isinstance(key, Column):
        return rows.variables[key.variable].numbers(key.name)
    return Numbered(np.zeros(rows.count, dtype=np.int64), 1)


def _values(key: Column | Constant, rows: Bindings) -> pa.Array:
    if isinstance(key, Column):
        return rows.column(key.variable, key.name)
    return constant_array(key.value, key.type, rows.count)


def _summary(function: AggregateFunction, values: pa.Array, group: Ranks, count: int) -> pa.Array:
    valid: np.ndarray | slice = slice(None)
    if values.null_count:
        valid = np.flatnonzero(np.asarray(values.is_valid()))
    owner = group[valid]
    numbered = np.bincount(owner, minlength=count)
    if function is AggregateFunction.COUNT:
        return pa.array(numbered, pa.int64())
    if function in (AggregateFunction.MIN, AggregateFunction.MAX):
        return _extreme(function, values, owner, valid, count)
    added = _added(numbers(values)[valid], owner, numbered)
    nothing = numbered == 0
    if function is AggregateFunction.AVG:
        added = added / np.where(nothing, 1, numbered)
    return pa.array(added, pa.float64(), mask=nothing)


_EXACT = 2**53
"""Integers up to it are floats of the same value."""


def _added(values: np.ndarray, owner: Ranks, numbered: np.ndarray) -> np.ndarray:
    """The sum of each group: of integers exact, and rounded once; of floats as they are added. `numbered` are the sizes
    of the groups.
    """
    count = len(numbered)
    if values.dtype.kind == "f" or _are_small(values, int(numbered.max(initial=0))):
        return np.bincount(owner, weights=values.astype(np.float64), minlength=count)
    # Halves of 32 bits: neither sum can overflow.
    high, low = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    np.add.at(high, owner, (values >> 32).astype(np.int64))
    np.add.at(low, owner, (values & 0xFFFFFFFF).astype(np.int64))
    high, low = high + (low >> 32), low & 0xFFFFFFFF
    # Both are exact as floats, so that putting them together is what rounds.
    added: np.ndarray = high.astype(np.float64) * 2.0**32 + low.astype(np.float64)
    for group in np.flatnonzero(np.abs(high) >= _EXACT).tolist():
        added[group] = float((int(high[group]) << 32) + int(low[group]))
    return added


def _are_small(values: np.ndarray, most: int) -> bool:
    """Whether no sum of so many of these integers can be rounded."""
    if not len(values):
        return True
    return max(abs(int(values.min())), abs(int(values.max()))) * most < _EXACT


def _extreme(
    function: AggregateFunction, values: pa.Array, owner: Ranks, valid: np.ndarray | slice, count: int
) -> pa.Array:
    """Values at the least or greatest rank of each group; `valid` are the rows that `owner` has the groups of.

    One pass finds the best rank of each group, a second one row of the group that has it (`at`, `int64[count]`), and
    the value is taken from there: so it is a stored value, of whatever type, and not one made from its rank.
    """
    rank = ranks(values)[valid]
    if function is AggregateFunction.MAX:
        rank = ~rank
    best = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(best, owner, rank)
    at = np.full(count, -1, dtype=np.int64)
    # Backwards, so that of equal ranks the first row stays: values of one rank may differ, such as both zeros.
    found = np.flatnonzero(rank == best[owner])[::-1]
    at[owner[found]] = found if isinstance(valid, slice) else valid[found]
    return values.take(pa.array(at, mask=at < 0))
