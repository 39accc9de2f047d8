"""Leases: `__recovery/<operation id>.lease`, beside each sidecar, say that its writer is alive.

A lease names an expiry that its owner's heartbeat moves forward. Others respect a live one (they wait, bounded) and
never act on it. Expiry is compared with this machine's clock, with `SKEW` seconds in the owner's favour.
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
from datetime import datetime, timezone
from types import TracebackType

import msgspec

from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.sidecar import Sidecar, pending, sidecar_path
from spark_omnigraph.errors import DamagedError, RecoveryRequiredError, StorageError, WriterBusyError
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import RECOVERY
from spark_omnigraph.stored import Instant, decode

TERM = 60.0
"""Seconds a lease stays valid after each heartbeat."""
SKEW = 60.0
"""Seconds by which two machines' clocks may differ."""
WAIT = 30.0
"""Seconds a writer waits for another one's live lease."""
STAGE = "x_stage~"
"""How the names of leases begin that stand for a stage and not for an armed write."""
LONG_STAGE = 24 * 3600.0
"""Seconds for which a stage counts as alive that nobody renews."""
_POLL = 0.05
_POLL_MAX = 1.0


@dataclass(frozen=True, slots=True)
class LeaseFacts:
    """Who holds a lease, since when and until when (seconds since the epoch, by the owner's clock)."""

    owner: str
    expires_at: float
    started_at: float = 0.0

    def is_live(self, now: float) -> bool:
        """Whether the owner may still act, with the skew in its favour."""
        return now < self.expires_at + SKEW


def lease_path(operation_id: str) -> str:
    """Path of the lease of a write."""
    return f"{RECOVERY}/{operation_id}.lease"


class Lease:
    """The lease of one write: acquired before its sidecar, renewed in the background, released after it.

    As a context it stops the heartbeat on the way out, whatever happened. A lease that its owner leaves behind on
    purpose, because an error or a warning left the sidecar, is given up: recovery need not wait for its term.
    """

    def __init__(self, store: GraphStore, operation_id: str) -> None:
        self._store = store
        self._path = lease_path(operation_id)
        self._owner = _here()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._renewed: tuple[float, float] | None = None
        self._content = b""
        self._is_late = False
        self._started = time.time()

    def acquire(self) -> None:
        """Creates the lease object and starts the heartbeat."""
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
        self._store.objects.delete(self._path)
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
        if self._renewed is not None and (kind is None or issubclass(kind, (Exception, KeyboardInterrupt))):
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
        return _content(self._owner, self._started, time.time() + term)


@contextmanager
def staging(store: GraphStore) -> Iterator[str]:
    """Says, as long as the block runs, that files are staged which nothing names yet: clean-up leaves alone what is
    younger than the block. Writers enter it before they look for the folders that they stage in, and hand its name to
    the commit, which is refused when the stage was taken for dead meanwhile.
    """
    name = f"{STAGE}{new_ulid()}"
    with Lease(store, name) as lease:
        lease.acquire()
        try:
            yield name
        finally:
            with suppress(StorageError):  # then it runs out by itself
                lease.release()


def open_stage(store: GraphStore, term: float = LONG_STAGE, shared: str | None = None) -> str:
    """Like `staging`, for a stage that begins in one process and ends in another: nobody renews it, so it is given as
    long as it may take. The name is for `close_stage`. Processes that stage for one write give it a `shared` name; then
    the stage begins with the first of them, and has at least half of its term before it.
    """
    name, now = f"{STAGE}{shared or new_ulid()}", time.time()
    content = _content(_here(), now, now + term)
    if shared is None:
        store.objects.put(lease_path(name), content)
    elif not store.objects.create(lease_path(name), content):
        _join_stage(store, lease_path(name), now, term)
    return name


def _join_stage(store: GraphStore, path: str, now: float, term: float) -> None:
    found = store.objects.get(path)
    known = lease_facts(found) if found is not None else None
    if found is None or known is None or not known.is_live(now):
        store.objects.put(path, _content(_here(), now, now + term))
    elif known.expires_at < now + term / 2:
        # It is of a batch that died and is repeated. When another task is quicker, it did the same.
        store.objects.swap(path, found, _content(_here(), known.started_at, now + term))


def close_stage(store: GraphStore, name: str) -> None:
    """Ends a stage; one that ended already is fine."""
    with suppress(StorageError):  # then it runs out by itself
        store.objects.delete(lease_path(name))


def has_ended(store: GraphStore, stages: Iterable[str]) -> bool:
    """Whether one of these stages is over: what it staged may be gone. Clean-up removes the lease of a dead one before
    it looks for its files, and a writer asks after it has armed, which clean-up sees: one of the two steps back.
    """
    wanted = {lease_path(stage) for stage in stages}
    return not wanted <= {f"{RECOVERY}/{name}" for name in store.objects.list(RECOVERY)} if wanted else False


def _is_past(then: tuple[float, float], now: tuple[float, float]) -> bool:
    return any(late - early > TERM for late, early in zip(now, then, strict=True))


def _here() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _content(owner: str, started: float, end: float) -> bytes:
    return json.dumps({"owner": owner, "expires_at": end, "started_at": started}).encode()


def _clocks() -> tuple[float, float]:
    """One clock that nobody sets and one that goes on while the machine sleeps."""
    return time.monotonic(), time.time()


def read_lease(store: GraphStore, operation_id: str) -> LeaseFacts | None:
    """Facts of a lease, or None when there is none (or it is not readable as one)."""
    try:
        content = store.objects.get(lease_path(operation_id))
    except DamagedError:
        return None
    return lease_facts(content) if content is not None else None


def lease_facts(content: bytes) -> LeaseFacts | None:
    """Facts that a lease object states, or None when it is not readable as one."""
    try:
        body = decode(content, _Body, "a lease")
    except DamagedError:
        return None
    return LeaseFacts(body.owner, body.expires_at, body.started_at)


class _Body(msgspec.Struct):
    owner: str
    expires_at: Instant
    started_at: Instant = 0.0


def await_turn(store: GraphStore, branch: str | None, tables: frozenset[str], wait: float = WAIT) -> None:
    """Returns once no sidecar covers these tables on this branch.

    A live writer is waited for, at most `wait` seconds, then WriterBusyError. A sidecar without a live lease is an
    interrupted write: RecoveryRequiredError.
    """
    deadline = time.monotonic() + wait
    pause = _POLL
    while True:
        blocker = covering(store, branch, tables)
        if blocker is None:
            return
        if not is_live(store, blocker):
            raise interrupted(store, blocker)
        if time.monotonic() >= deadline:
            raise WriterBusyError(
                f"another writer ({blocker.writer_kind} {blocker.operation_id}) holds "
                f"{_names(blocker.tables & tables)} for longer than {wait:g} s; {until(store, blocker)}"
            )
        time.sleep(pause)
        pause = min(pause * 1.5, _POLL_MAX)


def lease_end(store: GraphStore, sidecar: Sidecar) -> float:
    """Until when the writer counts as alive unless it renews its lease, in seconds since the epoch."""
    lease = read_lease(store, sidecar.operation_id)
    return (lease.expires_at if lease is not None else sidecar.started_at / 1e6 + TERM) + SKEW


def until(store: GraphStore, sidecar: Sidecar) -> str:
    """Until when to wait for a writer that is alive, in words for a message."""
    end = datetime.fromtimestamp(lease_end(store, sidecar), timezone.utc)
    return f"unless it says that it is alive, it counts as dead from {end:%Y-%m-%d %H:%M:%S} UTC on; try again later"


def interrupted(store: GraphStore, sidecar: Sidecar) -> RecoveryRequiredError:
    """The error for a sidecar whose writer is gone."""
    return RecoveryRequiredError(
        f"an interrupted {sidecar.writer_kind} ({sidecar.operation_id}) left {store.root}/"
        f"{sidecar_path(sidecar.name)} covering {_names(sidecar.tables)}; the graph is readable "
        "(open with mode='r') but must be recovered before it is written: open it read-write anew, or run recover"
    )


def remove_orphans(store: GraphStore) -> None:
    """Removes leases that ran out and have no sidecar."""
    for path in lost_leases(store):
        store.objects.delete(path)


def lost_leases(store: GraphStore) -> list[str]:
    """Paths of leases that ran out and have no sidecar: their writers died before arming, or after cleaning up."""
    lost = []
    armed = {lease_path(sidecar.operation_id) for sidecar in pending(store)}
    for name in store.objects.list(RECOVERY):
        path = f"{RECOVERY}/{name}"
        if name.endswith(".lease") and path not in armed:
            lease = read_lease(store, name.removesuffix(".lease"))
            if lease is not None and not lease.is_live(time.time()):
                lost.append(path)
    return lost


def is_live(store: GraphStore, sidecar: Sidecar) -> bool:
    """True while the owner may still act; also when the sidecar vanished while we looked.

    Writers of other engines hold no lease: theirs count as live for one term from the time that the sidecar names.
    """
    lease = read_lease(store, sidecar.operation_id)
    if lease is not None:
        return lease.is_live(time.time())
    if not sidecar.is_ours and time.time() < sidecar.started_at / 1e6 + TERM + SKEW:
        return True
    return store.objects.get(sidecar_path(sidecar.name)) is None


def covering(
    store: GraphStore, branch: str | None, tables: frozenset[str], other_than: str | None = None
) -> Sidecar | None:
    """First sidecar that covers one of these tables on this branch, live or not."""
    found = (s for s in pending(store) if s.branch == branch and s.tables & tables)
    return next((s for s in found if s.operation_id != other_than), None)


def _names(tables: frozenset[str]) -> str:
    listed = sorted(tables)
    return ", ".join(listed[:3]) + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")
