"""Executors that count, repeat and fail, around a real one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from spark_omnigraph.write.executor import Executor

T = TypeVar("T")
R = TypeVar("R")


class CountingExecutor:
    """Counts the `map` calls and the items of each."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner
        self.calls: list[int] = []

    @property
    def parallelism(self) -> int:
        return self._inner.parallelism

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        self.calls.append(len(items))
        return self._inner.map(work, items)


@dataclass(frozen=True, slots=True)
class RanTwice(Generic[T, R]):
    """Work that runs twice, as a speculative or retried task does; the first or the second result counts."""

    work: Callable[[T], R]
    keep: int

    def __call__(self, item: T) -> R:
        results = [self.work(item), self.work(item)]
        return results[self.keep]


@dataclass(frozen=True, slots=True)
class FailsOnce(Generic[T, R]):
    """Work that is lost after it was done, the first time for each call; `folder` remembers across processes."""

    work: Callable[[T], R]
    folder: str
    name: str

    def __call__(self, item: T) -> R:
        result = self.work(item)
        try:
            os.close(os.open(Path(self.folder) / self.name, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return result
        raise ConnectionError("the executor was lost after its task had written everything")


class TwiceExecutor:
    """Every task runs twice."""

    def __init__(self, inner: Executor, keep: int) -> None:
        self._inner = inner
        self._keep = keep

    @property
    def parallelism(self) -> int:
        return self._inner.parallelism

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        return self._inner.map(RanTwice(work, self._keep), items)


class LosingExecutor:
    """The first task of every `map` call is lost once after its work was done."""

    def __init__(self, inner: Executor, folder: Path) -> None:
        self._inner = inner
        self._folder = folder
        self._calls = 0

    @property
    def parallelism(self) -> int:
        return self._inner.parallelism

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        self._calls += 1
        return self._inner.map(FailsOnce(work, str(self._folder), f"call-{self._calls}"), items)

    @property
    def lost(self) -> int:
        """How many tasks were lost."""
        return len(list(self._folder.iterdir()))
