"""Pairs of rows that predicates connect, without making every pair at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_omnigraph.catalog.types import Scalar
from spark_omnigraph.engine.bindings import Rows, check_size, crossed, joined, stacked
from spark_omnigraph.engine.int_arrays import ranges
from spark_omnigraph.engine.select import holds
from spark_omnigraph.lang.gq.plan import Column, Comparator, Comparison, Predicate

PAIRS = 1 << 20
"""Pairs that are made before predicates are asked of them."""

_TEXTS = frozenset({Scalar.STRING})
_INTEGERS = frozenset({Scalar.I32, Scalar.I64, Scalar.U32})
_KINDS = (_TEXTS, _INTEGERS, frozenset({Scalar.U64}), frozenset({Scalar.DATE}), frozenset({Scalar.DATETIME}))


def filtered(rows: Rows, predicates: tuple[Predicate, ...]) -> Rows:
    """Rows that satisfy every predicate."""
    for predicate in predicates:
        if not rows.count:
            return rows
        rows = rows.keep(_mask(predicate, rows))
    return rows


def all_pairs(left: Rows, right: Rows) -> Rows:
    """Every pair, left-major. QueryEngineError when they are too many to hold."""
    check_size(left.count * right.count, f"every pair of {left.count:,} and {right.count:,} rows")
    return crossed(left, right)


def filtered_pairs(left: Rows, right: Rows, predicates: tuple[Predicate, ...]) -> Rows:
    """Pairs that satisfy every predicate, left-major: by the values that an equality asks for, else in runs."""
    for place, predicate in enumerate(predicates):
        sides = _equality(predicate, left, right)
        if sides is not None:
            pairs = _matched(left, right, *sides)
            return filtered(pairs, predicates[:place] + predicates[place + 1 :])
    step = max(1, PAIRS // max(1, right.count))
    starts = range(0, left.count, step) if left.count else range(1)
    return stacked(
        [
            filtered(crossed(left.take(np.arange(start, min(start + step, left.count))), right), predicates)
            for start in starts
        ]
    )


def _equality(predicate: Predicate, left: Rows, right: Rows) -> tuple[Column, Column] | None:
    """Columns of the left and of the right rows that must be equal and whose values are of one kind."""
    if not isinstance(predicate, Comparison) or predicate.comparator is not Comparator.EQUAL:
        return None
    a, b = predicate.left, predicate.right
    if not isinstance(a, Column) or not isinstance(b, Column):
        return None
    if a.variable in right.bound and a.variable not in left.bound:
        a, b = b, a
    apart = a.variable in left.bound and b.variable in right.bound and b.variable not in left.bound
    of_one_kind = any(a.type.scalar in kind and b.type.scalar in kind for kind in _KINDS)
    return (a, b) if apart and of_one_kind else None


def _matched(left: Rows, right: Rows, a: Column, b: Column) -> Rows:
    here, there = _numbers(left.column(a.variable, a.name), right.column(b.variable, b.name))
    order = np.argsort(there, kind="stable")
    ascending = there[order]
    begins = np.searchsorted(ascending, here, side="left")
    counts = np.where(here < 0, 0, np.searchsorted(ascending, here, side="right") - begins)
    check_size(int(counts.sum()), "a join")
    chosen = order[ranges(begins, counts)]
    return joined(left.take(np.repeat(np.arange(left.count), counts)), right.take(chosen))


def _numbers(left: pa.Array, right: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Equal numbers for equal values of both columns, -1 for null."""
    if left.type != right.type:
        left, right = left.cast(pa.int64()), right.cast(pa.int64())
    both = pa.concat_arrays([left, right]).dictionary_encode()
    numbers = np.asarray(both.indices.fill_null(-1)).astype(np.int64)
    return numbers[: len(left)], numbers[len(left) :]


def _mask(predicate: Predicate, rows: Rows) -> np.ndarray:
    return holds(
        predicate,
        rows.count,
        lambda column: rows.column(column.variable, column.name),
        lambda column: (rows.bound[column.variable].entities.table, rows.bound[column.variable].positions()),
    )
