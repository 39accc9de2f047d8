"""Pairs of rows that predicates connect, without making every pair at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_omnigraph.catalog.types import Scalar
from spark_omnigraph.engine.bindings import Bindings, crossed, joined, stacked
from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.engine.int_arrays import ranges
from spark_omnigraph.engine.select import holds
from spark_omnigraph.lang.gq.plan import Column, Comparator, Comparison, Predicate

_TEXTS = frozenset({Scalar.STRING})
_INTEGERS = frozenset({Scalar.I32, Scalar.I64, Scalar.U32})
_KINDS = (_TEXTS, _INTEGERS, frozenset({Scalar.U64}), frozenset({Scalar.DATE}), frozenset({Scalar.DATETIME}))


def filtered(rows: Bindings, predicates: tuple[Predicate, ...]) -> Bindings:
    """Rows that satisfy every predicate."""
    for predicate in predicates:
        if not rows.count:
            return rows
        rows = rows.keep(_mask(predicate, rows))
    return rows


def all_pairs(left: Bindings, right: Bindings, costs: Costs) -> Bindings:
    """Every pair, left-major. QueryEngineError when they are too many to hold."""
    costs.check_size(left.count * right.count, f"every pair of {left.count:,} and {right.count:,} rows")
    return crossed(left, right)


def filtered_pairs(left: Bindings, right: Bindings, predicates: tuple[Predicate, ...], costs: Costs) -> Bindings:
    """Pairs that satisfy every predicate, left-major: by the values that an equality asks for, else in runs."""
    for place, predicate in enumerate(predicates):
        sides = _equality(predicate, left, right)
        if sides is not None:
            pairs = _matched(left, right, sides, costs)
            return filtered(pairs, predicates[:place] + predicates[place + 1 :])
    step = max(1, costs.pairs // max(1, right.count))
    parts = []
    for start in range(0, left.count, step) if left.count else range(1):
        costs.check()
        some = left.take(np.arange(start, min(start + step, left.count)))
        parts.append(filtered(crossed(some, right), predicates))
    return stacked(parts)


def _equality(predicate: Predicate, left: Bindings, right: Bindings) -> tuple[Column, Column] | None:
    """Columns of the left and of the right rows that must be equal and whose values are of one kind."""
    if not isinstance(predicate, Comparison) or predicate.comparator is not Comparator.EQUAL:
        return None
    a, b = predicate.left, predicate.right
    if not isinstance(a, Column) or not isinstance(b, Column):
        return None
    if a.variable in right.variables and a.variable not in left.variables:
        a, b = b, a
    apart = a.variable in left.variables and b.variable in right.variables and b.variable not in left.variables
    of_one_kind = any(a.type.scalar in kind and b.type.scalar in kind for kind in _KINDS)
    return (a, b) if apart and of_one_kind else None


def _matched(left: Bindings, right: Bindings, sides: tuple[Column, Column], costs: Costs) -> Bindings:
    """Pairs with equal values, left-major: both columns become numbers (`int64[rows]`), the right ones are sorted, and
    two binary searches give the run of right rows that belongs to each left row. The sort is stable, so right rows
    keep their order within a run.
    """
    a, b = sides
    here, there = _numbers(left.column(a.variable, a.name), right.column(b.variable, b.name))
    order = np.argsort(there, kind="stable")
    ascending = there[order]
    begins = np.searchsorted(ascending, here, side="left")
    counts = np.where(here < 0, 0, np.searchsorted(ascending, here, side="right") - begins)
    costs.check_size(int(counts.sum()), "a join")
    chosen = order[ranges(begins, counts)]
    return joined(left.take(np.repeat(np.arange(left.count), counts)), right.take(chosen))


def _numbers(left: pa.Array, right: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """A number for each row of both sides (`int64[rows]`), equal for equal values, -1 for null: of one dictionary."""
    if left.type != right.type:
        left, right = left.cast(pa.int64()), right.cast(pa.int64())
    both = pa.concat_arrays([left, right]).dictionary_encode()
    numbers = np.asarray(both.indices.fill_null(-1)).astype(np.int64)
    return numbers[: len(left)], numbers[len(left) :]


def _mask(predicate: Predicate, rows: Bindings) -> np.ndarray:
    return holds(
        predicate,
        rows.count,
        lambda column: rows.column(column.variable, column.name),
        lambda column: (rows.variables[column.variable].entities.table, rows.variables[column.variable].positions()),
    )
