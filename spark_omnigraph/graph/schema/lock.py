"""Taking the lock of a schema change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from spark_omnigraph.branch.fork import clear_debris, making_branch
from spark_omnigraph.commit.announced import announced
from spark_omnigraph.commit.claim import claimed
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.lease import Lease
from spark_omnigraph.commit.schema.lock import LOCK_CLAIM, refuse_schema_change, unlock
from spark_omnigraph.errors import RecoveryRequiredError, StorageError
from spark_omnigraph.manifest.branches import BranchName
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import COMMITS, MANIFEST, SCHEMA, SCHEMA_APPLY_LOCK
from spark_omnigraph.storage.tables.commits import create_branch, drop_branch
from spark_omnigraph.storage.tables.handles import Dataset

_LOCK = BranchName(SCHEMA_APPLY_LOCK)


@contextmanager
def schema_lock(store: GraphStore) -> Iterator[str]:
    """Keeps everybody else from changing the graph during the block; yields the name of the lease that says so.

    ConflictError while a schema change runs. The lock goes with the block, unless recovery has to decide.
    """
    refuse_schema_change(store)  # beside a lease of ours anybody's lock would seem to be that of somebody alive
    name = f"{SCHEMA}{new_ulid()}"
    with Lease(store, name) as lease:
        lease.acquire()
        try:
            with claimed(store, LOCK_CLAIM):
                refuse_schema_change(store)
                opened = _lock(store)
        except Exception:
            with suppress(StorageError):  # then it runs out by itself
                lease.release()
            raise
        reach(CrashPoint.SCHEMA_LOCKED)
        try:
            yield name
        except RecoveryRequiredError:
            raise  # its sidecar is still there
        except Exception:
            _open(store, opened, lease, name)
            raise
        _open(store, opened, lease, name)


def _lock(store: GraphStore) -> Mapping[str, Dataset]:
    """The branch of the log first, where one may have been left behind, the one of the manifest last: that one counts,
    and one that another engine makes at this moment is not ours. The datasets that were opened.
    """
    opened: dict[str, Dataset] = {}
    try:
        with making_branch(store, MANIFEST, _LOCK, "the lock of the schema could not be taken"):
            for path in (COMMITS, MANIFEST):
                if path == MANIFEST or _LOCK not in store.branch_names(path):
                    clear_debris(store, path, _LOCK)
                    dataset = opened[path] = store.open_dataset(path)
                    create_branch(dataset, _LOCK, None, int(dataset.version))
    except StorageError:
        _take_back(store)
        raise
    return opened


def _take_back(store: GraphStore) -> None:
    """Removes what was made of a lock on a store that refused the rest. The branch of the log is nobody else's: whoever
    makes a lock holds the claim, and other engines begin with the manifest.
    """
    with suppress(StorageError, CommitFailed):
        if not store.has_schema_lock():
            if _LOCK in store.branch_names(COMMITS):
                drop_branch(store.open_dataset(COMMITS), _LOCK)
            for path in (COMMITS, MANIFEST):
                clear_debris(store, path, _LOCK)


def _open(store: GraphStore, opened: Mapping[str, Dataset], lease: Lease, name: str) -> None:
    """Unless the lock is another one's by now: who was taken for dead has lost its lease."""
    if name in announced(store).schemas:
        unlock(store, opened)
    reach(CrashPoint.SCHEMA_UNLOCKED)
    lease.release()
