"""Leases: `__recovery/<operation id>.lease`, beside each sidecar, say that its writer is alive.

A lease names an expiry that its owner's heartbeat moves forward. Others respect a live one (they wait, bounded) and
never act on it. Expiry is compared with this machine's clock, with `SKEW` seconds in the owner's favour.

A lease with a heartbeat names its process besides: who sees for certain that this process is gone need not wait for the
expiry. That shortens the wait and nothing else, since what the dead have sent may still arrive. What others make of
leases stands in `owners.py`.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

import msgspec

from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, reach
from spark_omnigraph.commit.process import Process, is_dead, owner_text, parse_process, this_process
from spark_omnigraph.errors import DamagedError, StorageError, WriterBusyError
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import RECOVERY
from spark_omnigraph.stored import Instant, decode

TERM = 60.0
"""Seconds a lease stays valid after each heartbeat."""
SKEW = 60.0
"""Seconds by which two machines' clocks may differ."""
LATE = TERM
"""Seconds after a heartbeat from which others may count its lease as run out, should their clocks be ahead."""


@dataclass(frozen=True, slots=True)
class LeaseFacts:
    """Who holds a lease, since when and until when (seconds since the epoch, by the owner's clock)."""

    owner: str
    expires_at: float
    started_at: float = 0.0
    process: Process | None = None

    def is_live(self, now: float) -> bool:
        """Whether the owner may still act: its term is not past, with the skew in its favour, and its process is not
        known to be gone.
        """
        return now < self.expires_at + SKEW and not (self.process is not None and is_dead(self.process))

    def to_json(self) -> bytes:
        """The content of a lease object."""
        facts: dict[str, object] = {"owner": self.owner, "expires_at": self.expires_at, "started_at": self.started_at}
        if self.process is not None:
            facts["process"] = self.process.to_json()
        return json.dumps(facts).encode()


def lease_path(operation_id: str) -> str:
    """Path of the lease of a write."""
    return f"{RECOVERY}/{operation_id}.lease"


class Lease:
    """The lease of one write: acquired before its sidecar, renewed in the background, released after it.

    As a context it stops the heartbeat on the way out, whatever happened. A lease that its owner leaves behind, because
    an error, an interrupt or a warning left the sidecar, is given up: recovery need not wait for its term.
    """

    def __init__(self, store: GraphStore, operation_id: str) -> None:
        self._store = store
        self._path = lease_path(operation_id)
        self._owner = owner_text()
        self._process: Process | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._renewed: tuple[float, float] | None = None
        self._content = b""
        self._is_late = False
        self._started = time.time()

    def acquire(self) -> None:
        """Creates the lease object and starts the heartbeat."""
        self._process = this_process()
        content = self._content = self._facts(TERM)
        self._renewed = _clocks()  # even if this fails, the lease may be there
        if not self._store.objects.create(self._path, content) and self._store.objects.get(self._path) != content:
            self._renewed = None
            raise WriterBusyError(
                f"lease {self._path} of '{self._store.root}' exists already, with another content; run it again"
            )
        self._stop.clear()
        self._thread = threading.Thread(target=self._beat, name="omnigraph-lease", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Stops the heartbeat and removes the lease object; the sidecar must be gone already."""
        self._halt()
        self._store.objects.remove(self._path)
        self._renewed = None

    def may_be_taken(self) -> bool:
        """Whether others may have counted this lease as run out, as after a machine that slept or a store that hung."""
        return self._is_late or self._renewed is None or _is_past(self._renewed, _clocks())

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._halt()
        if self._renewed is not None and not (kind is not None and issubclass(kind, Crashed)):
            with suppress(StorageError):  # then it runs out by itself
                self._store.objects.swap(self._path, self._content, self._facts(-SKEW))

    def _halt(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _beat(self) -> None:
        """Renews the lease until it is stopped, or until somebody else removed or changed it: none comes back."""
        doubtful: list[bytes] = []
        while not self._stop.wait(TERM / 3):
            now, objects = _clocks(), self._store.objects
            self._is_late = self.may_be_taken()
            reach(CrashPoint.HEARTBEAT)
            content = self._facts(TERM)
            try:
                swapped = any(objects.swap(self._path, known, content) for known in (self._content, *doubtful))
                if not swapped and objects.get(self._path) != content:
                    self._is_late = True
                    return
            except StorageError:
                doubtful.append(content)  # it may have landed
                continue  # the next beat tries again; a lease that runs out makes others stop, never go on
            self._content, self._renewed = content, now
            doubtful.clear()

    def _facts(self, term: float) -> bytes:
        return LeaseFacts(self._owner, time.time() + term, self._started, self._process).to_json()


def _is_past(then: tuple[float, float], now: tuple[float, float]) -> bool:
    return any(late - early > LATE for late, early in zip(now, then, strict=True))


def _clocks() -> tuple[float, float]:
    """One clock that nobody sets and one that goes on while the machine sleeps."""
    return time.monotonic(), time.time()


def read_lease(store: GraphStore, operation_id: str) -> LeaseFacts | None:
    """Facts of a lease, or None when there is none. One that is not readable as a lease counts for its term from when
    it was written, and nobody knows since when.
    """
    path = lease_path(operation_id)
    try:
        content = store.objects.get(path)
        facts = lease_facts(content) if content is not None else None
        if content is None or facts is not None:
            return facts
    except DamagedError:
        pass  # larger than any, or no file
    written = store.objects.modified(path)
    return LeaseFacts("", written.timestamp() + TERM) if written is not None else None


def lease_facts(content: bytes) -> LeaseFacts | None:
    """Facts that a lease object states, or None when it is not readable as one."""
    try:
        body = decode(content, _LeaseBody, "a lease")
    except DamagedError:
        return None
    return LeaseFacts(body.owner, body.expires_at, body.started_at, parse_process(body.process))


class _LeaseBody(msgspec.Struct):
    owner: str
    expires_at: Instant
    started_at: Instant = 0.0
    process: object = None
