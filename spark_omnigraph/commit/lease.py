"""Leases: `__recovery/<operation id>.lease`, beside each sidecar, say that its writer is alive.

A lease names an expiry that its owner's heartbeat moves forward. Others respect a live one (they wait, bounded) and
never act on it. Expiry is compared with this machine's clock, with `SKEW` seconds in the owner's favour.

A lease with a heartbeat names its process besides: who sees for certain that this process is gone need not wait for the
expiry. That shortens the wait and nothing else, since what the dead have sent may still arrive. A stage that begins in
one process and ends in another names none and lives by its term. What others make of leases stands in `owners.py`.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType

import msgspec

from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, reach
from spark_omnigraph.commit.process import Process, is_dead, parse_process, this_process
from spark_omnigraph.errors import DamagedError, StorageError, WriterBusyError
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import MAKING, RECOVERY
from spark_omnigraph.stored import Instant, decode

TERM = 60.0
"""Seconds a lease stays valid after each heartbeat."""
SKEW = 60.0
"""Seconds by which two machines' clocks may differ."""
LATE = TERM
"""Seconds after a heartbeat from which others may count its lease as run out, should their clocks be ahead."""
STAGE = "x_stage~"
"""How the names of leases begin that stand for a stage and not for an armed write."""
LONG_STAGE = 24 * 3600.0
"""Seconds for which a stage counts as alive that nobody renews."""
_JOINS = 20
"""Times a process looks again at a shared stage that others change at the same moment."""


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
        self._owner = _here()
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
            raise WriterBusyError(f"lease {self._path} exists already; an operation id was used twice")
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
        return _content(self._owner, self._started, time.time() + term, self._process)


_HELD: dict[str, Lease] = {}
"""Stages of this process by name: only who renews a lease knows how late it is by both clocks."""


@contextmanager
def staging(store: GraphStore) -> Iterator[str]:
    """Says, as long as the block runs, that files are staged which nothing names yet: clean-up leaves alone what is
    younger than the block. Writers enter it before they look for the folders that they stage in, and hand its name to
    the commit, which is refused when the stage was taken for dead meanwhile.
    """
    name = f"{STAGE}{new_ulid()}"
    with Lease(store, name) as lease:
        lease.acquire()
        _HELD[name] = lease
        try:
            reach(CrashPoint.STAGE_OPENED)
            yield name
        finally:
            del _HELD[name]
            with suppress(StorageError):  # then it runs out by itself
                lease.release()


def open_stage(store: GraphStore, term: float = LONG_STAGE, shared: str | None = None) -> str:
    """Like `staging`, for a stage that begins in one process and ends in another: nobody renews it, so it is given as
    long as it may take. The name is for `close_stage`. Processes that stage for one write give it a `shared` name; then
    the stage begins with the first of them, and has at least half of its term before it.
    """
    name = f"{STAGE}{shared or new_ulid()}"
    for _ in range(_JOINS):
        if _join_stage(store, lease_path(name), term):
            reach(CrashPoint.STAGE_OPENED)
            return name
    raise WriterBusyError(f"other processes kept changing {lease_path(name)}; try again")


def _join_stage(store: GraphStore, path: str, term: float) -> bool:
    """One attempt: makes the stage, begins it anew when it ran out, or gives it time when it is of a batch that died
    and is repeated. False when somebody else was quicker. It is never written unseen: clean-up may just remove it.
    """
    now = time.time()
    found = store.objects.get(path)
    if found is None:
        return store.objects.create(path, _content(_here(), now, now + term))
    known = lease_facts(found)
    if known is None or not known.is_live(now):
        return store.objects.swap(path, found, _content(_here(), now, now + term))
    if known.expires_at >= now + term / 2:
        return True
    return store.objects.swap(path, found, _content(_here(), known.started_at, now + term))


def close_stage(store: GraphStore, name: str) -> None:
    """Ends a stage; one that ended already is fine."""
    with suppress(StorageError):  # then it runs out by itself
        store.objects.remove(lease_path(name))


def has_ended(store: GraphStore, stages: Iterable[str]) -> bool:
    """Whether one of these stages is over: what it staged may be gone. Clean-up removes the lease of a dead one before
    it looks for its files, and a writer asks after it has armed, which clean-up sees: one of the two steps back. One
    that this process renews is over as well when its own clocks say that the heartbeat was late; and all are while the
    graph is made anew.
    """
    names = set(stages)
    if any(name in _HELD and _HELD[name].may_be_taken() for name in names):
        return True
    if not names:
        return False
    found = store.objects.list(RECOVERY)
    wanted = {lease_path(name) for name in names}
    return not wanted <= {f"{RECOVERY}/{name}" for name in found} or any(name.startswith(MAKING) for name in found)


def _is_past(then: tuple[float, float], now: tuple[float, float]) -> bool:
    return any(late - early > LATE for late, early in zip(now, then, strict=True))


def _here() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _content(owner: str, started: float, end: float, process: Process | None = None) -> bytes:
    facts: dict[str, object] = {"owner": owner, "expires_at": end, "started_at": started}
    if process is not None:
        facts["process"] = process.to_json()
    return json.dumps(facts).encode()


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
        body = decode(content, _Body, "a lease")
    except DamagedError:
        return None
    return LeaseFacts(body.owner, body.expires_at, body.started_at, parse_process(body.process))


class _Body(msgspec.Struct):
    owner: str
    expires_at: Instant
    started_at: Instant = 0.0
    process: object = None
