"""What tells a state of a manifest from any other, by the names and stamps of its files: without opening it.

A manifest version is one file, which is never changed. So where the newest one is the file that it was, nothing was
published since; and where the file of a pinned version is, neither was the graph made anew nor did that state expire.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass

from spark_omnigraph.errors import DamagedError, StorageError
from spark_omnigraph.manifest.branches import Branch, BranchName
from spark_omnigraph.storage.layout import MANIFEST, branch_path, manifest_file
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.versions import version_of


@dataclass(frozen=True, slots=True)
class Seen:
    """A version of a branch's manifest, as the store shows it without its content."""

    version: int
    file: Hashable
    """Stamp of the file of the version."""
    reference: bytes | None
    """Content of the reference of the branch, which has another id when it is made anew; None for main."""


def newest_seen(objects: Objects, branch: Branch) -> Seen | None:
    """The newest version. None where that cannot be said: whoever opens the manifest says why."""
    folder = f"{branch_path(MANIFEST, branch)}/_versions"
    with suppress(StorageError, OSError):
        names = os.listdir(objects.location.join(folder)) if objects.location.is_local else objects.list(folder)
        versions = [version for name in names if (version := version_of(name)) is not None]
        return version_seen(objects, branch, max(versions)) if versions else None
    return None


def version_seen(objects: Objects, branch: Branch, version: int) -> Seen | None:
    """A version, as above; None also where it is not stored."""
    with suppress(StorageError, DamagedError):
        stamp = objects.stamp(f"{branch_path(MANIFEST, branch)}/{manifest_file(version)}")
        reference = None if branch is None else objects.get(_reference(branch))
        if stamp is not None and (branch is None) == (reference is None):
            return Seen(version, stamp, reference)
    return None


def _reference(branch: BranchName) -> str:
    return f"{MANIFEST}/_refs/branches/{branch.replace('/', '%2F')}.json"
