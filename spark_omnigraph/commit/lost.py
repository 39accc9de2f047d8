"""Publishes that the commit log tells of and the manifest has not: its newest version files are gone.

A row of the log is written after its publish. So a manifest that is read after the log shows every publish that the log
names, unless somebody took versions of it away, as a copy does that was not made at one moment. Such a graph shows an
older state. The next write would make that final, so it is refused; reading goes on, and says so. A log that lacks rows
is the other way round, and no loss: a writer may have died before it wrote the last one, and recovery completes it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from spark_omnigraph.errors import DriftError, StorageError
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.manifest.commit_log import newest_logged
from spark_omnigraph.storage.tables.handles import Dataset


@dataclass(frozen=True, slots=True)
class LostPublishes:
    """A branch (None is main) whose manifest ends at `manifest_version`, while the log names `logged_version` as that
    of `commit`.
    """

    branch: str | None
    manifest_version: int
    logged_version: int
    commit: str

    def __str__(self) -> str:
        return (
            f"the manifest of branch '{self.branch or 'main'}' ends at version {self.manifest_version}, but commit "
            f"{self.commit} was published as version {self.logged_version}: the newest files of __manifest/_versions "
            "are gone, as after a copy that was made while somebody wrote, and what is shown is an older state"
        )


def find_lost(store: GraphStore, branch: str | None) -> LostPublishes | None:
    """What the manifest of a branch lacks, or None; also when the log cannot be read."""
    return _look(store, branch)[1]


@dataclass(frozen=True, slots=True)
class WholeBranch:
    """A branch whose manifest shows every publish that the commit log names: whoever has one has looked, and nothing is
    published or removed without. DriftError when publishes are lost. Looks once for each branch of a store.
    """

    store: GraphStore
    branch: str | None

    def __post_init__(self) -> None:
        if self.branch not in self.store.whole:
            whole_manifest(self.store, self.branch)

    def manifest(self, version: int | None = None) -> Dataset:
        """The manifest, newest or at a version."""
        return self.store.manifest(self.branch, version)


def whole_manifest(store: GraphStore, branch: str | None) -> Dataset:
    """The newest manifest of a branch. DriftError when it lacks publishes."""
    manifest, lost = _look(store, branch)
    if lost is not None:
        raise DriftError(
            f"'{store.root}' cannot be written: {lost}. Put the missing files back from where the graph was copied "
            "from, or restore it whole from a backup. Reading goes on (mode 'r'): to accept the loss, export it and "
            "load that into a new graph"
        )
    store.whole.add(branch)
    return manifest


def _look(store: GraphStore, branch: str | None) -> tuple[Dataset, LostPublishes | None]:
    """The log first, then the manifest. Twice when that seems to lack something: perhaps the graph was made anew in its
    place in between.
    """
    manifest, lost = _look_once(store, branch)
    return (manifest, None) if lost is None else _look_once(store, branch)


def _look_once(store: GraphStore, branch: str | None) -> tuple[Dataset, LostPublishes | None]:
    logged = None
    with suppress(StorageError):
        logged = newest_logged(store.location, branch)
    manifest = store.manifest(branch)
    shown = int(manifest.version)
    if logged is None or logged[0] <= shown:
        return manifest, None
    return manifest, LostPublishes(branch, shown, *logged)
