"""Fencing: a dataset is moved so that a writer that was given up cannot land anything on it any more.

A bump of schema metadata refuses restores prepared before it; the restore that follows refuses appends, updates,
overwrites and index commits prepared before it. The content stays. What a fence keeps is recorded in the restore's
properties, so that a recovery which is itself interrupted finds the version the writer left.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.errors import ConflictError, DamagedError
from spark_omnigraph.redaction import excerpt
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import V2_DIGITS
from spark_omnigraph.storage.tables.commits import CONTENT_KEY, FENCE_KEY, OPERATION_KEY, bump, read_properties, restore
from spark_omnigraph.storage.tables.handles import Dataset

_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class FencedTable:
    """A dataset behind its fence: HEAD, and the version whose content HEAD has."""

    path: str
    dataset: Dataset
    content: int

    @property
    def head(self) -> int:
        return int(self.dataset.version)


def fence(store: GraphStore, path: str, pin: int, token: str) -> FencedTable:
    """Moves a dataset by a bump and a restore of its own content, whether it has left its pin or not.

    A writer may land between the two; then the version does not come out at exactly HEAD + 2, and it is done again.
    """
    failure: CommitFailed | None = None
    for _ in range(_ATTEMPTS):
        dataset = store.open_dataset(path)
        head = int(dataset.version)
        content = content_version(dataset, pin)
        try:
            bumped = bump(dataset, token)
            reach(CrashPoint.RECOVERY_BUMPED)
            fenced = restore(bumped, content, {FENCE_KEY: token, CONTENT_KEY: str(content)})
        except CommitFailed as failed:
            failure = failed
            continue
        failure = None
        if int(fenced.version) == head + 2:
            return FencedTable(path, fenced, content)
    what = f"{path} could not be recovered"
    raise ConflictError(f"{what}: it keeps moving; try again") if failure is None else failure.told(what)


def put_back(table: FencedTable, version: int, token: str) -> FencedTable:
    """Gives a fenced dataset the content of another version. Refused once somebody else has fenced it again."""
    if version == table.content:
        return table
    try:
        moved = restore(table.dataset, version, {FENCE_KEY: token, CONTENT_KEY: str(version)})
    except CommitFailed as failure:
        raise failure.told(f"{table.path} could not be given its content back") from failure
    reach(CrashPoint.RECOVERY_RESTORED)
    return FencedTable(table.path, moved, version)


def content_version(dataset: Dataset, pin: int) -> int:
    """Version whose content HEAD has: HEAD itself, or what fences and undone writes above the published `pin` have
    kept. Below the pin only when a recovery that was given up for dead went on and put back what it remembered.
    """
    version = int(dataset.version)
    while version > pin:
        properties = read_properties(dataset, version)
        if CONTENT_KEY in properties:
            version = _kept(dataset, version, properties[CONTENT_KEY])
        elif FENCE_KEY in properties:
            version -= 1  # a bump without its restore: the content is that of the version below
        else:
            break
    return version


def _kept(dataset: Dataset, version: int, content: str) -> int:
    """The older version that a fence says that it keeps."""
    kept = int(content) if content.isdecimal() and len(content) < V2_DIGITS else 0
    if not 0 < kept < version:
        raise DamagedError(
            f"version {version} of {dataset.uri} says that it keeps the content of version '{excerpt(content)}', which "
            "no fence does. Put the folder back from a backup, or restore with Lance the version that is to be kept"
        )
    return kept


def is_ours_above(dataset: Dataset, pin: int) -> bool:
    """Whether every version above the published one is a step of a write, an undo or a recovery of this library."""
    versions = range(pin + 1, int(dataset.version) + 1)
    return all({FENCE_KEY, OPERATION_KEY} & read_properties(dataset, version).keys() for version in versions)
