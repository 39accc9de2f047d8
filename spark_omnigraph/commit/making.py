"""Making a graph anew in its place: nobody writes meanwhile, and nobody who began before goes on afterwards.

    lease ──▶ lost leases end ──▶ look for owners ──▶ remove ──▶ late stages end ──▶ create ──▶ release

Whoever writes announces itself first, by a stage or a claim, and looks for this lease later: a writer after it has
armed, whoever holds a claim right after it was taken. This lease comes first and the look for owners second. So of two
that meet at least one sees the other, and who sees the other steps back: before anything was removed here, before
anything has landed there. A stage that came into being while files were removed may have been planned on what is gone.
It is ended before the new graph is there, and its writer finds that.

A process that dies in between leaves its lease, and either the whole old graph, which the next read-write open takes
up, or one without a manifest: that can neither be read nor written, and says that it is to be made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from spark_omnigraph.catalog.dates import second_text
from spark_omnigraph.commit.announced import announced
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.lease import Lease, lease_path
from spark_omnigraph.commit.owners import Owners, find_owners, remove_orphans
from spark_omnigraph.commit.sidecar import sidecar_path
from spark_omnigraph.errors import ConflictError, StorageError, WriterBusyError
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import MAKING, RECOVERY


@contextmanager
def remaking(store: GraphStore) -> Iterator[Callable[[], None]]:
    """Holds a graph for itself during the block, in which it may be removed: with what this yields asked before each
    step, which raises when others may have taken this process for dead.

    WriterBusyError when somebody else is at work on the graph, ConflictError when a write awaits recovery.
    """
    name = f"{MAKING}{new_ulid()}"
    with Lease(store, name) as lease:
        lease.acquire()
        reach(CrashPoint.MAKING_LEASED)

        def hold() -> None:
            if lease.may_be_taken():
                raise ConflictError(
                    f"making '{store.root}' anew stood still for so long that it was taken for dead; run it again"
                )

        try:
            remove_orphans(store)
            refuse_owners(store, apart_from=lease_path(name))
            reach(CrashPoint.MAKING_ALONE)
            yield hold
        except Exception:
            _release(lease)
            raise
        _release(lease)


def refuse_owners(store: GraphStore, apart_from: str = "") -> None:
    """Raises what bars a graph from being made anew: any write that is alive or awaits recovery."""
    owners = find_owners(store, apart_from)
    if owners.sidecars:
        raise ConflictError(
            f"a write on '{store.root}' is pending, and a graph that is made there would destroy it: wait for it, or "
            "run recover"
        )
    if owners.since is not None:
        raise WriterBusyError(
            f"somebody is at work on '{store.root}' since {second_text(owners.since)}, and a graph that is "
            f"made there would destroy it: {_way_out(store, owners)}"
        )


def end_stages(store: GraphStore) -> None:
    """Ends all stages, and removes sidecars: of writers that came while the old graph was removed, and that step back
    or have died before anything landed. What tells of publishes and consumers of the old graph goes, too.
    """
    found = announced(store)
    stages, armed = map(lease_path, found.stages), map(sidecar_path, found.sidecars)
    told = (*found.notes, *found.consumers, *found.removals)
    for path in (*armed, *stages, *(f"{RECOVERY}/{each}" for each in told)):
        store.objects.remove(path)


def _release(lease: Lease) -> None:
    with suppress(StorageError):  # then it runs out by itself
        lease.release()


def _way_out(store: GraphStore, owners: Owners) -> str:
    stages = announced(store).stages
    if not owners.alive or not stages:
        return "wait until it is through"
    return (
        f"wait until it is through. A stage that was begun by a program which is gone for certain may be removed by "
        f"hand: {store.root}/{lease_path(stages[0])}"
    )
