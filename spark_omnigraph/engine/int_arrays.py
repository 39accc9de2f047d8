"""Sets of whole numbers as sorted arrays: `np.unique` hashes large ones, which takes twenty times as long as a sort."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
"""`int64[n]`: positions of rows, numbers of nodes, or places in another array, as whoever holds them says."""

_DENSE = 16
"""Values are marked in a table of all there can be, up to so many times their number; above, they are sorted."""


def distinct(values: Numbers) -> Numbers:
    """Different values, ascending."""
    return without_repeats(np.sort(values))


def without_repeats(values: Numbers) -> Numbers:
    """Different values of an array that is ascending."""
    if len(values) < 2:
        return values
    kept = np.empty(len(values), dtype=bool)
    kept[0] = True
    np.not_equal(values[1:], values[:-1], out=kept[1:])
    return values if kept.all() else values[kept]


def numbered(values: Numbers, bound: int) -> tuple[Numbers, Numbers]:
    """Different values, ascending, and which of them each value is; all are at least 0 and less than `bound`."""
    if len(values) < 2 or (bound > _DENSE * len(values) and (values[1:] > values[:-1]).all()):
        return values, upto(len(values))
    if bound > _DENSE * len(values):
        found, index = np.unique(values, return_inverse=True)
        return found, index.astype(np.int64, copy=False)
    mark = np.zeros(bound, dtype=bool)
    mark[values] = True
    found = np.flatnonzero(mark)
    if len(found) == bound:
        return found, values
    return found, (np.cumsum(mark) - 1)[values]


def in_sorted(values: Numbers, among: Numbers) -> npt.NDArray[np.bool_]:
    """Which values are among others that are ascending."""
    if not len(among):
        return np.zeros(len(values), dtype=bool)
    found: npt.NDArray[np.bool_] = among[np.minimum(np.searchsorted(among, values), len(among) - 1)] == values
    return found


class _Shared:
    """The whole numbers from 0 on, made once and at most `most` of them; nobody may change them."""

    def __init__(self, most: int = 1 << 22) -> None:
        self.most = most
        self.numbers: Numbers = np.arange(0)

    def upto(self, length: int) -> Numbers:
        if length > self.most:
            return np.arange(length)
        found = self.numbers
        if length > len(found):
            found = np.arange(1 << (length - 1).bit_length())
            found.flags.writeable = False
            self.numbers = found
        # Not `self.numbers`: another thread may have put fewer there meanwhile.
        return found[:length]


_SHARED = _Shared()
"""32 MiB at most."""


def upto(length: int) -> Numbers:
    """The whole numbers below a length, in order, to be read alone: making them anew takes longer than most uses."""
    return _SHARED.upto(length)


def is_range(values: Numbers, length: int) -> bool:
    """Whether these are the numbers below a length, in order."""
    if len(values) != length:
        return False
    if length < 3:
        return bool(values.tolist() == [*range(length)])
    if values[0] != 0 or values[-1] != length - 1:
        return False
    wanted = upto(length)
    is_part = wanted.base is not None and values.base is wanted.base and values.strides == wanted.strides
    return is_part or bool((values == wanted).all())


def ranges(begins: Numbers, counts: Numbers) -> Numbers:
    """Whole numbers from each begin on, so many as counted, one after the other."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    apart = begins - (ends - counts)
    if not apart.any():
        return np.arange(total)
    found: Numbers = np.arange(total) + np.repeat(apart, counts)
    return found
