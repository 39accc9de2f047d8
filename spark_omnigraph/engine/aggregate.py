"""Groups of rows and their counts, sums, averages, least and greatest values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.engine.compare import constant_array, numbers
from spark_omnigraph.engine.order import Ranks, codes, ranks
from spark_omnigraph.engine.rows import Rows
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

_EACH_ROW = Constant(True, PropType(Scalar.BOOL))


def aggregate(operator: Aggregate, rows: Rows) -> list[pa.Array]:
    """The columns of the result, groups in order of their first row."""
    columns = operator.columns
    wanted = [_wanted(c) for c in columns]
    rows.load((c.variable, c.name) for c in wanted if isinstance(c, Column))
    values = [_values(c, rows) for c in wanted]
    keys = [value for value, column in zip(values, columns, strict=True) if isinstance(column, Output)]
    group, first = codes(keys, rows.count)
    count = len(first) if keys else 1
    found = []
    for value, column in zip(values, columns, strict=True):
        if isinstance(column, Aggregated):
            found.append(_summary(column.function, value, group, count))
        else:
            found.append(value.take(pa.array(first)))
    return found


def _wanted(column: Output | Aggregated) -> Column | Constant:
    """What a column is made of. Ids are never null, so that counting them is counting the rows."""
    if isinstance(column, Aggregated):
        counts_rows = column.function is AggregateFunction.COUNT and column.argument.name == IDENTITY
        return _EACH_ROW if counts_rows else column.argument
    if not isinstance(column.value, Column | Constant):
        raise InternalError(f"'{column.name}' beside an aggregate is neither a column nor a constant")
    return column.value


def _values(wanted: Column | Constant, rows: Rows) -> pa.Array:
    if isinstance(wanted, Column):
        return rows.column(wanted.variable, wanted.name)
    return constant_array(wanted.value, wanted.type, rows.count)


def _summary(function: AggregateFunction, values: pa.Array, group: Ranks, count: int) -> pa.Array:
    valid = np.flatnonzero(np.asarray(values.is_valid()))
    numbered = np.bincount(group[valid], minlength=count)
    if function is AggregateFunction.COUNT:
        return pa.array(numbered, pa.int64())
    if function in (AggregateFunction.MIN, AggregateFunction.MAX):
        return _extreme(function, values, group, valid, count)
    added: np.ndarray = np.bincount(group[valid], weights=numbers(values)[valid].astype(np.float64), minlength=count)
    nothing = numbered == 0
    if function is AggregateFunction.AVG:
        added = added / np.where(nothing, 1, numbered)
    return pa.array(added, pa.float64(), mask=nothing)


def _extreme(function: AggregateFunction, values: pa.Array, group: Ranks, valid: np.ndarray, count: int) -> pa.Array:
    """Values at the least or greatest rank of each group."""
    rank = ranks(values)[valid]
    if function is AggregateFunction.MAX:
        rank = ~rank
    owner = group[valid]
    best = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(best, owner, rank)
    at = np.full(count, -1, dtype=np.int64)
    # Backwards, so that of equal ranks the first row stays: values of one rank may differ, such as both zeros.
    found = np.flatnonzero(rank == best[owner])[::-1]
    at[owner[found]] = valid[found]
    return values.take(pa.array(at, mask=at < 0))
