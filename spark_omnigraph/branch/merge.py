"""The rules of a three-way merge of rows, as a truth table.

A side has *changed* a row when its row differs from the row of every merge base; absence counts as a value. After two
branches were merged into each other there are several bases, and a side that agrees with any of them has changed
nothing. Nothing is ever picked silently: what both sides changed, or what agrees with different bases, is a conflict.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
"""bool[n]: an answer for each of n rows."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """bool[n] each: rows that become the source's, and rows that are in conflict. All others stay the target's."""

    take: Bools
    conflict: Bools


def judge(source_changed: Bools, target_changed: Bools, equal: Bools) -> Verdicts:
    """The truth table. `equal` says that the two sides have the same row, or both none.

    | source | target | equal | result |
    |---|---|---|---|
    | any | any | yes | target's |
    | changed | unchanged | no | source's |
    | unchanged | changed | no | target's |
    | changed | changed | no | conflict |
    | unchanged | unchanged | no | conflict: each agrees with another base |
    """
    differ = ~equal
    return Verdicts(differ & source_changed & ~target_changed, differ & (source_changed == target_changed))
