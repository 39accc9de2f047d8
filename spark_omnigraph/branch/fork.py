"""The lazy fork: a table gets its own Lance branch on its first write on a graph branch (storage format 5.8)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from spark_omnigraph.commit.claim import claimed
from spark_omnigraph.commit.lease import await_turn, covering
from spark_omnigraph.errors import ConflictError, ExpectedVersionMismatch
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.storage.commits import create_branch, drop_branch
from spark_omnigraph.storage.faults import CommitFailed, reading
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import branch_path


def fork_tables(store: GraphStore, snapshot: Snapshot, tables: Iterable[str]) -> None:
    """Makes sure that each of these tables has a Lance branch for the snapshot's graph branch, at its pinned version.

    Main never forks. Nothing refers to a fork until a write on it is published; an unused one is used again.
    """
    if snapshot.branch is None:
        return
    for key in sorted(tables):
        entry = snapshot.entries[key]
        if entry.branch != snapshot.branch:
            await_turn(store, snapshot.branch, frozenset({key}))
            _fork(store, snapshot.branch, entry)


def drop_forks(store: GraphStore, branch: str, snapshot: Snapshot) -> None:
    """Removes the Lance branches that tables have for a graph branch which is gone, best effort."""
    for entry in snapshot.entries.values():
        if not store.objects.has_prefix(f"{entry.location}/_refs/branches"):
            continue
        dataset = store.open_dataset(entry.location)
        with reading(f"list branches of {entry.location}"):
            present = branch in dataset.branches.list()
        if present:
            with suppress(CommitFailed):
                drop_branch(dataset, branch)


def _fork(store: GraphStore, branch: str, entry: TableEntry) -> None:
    name = f"fork~{entry.location.replace('/', '~')}~{branch.replace('/', '~')}"
    with claimed(store, name):
        # A sidecar is there from before a table lands until after it is published: look for it first, then at what is
        # published. A fork that is neither covered nor published holds nothing of anybody.
        if covering(store, branch, frozenset({entry.table_key})) is not None:
            raise ExpectedVersionMismatch(entry.table_key, entry.version, store.head_version(entry.location, branch))
        live = store.snapshot(branch).entries[entry.table_key]
        if live.branch == branch or live.version != entry.version:
            raise ExpectedVersionMismatch(entry.table_key, entry.version, live.version)
        source = store.open_dataset(branch_path(entry.location, entry.branch))
        with reading(f"list branches of {entry.location}"):
            existing = source.branches.list()
        try:
            if branch in existing:
                if store.head_version(entry.location, branch) == entry.version:
                    return
                drop_branch(source, branch)
            created = create_branch(source, branch, entry.branch, entry.version)
        except CommitFailed as failure:
            what = f"'{entry.table_key}' could not be forked for branch '{branch}'"
            raise ConflictError(f"{what}: {failure}") from failure
        if int(created.version) != entry.version:
            raise ConflictError(f"the fork of '{entry.table_key}' for branch '{branch}' starts at a wrong version")
