"""Files of one dataset that no version of it names, on any of its branches.

What a version names is Lance's own answer (`tracked_files`), for the main line and each Lance branch; a file is residue
only if none of them names it. Two things it leaves out are added: blobs lie beside their data file, and branches do not
list the indexes that they inherit. A dataset whose own answer does not fit what is stored is not judged at all.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from spark_omnigraph.errors import StorageError
from spark_omnigraph.manifest.branches import Branch, BranchName
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import branch_path
from spark_omnigraph.storage.objects.small import StoredObject
from spark_omnigraph.storage.versions import version_of
from spark_omnigraph.words import TextEnum

_OWN = "manifest"
_PAYLOAD = frozenset({"data file", "deletion file", "index file"})
"""Kinds of files that make up rows; the others are Lance's own books."""
_DATA, _DELETIONS, _INDICES = "data", "_deletions", "_indices"
_FOLDERS = frozenset({_DATA, _DELETIONS, _INDICES, "_versions", "_transactions", "_refs"})


class Kind(TextEnum):
    """What a piece of residue is."""

    DATA = "unnamed_data"
    BLOB = "unnamed_blob"
    DELETION = "unnamed_deletion"
    INDEX = "unnamed_index"
    BRANCH = "branch_debris"
    """Files below `tree/` of a Lance branch that does not exist."""


@dataclass(frozen=True, slots=True)
class Residue:
    """Objects that belong together and go together: a data file with its blobs, an index, a folder of a branch."""

    kind: Kind
    objects: tuple[StoredObject, ...]

    @property
    def newest(self) -> datetime:
        return max(each.modified for each in self.objects)


@dataclass(frozen=True, slots=True)
class DatasetFiles:
    """A dataset's objects as stored, listed before its versions were read."""

    location: str
    objects: tuple[StoredObject, ...]
    links: tuple[str, ...] = ()
    """Symbolic links; what lies behind them is not looked at."""

    @classmethod
    def read(cls, store: GraphStore, location: str) -> DatasetFiles:
        return cls(location, store.objects.walk(location), store.objects.links(location))

    def is_behind_link(self, path: str) -> bool:
        """Whether a path is a symbolic link or lies behind one."""
        return any(path == link or path.startswith(f"{link}/") for link in self.links)

    def below(self, folder: str) -> tuple[StoredObject, ...]:
        """Objects below a folder of the dataset, all of them for the empty one."""
        prefix = f"{self.location}/{folder}/" if folder else f"{self.location}/"
        return tuple(each for each in self.objects if each.path.startswith(prefix))


Pins: TypeAlias = Mapping[Branch, AbstractSet[int]]
"""Lance branch (None is the main line) → versions of a dataset that something shows."""


def require_versions(files: DatasetFiles, pins: Pins, hidden: int = 0) -> None:
    """StorageError when a dataset lacks a version that something shows: what only that names would look unnamed.

    Versions from the first on may have been taken away, together with their files, as another engine's clean-up does;
    the newest one that is shown may not, nor any in the middle. Of a table that is `hidden` up to a version, and that
    begins above it, a schema change has removed all for good.
    """
    for branch, versions in pins.items():
        folder = branch_path(files.location, branch)
        if not versions or files.is_behind_link(f"{folder}/_versions"):
            continue  # Lance says what they name, and what they name is not looked at
        present = _versions(files, f"{folder}/_versions/")
        first = min(present, default=0)
        if branch is None and 0 < hidden < first:
            continue
        lost = sorted(v for v in versions - present if v > first or v == max(versions))
        if lost:
            listed = ", ".join(str(version) for version in lost[:3])
            raise StorageError(
                f"storage: {folder} lacks the files of published versions ({listed}), so nobody can tell what they "
                "name: put them back into its folder _versions from a backup, then clean up again"
            )


def _versions(files: DatasetFiles, folder: str) -> set[int]:
    """Versions whose files are there."""
    found = {version_of(o.path.removeprefix(folder)) for o in files.objects if o.path.startswith(folder)}
    return {version for version in found if version is not None}


def lance_branches(store: GraphStore, location: str) -> frozenset[BranchName]:
    """Names of the Lance branches of a dataset."""
    dataset = store.open_dataset(location)
    with reading(f"list branches of {location}"):
        return frozenset(BranchName(name) for name in dataset.branches.list())


def find_residue(store: GraphStore, files: DatasetFiles) -> list[Residue]:
    """Everything of a dataset that no version names. StorageError when that cannot be told."""
    branches = lance_branches(store, files.location)
    named = _named(store, files, branches)
    groups: dict[str, list[tuple[Kind, StoredObject]]] = {}
    for each in files.objects:
        place = _place(files.location, each.path, branches, named) if each.path not in named else None
        if place is not None:
            groups.setdefault(place[1], []).append((place[0], each))
    found = [_residue(members) for _, members in sorted(groups.items())]
    return _without_inherited_indexes(store, files, found)


def _residue(members: Sequence[tuple[Kind, StoredObject]]) -> Residue:
    kinds = {kind for kind, _ in members}
    return Residue(Kind.DATA if Kind.DATA in kinds else members[0][0], tuple(each for _, each in members))


def _named(store: GraphStore, files: DatasetFiles, branches: Iterable[BranchName]) -> frozenset[str]:
    """Paths below the root of all files that some version names."""
    stored = {each.path for each in files.objects}
    if any(path.rsplit("/", 1)[-1].startswith("d") for path in stored if path.endswith(".manifest")):
        raise StorageError(
            f"storage: {files.location} has detached versions, made by another program, whose files cannot be told: "
            "nothing is removed. Remove their manifests, which begin with 'd' in its folders _versions, if nobody "
            "needs them, then clean up again"
        )
    folders: dict[str, str] = {}
    rows: set[tuple[str, str, str]] = set()
    for branch in (None, *sorted(branches)):
        folder = branch_path(files.location, branch)
        for row in _tracked(store, folder):
            rows.add(row)
            if row[2] == _OWN:
                folders[row[0]] = folder
    paths = {_below_root(files.location, folders, base, path): kind for base, path, kind in rows}
    _require_stored(store, files, {path for path, kind in paths.items() if kind in _PAYLOAD} - stored)
    return frozenset(paths)


def _tracked(store: GraphStore, folder: str) -> Iterator[tuple[str, str, str]]:
    """Base, path and kind of each file that a line of versions names."""
    dataset = store.open_dataset(folder)
    with reading(f"list files of {folder}"):
        for batch in dataset.tracked_files():
            columns = (batch.column(name).to_pylist() for name in ("base_uri", "path", "type"))
            yield from set(zip(*columns, strict=True))


def _below_root(location: str, folders: Mapping[str, str], base: str, path: str) -> str:
    folder = folders.get(base)
    if folder is None:
        raise StorageError(
            f"storage: versions of {location} name files below {base}, which is not a folder of the dataset: nothing "
            "is removed there. Open the graph where it was made, or export it and load that into a new one"
        )
    return f"{folder}/{path}"


def _require_stored(store: GraphStore, files: DatasetFiles, missing: set[str]) -> None:
    """A named file that is not there shows that names are read wrongly, unless it came after the listing."""
    if missing:
        found = {each.path for each in store.objects.walk(files.location)}
        lost = sorted(path for path in missing - found if not files.is_behind_link(path))
        if lost:
            raise StorageError(
                f"storage: versions of {files.location} name files that are not there: {', '.join(lost[:3])}. Nothing "
                "is removed there: put them back from a backup, then clean up again"
            )


def _place(location: str, path: str, branches: Iterable[BranchName], named: frozenset[str]) -> tuple[Kind, str] | None:
    """Kind of an unnamed file, and the path that stands for what it goes together with; None for other files.

    Whatever lies below `tree/` outside the folders of branches is unnamed, since names in other folders are refused.
    """
    folder, rest, known = _line_of(path.removeprefix(f"{location}/"), branches)
    top, _, inner = rest.partition("/")
    base = f"{location}/{folder}{top}"
    if not known:
        return Kind.BRANCH, f"{location}/{folder}"
    if not inner:
        return None
    if top == _DELETIONS:
        return Kind.DELETION, path
    if top == _INDICES:
        return (Kind.INDEX, f"{base}/{inner.partition('/')[0]}") if "/" in inner else None
    if top != _DATA:
        return None
    if "/" not in inner:
        return Kind.DATA, f"{base}/{inner.removesuffix('.lance')}"
    owner = f"{base}/{inner.partition('/')[0]}"
    return None if f"{owner}.lance" in named else (Kind.BLOB, owner)


def _line_of(path: str, branches: Iterable[BranchName]) -> tuple[str, str, bool]:
    """Folder below the dataset that holds a line of versions, the path in it, and whether the line exists."""
    if not path.startswith("tree/"):
        return "", path, True
    inside = [b for b in branches if path.startswith(f"tree/{b}/")]
    if inside:
        folder = f"tree/{max(inside, key=len)}/"
        return folder, path.removeprefix(folder), True
    parts = path.split("/")
    end = next((i for i in range(2, len(parts)) if parts[i] in _FOLDERS), len(parts) - 1)
    return "/".join(parts[:end]) + "/", "/".join(parts[end:]), False


def _without_inherited_indexes(store: GraphStore, files: DatasetFiles, found: Sequence[Residue]) -> list[Residue]:
    """Leaves out indexes whose id stands in any manifest: a branch inherits some that it does not list as its own."""
    suspected = {residue: _index_id(residue) for residue in found if residue.kind is Kind.INDEX}
    if not suspected:
        return list(found)
    seen: set[uuid.UUID] = set()
    for each in files.below(""):
        if each.path.endswith(".manifest"):
            content = store.objects.get(each.path, limit=None) or b""
            seen |= {i for i in suspected.values() if i is not None and i.bytes in content}
    return [r for r in found if r not in suspected or (suspected[r] is not None and suspected[r] not in seen)]


def _index_id(residue: Residue) -> uuid.UUID | None:
    """The id that an index folder is named after; None when it is something else, which is left alone."""
    text = residue.objects[0].path.rsplit(f"/{_INDICES}/", 1)[1].partition("/")[0]
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
