"""Versions of a dataset as things to keep or to remove: which are stored since when, Lance's tags, removal by list.

Lance protects a fork's files only where the parent is opened under the very text that the fork recorded, so what it
protects by itself is never relied on: versions are removed by explicit lists that the caller answers for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from lance import LanceDataset

from spark_omnigraph.manifest.branches import Branch, stored_branch
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.layout import MAX_VERSION, V2_DIGITS
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.tables.commits import remove_versions

LANCE_PREFIX = "omnigraph."
"""How the names of our Lance tags begin; others are somebody else's."""
Tagged: TypeAlias = dict[str, tuple[Branch, int]]
"""Name of a Lance tag, or of a Lance branch → Lance branch and version."""


def version_of(name: str) -> int | None:
    """The version that a file of `_versions` stands for, by either way in which Lance names them; None for others."""
    number = name.removesuffix(".manifest")
    if number == name or not (number.isascii() and number.isdigit()):
        return None
    return MAX_VERSION - int(number) if len(number) == V2_DIGITS else int(number)


def stored_since(objects: Objects, folder: str) -> dict[int, datetime]:
    """Versions that a dataset folder holds, ascending, and when each was written by the store's time."""
    found = {version_of(o.path.rpartition("/")[2]): o.modified for o in objects.files(f"{folder}/_versions")}
    return dict(sorted((version, at) for version, at in found.items() if version is not None))


def lance_tags(dataset: LanceDataset) -> Tagged:
    """All tags of a dataset, on whatever branch."""
    with reading(f"list tags of {dataset.uri}"):
        listed = dataset.tags.list()
        return {name: (stored_branch(facts["branch"]), int(facts["version"])) for name, facts in listed.items()}


def origins(dataset: LanceDataset) -> Tagged:
    """Name of each Lance branch of a dataset → Lance branch and version that it begins at."""
    with reading(f"list branches of {dataset.uri}"):
        listed = dataset.branches.list().items()
        return {n: (stored_branch(facts.get("parent_branch")), int(facts["parent_version"])) for n, facts in listed}


@dataclass(frozen=True, slots=True)
class Removal:
    """What the removal of some versions of one line takes away, or would."""

    versions: int
    bytes: int


def would_remove(dataset: LanceDataset, versions: Sequence[int]) -> Removal:
    """What `remove` would take away now; nothing is removed."""
    if not versions:
        return Removal(0, 0)
    with reading(f"look at versions of {dataset.uri}"):
        stats = dataset.explain_cleanup_old_versions(versions=list(versions)).stats
    return Removal(int(stats.old_versions), int(stats.bytes_removed))


def remove(dataset: LanceDataset, versions: Sequence[int]) -> Removal:
    """Removes these versions of the line that was opened, and files that only they name."""
    if not versions:
        return Removal(0, 0)
    stats = remove_versions(dataset, versions)
    return Removal(int(stats.old_versions), int(stats.bytes_removed))
