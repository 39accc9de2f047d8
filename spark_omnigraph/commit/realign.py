"""Realigning: a table whose HEAD left its published version by our own steps alone is brought back to it.

A process that was stopped, given up for dead and then went on can still fence a table or put content back, and nothing
that it leaves is ever published. Readers do not notice; writers find HEAD past its pin, and realign it. What another
program committed past the manifest is left where it is.
"""

from __future__ import annotations

from contextlib import suppress

from spark_omnigraph.commit.claim import REALIGNING, claimed
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.ending import ACTOR
from spark_omnigraph.commit.fence import fence, is_ours_above, put_back
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.owners import covering
from spark_omnigraph.commit.publisher import Publication, publish
from spark_omnigraph.errors import ConflictError
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.snapshot import TableEntry
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import branch_path

_ATTEMPTS = 10


def realign_all(store: GraphStore) -> list[str]:
    """Realigns every table of every branch; `table@branch` of those that moved. Opens each dataset once."""
    moved = []
    for branch in store.graph_branches():
        for key, entry in store.snapshot(branch).entries.items():
            if entry.branch == branch and realign(store, branch, key):
                moved.append(f"{key}@{display(branch)}")
    return moved


def realign(store: GraphStore, branch: Branch, table_key: str, operation_id: str | None = None) -> bool:
    """Makes HEAD of a table its published version again; False when it is, or when that is not for us to do.

    Not for us are tables that a sidecar covers (but that of `operation_id`), forks that nothing published yet, and
    what other programs committed.
    """
    if _adrift(store, branch, table_key, operation_id) is None:
        return False
    whole = WholeBranch(store, branch)  # otherwise what stands above the pin may have been published
    with claimed(store, f"{REALIGNING}{table_key.replace(':', '~')}~{display(branch).replace('/', '~')}"):
        for _ in range(_ATTEMPTS):
            entry = _adrift(store, branch, table_key, operation_id)
            if entry is None:
                return True
            _put_back_and_publish(whole, entry)
    raise ConflictError(f"'{table_key}' kept moving while it was brought back to its published version; try again")


def _put_back_and_publish(whole: WholeBranch, entry: TableEntry) -> None:
    """One attempt; whoever calls looks again, since a process that stood still here knows nothing of the present."""
    store, branch, token = whole.store, whole.branch, new_ulid()
    fenced = fence(store, branch_path(entry.location, branch), entry.version, token)
    reach(CrashPoint.REALIGN_FENCED)
    if store.snapshot(branch).pin(entry.table_key) != entry.version or not is_ours_above(fenced.dataset, entry.version):
        return
    with suppress(ConflictError):  # somebody else realigns it, or published what had landed before
        realigned = put_back(fenced, entry.version, token)
        reach(CrashPoint.REALIGN_PUT_BACK)
        folder = branch_path(entry.location, branch)
        update = store.table_update(entry.table_key, folder, branch, realigned.head, entry.row_count)
        expected: dict[str, int] = {entry.table_key: entry.version}
        publish(whole, Publication((update,), expected, f"settle:{token}", None, ACTOR))


def _adrift(store: GraphStore, branch: Branch, table_key: str, operation_id: str | None) -> TableEntry | None:
    """The published entry of a table whose HEAD is past it by steps of ours that nobody answers for."""
    entry = store.snapshot(branch).entries.get(table_key)
    if entry is None or entry.branch != branch:
        return None
    dataset = store.open_dataset(branch_path(entry.location, branch))
    if int(dataset.version) <= entry.version or not is_ours_above(dataset, entry.version):
        return None
    # A sidecar is there from before a table lands until after it is published: look for it last, then at the pin.
    if covering(store, branch, frozenset({table_key}), other_than=operation_id) is not None:
        return None
    return entry if store.snapshot(branch).pin(table_key) == entry.version else None
