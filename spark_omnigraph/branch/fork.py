"""The lazy fork: a table gets its own Lance branch on its first write on a graph branch (storage format 5.8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from spark_omnigraph.branch.orphans import what_is_shown
from spark_omnigraph.commit.claim import claimed, fork_claim
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.owners import await_turn, covering
from spark_omnigraph.errors import ConflictError, ExpectedVersionMismatch, StorageError
from spark_omnigraph.manifest.branches import MAIN, BranchName
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.storage.faults import CommitFailed, reading
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import branch_path
from spark_omnigraph.storage.tables.commits import create_branch, drop_branch


def fork_tables(store: GraphStore, snapshot: Snapshot, tables: Iterable[str]) -> None:
    """Makes sure that each of these tables has a Lance branch for the snapshot's graph branch, at its pinned version.

    Main never forks. Nothing refers to a fork until a write on it is published; an unused one is used again.
    """
    if snapshot.branch is None:
        return
    whole = WholeBranch(store, snapshot.branch)  # otherwise what looks unused may have been published
    for key in sorted(tables):
        entry = snapshot.entry(key)
        if entry.branch != snapshot.branch:
            await_turn(store, snapshot.branch, frozenset({key}))
            _fork(whole, snapshot.branch, entry)


def require_forks(store: GraphStore, snapshot: Snapshot, tables: Iterable[str]) -> None:
    """ConflictError when one of these tables has no Lance branch for the snapshot's graph branch; reads alone."""
    branch = snapshot.branch
    for key in sorted(tables) if branch is not None else ():
        entry = snapshot.entry(key)
        if entry.branch != branch and not store.objects.has_prefix(f"{branch_path(entry.location, branch)}/_versions"):
            raise ConflictError(f"'{key}' has lost its fork for branch '{branch}'; nothing has changed, run it again")


def clear_debris(store: GraphStore, location: str, branch: BranchName) -> None:
    """Removes what a creation left that died before the Lance branch existed: it would bar its name for ever.

    Callers hold the claim on the branch and know that it does not exist. What lies inside or comes from it keeps it.
    """
    folder = branch_path(location, branch)
    if not store.objects.has_prefix(folder):
        return
    dataset = store.open_dataset(location)
    with reading(f"list branches of {location}"):
        listed = dataset.branches.list()
    related = any(
        n == branch or n.startswith(f"{branch}/") or f.get("parent_branch") == branch for n, f in listed.items()
    )
    if not related:
        store.objects.purge(folder)


@contextmanager
def making_branch(store: GraphStore, location: str, branch: BranchName, what: str) -> Iterator[None]:
    """Failures on the way to a Lance branch as errors for callers: ConflictError where it is there all the same, since
    somebody else was quicker, StorageError where the store refuses.
    """
    try:
        yield
    except CommitFailed as failure:
        is_there = False
        with suppress(StorageError):
            is_there = branch in store.branch_names(location)
        raise failure.told(what, is_there) from failure


def _fork(whole: WholeBranch, branch: BranchName, entry: TableEntry) -> None:
    store = whole.store
    with claimed(store, fork_claim(entry.location, branch)) as claim:
        _refuse_used(store, branch, entry)
        source = store.open_dataset(branch_path(entry.location, entry.branch))
        with reading(f"list branches of {entry.location}"):
            existing = source.branches.list()
        what = f"'{entry.table_key}' could not be forked for branch '{branch}', and nothing has changed"
        with making_branch(store, entry.location, branch, what):
            if branch in existing:
                if _is_unused(store, branch, entry, existing[branch]):
                    return
                # It has moved or comes from elsewhere. Its owner may have armed and landed since we looked; a sidecar
                # stays until after the publish, so looking again tells that apart from a left-over of the dead.
                _refuse_used(store, branch, entry)
                _refuse_shown(store, branch, entry)
                claim.keep()
                drop_branch(source, branch)
            else:
                clear_debris(store, entry.location, branch)
            claim.keep()
            created = create_branch(source, branch, entry.branch, entry.version)
        if int(created.version) != entry.version:
            raise ConflictError(
                f"the fork of '{entry.table_key}' for branch '{branch}' starts at version {created.version}, not at "
                f"{entry.version}: something else forked it at that moment. Nothing has changed, run it again"
            )


def _refuse_used(store: GraphStore, branch: BranchName, entry: TableEntry) -> None:
    """Raises ExpectedVersionMismatch when somebody writes the table on this branch, or has published it there."""
    if covering(store, branch, frozenset({entry.table_key})) is not None:
        raise ExpectedVersionMismatch(entry.table_key, entry.version, store.head_version(entry.location, branch))
    live = store.snapshot(branch).entry(entry.table_key)
    if live.branch == branch or live.version != entry.version:
        raise ExpectedVersionMismatch(entry.table_key, entry.version, live.version)


def _refuse_shown(store: GraphStore, branch: BranchName, entry: TableEntry) -> None:
    """ConflictError when a state of any graph branch, be it a past one, reads what would be removed."""
    if (entry.location, branch) in what_is_shown(store).forks:
        raise ConflictError(
            f"'{entry.table_key}' had versions of its own on branch '{branch}' before a merge by another engine showed "
            f"it from elsewhere, and earlier states read them: create a branch from '{branch}' and write there"
        )


def _is_unused(store: GraphStore, branch: BranchName, entry: TableEntry, ref: Mapping[str, object]) -> bool:
    """Whether a fork is the one that we would make: from the same version of the same line, with nothing on it."""
    parent = ref.get("parent_branch")
    same = (parent if parent != MAIN else None) == entry.branch and ref.get("parent_version") == entry.version
    return same and store.head_version(entry.location, branch) == entry.version
