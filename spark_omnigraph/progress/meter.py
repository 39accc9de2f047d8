"""What long work tells of itself, and what follows from that.

Work tells its `Progress` of a phase, the parts done and the parts in all. One that has a method `begins` hears besides
of each phase when it begins, with its parts or 0 where there is nothing to count, and one that has `rows` how many rows
the parts had.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Progress = Callable[[str, int, int], None]
"""Called with a phase, items done, and items in all."""

C = TypeVar("C", bound=Callable[..., object])
_NAME = "omnigraph_phase"
_MINUTE, _HOUR = 60, 3600


def begin(progress: Progress | None, phase: str, total: int = 0) -> None:
    """Tells that a phase begins, if anybody wants to know."""
    begins = getattr(progress, "begins", None)
    if callable(begins):
        begins(phase, total)


def tell(progress: Progress | None, phase: str, done: int, total: int, rows: int | None = None) -> None:
    """Tells of a part that is done, if anybody listens; `rows` are those of the parts of this phase so far."""
    if progress is None:
        return
    count = getattr(progress, "rows", None)
    if rows is not None and callable(count):
        count(rows)
    progress(phase, done, total)


def in_phase(name: str) -> Callable[[C], C]:
    """A decorator of what an executor runs: what its phase is called."""

    def named(work: C) -> C:
        setattr(work, _NAME, name)
        return work

    return named


def phase_of(work: object) -> str:
    """What the phase of some work is called, be its first arguments given already."""
    return str(getattr(getattr(work, "func", work), _NAME, "work"))


def unheard(_phase: str, _done: int, _total: int) -> None:
    """A `Progress` to which nobody listens."""


class Meter:
    """What was told last, and what follows from it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._phase_began = clock()
        self.phase, self.done, self.total = "", 0, 0
        self.rows: int | None = None

    def begins(self, phase: str, total: int) -> None:
        """A phase begins, be it one of the same name."""
        self._phase_began = self._clock()
        self.phase, self.done, self.total, self.rows = phase, 0, total, None

    def told(self, phase: str, done: int, total: int) -> None:
        """Takes what is told of a part; a phase that nobody began begins with it."""
        if phase != self.phase:
            self.begins(phase, total)
        self.done, self.total = done, total

    @property
    def seconds(self) -> float:
        """Since the work began."""
        return self._clock() - self._began

    @property
    def seconds_left(self) -> float | None:
        """Of this phase, if the parts to come take as long as those before; None where nothing is known."""
        if not 0 < self.done <= self.total:
            return None
        return (self._clock() - self._phase_began) / self.done * (self.total - self.done)

    @property
    def share(self) -> float | None:
        """Of the phase that is done, from 0 to 1."""
        return min(self.done / self.total, 1.0) if self.total else None

    def figures(self) -> str:
        """`12 of 30, 1,204,000 rows, 35 s left`."""
        known = [f"{self.done:,} of {self.total:,}"] if self.total else [f"{self.done:,}"] if self.done else []
        if self.rows:
            known.append(f"{self.rows:,} rows")
        left = self.seconds_left
        known.append(f"{_length(self.seconds)} so far" if left is None else f"{_length(left)} left")
        return ", ".join(known)


def _length(seconds: float) -> str:
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
