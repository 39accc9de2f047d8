"""Values: how they compare, how they are ordered, and in which form a stored row keeps them.

Integers, floats, texts and truth values are Python's own; a Date is its days and a DateTime its milliseconds since the
epoch; lists and vectors are tuples.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any

Stored = Any
"""A value of a row; what it may be follows from the property's type, which the caller knows."""

_ORDERED: dict[str, Callable[[Stored, Stored], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(left: Stored, comparator: str, right: Stored) -> bool:
    """Whether a comparison is true. Null never is, on either side. Python compares integers with floats exactly, and
    texts by code points, which is the order of their UTF-8 bytes.

    >>> holds(2**53 + 1, ">", float(2**53)), holds(None, "!=", 1), holds((1, None), "contains", 1)
    (True, False, True)
    """
    if left is None or right is None:
        return False
    if comparator == "contains":
        if isinstance(left, str):
            return right in left
        return any(item is not None and item == right for item in left)
    if comparator == "starts_with":
        return bool(left.startswith(right))
    return _ORDERED[comparator](left, right)


def single(value: Stored) -> Stored:
    """The F32 next to a float; what is not a float stays.

    >>> single(0.1) == 0.1, single(0.5), single(3)
    (False, 0.5, 3)
    """
    return struct.unpack("f", struct.pack("f", value))[0] if isinstance(value, float) else value


class Smallest:
    """What null is in an order."""

    def __lt__(self, other: object) -> bool:
        return not isinstance(other, Smallest)

    def __gt__(self, _other: object) -> bool:
        return False


def sort_rows(rows: list[Stored], keys: Sequence[tuple[Callable[[Stored], Stored], bool]]) -> list[Stored]:
    """Rows by several keys, the first counting most; each has a value of the row and whether it descends.

    >>> sort_rows([2, None, 1], [(lambda row: row, False)]), sort_rows([2, None, 1], [(lambda row: row, True)])
    ([None, 1, 2], [2, 1, None])
    """
    for value, descending in reversed(keys):
        # A stable sort that keeps the order of equal rows, descending too.
        rows = sorted(rows, key=lambda row: _placed(value(row)), reverse=descending)
    return rows


def _placed(value: Stored) -> Stored:
    return Smallest() if value is None else value
