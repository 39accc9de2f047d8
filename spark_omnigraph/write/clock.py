"""How long the phases of a write took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Seconds per phase, added up over attempts, and since a write began, which may have been in another process."""

    def __init__(self, started: float | None = None) -> None:
        self.phases: dict[str, float] = {}
        self._started = time.time() if started is None else started

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.perf_counter() - start

    def total(self) -> float:
        """Seconds from the beginning of the write until now."""
        return round(max(0.0, time.time() - self._started), 4)

    def seconds(self) -> dict[str, float]:
        return {name: round(value, 4) for name, value in self.phases.items()}
