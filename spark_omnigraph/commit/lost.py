"""Publishes that are told of and that the manifest has not: its newest version files are gone.

The commit log tells of a publish by a row, which is written after it. One that makes no commit, as maintenance and an
undo, leaves a note in `__recovery/`. So a manifest that is read after both shows every publish that they name, unless
somebody took versions of it away, as a copy does that was not made at one moment. Such a graph shows an older state.
The next write would make that final, so it is refused; reading goes on, and says so. A log that lacks rows is the other
way round, and no loss: a writer may have died before it wrote the last one, and recovery completes it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from spark_omnigraph.errors import DriftError, StorageError
from spark_omnigraph.manifest.branches import Branch, BranchName, display
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import PUBLISHED, told_path
from spark_omnigraph.storage.manifest.commit_log import has_commit, newest_logged
from spark_omnigraph.storage.tables.handles import Dataset
from spark_omnigraph.stored import Count, decode


@dataclass(frozen=True, slots=True)
class LostPublishes:
    """A branch (None is main) whose manifest ends at `manifest_version`, while version `logged_version` was published:
    as that of `commit`, or after it without one, as `note` tells.
    """

    branch: Branch
    manifest_version: int
    logged_version: int
    commit: str
    note: str | None = None

    def __str__(self) -> str:
        told = f"{self.commit} was published as version {self.logged_version}"
        if self.note is not None:
            told = f"{self.commit} was followed by version {self.logged_version}, as {self.note} tells"
        return (
            f"the manifest of branch '{display(self.branch)}' ends at version {self.manifest_version}, but commit "
            f"{told}: the newest files of __manifest/_versions are gone, as after a copy that was made while somebody "
            "wrote, and what is shown is an older state"
        )


def find_lost(store: GraphStore, branch: Branch) -> LostPublishes | None:
    """What the manifest of a branch lacks, or None; also when what would tell cannot be read."""
    return _look(store, branch)[1]


@dataclass(frozen=True, slots=True)
class WholeBranch:
    """A branch whose manifest shows every publish that is told of: whoever has one has looked, and nothing is published
    or removed without. DriftError when publishes are lost. Looks once for each branch of a store.
    """

    store: GraphStore
    branch: Branch

    def __post_init__(self) -> None:
        if self.branch not in self.store.whole:
            whole_manifest(self.store, self.branch)

    def manifest(self, version: int | None = None) -> Dataset:
        """The manifest, newest or at a version."""
        manifest = self.store.manifest(self.branch, version)
        self.store.require_writable()
        return manifest


def whole_manifest(store: GraphStore, branch: Branch) -> Dataset:
    """The newest manifest of a branch. DriftError when it lacks publishes, UnsupportedFormatError for one that is only
    read.
    """
    manifest, lost = _look(store, branch)
    store.require_writable()
    if lost is not None:
        raise DriftError(
            f"'{store.root}' cannot be written: {lost}. Put the missing files back from where the graph was copied "
            "from, or restore it whole from a backup. Reading goes on (mode 'r'): to accept the loss, "
            + (f"remove {lost.note}" if lost.note is not None else "export it and load that into a new graph")
        )
    store.whole.add(branch)
    return manifest


def _look(store: GraphStore, branch: Branch) -> tuple[Dataset, LostPublishes | None]:
    """What tells of publishes first, then the manifest. Twice when that seems to lack something: perhaps the graph was
    made anew in its place in between.
    """
    manifest, lost = _look_once(store, branch)
    return (manifest, None) if lost is None else _look_once(store, branch)


def _look_once(store: GraphStore, branch: Branch) -> tuple[Dataset, LostPublishes | None]:
    logged, note = None, None
    with suppress(StorageError):
        logged = newest_logged(store.location, branch)
    with suppress(StorageError):
        note = _read_note(store, branch)
    manifest = store.manifest(branch)
    shown = int(manifest.version)
    if logged is not None and logged[0] > shown:
        return manifest, LostPublishes(branch, shown, *logged)
    if note is not None and note.version > shown and _is_of_this_branch(store, branch, note):
        return manifest, LostPublishes(branch, shown, note.version, note.commit, _note_path(branch))
    return manifest, None


class _Note(msgspec.Struct):
    """A publish without a commit: its manifest version, and the newest commit then. A branch is told by its id, too."""

    version: Count
    commit: str
    branch_id: str | None = None


def note_publish(whole: WholeBranch, version: int, commit: str | None) -> None:
    """Tells of a publish that makes no commit, on the newest `commit` of a branch. Without a commit there is nothing
    to know the branch by later.
    """
    if commit is not None:
        note = {"version": version, "commit": commit, "branch_id": whole.store.branch_id(whole.branch)}
        whole.store.objects.put(_note_path(whole.branch), json.dumps(note).encode())


def forget_branch(store: GraphStore, branch: BranchName) -> None:
    """Removes the note of a branch that is gone. One that stays does no harm."""
    with suppress(StorageError):
        store.objects.delete(_note_path(branch))


def _read_note(store: GraphStore, branch: Branch) -> _Note | None:
    content = store.objects.get(_note_path(branch))
    return None if content is None else decode(content, _Note, "a note of a publish")


def _is_of_this_branch(store: GraphStore, branch: Branch, note: _Note) -> bool:
    """Whether it is the one that the note tells of, and not one that was made anew under its name."""
    same = note.branch_id == store.branch_id(branch)
    return same and has_commit(store.location, branch, note.commit)


def _note_path(branch: Branch) -> str:
    return told_path(PUBLISHED, display(branch))
