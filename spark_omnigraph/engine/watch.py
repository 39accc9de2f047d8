"""Rows and time of the operators of one query, for whoever asks why it takes as long as it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeVar

from spark_omnigraph.lang.gq.plan import Operator

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Measured:
    """What an operator gave, and the seconds that it took without those below it."""

    rows: int
    seconds: float


@dataclass(slots=True)
class Watch:
    """What was measured. Operators are told apart by identity: two of a plan may be equal."""

    found: dict[int, Measured] = field(default_factory=dict)
    _below: list[float] = field(default_factory=list)

    def measured(self, operator: Operator, work: Callable[[], T], count: Callable[[T], int]) -> T:
        """What `work` returns."""
        self._below.append(0.0)
        began = perf_counter()
        try:
            result = work()
        finally:
            spent = perf_counter() - began
            below = self._below.pop()
            if self._below:
                self._below[-1] += spent
        self.found[id(operator)] = Measured(count(result), spent - below)
        return result

    @property
    def seconds(self) -> float:
        """Of all operators together."""
        return sum(each.seconds for each in self.found.values())

    def note(self, operator: Operator) -> str:
        """What stands behind an operator in the text of a plan."""
        each = self.found.get(id(operator))
        if each is None:
            return "  [with the line above]"
        return f"  [{each.rows:,} {'row' if each.rows == 1 else 'rows'}, {each.seconds * 1000:,.1f} ms]"
