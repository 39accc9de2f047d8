"""The place that a graph is copied or converted to: what is under way there, and what stands there once it is whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from spark_omnigraph.errors import AlreadyInitializedError, BadRequestError, StorageError
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.rows import ManifestRow
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.faults import alone
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import (
    COMMIT_ACTORS,
    COMMITS,
    COPYING,
    MANIFEST,
    RECOVERIES,
    RECOVERY,
    SCHEMA_SOURCE,
)
from spark_omnigraph.storage.manifest.commit_log import create_commit_log
from spark_omnigraph.storage.manifest.table import create_manifest
from spark_omnigraph.storage.uri import is_inside
from spark_omnigraph.stored import decode

NOTE = f"{RECOVERY}/{COPYING}"
"""Path of the note at the target that says what is under way."""
FOLDERS = ("nodes", "edges", MANIFEST, COMMITS, COMMIT_ACTORS, RECOVERIES)
FIRST_MANIFEST = 3
"""The version at which a new manifest stands."""


class Copying(msgspec.Struct):
    """The note: which graph; one state of it or all branches; or the states of branches that are converted."""

    graph: str
    branch: str | None = None
    version: int | None = None
    converted: Mapping[str, int] | None = None


def refuse_inside(source: GraphStore, target: str) -> None:
    """BadRequestError for two places one of which lies in the other."""
    if is_inside(target, source.root) or is_inside(source.root, target):
        raise BadRequestError(f"'{target}' and '{source.root}' lie in each other: choose a place of its own")


def noted(place: GraphStore) -> Copying | None:
    """What is under way at a place."""
    note = place.objects.get(NOTE)
    return None if note is None else decode(note, Copying, NOTE)


def refuse_other(place: GraphStore, wanted: Copying) -> None:
    """The target is empty, or holds a part of this very copy."""
    found = noted(place)
    if place.objects.get(SCHEMA_SOURCE) is not None:
        if found != wanted:
            raise AlreadyInitializedError(place.root)
        return
    if found is None:
        if any(place.objects.has_prefix(folder) for folder in FOLDERS):
            raise BadRequestError(f"parts of a graph are at '{place.root}': choose an empty place")
        return
    if found != wanted:
        what = found.graph if found.version is None else f"version {found.version} of '{found.branch}' of {found.graph}"
        verb = "copy" if found.converted is None else "conversion"
        raise BadRequestError(f"a {verb} of {what} to '{place.root}' did not end: run that again, or empty the place")


def begin_history(place: GraphStore, rows: Sequence[ManifestRow], hold: Callable[[], None]) -> None:
    """A manifest of these rows and a commit log that begins with it, in place of what died before."""
    for folder in (MANIFEST, COMMITS, COMMIT_ACTORS):
        place.objects.purge(folder, hold)
    genesis = Commit(new_ulid(), None, FIRST_MANIFEST, None, None, time.time_ns() // 1000)
    with alone(f"the history of '{place.root}' cannot be made"):
        create_commit_log(place.location, genesis)
        create_manifest(place.location, rows)


def counted(place: GraphStore, branch: Branch) -> int:
    """Rows of a branch at the target. StorageError where a table has not as many as its manifest says."""
    total = 0
    for entry in place.snapshot(branch).entries.values():
        found = int(place.open_table(entry).count_rows())
        if found != entry.row_count:
            raise StorageError(
                f"storage: the copy of '{entry.table_key}' on branch '{display(branch)}' has {found:,} rows, not "
                f"{entry.row_count:,}"
            )
        total += found
    return total
