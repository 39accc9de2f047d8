"""Orders of rows: nulls smallest, numbers by value (NaN largest), strings by bytes, false < true."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.engine.compare import numbers
from spark_omnigraph.engine.int_arrays import upto
from spark_omnigraph.storage.tables.reader import Positions

Ranks = npt.NDArray[np.int64]
"""`int64[rows]`: ordered like the values that they stand for, and equal where these are."""

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


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A sort key. `values` gives it for some rows, by number, or for all."""

    values: Callable[[Positions | None], pa.Array]
    descending: bool = False

    @classmethod
    def of(cls, column: pa.Array, descending: bool = False) -> SortColumn:
        """A key that is there already."""
        return cls(lambda at: column if at is None else column.take(pa.array(at)), descending)

    def levels(self, at: Positions | None) -> tuple[Ranks, np.ndarray | None]:
        """Ranks in the wanted direction, and which rows come after all others of the other kind (null or not)."""
        column = self.values(at)
        rank = ranks(column)
        if self.descending:
            rank = ~rank
        if not column.null_count:
            return rank, None
        valid = np.asarray(column.is_valid())
        return np.where(valid, rank, 0), ~valid if self.descending else valid


def ordered(keys: Sequence[SortColumn], count: int, limit: int | None = None) -> Positions:
    """Numbers of rows (`int64[rows]`) in the order of the keys, the first key first; stable. Of them the first `limit`.

    `rows` is the order so far; rows that the keys so far left equal stand together as a run, and `begins`
    (`bool[rows]`) marks the first of each. A key sorts the rows of runs longer than one (`at`, places in `rows`) by run
    first, then by its own rank, and splits runs where that changes. So a key is asked only for rows that those before
    it left equal and that may be among the first.
    """
    if limit == 0:
        return np.empty(0, dtype=np.int64)
    rows = np.arange(count)
    begins = np.zeros(count, dtype=bool)
    begins[:1] = True
    for place, key in enumerate(keys):
        tied = ~(begins & np.append(begins[1:], True))
        at = np.flatnonzero(tied)
        if not len(at):
            break
        rank, late = key.levels(None if place == 0 else rows[at])
        if place == 0 and limit is not None and limit < count:
            at = _candidates(rank, late, limit)
            rows, begins = rows[at], np.arange(len(at)) == 0
            rank, late = rank[at], None if late is None else late[at]
            at = np.arange(len(at))
        run = np.cumsum(begins)[at]
        levels = [level for level in (rank, late, run if run[0] != run[-1] else None) if level is not None]
        order = np.argsort(rank, kind="stable") if len(levels) == 1 else np.lexsort(levels)
        rows[at] = rows[at][order]
        for level in (rank, late):
            if level is not None:
                moved = level[order]
                begins[at[1:]] |= moved[1:] != moved[:-1]
        if limit is not None:
            rows, begins = _cut(rows, begins, limit)
    return rows if limit is None else rows[:limit]


def _candidates(rank: Ranks, late: np.ndarray | None, limit: int) -> Positions:
    """Rows that may be among the first: those before the last of the wanted ones, and all that are equal to it."""
    late = np.zeros(len(rank), dtype=bool) if late is None else late
    early = np.flatnonzero(~late)
    if len(early) >= limit:
        chosen = rank[early]
        found: Positions = early[chosen <= np.partition(chosen, limit - 1)[limit - 1]]
        return found
    rest = np.flatnonzero(late)
    chosen = rank[rest]
    wanted = limit - len(early)
    return np.concatenate([early, rest[chosen <= np.partition(chosen, wanted - 1)[wanted - 1]]])


def _cut(rows: Positions, begins: np.ndarray, limit: int) -> tuple[Positions, np.ndarray]:
    """The runs that begin before the limit."""
    after = np.flatnonzero(begins[limit:])
    end = len(rows) if not len(after) else limit + int(after[0])
    return rows[:end], begins[:end]


@dataclass(frozen=True, slots=True)
class Numbered:
    """A number for each row (`int[rows]`), equal for equal values: at least 0 and less than `size`, in no order."""

    numbers: npt.NDArray[np.integer]
    size: int

    def at(self, rows: Positions) -> Numbered:
        """The numbers of some rows."""
        return Numbered(self.numbers[rows], self.size)


def codes(columns: Sequence[pa.Array], count: int) -> tuple[Ranks, Positions]:
    """Groups by equal values of all columns; null equals null."""
    return groups([value_numbers(column) for column in columns], count)


def groups(keys: Sequence[Numbered], count: int) -> tuple[Ranks, Positions]:
    """A group number for each row (`int64[count]`), groups numbered in order of their first row, and the first row of
    each group (`int64[groups]`).

    Rows are of one group when all keys are equal. Two keys become one like digits, `a * size of b + b`; where such
    numbers outgrow the rows they are numbered anew, so that they never overflow.
    """
    found = Numbered(np.zeros(count, dtype=np.int64), 1)
    for place, key in enumerate(keys):
        found = _combined(found, key) if place else key
    return _by_first_row(found, count)


_RUN = 4096
_DENSE = 16
"""Group numbers are told apart by a table of them up to so many times the number of rows."""


def _combined(a: Numbered, b: Numbered) -> Numbered:
    both = Numbered(a.numbers.astype(np.int64) * b.size + b.numbers, a.size * b.size)
    if both.size <= _DENSE * len(both.numbers):
        return both
    encoded = pa.array(both.numbers).dictionary_encode()
    return Numbered(np.asarray(encoded.indices), len(encoded.dictionary))


def _by_first_row(found: Numbered, count: int) -> tuple[Ranks, Positions]:
    if found.size > _DENSE * count:
        encoded = pa.array(found.numbers).dictionary_encode()
        found = Numbered(np.asarray(encoded.indices), len(encoded.dictionary))
    first = _first_rows(found, count)
    used = np.flatnonzero(first >= 0)
    used = used[np.argsort(first[used])]
    numbers = found.numbers
    if not np.array_equal(used, upto(len(used))):
        place = np.zeros(found.size, dtype=np.int64)
        place[used] = np.arange(len(used))
        numbers = place[numbers]
    return numbers.astype(np.int64, copy=False), first[used]


def _first_rows(found: Numbered, count: int) -> Positions:
    """The first row of each number (`int64[size]`), -1 for those that no row has; looks no further than it has to."""
    first = np.full(found.size, -1, dtype=np.int64)
    start, run = 0, max(_RUN, found.size)
    while start < count and (first < 0).any():
        part = found.numbers[start : start + run]
        new = np.flatnonzero(first[part] < 0)[::-1]
        # Of repeated places the last one stays, so backwards the first.
        first[part[new]] = new + start
        start, run = start + run, 2 * run
    return first


def value_numbers(column: pa.Array) -> Numbered:
    """Numbers for the different values of a column, null among them."""
    of = column.type
    if pa.types.is_nested(of) or pa.types.is_floating(of):
        valid = np.asarray(column.is_valid())
        column = pa.array(ranks(column), mask=~valid)
    encoded = column.dictionary_encode(null_encoding="encode")
    return Numbered(np.asarray(encoded.indices), len(encoded.dictionary))
