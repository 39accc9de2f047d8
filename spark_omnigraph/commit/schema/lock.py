"""The lock of a schema change: a Lance branch of the manifest, which other engines know, and a lease beside it.

While it is there nobody else changes the graph. Whoever takes it looks for sidecars afterwards; writers arm first and
look for it second, so at least one of two sees the other. The lease says who holds it. A lock whose lease has run out
is removed by the next read-write open; one without a lease is another engine's, of whom nobody knows whether it is
alive, and goes only when somebody says so.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from types import MappingProxyType
from urllib.parse import unquote

from spark_omnigraph.commit.announced import Announced, announced
from spark_omnigraph.commit.claim import claimed
from spark_omnigraph.commit.contract import current_hash
from spark_omnigraph.commit.lease import LeaseFacts, lease_path, read_lease
from spark_omnigraph.commit.plan import PreparedCommit
from spark_omnigraph.errors import ConflictError, StorageError
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import COMMITS, MANIFEST, SCHEMA_APPLY_LOCK
from spark_omnigraph.storage.tables.commits import drop_branch
from spark_omnigraph.storage.tables.handles import Dataset

LOCK_CLAIM = "schema"
"""Under this the lock is taken, and removed of those who are gone."""
_REFS = f"{MANIFEST}/_refs/branches"


def refuse_other_schema(store: GraphStore, prepared: PreparedCommit, found: Announced | None = None) -> None:
    """ConflictError while a schema change runs that is not this write, after one that was made since it was planned,
    and when this one has lost its lock or found branches that came meanwhile. What is announced is listed, unless
    whoever calls has just done that.
    """
    if prepared.schema is None:
        refuse_schema_change(store)
    if current_hash(store) != prepared.schema_hash:
        raise ConflictError("the schema changed after this write was planned; nothing has changed, run it again")
    if prepared.schema is None:
        return
    if prepared.schema.lock not in (found or announced(store)).schemas or not refuse_branches(store):
        raise ConflictError("this schema change stood still for so long that its lock was removed; run it again")


def refuse_schema_change(store: GraphStore) -> None:
    """ConflictError while a schema change runs, and after one that died: then nobody else changes the graph."""
    holder = lock_holder(store)
    if holder is not None:
        raise ConflictError(f"a schema change is running, or died: nothing else is changed until it is over. {holder}")


def lock_holder(store: GraphStore) -> str | None:
    """What is known of whoever holds the lock, and the way out; None when nobody does."""
    return _who(store) if store.has_schema_lock() else None


def refuse_branches(store: GraphStore) -> bool:
    """ConflictError, with their names, while there are branches besides main: all have one schema. Whether the lock of
    a change is there.
    """
    found = store.branch_names()
    names = sorted(name for name in found if name.lstrip("/") != SCHEMA_APPLY_LOCK)
    if names:
        raise ConflictError(
            f"schema apply requires a graph with only main; found non-main branches: {', '.join(names)}. Merge what is "
            "to stay, delete what is merged (branch delete --merged), and the rest by name"
        )
    return bool(found)


def release_lost_lock(store: GraphStore, break_lock: bool = False) -> str | None:
    """Removes the lock of a change that is gone; why one stays, None when there is none. That of another engine says of
    nobody who holds it, and goes only with `break_lock`.
    """
    if not store.has_schema_lock():
        return None
    if not _is_lost(store, break_lock):
        return _who(store)
    with claimed(store, LOCK_CLAIM):  # nobody takes it now
        if not _is_lost(store, break_lock):
            return _who(store)
        unlock(store)
    return None


def _is_lost(store: GraphStore, break_lock: bool) -> bool:
    holders = _holders(store)
    return not any(holder.is_live(time.time()) for holder in holders) and (bool(holders) or break_lock)


def unlock(store: GraphStore, opened: Mapping[str, Dataset] = MappingProxyType({})) -> None:
    """Removes the lock, and the leases of those who held it; whoever calls knows that they are gone. Datasets are
    opened for it unless they are given.
    """
    for path in (MANIFEST, COMMITS):
        for name in store.branch_names(path):
            if name.lstrip("/") == SCHEMA_APPLY_LOCK:
                with suppress(CommitFailed):  # writers go on saying that it is there
                    drop_branch(opened[path] if path in opened else store.open_dataset(path), name)
    if not store.has_schema_lock():
        for lease in announced(store).schemas:
            with suppress(StorageError):  # without the lock it is a lost one, which is swept
                store.objects.remove(lease_path(lease))


def _holders(store: GraphStore) -> Sequence[LeaseFacts]:
    found = (read_lease(store, name) for name in announced(store).schemas)
    return [lease for lease in found if lease is not None]


def _who(store: GraphStore) -> str:
    """What is known of whoever holds the lock, and the way out."""
    holders = _holders(store)
    if any(holder.is_live(time.time()) for holder in holders):
        return "It is running; try again later"
    if holders:
        return "It died: a read-write open, or recover, brings it to an end"
    since = _since(store)
    age = "" if since is None else f" and stands for {max(0, round(time.time() - since.timestamp()))} s"
    return (
        f"Its lock is another engine's{age}, and says of nobody whether it is alive: once you know that no schema "
        "change runs, recover --break-lock removes it"
    )


def _since(store: GraphStore) -> datetime | None:
    for each in store.objects.files(_REFS):
        name = unquote(each.path.rsplit("/", 1)[-1]).removesuffix(".json").lstrip("/")
        if name == SCHEMA_APPLY_LOCK:
            return each.modified.astimezone(timezone.utc)
    return None
