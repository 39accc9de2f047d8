"""What a process keeps to be quicker next time, within bounds: the least recently used goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import RLock
from typing import Generic, TypeVar, cast

BUDGET = 2 << 30
"""Bytes that the queries of a process keep, unless another number is given."""
NOTES = 8_192
"""Figures about tables that are remembered: what a value takes, what was spent on it."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Values by key whose weights add up to `most` at most; may be used from several threads.

    Bounded by weight and safe by itself, which neither `functools.lru_cache` nor a plain dictionary is.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        # Collecting garbage may forget a value (`forget`) in a thread that is in here already.
        self._lock = RLock()
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._weight = 0

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: K) -> bool:
        """Whether a value is here; asking is not using."""
        with self._lock:
            return key in self._kept

    @property
    def weight(self) -> int:
        """Of all values together."""
        with self._lock:
            return self._weight

    def get(self, key: K) -> V | None:
        """What was put under a key, if it is still here."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """Keeps a value, and forgets what was used longest ago until all fits; what is too heavy is not kept."""
        with self._lock:
            self._put(key, value, weight)

    def add(self: LruCache[K, float], key: K, amount: float) -> float:
        """Adds to a figure that begins at 0; what it is now."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                self._put(key, amount, 1)
                return amount
            total = found[0] + amount
            self._kept[key] = total, 1
            self._kept.move_to_end(key)
            return total

    def forget(self, key: K) -> None:
        """Drops a value, if it is here."""
        with self._lock:
            self._forget(key)

    def _put(self, key: K, value: V, weight: int) -> None:
        self._forget(key)
        if weight > self.most:
            return
        self._kept[key] = value, weight
        self._weight += weight
        while self._weight > self.most:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: K) -> None:
        gone = self._kept.pop(key, None)
        if gone is not None:
            self._weight -= gone[1]


class Memory:
    """What queries keep of tables: opened tables with what Lance keeps of them, columns, indexes of edges and of texts.

    All kinds share `budget` bytes, and whichever value was used longest ago makes room, whatever its kind. A key names
    the content of a table at one version, which never changes, so nothing here is ever stale. May be used from several
    threads; one memory may serve several graphs.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.notes: LruCache[Hashable, float] = LruCache(NOTES)
        self._kept: LruCache[tuple[type, Hashable], object] = LruCache(budget)

    @property
    def bytes(self) -> int:
        """Bytes in use."""
        return self._kept.weight

    def has(self, kind: type, key: Hashable) -> bool:
        """Whether a value of this kind is here; asking is not using."""
        return (kind, key) in self._kept

    def get(self, kind: type[V], key: Hashable) -> V | None:
        """A value of this kind, if it is still here."""
        return cast("V | None", self._kept.get((kind, key)))

    def put(self, kind: type[V], key: Hashable, value: V, size: int) -> None:
        """Keeps a value that takes `size` bytes; one above the budget is not kept, and drives nothing out."""
        self._kept.put((kind, key), value, size)

    def forget(self, kind: type, key: Hashable) -> None:
        """Drops a value, if it is here."""
        self._kept.forget((kind, key))


_OF_PROCESS = Memory()


def process_memory() -> Memory:
    """The memory of all graphs of this process that were given none of their own."""
    return _OF_PROCESS
