"""Older versions of tables that are to be gone for good, as a schema change promises that drops data.

They go after it is published, by a note in `__recovery/` that was there before: whoever finds it when its writer has
died brings the removal to an end, or drops the note of a change that was undone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass

import msgspec

from spark_omnigraph.commit.announced import Announced
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.errors import ConflictError, StorageError
from spark_omnigraph.storage.faults import alone, reading
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import RECOVERY, REMOVAL
from spark_omnigraph.storage.manifest.commit_log import has_commit
from spark_omnigraph.storage.tables.columns import Layout
from spark_omnigraph.storage.tables.commits import TableChange, commit_strict, prepare_change, remove_versions
from spark_omnigraph.storage.tables.handles import Dataset
from spark_omnigraph.storage.versions import LANCE_PREFIX, lance_tags
from spark_omnigraph.stored import Count, decode, refuse_path


@dataclass(frozen=True, slots=True)
class DroppedVersions:
    """Versions of a dataset up to `through` that are to go. What is newer stays; where nothing is, an empty version
    comes: numbers of versions must not begin anew.
    """

    location: str
    through: int


def note_removals(store: GraphStore, operation_id: str, commit_id: str, removals: Iterable[DroppedVersions]) -> None:
    """Says what is to go once a commit is published."""
    body = {"commit": commit_id, "removals": [asdict(each) for each in removals]}
    store.objects.put(_path(operation_id), json.dumps(body).encode())


def needing_tags(store: GraphStore, removals: Iterable[DroppedVersions]) -> tuple[str, ...]:
    """Tags, ours and those of Lance, that keep one of these versions."""
    found: set[str] = set()
    for each in removals:
        tags = lance_tags(store.open_dataset(each.location))
        found |= {name.removeprefix(LANCE_PREFIX) for name, (_, version) in tags.items() if version <= each.through}
    return tuple(sorted(found))


def refuse_needed(store: GraphStore, removals: Iterable[DroppedVersions]) -> None:
    """ConflictError for versions that a tag keeps."""
    tags = needing_tags(store, removals)
    if tags:
        named = ", ".join(f"'{name}'" for name in tags)
        verb = "keeps" if len(tags) == 1 else "keep"
        raise ConflictError(f"what is dropped cannot be removed for good: tag {named} {verb} it; delete the tag first")


def end_removals(store: GraphStore, found: Announced) -> None:
    """Ends what the dead have left; not while the lock of a schema change is there, whose note it may be."""
    if not found.removals or store.has_schema_lock():
        return
    for name in found.removals:
        with suppress(StorageError):  # what stays is noted, and bars nobody
            body = _read(store, name)
            if body is not None and has_commit(store.location, None, body.commit):
                remove_through(store, (DroppedVersions(each.location, each.through) for each in body.removals))
            store.objects.delete(f"{RECOVERY}/{name}")


def remove_through(store: GraphStore, removals: Iterable[DroppedVersions]) -> None:
    """Removes versions, and the files that only they name. StorageError when something stays."""
    for each in removals:
        dataset = store.open_dataset(each.location)
        if int(dataset.version) <= each.through:
            dataset = empty_above(dataset, each.through)
        with reading(f"list versions of {each.location}"):
            gone = [number for version in dataset.versions() if (number := int(version["version"])) <= each.through]
        with alone(f"what {each.location} has dropped cannot be removed"):
            if gone:
                remove_versions(dataset, gone)
        reach(CrashPoint.REMOVED_FIRST)


def empty_above(dataset: Dataset, version: int, layout: Layout | None = None) -> Dataset:
    """Moves a dataset that nothing shows by empty versions until it is above one."""
    change = TableChange(replace_all=True, layout=layout)
    while int(dataset.version) <= version:
        with alone("an empty version cannot be made"):
            dataset = commit_strict(dataset, prepare_change(dataset, change, {}))
    return dataset


class _Gone(msgspec.Struct):
    location: str
    through: Count


class _RemovalNote(msgspec.Struct):
    commit: str
    removals: list[_Gone]


def _read(store: GraphStore, name: str) -> _RemovalNote | None:
    content = store.objects.get(f"{RECOVERY}/{name}")
    if content is None:
        return None
    body = decode(content, _RemovalNote, f"{RECOVERY}/{name}")
    is_within = all(refuse_path(each.location) is None for each in body.removals)
    return body if is_within else None


def _path(operation_id: str) -> str:
    return f"{RECOVERY}/{REMOVAL}{operation_id}"


def forget_removals(store: GraphStore, operation_id: str) -> None:
    """Removes the note: all is gone, or nothing is to go."""
    store.objects.delete(_path(operation_id))
