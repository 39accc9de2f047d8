"""Executors run the same functions over many items: in this process, in a pool of processes, or in Spark tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from spark_omnigraph.errors import StorageError
from spark_omnigraph.progress.meter import Progress, begin, phase_of, tell

T = TypeVar("T")
R = TypeVar("R")

_WHY = "killed, mostly for want of memory"
_IDLE = 30
"""Seconds after which idle worker processes leave."""


class Executor(Protocol):
    """Runs picklable work; `parallelism` is how many items it works on at once."""

    @property
    def parallelism(self) -> int:
        """Items worked on at once."""

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """Results in item order. An error of any item is raised; the others may or may not have run."""


class LocalExecutor:
    """Works in this process (one worker) or in spawned processes, which need neither a JVM nor a main guard."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers if workers is not None else available_cores()

    @property
    def parallelism(self) -> int:
        return self._workers

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        if self._workers <= 1 or len(items) <= 1:
            yield from map(work, items)
            return
        from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415 - slow, and one process needs no pool

        from loky import get_reusable_executor  # noqa: PLC0415 - slow too, as above

        # The processes start fresh, since Lance does not survive a fork of a process that has used it, and stay for
        # the next load, since starting them costs as much as loading half a million records.
        pool = get_reusable_executor(max_workers=min(self._workers, len(items)), timeout=_IDLE)
        try:
            yield from pool.map(work, items)
        except BrokenProcessPool as error:
            raise StorageError(
                f"a worker process ended before its work was done ({_WHY}); "
                "give the machine more memory, or run fewer at once: --load-concurrency, or LocalExecutor(n)"
            ) from error


class WatchedExecutor:
    """Another executor, with a `Progress` that is told of every item that is done."""

    def __init__(self, executor: Executor, progress: Progress) -> None:
        self._executor = executor
        self._progress = progress

    @property
    def parallelism(self) -> int:
        return self._executor.parallelism

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        phase = phase_of(work)
        begin(self._progress, phase, len(items))
        for done, result in enumerate(self._executor.map(work, items), 1):
            tell(self._progress, phase, done, len(items))
            yield result


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
