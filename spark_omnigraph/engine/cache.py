"""Things that were made from tables and are kept within bounded memory, the least used going first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, Protocol, TypeVar


class Weighed(Protocol):
    """Something that knows how many bytes it takes."""

    @property
    def bytes(self) -> int:
        """Bytes in memory."""


V = TypeVar("V", bound=Weighed)


class Kept(Generic[V]):
    """Values by key. Keys begin with the identity of a table at one version, so nothing here is ever stale."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, V] = OrderedDict()
        self._bytes = 0

    def has(self, key: Hashable) -> bool:
        """Whether a value is here; asking is not using."""
        with self._lock:
            return key in self._kept

    def get(self, key: Hashable) -> V | None:
        """What was put under a key, if it is still here."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: Hashable, made: V) -> None:
        """Keeps this, and forgets what was used longest ago until all fits; what is too large is not kept."""
        with self._lock:
            self._forget(key)
            if made.bytes > self.memory:
                return
            self._kept[key] = made
            self._bytes += made.bytes
            while self._bytes > self.memory:
                self._forget(next(iter(self._kept)))

    def _forget(self, key: Hashable) -> None:
        gone = self._kept.pop(key, None)
        if gone is not None:
            self._bytes -= gone.bytes

    @property
    def bytes(self) -> int:
        """Bytes in use."""
        with self._lock:
            return self._bytes
