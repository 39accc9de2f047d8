"""Which versions of every dataset are needed: what a policy keeps, and what stays whatever the policy says.

A branch keeps its newest states from one manifest version on, its *cutoff*; besides stay, one by one, the states of
tags and those that merges start from. Rows of the manifest are only added, so the states from the cutoff on show what
the cutoff shows and every version row that came after it: two reads a branch, however long its history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from spark_omnigraph.branch.consumers import Consumer, list_consumers, needed_from
from spark_omnigraph.branch.tags import Place, list_tags, places_of
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.publisher import current_head
from spark_omnigraph.errors import NotFoundError, StorageError, VersionExpiredError
from spark_omnigraph.graph.changes.feed import first_parents
from spark_omnigraph.manifest.ancestry import merge_bases
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.lineage import Commit, in_order
from spark_omnigraph.manifest.rows import ManifestRow, RowKind
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import COMMITS, MANIFEST, SCHEMA_APPLY_LOCK, branch_path
from spark_omnigraph.storage.manifest.commit_log import log_up_to, read_commits
from spark_omnigraph.storage.manifest.table import read_rows
from spark_omnigraph.storage.versions import stored_since


@dataclass(frozen=True, slots=True)
class BranchStates:
    """One live branch: what it shows now, its commits, and since when its manifest versions are stored: those of the
    unbroken line to the newest.
    """

    branch: Branch
    parent: Branch
    snapshot: Snapshot
    rows: list[ManifestRow]
    head: str | None
    commits: dict[str, Commit]
    stored: dict[int, datetime]

    @property
    def own(self) -> list[Commit]:
        """Commits that were made on this very branch, oldest first."""
        return in_order(commit for commit in self.commits.values() if commit.branch == self.branch)

    def cutoff(self, keep: int | None, limit: datetime) -> int:
        """The oldest manifest version that the policy keeps: those of the newest `keep` commits (at least one, since
        what follows a commit shows its rows) and all since, and what anybody was shown from `limit` on. It is that of a
        commit: merges of a branch that begins at what follows one start from the commit.
        """
        versions = list(self.stored)
        oldest = next((v for v, after in pairwise(versions) if self.stored[after] >= limit), versions[-1])
        own, least = self.own, max(keep or 1, 1)
        newest = own[-least].manifest_version if len(own) >= least else versions[0]
        first = min(oldest, newest)
        first = max((commit.manifest_version for commit in own if commit.manifest_version <= first), default=first)
        return max(first, versions[0])


def branch_states(store: GraphStore) -> dict[Branch, BranchStates]:
    """All live branches, main first. StorageError names one that cannot be read: then nobody knows what it needs."""
    parents: dict[Branch, Branch] = {None: None}
    parents |= {n: ref.parent for n, ref in sorted(store.branch_refs().items()) if n.lstrip("/") != SCHEMA_APPLY_LOCK}
    found = {}
    for branch, parent in parents.items():
        try:
            found[branch] = _read(store, branch, parent)
        except NotFoundError:
            if branch in store.branch_names():
                raise
    return found


def _read(store: GraphStore, branch: Branch, parent: Branch) -> BranchStates:
    try:
        WholeBranch(store, branch)
        commits = {commit.id: commit for commit in read_commits(store.location, branch)}
        snapshot, rows = store.snapshot_with_rows(branch)
        head = current_head(store, branch, snapshot.version, rows)
        stored = unbroken(stored_since(store.objects, branch_path(MANIFEST, branch)))
    except StorageError as error:
        raise StorageError(
            f"storage: nothing expires while branch '{display(branch)}' cannot be read: {error.message}"
        ) from error
    return BranchStates(branch, parent, snapshot, rows, head, commits, stored)


def unbroken(stored: Mapping[int, datetime]) -> dict[int, datetime]:
    """The versions from the newest back to the first that is missing, ascending."""
    oldest = max(stored)
    while oldest - 1 in stored:
        oldest -= 1
    return {version: at for version, at in stored.items() if version >= oldest}


@dataclass(slots=True)
class Needed:
    """What is needed. `cutoffs`: branch → oldest manifest version of its unbroken line of states; `logs`: branch → the
    version of its commit log as of then, from which on branches may begin.
    """

    cutoffs: dict[Branch, int]
    logs: dict[Branch, int] = field(default_factory=dict)
    versions: dict[tuple[str, Branch], set[int]] = field(default_factory=dict)
    """Dataset and Lance branch → versions; of the manifest and the commit log those below the cutoffs alone."""
    consumers: tuple[Consumer, ...] = ()
    """Those whose unread states are among them."""

    def add(self, places: Iterable[Place]) -> None:
        for location, line, version in places:
            self.versions.setdefault((location, line), set()).add(version)


def needed(
    store: GraphStore,
    lines: Mapping[Branch, BranchStates],
    keep: int | None,
    limit: datetime,
    among: frozenset[Branch] | None = None,
) -> Needed:
    """All that the policy keeps, and all that it may not touch; states of branches that are not `among` all stay."""
    found = Needed(
        {
            branch: line.cutoff(keep, limit) if among is None or branch in among else next(iter(line.stored))
            for branch, line in lines.items()
        }
    )
    found.consumers = readers(store, lines)
    for consumer in found.consumers:
        for branch, oldest in needed_from(first_parents(store, consumer.branch), consumer.version).items():
            if branch in lines:
                first = next(iter(lines[branch].stored))
                found.cutoffs[branch] = max(first, min(oldest, found.cutoffs[branch]))
    for branch, line in lines.items():
        found.add(shown_since(store, line, found.cutoffs[branch]))
    for tag in list_tags(store).values():
        _keep(store, found, tag.branch, tag.manifest_version, is_required=True)
        shown = lines[tag.branch].commits.get(tag.commit) if tag.branch in lines and tag.commit else None
        if shown is not None:  # merges of a branch that begins at the tag start there
            _keep(store, found, shown.branch, shown.manifest_version)
    for commit in {base for _, base in merge_starts(lines)}:
        _keep(store, found, commit.branch, commit.manifest_version)
    for branch, cutoff in found.cutoffs.items():
        with suppress(VersionExpiredError):
            found.logs[branch] = log_up_to(store.location, branch, cutoff)[0]
    return found


def readers(store: GraphStore, lines: Mapping[Branch, BranchStates]) -> tuple[Consumer, ...]:
    """Consumers whose branch is there, and is the one that they read."""
    return tuple(each for each in list_consumers(store) if _is_reading(store, each, lines))


def _is_reading(store: GraphStore, consumer: Consumer, lines: Mapping[Branch, BranchStates]) -> bool:
    """Whether the branch of a consumer is there, and is the one that it reads."""
    return consumer.branch in lines and store.branch_id(consumer.branch) == consumer.branch_id


def shown_since(store: GraphStore, line: BranchStates, cutoff: int) -> Iterator[Place]:
    """Every version of a table that a state from the cutoff on shows."""
    yield from places_of(line.snapshot)[:-1]
    if cutoff == line.snapshot.version:
        return
    before = read_rows(store.manifest(line.branch, cutoff))
    yield from places_of(store.snapshot(line.branch, cutoff))[:-1]
    known = {row.object_id for row in before}
    locations = {row.table_key: row.location for row in line.rows if row.kind == RowKind.TABLE}
    for row in line.rows:
        location = locations.get(row.table_key)
        if row.kind == RowKind.VERSION and row.object_id not in known and location is not None:
            yield location, row.table_branch, row.table_version or 0


def _keep(store: GraphStore, found: Needed, branch: Branch, version: int, is_required: bool = False) -> None:
    """One state besides those from the cutoff on. One that has expired already is no loss, unless it is required."""
    if branch not in found.cutoffs or version >= found.cutoffs[branch]:
        return
    try:
        places = places_of(store.snapshot(branch, version))
    except VersionExpiredError:
        if is_required:
            raise
        return
    found.add(places)
    if is_required:
        found.add([(COMMITS, branch, log_up_to(store.location, branch, version)[0])])


def merge_starts(lines: Mapping[Branch, BranchStates]) -> Iterator[tuple[Branch, Commit]]:
    """Each branch with the commits that a merge of it with main or with its parent, either way, starts from."""
    commits = {key: commit for line in lines.values() for key, commit in line.commits.items()}
    for branch, line in lines.items():
        heads = {lines[other].head for other in (None, line.parent) if other in lines}
        for head in heads - {line.head, None}:
            if line.head is not None and head is not None:
                yield from ((branch, base) for base in merge_bases(commits, line.head, head))
