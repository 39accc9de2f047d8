"""Stages: `__recovery/x_stage~<id>.lease` says that files are staged that nothing names yet.

Clean-up leaves alone what is younger than a stage that is alive. A stage that begins in one process and ends in another
names no process, and nobody renews it: it lives by its term.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from spark_omnigraph.commit.announced import Announced, announced
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.lease import Lease, LeaseFacts, lease_facts, lease_path
from spark_omnigraph.commit.process import owner_text
from spark_omnigraph.errors import StorageError
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import STAGE

LONG_STAGE = 24 * 3600.0
"""Seconds for which a stage counts as alive that nobody renews."""
_OF = "~"
"""Between what processes share and what tells their stages apart."""

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
    long as it may take. The name is for `close_stage`. Processes that stage for one write say what they share; then
    whoever finds a live stage of it joins it, which has at least half of its term before it.

    No two stages have one name. So whoever commits names the stages under which its files were staged: one that ended
    since is missing, also where others have opened the next one for the same write.
    """
    name = None if shared is None else _join(store, f"{STAGE}{shared}{_OF}", term)
    if name is None:
        now = time.time()
        name = f"{STAGE}{'' if shared is None else shared + _OF}{new_ulid()}"
        store.objects.create(lease_path(name), LeaseFacts(owner_text(), now + term, now).to_json())
    reach(CrashPoint.STAGE_OPENED)
    return name


def _join(store: GraphStore, prefix: str, term: float) -> str | None:
    """The name of a live stage, after it was given time when it is of a batch that died and is repeated. It is never
    written unseen: clean-up may just remove it.
    """
    now = time.time()
    for name in announced(store).stages:
        found = store.objects.get(lease_path(name)) if name.startswith(prefix) else None
        known = None if found is None else lease_facts(found)
        if found is None or known is None or not known.is_live(now):
            continue
        longer = LeaseFacts(owner_text(), now + term, known.started_at).to_json()
        if known.expires_at >= now + term / 2 or store.objects.swap(lease_path(name), found, longer):
            return name
    return None


def close_stage(store: GraphStore, name: str) -> None:
    """Ends a stage, with all others of a write whose processes share them; one that ended already is fine."""
    prefix, of, _ = name.rpartition(_OF)
    with suppress(StorageError):  # then it runs out by itself
        among = [n for n in announced(store).stages if n.startswith(prefix + of)] if f"{prefix}{of}" != STAGE else []
        for each in {name, *among}:
            store.objects.remove(lease_path(each))


def has_ended(store: GraphStore, stages: Iterable[str], found: Announced | None = None) -> bool:
    """Whether one of these stages is over: what it staged may be gone. Clean-up removes the lease of a dead one before
    it looks for its files, and a writer asks after it has armed, which clean-up sees: one of the two steps back. One
    that this process renews is over as well when its own clocks say that the heartbeat was late; and all are while the
    graph is made anew. What is announced is listed, unless whoever calls has just done that.
    """
    names = set(stages)
    if any(name in _HELD and _HELD[name].may_be_taken() for name in names):
        return True
    if not names:
        return False
    found = found or announced(store)
    return not names <= set(found.stages) or bool(found.makings)
