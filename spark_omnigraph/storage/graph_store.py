"""One graph's storage as its rooms above see it: snapshots, tables, branches, schema files, small objects."""

from __future__ import annotations

import os
import stat
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import lance
from lance import LanceDataset

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import NotFoundError, SchemaFilesError, StorageError, VersionExpiredError
from spark_omnigraph.manifest.branches import MAIN, Branch, BranchName, display, stored_branch
from spark_omnigraph.manifest.formats.stamps import Format
from spark_omnigraph.manifest.lineage import Commit, head
from spark_omnigraph.manifest.rows import ManifestRow, TableUpdate, epoch_of
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.memory import LruCache
from spark_omnigraph.storage.faults import CommitFailed, reading
from spark_omnigraph.storage.layout import (
    COMMIT_ACTORS,
    COMMITS,
    COPYING,
    INDICES,
    MAKING,
    MANIFEST,
    RECOVERY,
    SCHEMA_APPLY_LOCK,
    SCHEMA_IR,
    SCHEMA_SOURCE,
    SCHEMA_STATE,
    branch_path,
    manifest_file,
)
from spark_omnigraph.storage.manifest.commit_log import find_commit, read_commits
from spark_omnigraph.storage.manifest.seen import Seen, newest_seen
from spark_omnigraph.storage.manifest.stamp import read_format
from spark_omnigraph.storage.manifest.table import ManifestReader, content_mark, read_rows
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.origin import origin_of, require_origin
from spark_omnigraph.storage.tables.commits import compact
from spark_omnigraph.storage.tables.handles import Dataset
from spark_omnigraph.storage.tables.index import IndexFiles
from spark_omnigraph.storage.tables.reader import ReadCache
from spark_omnigraph.storage.tables.scan import PinnedTable, open_pinned
from spark_omnigraph.storage.uri import Location, locate, nearest_path
from spark_omnigraph.storage.versions import stored_since
from spark_omnigraph.words import listed, nearest

TIDY_ABOVE = 32
"""Data files of an internal dataset from which a write compacts it afterwards."""
_OPENED = ("_versions", "_refs/branches")
"""Folders of a dataset whose files are read when it is opened."""
STATES = 64
"""Branches whose newest state is kept."""
_REPEATS = 3
"""Reads in a row of one newest state, after which an object store is looked at first: a look takes requests of its own,
which are for nothing while somebody writes. On a local disk it takes next to no time.
"""
_LISTINGS = 4
"""Times that branches are listed again when that fails."""


@dataclass(frozen=True, slots=True)
class SchemaFiles:
    """Texts of the three schema files; the last two may be absent on a graph of the reference engine."""

    source: str
    ir: str | None
    state: str | None


@dataclass(frozen=True, slots=True)
class BranchRef:
    """Parent of a branch (None is main); a branch made anew under the same name has another id."""

    parent: Branch
    id: str


@dataclass(frozen=True, slots=True)
class _ReadState:
    """A snapshot, the rows that it was made of, and their format."""

    form: Format
    snapshot: Snapshot
    rows: list[ManifestRow]


@dataclass(frozen=True, slots=True)
class _Kept:
    """The newest state of a branch as it was last read, how often in a row it was that, and what was seen before."""

    state: _ReadState
    repeats: int
    seen: Seen | None


class GraphStore:
    """Storage of one graph. Opening reads nothing but the existence of the schema file."""

    def __init__(self, location: Location, objects: Objects) -> None:
        self.location = location
        self.objects = objects
        self.reads = ReadCache()
        self.whole: set[Branch] = set()
        """Branches whose manifest was found to show every publish that is told of, and has not gone back since."""
        self._versions: dict[Branch, int] = {}
        self._reader = ManifestReader()
        self._states: LruCache[Branch, _Kept] = LruCache(STATES)
        self._schema_files: dict[str, tuple[Hashable, bytes | None]] = {}
        self._schema_texts: tuple[tuple[bytes | None, ...], SchemaFiles] = (), SchemaFiles("", None, None)
        """Contents of the schema files when they were last read, and their texts."""
        self._form: Format | None = None
        """Of the manifest that was opened last."""
        self._looked_at: set[str] = set()
        """Datasets in whose place Lance finds files, and no pipe that it would wait for; looked at once."""

    @classmethod
    def open(cls, uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> GraphStore:
        """Store of an existing graph; NotFoundError when no graph is there."""
        location = locate(uri, storage_options)
        if location.is_local:
            _require_folder(location.root)
        store = cls(location, Objects(location))
        if store.objects.get(SCHEMA_SOURCE) is None:
            raise store._absent()
        store._refuse_special(MANIFEST, COMMITS, COMMIT_ACTORS)
        return store

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled, a store is its place and its options: another process opens it anew, and keeps what it reads."""
        return GraphStore.open, (self.root, dict(self.location.options))

    def _refuse_special(self, *datasets: str) -> None:
        for path in datasets:
            if path not in self._looked_at:
                for folder in _OPENED:
                    self.objects.refuse_special_in(f"{path}/{folder}")
                self._looked_at.add(path)

    def _absent(self) -> NotFoundError:
        """The error for a root without a schema, which may be half of a graph."""
        why = f"no graph at '{self.root}': no {SCHEMA_SOURCE} is there"
        names = self.objects.list(RECOVERY)
        if COPYING in names:
            return NotFoundError(f"{why}, since a copy to it is under way, or did not end: run it again")
        if any(name.startswith(MAKING) for name in names):
            return NotFoundError(
                f"{why}, since an init with force is making it anew, or died meanwhile; then run it again"
            )
        if self.objects.has_prefix(COMMITS):
            return NotFoundError(f"{why}, but parts of a graph are: put it back from a backup, or init with force")
        return NotFoundError(f"{why}; init makes a graph")

    @property
    def root(self) -> str:
        return self.location.root

    @property
    def storage_options(self) -> dict[str, str]:
        return dict(self.location.options)

    def schema_files(self, state: bytes | None = None) -> SchemaFiles:
        """Texts of the schema files, read in one go; but for the last one, where it is given."""
        source = self.schema_file(SCHEMA_SOURCE)
        if source is None:
            raise NotFoundError(f"no graph at '{self.root}': {SCHEMA_SOURCE} is missing")
        contents = source, self.schema_file(SCHEMA_IR), state or self.schema_file(SCHEMA_STATE)
        known, texts = self._schema_texts
        if known != contents:
            named = zip((SCHEMA_SOURCE, SCHEMA_IR, SCHEMA_STATE), contents, strict=True)
            read = [self._text(name, content) if content else None for name, content in named]
            texts = SchemaFiles(read[0] or "", read[1], read[2])
            self._schema_texts = contents, texts
        return texts

    def schema_file(self, name: str) -> bytes | None:
        """Content of a schema file, None where there is none. On a local disk one that is still the file that it was is
        not read again; on an object store asking for that takes as long as reading.
        """
        if not self.location.is_local:
            return self.objects.get(name)
        stamp, kept = self.objects.stamp(name), self._schema_files.get(name)
        if kept is None or stamp is None or kept[0] != stamp:
            kept = self._schema_files[name] = (stamp, self.objects.get(name))
        return kept[1]

    def _text(self, name: str, content: bytes) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise SchemaFilesError(
                f"{name} of '{self.root}' is not UTF-8 text (byte {error.start + 1}); put back the right one"
            ) from error

    def form(self) -> Format:
        """The format of the graph, as it was when a manifest was last opened; one is, if none was yet."""
        if self._form is None:
            self._manifest(None, None)
        assert self._form is not None
        return self._form

    def require_writable(self) -> None:
        """UnsupportedFormatError, with the way out, for a graph of a format that is only read."""
        if not self.form().is_written:
            raise self.form().refusal(self.root)

    def commits(self, branch: Branch, with_actors: bool = True) -> list[Commit]:
        """All commits that a branch sees, with their actors if they are asked for; unordered."""
        of_rows = self.form().commits
        if of_rows is None:
            return read_commits(self.location, branch, with_actors)
        return of_rows(self.manifest_rows(self.manifest(branch)))

    def commit(self, branch: Branch, commit_id: str) -> Commit | None:
        """The commit with this id among those that a branch sees."""
        if self.form().commits is None:
            return find_commit(self.location, branch, commit_id)
        return next((commit for commit in self.commits(branch) if commit.id == commit_id), None)

    def manifest(self, branch: Branch, version: int | None = None) -> LanceDataset:
        """The manifest on a branch, newest or at a version. NotFoundError when that branch or version is not there,
        UnsupportedFormatError when its stamp is not known.
        """
        return self._manifest(branch, version)[0]

    def _manifest(
        self, branch: Branch, version: int | None, refs: Mapping[BranchName, BranchRef] | None = None
    ) -> tuple[LanceDataset, LanceDataset, Format]:
        """The manifest, its newest version, and the format that this one says: the first ones precede the stamp."""
        ref = self.require_branch(branch) if refs is None or branch is None else refs[branch]
        newest = self.open_dataset(branch_path(MANIFEST, branch))
        form = self._form = read_format(newest)
        if self._reader.is_another(newest, ref.id if ref is not None else None):
            self.reads.forget()
        self.saw(branch, int(newest.version))
        if version is None or version == newest.version:
            return newest, newest, form
        if version > newest.version or version < 1:
            raise NotFoundError(
                f"manifest version {version} not found on branch '{display(branch)}' of '{self.root}': "
                f"there are 1 to {newest.version}"
            )
        try:
            return self.open_dataset(branch_path(MANIFEST, branch), version), newest, form
        except StorageError as error:
            raise self._expired(branch, version) or error from error

    def _expired(self, branch: Branch, version: int) -> VersionExpiredError | None:
        """The error for a manifest version that is not stored any more; None when it is."""
        stored = set(stored_since(self.objects, branch_path(MANIFEST, branch)))
        if version in stored or not stored:
            return None
        oldest = max(stored)
        while oldest - 1 in stored:
            oldest -= 1
        return VersionExpiredError(
            f"manifest version {version} of branch '{display(branch)}' of '{self.root}' is not stored: a clean-up let "
            f"it expire, or the branch began later; the oldest that can be read is {oldest}, besides tags"
        )

    def saw(self, branch: Branch, version: int) -> None:
        """Notes the newest version of a manifest. One that has gone back may lack publishes: that is looked at anew."""
        if version < self._versions.get(branch, 0):
            self.whole.discard(branch)
        self._versions[branch] = version

    def snapshot(self, branch: Branch, version: int | None = None) -> Snapshot:
        """What a branch shows, newest or at a manifest version."""
        return self.snapshot_with_rows(branch, version)[0]

    def snapshot_with_rows(
        self, branch: Branch, version: int | None = None, refs: Mapping[BranchName, BranchRef] | None = None
    ) -> tuple[Snapshot, list[ManifestRow]]:
        """A snapshot and the rows that it was made of. Whoever goes through all branches gives their `refs`, since a
        listing asks for each of them. The newest state is read anew when the file of its manifest is another.
        """
        is_newest = version is None and refs is None
        found = self._newest(branch) if is_newest else self._read_state(branch, version, refs)
        return found.snapshot, found.rows

    def _newest(self, branch: Branch) -> _ReadState:
        """The newest state: what was read before, if no other version is to be seen now."""
        kept = self._states.get(branch)
        looks = self.location.is_local or (kept is not None and kept.repeats >= _REPEATS)
        seen = newest_seen(self.objects, branch) if looks else None
        if kept is not None and seen is not None and kept.seen == seen:
            self._form = kept.state.form
            self.saw(branch, kept.state.snapshot.version)  # which may be an older one than this handle has published
            return kept.state
        found = self._read_state(branch)
        version = found.snapshot.version
        same = kept is not None and kept.state.snapshot.version == version
        repeats = kept.repeats + 1 if kept is not None and same else 0
        if seen is not None and seen.version != version:  # somebody published in between
            seen = None
        self._states.put(branch, _Kept(found, repeats, seen))
        return found

    def _read_state(
        self, branch: Branch, version: int | None = None, refs: Mapping[BranchName, BranchRef] | None = None
    ) -> _ReadState:
        dataset, newest, form = self._manifest(branch, version, refs)
        known = self.manifest_rows(newest)
        rows = known if dataset is newest else read_rows(dataset)
        last = None if form.commits is None else head(form.commits(rows))
        origin = origin_of(dataset, rows, self.location, branch, None if last is None else last.id)
        snapshot = form.reduce(branch, int(dataset.version), rows).read_from(content_mark(dataset), origin)
        unrecorded = not form.is_written and dataset is not newest
        snapshot = replace(snapshot, epoch=epoch_of(known, snapshot.version), is_unrecorded=unrecorded)
        if self.location.is_local:
            self._refuse_special(*(branch_path(each.location, each.branch) for each in snapshot.entries.values()))
        return _ReadState(form, snapshot, rows)

    def manifest_rows(self, dataset: Dataset) -> list[ManifestRow]:
        """All rows of a manifest opened at its newest version; only what is new since the last call is read."""
        return self._reader.read(dataset)

    def tidy(self, branch: Branch, above: int = TIDY_ABOVE, known: Mapping[str, int] | None = None) -> dict[str, int]:
        """Compacts the manifest and the commit log where they consist of more files than this, best effort; how many
        files each of those had. A writer knows how many those have that it wrote, and the others are not looked at.

        Every publish leaves a file of a row or two, and reading them is what makes commits of an old graph slow.
        """
        compacted: dict[str, int] = {}
        for path in (branch_path(MANIFEST, branch), branch_path(COMMITS, branch), COMMIT_ACTORS):
            if known is not None and known.get(path, 0) <= above:
                continue
            with suppress(CommitFailed, StorageError):
                dataset = self.open_dataset(path)
                files = len(dataset.get_fragments())
                if files > above:
                    compact(dataset)
                    compacted[path] = files
        return compacted

    def branch_names(self, path: str = MANIFEST) -> set[BranchName]:
        """All Lance branches of a dataset, internal ones too, by their references alone; main is not among them."""
        names = self.objects.list(f"{path}/_refs/branches")
        return {BranchName(name[:-5].replace("%2F", "/")) for name in names if name.endswith(".json")}

    def graph_branches(self) -> tuple[Branch, ...]:
        """Main and all branches of the graph, by name; the lock of a schema change is none of them and may go at any
        moment.
        """
        names = (name for name in self.branch_names() if name.lstrip("/") != SCHEMA_APPLY_LOCK)
        return (None, *sorted(names))

    def require_branch(self, branch: Branch, way_out: str = "") -> BranchRef | None:
        """Where a branch comes from; None for main. NotFoundError, with the names that there are, for one that does
        not exist.
        """
        if branch is None:
            return None
        refs = self.branch_refs()
        if branch not in refs:
            known = [MAIN, *sorted(n for n in refs if n.lstrip("/") != SCHEMA_APPLY_LOCK)]
            raise NotFoundError(
                f"branch '{branch}' not found in '{self.root}'{nearest(branch, known)}"
                f"{listed('branches', known)}{way_out}"
            )
        return refs[branch]

    def branch_id(self, branch: Branch) -> str | None:
        """What tells a branch from one that is made anew under its name; None for main. NotFoundError as above."""
        ref = self.require_branch(branch)
        return None if ref is None else ref.id

    def branch_refs(self) -> dict[BranchName, BranchRef]:
        """Where each branch of the manifest comes from."""
        if not self.objects.has_prefix(f"{MANIFEST}/_refs/branches"):
            return {}
        dataset = self.open_dataset(MANIFEST)
        self._form = read_format(dataset)
        listed = _listed_branches(dataset)
        return {
            BranchName(name): BranchRef(stored_branch(facts.get("parent_branch")), str(facts.get("branch_identifier")))
            for name, facts in listed.items()
        }

    def has_lance_branch(self, path: str, branch: BranchName) -> bool:
        """Whether a dataset has a Lance branch of this name."""
        dataset = self.open_dataset(path)
        return branch in _listed_branches(dataset)

    def has_schema_lock(self) -> bool:
        """True while a schema change runs, or one died."""
        return any(name.lstrip("/") == SCHEMA_APPLY_LOCK for name in self.branch_names())

    def table_uri(self, location: str, branch: Branch) -> str:
        """Folder that physically holds a table on a branch."""
        return self.location.join(branch_path(location, branch))

    def open_table(self, entry: TableEntry) -> LanceDataset:
        """A table exactly as a snapshot shows it. NotFoundError where that version was removed, ConflictError when the
        graph was made anew since that was read.
        """
        try:
            dataset = self.open_dataset(branch_path(entry.location, entry.branch), entry.version)
        except StorageError:
            uri = self.table_uri(entry.location, entry.branch)
            dataset = open_pinned(PinnedTable(uri, entry.version, self.storage_options))  # which says why
        require_origin(entry.origin, self.storage_options)
        return dataset

    def columns(self, entry: TableEntry) -> list[str]:
        """Names of the columns that a table stores, as a snapshot shows it."""
        return list(self.open_table(entry).schema.names)

    def index_files(self, entry: TableEntry, dataset: LanceDataset) -> IndexFiles:
        """What the index folders of an opened table hold, those of the branches that it came from included."""
        folders: dict[int | None, str] = {None: branch_path(entry.location, entry.branch)}
        for number, base in dataset.base_paths().items():
            _, found, below = str(base.path).rpartition(entry.location)
            if found:
                folders[number] = f"{entry.location}{below}".rstrip("/")
        sizes: dict[tuple[int | None, str], int] = {}
        for home, folder in folders.items():
            prefix = f"{folder}/{INDICES}/"
            for each in self.objects.walk(f"{folder}/{INDICES}"):
                uuid, _, name = each.path.removeprefix(prefix).partition("/")
                # What a text index is put together from stays beside it, and is no part of it.
                sizes[home, uuid] = sizes.get((home, uuid), 0) + (0 if name.startswith("staging/") else each.size)
        return IndexFiles(sizes, frozenset(folders))

    def open_dataset(self, path: str, version: int | None = None) -> LanceDataset:
        """A dataset of the graph by relative path, newest or at a version; StorageError when it cannot be opened."""
        self._refuse_special(path)
        try:
            with reading(f"open {path}"):
                return lance.dataset(
                    self.location.join(path), version=version, storage_options=self.storage_options or None
                )
        except StorageError as error:
            if version is None and "was not found" in error.message:
                raise StorageError(
                    f"storage: the graph '{self.root}' lacks {path}: it was removed, or init did not end. "
                    "Put the folder back from a backup, or make the graph anew by init with force"
                ) from error
            stored = {} if version is None else stored_since(self.objects, path)
            if stored and version is not None and version not in stored and version < max(stored):
                raise VersionExpiredError(
                    f"version {version} of {path} in '{self.root}' is not stored: a clean-up let the state that shows "
                    f"it expire; the oldest that is left of it is {min(stored)}"
                ) from error
            raise

    def head_version(self, location: str, branch: Branch) -> int:
        """Newest version of a table's dataset on a branch, published or not."""
        return int(self.open_dataset(branch_path(location, branch)).version)

    def table_update(self, key: TableKey, folder: str, branch: Branch, version: int, rows: int) -> TableUpdate:
        """What the manifest is told of a version of a table, whose dataset lies in a folder."""
        path = f"{self.location.object_path(self.location.join(folder))}/{manifest_file(version)}"
        return TableUpdate(key, version, branch, rows, path)


def _listed_branches(dataset: LanceDataset) -> Mapping[str, Mapping[str, Any]]:
    """Branches of a dataset. Lance lists their references and then reads each: one that is deleted in between fails
    that, and is not there when they are listed again.
    """
    for _ in range(_LISTINGS):
        with suppress(StorageError), reading("list branches"):
            return {name: dict(facts) for name, facts in dataset.branches.list().items()}
    with reading("list branches"):
        return {name: dict(facts) for name, facts in dataset.branches.list().items()}


def _require_folder(root: str) -> None:
    why = "it is a file, not a folder"
    try:
        if stat.S_ISDIR(os.stat(root).st_mode):
            return
    except (FileNotFoundError, NotADirectoryError):
        why = f"there is no such folder{nearest_path(root)}; init makes a new graph"
    except OSError as error:
        raise StorageError(f"storage: cannot read {root}: {error.strerror}") from error
    raise NotFoundError(f"no graph at '{root}': {why}")
