"""What there is to know of each branch: where it came from, its head, and what it has that its parent has not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_omnigraph.commit.publisher import current_head
from spark_omnigraph.manifest.ancestry import ancestors
from spark_omnigraph.manifest.branches import MAIN, Branch, BranchName, display, stored_branch
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.storage.graph_store import BranchRef, GraphStore
from spark_omnigraph.storage.layout import SCHEMA_APPLY_LOCK


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """One branch. `own_tables` are those that it shows from its own line, all for main; `ahead` counts commits that it
    has and its parent has not, `behind` those of the parent that it has not. `parent` is None for main, whose two
    counts are 0.
    """

    name: str
    parent: str | None
    manifest_version: int
    head: str | None
    own_tables: tuple[str, ...] = ()
    ahead: int = 0
    behind: int = 0
    merged_into: tuple[str, ...] = ()
    """Main and the parent, as far as they have every commit of this branch; empty for one without commits of its own.
    """


def branch_infos(store: GraphStore) -> list[BranchInfo]:
    """All branches, main first, then by name. Reads the manifest and the commit log of each, once."""
    refs = store.branch_refs()
    names = [MAIN, *sorted(name for name in refs if name.lstrip("/") != SCHEMA_APPLY_LOCK)]
    lines = {name: _line(store, stored_branch(name), refs) for name in names}
    parents: dict[str, str] = {name: display(ref.parent) for name, ref in refs.items()}
    commits = {key: commit for line in lines.values() for key, commit in line.commits.items()}
    seen = {name: _known(commits, line.head) for name, line in lines.items()}
    return [_info(name, line, parents.get(name), seen, commits) for name, line in lines.items()]


@dataclass(frozen=True, slots=True)
class _Line:
    version: int
    head: str | None
    own: tuple[str, ...]
    commits: Mapping[str, Commit]


def _line(store: GraphStore, branch: Branch, refs: Mapping[BranchName, BranchRef]) -> _Line:
    # The log first: a commit that lands meanwhile is one that the manifest has, and the log not yet.
    commits = {commit.id: commit for commit in store.commits(branch, with_actors=False)}
    snapshot, rows = store.snapshot_with_rows(branch, refs=refs)
    own = tuple(sorted(key for key, entry in snapshot.entries.items() if entry.branch == branch))
    return _Line(snapshot.version, current_head(store, branch, snapshot.version, rows, commits.values()), own, commits)


def _known(commits: Mapping[str, Commit], head: str | None) -> frozenset[str]:
    return frozenset() if head is None else ancestors(commits, head)


def _info(
    name: str,
    line: _Line,
    parent: str | None,
    seen: Mapping[str, frozenset[str]],
    commits: Mapping[str, Commit],
) -> BranchInfo:
    if name == MAIN or parent is None:
        return BranchInfo(name, None, line.version, line.head, line.own)
    mine = seen[name]
    theirs = seen.get(parent, frozenset())
    made_here = any(commits[each].branch == name for each in mine if each in commits)
    into = dict.fromkeys((MAIN, parent)) if made_here else {}
    merged = tuple(other for other in into if mine <= seen.get(other, frozenset()))
    return BranchInfo(name, parent, line.version, line.head, line.own, len(mine - theirs), len(theirs - mine), merged)
