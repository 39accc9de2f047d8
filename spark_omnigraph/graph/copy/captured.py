"""What a copy of all branches consists of: the files that show their states of one moment, while others go on writing.

Branches are captured before the branch that they come from: whatever one of them inherits, its parent shows by then.
So the newest version of each line is the one that its own branch shows. Newer ones, and files that nothing names yet,
are no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from spark_omnigraph.branch.orphans import what_is_shown
from spark_omnigraph.commit.contract import current_hash, read_catalog
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.schema.lock import refuse_schema_change
from spark_omnigraph.errors import ConflictError
from spark_omnigraph.manifest.branches import Branch, BranchName, display, stored_branch
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.rows import ManifestRow, RowKind
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import (
    COMMIT_ACTORS,
    COMMITS,
    MANIFEST,
    RECOVERIES,
    SCHEMA_APPLY_LOCK,
    branch_path,
)
from spark_omnigraph.storage.manifest.commit_log import log_up_to
from spark_omnigraph.storage.residue import DatasetFiles, find_residue
from spark_omnigraph.storage.versions import stored_since, version_of
from spark_omnigraph.stored import Count, decode

Line = tuple[str, Branch]
"""Dataset and Lance branch."""


@dataclass(slots=True)
class Captured:
    """States of all branches, the newest version of each line, and commits that the log lacks at that version."""

    states: dict[Branch, Snapshot] = field(default_factory=dict)
    newest: dict[Line, int] = field(default_factory=dict)
    late: dict[Branch, list[Commit]] = field(default_factory=dict)


def capture_all(store: GraphStore) -> Captured:
    """ConflictError while the schema changes, or where a branch shows what its parent does not."""
    refuse_schema_change(store)
    schema, found = read_catalog(store).ir_hash, Captured()
    for branch in children_first(store):
        WholeBranch(store, branch)
        snapshot, rows = store.snapshot_with_rows(branch)
        found.states[branch] = snapshot
        found.newest[MANIFEST, branch] = snapshot.version
        for line, version in _shown(rows):
            found.newest[line] = max(version, found.newest.get(line, 0))
    for location in what_is_shown(store).hidden:  # a schema change may have left an empty version above the last
        found.newest[location, None] = max(stored_since(store.objects, location), default=0)
    for branch, snapshot in found.states.items():
        found.newest[COMMITS, branch], found.late[branch] = log_up_to(store.location, branch, snapshot.version)
        for entry in snapshot.entries.values():
            newest = found.newest[entry.location, entry.branch]
            if entry.branch == branch and entry.version != newest:
                raise ConflictError(
                    f"branch '{display(branch)}' shows '{entry.table_key}' at version {entry.version}, but another "
                    f"branch reads version {newest} of it; copy again"
                )
    for name in (COMMIT_ACTORS, RECOVERIES):
        versions = stored_since(store.objects, name)
        if versions:
            found.newest[name, None] = max(versions)
    refuse_schema_change(store)
    if current_hash(store) != schema:
        raise ConflictError("the schema changed while the graph was looked at; copy again")
    return found


def children_first(store: GraphStore) -> list[Branch]:
    """All branches, each before the one that it comes from."""
    refs = {name: ref for name, ref in store.branch_refs().items() if name.lstrip("/") != SCHEMA_APPLY_LOCK}

    def depth(name: BranchName) -> int:
        parent, steps = refs[name].parent, 0
        while parent is not None and parent in refs and steps < len(refs):
            parent, steps = refs[parent].parent, steps + 1
        return steps

    return [*sorted(refs, key=lambda name: (-depth(name), name)), None]


def _shown(rows: list[ManifestRow]) -> Iterator[tuple[Line, int]]:
    locations = {row.table_key: row.location for row in rows if row.kind == RowKind.TABLE and row.location is not None}
    for row in rows:
        if row.kind == RowKind.VERSION and row.table_version is not None and row.table_key in locations:
            yield (locations[row.table_key], row.table_branch), row.table_version


def files_of(store: GraphStore, captured: Captured) -> dict[str, int]:
    """Path and size of every file of the copy. StorageError where it cannot be told which files of a dataset count,
    ConflictError where a branch went meanwhile.
    """
    found: dict[str, int] = {}
    for location in sorted({location for location, _ in captured.newest}):
        files = DatasetFiles.read(store, location)
        lines = {branch: version for (place, branch), version in captured.newest.items() if place == location}
        unnamed = {each.path for residue in find_residue(store, files) for each in residue.objects}
        for each in files.objects:
            path = each.path.removeprefix(f"{location}/")
            if each.path not in unnamed and _belongs(path, lines) and _is_shown(store, each.path, path, lines):
                found[each.path] = each.size
    there = {(folder, version_of(name)) for folder, _, name in (path.rpartition("/") for path in found)}
    for (location, branch), version in captured.newest.items():
        if (f"{branch_path(location, branch)}/_versions", version) not in there:
            raise ConflictError(f"branch '{display(branch)}' went while the graph was looked at; copy again")
    return found


def _is_shown(store: GraphStore, place: str, path: str, lines: Mapping[Branch, int]) -> bool:
    """False for a tag of a version that the copy has not."""
    if not path.startswith("_refs/tags/"):
        return True
    tag = decode(store.objects.get(place) or b"", _LanceTag, place)
    return tag.version <= lines.get(stored_branch(tag.branch), 0)


class _LanceTag(msgspec.Struct):
    version: Count
    branch: str | None = None


def _belongs(path: str, lines: Mapping[Branch, int]) -> bool:
    """Whether a file of a dataset is of one of these lines, and of a version up to its newest."""
    if path.startswith("_refs/branches/"):
        return BranchName(path.removeprefix("_refs/branches/").removesuffix(".json").replace("%2F", "/")) in lines
    inside = [b for b in lines if b is not None and path.startswith(f"tree/{b}/")]
    line: Branch = max(inside, key=len) if inside else None
    if line is None and path.startswith("tree/"):
        return False
    own = path.removeprefix(f"tree/{line}/") if line is not None else path
    folder, _, name = own.rpartition("/")
    if folder == "_versions":
        version = version_of(name)
        return version is not None and version <= lines.get(line, 0)
    return True
