"""Who is alive here: the one answer that writers, recovery, repair, clean-up and a new start of a graph go by.

A writer is alive while its lease is (see `lease.py`), or, when it is another engine's and has none, for one term from
the time that its sidecar names. A sidecar of anybody else is an interrupted write that awaits recovery; a lease of
anybody else without a sidecar is lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from spark_omnigraph.catalog.dates import second_text
from spark_omnigraph.commit.announced import Announced, announced
from spark_omnigraph.commit.claim import claimed_since
from spark_omnigraph.commit.lease import SKEW, TERM, LeaseFacts, lease_facts, lease_path, read_lease
from spark_omnigraph.commit.sidecar import Sidecar, pending, sidecar_path
from spark_omnigraph.errors import DamagedError, RecoveryRequiredError, StorageError, WriterBusyError
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.storage.graph_store import GraphStore

WAIT = 30.0
"""Seconds a writer waits for another one's live lease."""
LOST_WAIT = 1.0
"""Seconds for which a lost lease may be locked, as by an owner that stands still while it renews it."""
_POLL = 0.05
_POLL_MAX = 1.0


@dataclass(frozen=True, slots=True)
class Owners:
    """`since`: the earliest start of any of them, in seconds since the epoch; None when there is nobody.
    `alive`: how many live leases there are.
    """

    since: float | None
    alive: int
    sidecars: tuple[Sidecar, ...]

    def spare(self, moment: datetime) -> datetime:
        """The later of two limits: everything modified before it is older than every owner, and than `moment`."""
        if self.since is None:
            return moment
        started = datetime.fromtimestamp(max(self.since - SKEW, 0.0), timezone.utc)
        return min(moment, started - timedelta(seconds=1))

    def covers(self, table_key: str) -> bool:
        """Whether a pending write names the table, on whatever branch."""
        return any(table_key in sidecar.tables for sidecar in self.sidecars)


def find_owners(store: GraphStore, apart_from: str = "") -> Owners:
    """Everybody who has said so in `__recovery/`, but for one lease, the own. RecoveryRequiredError when a sidecar
    there cannot be read.
    """
    found = announced(store)
    sidecars = tuple(pending(store, found.sidecars))
    now = time.time()
    held = (facts for path, facts in _leases(store, found).items() if path != apart_from)
    leases = [facts.started_at for facts in held if facts.is_live(now)]
    starts = [*leases, *claimed_since(store, found.claims), *(sidecar.started_at / 1e6 for sidecar in sidecars)]
    return Owners(min(starts, default=None), len(leases), sidecars)


def is_live(store: GraphStore, sidecar: Sidecar) -> bool:
    """True while the owner may still act; also when the sidecar vanished while we looked."""
    lease = read_lease(store, sidecar.operation_id)
    if lease is not None:
        return lease.is_live(time.time())
    if not sidecar.is_ours and time.time() < _end(sidecar, None):
        return True
    return store.objects.get(sidecar_path(sidecar.name)) is None


def lease_end(store: GraphStore, sidecar: Sidecar) -> float:
    """Until when the writer counts as alive unless it renews its lease, in seconds since the epoch."""
    return _end(sidecar, read_lease(store, sidecar.operation_id))


def until(store: GraphStore, sidecar: Sidecar) -> str:
    """Until when to wait for a writer that is alive, in words for a message."""
    end = second_text(lease_end(store, sidecar))
    return f"unless it says that it is alive, it counts as dead from {end} on; try again later"


def interrupted(store: GraphStore, sidecar: Sidecar) -> RecoveryRequiredError:
    """The error for a sidecar whose writer is gone."""
    return RecoveryRequiredError(
        f"an interrupted {sidecar.writer_kind} ({sidecar.operation_id}) left {store.root}/"
        f"{sidecar_path(sidecar.name)} covering {_names(sidecar.tables)}; the graph is readable "
        "(open with mode='r') but must be recovered before it is written: open it read-write anew, or run recover"
    )


def await_turn(store: GraphStore, branch: Branch, tables: frozenset[str], wait: float = WAIT) -> None:
    """Returns once no sidecar covers these tables on this branch.

    A live writer is waited for, at most `wait` seconds, then WriterBusyError. A sidecar without a live lease is an
    interrupted write: RecoveryRequiredError.
    """
    for is_last in _looks(wait):
        blocker = covering(store, branch, tables)
        if blocker is None:
            return
        if not is_live(store, blocker):
            raise interrupted(store, blocker)
        if is_last:
            raise WriterBusyError(
                f"another writer ({blocker.writer_kind} {blocker.operation_id}) holds "
                f"{_names(blocker.tables & tables)} for longer than {wait:g} s; {until(store, blocker)}"
            )


def await_logged(store: GraphStore, commit: str, wait: float = WAIT) -> None:
    """Returns once no live writer is about to log this commit, which it has published, or after `wait` seconds."""
    for _ in _looks(wait):
        writer = next((sidecar for sidecar in pending(store) if sidecar.commit_id == commit), None)
        if writer is None or not is_live(store, writer):
            return


def _looks(wait: float) -> Iterator[bool]:
    """A turn for each look at the store, ever less often, and whether it is the last one: `wait` seconds are over."""
    deadline, pause = time.monotonic() + wait, _POLL
    while not (is_last := time.monotonic() >= deadline):
        yield is_last
        time.sleep(pause)
        pause = min(pause * 1.5, _POLL_MAX)
    yield is_last


def covering(
    store: GraphStore,
    branch: Branch,
    tables: frozenset[str],
    other_than: str | None = None,
    names: Iterable[str] | None = None,
) -> Sidecar | None:
    """First sidecar that covers one of these tables on this branch, live or not; of all, or of those of these names."""
    found = (s for s in pending(store, names) if s.branch == branch and s.tables & tables)
    return next((s for s in found if s.operation_id != other_than), None)


def lost_leases(store: GraphStore, found: Announced | None = None) -> list[str]:
    """Paths of leases without a sidecar that nobody holds any more: their writers died before arming, or after cleaning
    up. What is announced is listed, unless whoever calls has done that.
    """
    found, now = found or announced(store), time.time()
    dead = [path for path, facts in _leases(store, found).items() if not facts.is_live(now)]
    if found.schemas and store.has_schema_lock():  # they say whose the lock is
        dead = [path for path in dead if path not in {lease_path(name) for name in found.schemas}]
    armed = {lease_path(sidecar.operation_id) for sidecar in pending(store)} if dead else set()
    return [path for path in dead if path not in armed]


def end_lease(store: GraphStore, path: str) -> bool:
    """Removes a lease that nobody holds, as it was when it was looked at; False when it has been renewed since.

    No heartbeat brings it back: on a local disk one that is under way is waited for, and seen; on an object store it
    asks for the version that it has read, and fails. There one may also land between the look and the removal; whoever
    renewed it finds it gone and knows that it was late. StorageError when somebody stands still while it renews the
    lease: then that one may go on, and the lease counts.
    """
    try:
        content = store.objects.get(path)
    except DamagedError:
        return store.objects.remove(path, wait=LOST_WAIT)
    facts = lease_facts(content) if content is not None else None
    if facts is not None and facts.is_live(time.time()):
        return False
    return content is None or store.objects.remove(path, content, LOST_WAIT)


def remove_orphans(store: GraphStore, found: Announced | None = None) -> None:
    """Removes leases that are lost. One that cannot be removed now stays for whoever comes next."""
    for path in lost_leases(store, found):
        with suppress(StorageError):
            end_lease(store, path)


def _leases(store: GraphStore, found: Announced) -> Mapping[str, LeaseFacts]:
    """Path and facts of every lease."""
    held = ((lease_path(name), read_lease(store, name)) for name in found.held)
    return {path: facts for path, facts in held if facts is not None}


def _end(sidecar: Sidecar, lease: LeaseFacts | None) -> float:
    return (lease.expires_at if lease is not None else sidecar.started_at / 1e6 + TERM) + SKEW


def _names(tables: frozenset[str]) -> str:
    listed = sorted(tables)
    return ", ".join(listed[:3]) + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")
