"""Deleting branches (storage format, section 10).

A branch exists as long as the manifest has it, so that goes first and decides; what else the branch had, which is its
line of the commit log and its forks of tables, goes afterwards as far as nothing shows it. What then stays, because
the process died or something refers to it, is an orphan, and `cleanup` sees to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.branch.info import BranchInfo, branch_infos
from spark_omnigraph.branch.orphans import Shown, what_is_shown
from spark_omnigraph.branch.tags import drop_half_tags, list_tags
from spark_omnigraph.commit.claim import Claim, branch_claim, claimed, fork_claim, source_claim
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.lost import forget_branch
from spark_omnigraph.commit.owners import await_turn
from spark_omnigraph.commit.publisher import current_head
from spark_omnigraph.commit.schema.lock import refuse_schema_change
from spark_omnigraph.draw.card import Card, grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRequestError, ConflictError, RecoveryRequiredError, StorageError, WriterBusyError
from spark_omnigraph.manifest.branches import BranchName
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import COMMITS, MANIFEST
from spark_omnigraph.storage.tables.commits import drop_branch


@dataclass(frozen=True, slots=True, repr=False)
class DeletedBranch(Displayed):
    """A branch that is gone. `head` was its newest commit; `forks` are the tables that it had of its own."""

    branch: BranchName
    head: str | None
    forks: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """What of it could not be removed now; `cleanup` will."""

    def _card(self) -> Card:
        forks = grid("Tables of its own", ("table",), ((key,) for key in self.forks), len(self.forks))
        head = "without commits" if self.head is None else f"head {self.head}"
        return Card("DeletedBranch", f"{self.branch}, {head}", {"head": self.head}, without_empty(forks), self.warnings)


@dataclass(frozen=True, slots=True, repr=False)
class MergedBranches(Displayed):
    """Merged branches that are gone, and for each that stays its name and why."""

    deleted: tuple[DeletedBranch, ...]
    stays: tuple[str, ...]

    def _card(self) -> Card:
        heads = ((each.branch, each.head) for each in self.deleted)
        gone = grid("Deleted", ("branch", "head"), heads, len(self.deleted))
        stays = grid("What stays, and why", ("branch",), ((why,) for why in self.stays), len(self.stays))
        warnings = tuple(warning for each in self.deleted for warning in each.warnings)
        line = f"{len(self.deleted):,} deleted, {len(self.stays):,} stay"
        return Card("MergedBranches", line, grids=without_empty(gone, stays), notes=warnings)


def delete_branch(store: GraphStore, name: str) -> DeletedBranch:
    """Removes a branch with its commits and its own versions of tables; no other branch changes.

    A writer that is alive on it is waited for. Raises BadRequestError for main, NotFoundError, ConflictError when
    another branch depends on it or a schema change runs, RecoveryRequiredError when a write on it was interrupted.
    """
    branch = _deletable(name)
    with claimed(store, branch_claim(branch)) as claim, claimed(store, source_claim(branch)):
        # Announced first, and looked second: a writer arms first and then asks for this claim.
        shown = _refuse_in_use(store, branch)
        head, forks = _head(store, branch), _forks(shown, branch)
        own = [location for location in sorted(shown.tables) if (location, branch) in shown.forks]
        drop_half_tags(store, (MANIFEST, *own))  # they would bar the removal
        reach(CrashPoint.BRANCH_FREE)
        debris = _drop(store, MANIFEST, branch, claim)
        if branch in store.branch_names():
            raise ConflictError(f"branch '{branch}' could not be deleted ({debris}); run it again")
        reach(CrashPoint.BRANCH_GONE)
        warnings = [debris, _drop(store, COMMITS, branch, claim)]
        forget_branch(store, branch)
    warnings += [_drop_fork(store, location, branch) for location in own]
    return DeletedBranch(branch, head, forks, tuple(w for w in warnings if w is not None))


def check_deletable(store: GraphStore, name: str, gone: frozenset[str] = frozenset()) -> DeletedBranch:
    """What `delete_branch` would give once these others are gone. Raises what it does."""
    branch = _deletable(name)
    return DeletedBranch(branch, _head(store, branch), _forks(_refuse_in_use(store, branch, gone), branch))


def delete_merged(store: GraphStore, dry_run: bool = False) -> MergedBranches:
    """Deletes every branch whose commits all lie behind main or its parent, children first.

    A branch without commits of its own counts as new, not as merged.
    """
    deleted: list[DeletedBranch] = []
    stays: list[str] = []
    infos = {info.name: info for info in branch_infos(store)}
    for name in sorted(infos, key=lambda each: (-_depth(infos, each), each)):
        if not infos[name].merged_into:
            continue
        try:
            gone = frozenset(each.branch for each in deleted)
            deleted.append(check_deletable(store, name, gone) if dry_run else delete_branch(store, name))
        except (ConflictError, RecoveryRequiredError) as error:
            stays.append(f"'{name}' is merged, and stays: {error.message}")
    return MergedBranches(tuple(deleted), tuple(stays))


def _depth(infos: Mapping[str, BranchInfo], name: str) -> int:
    parent = infos[name].parent if name in infos else None
    return 0 if parent is None else 1 + _depth(infos, parent)


def _forks(shown: Shown, branch: BranchName) -> tuple[str, ...]:
    """Tables that a branch has of its own, now or earlier."""
    keys = (keys for location, keys in shown.tables.items() if (location, branch) in shown.forks)
    return tuple(sorted(key for of_location in keys for key in of_location))


def _deletable(name: str) -> BranchName:
    branch = parse_branch(name)
    if branch is None:
        raise BadRequestError("cannot delete branch 'main': it is the graph itself")
    return branch


def _refuse_in_use(store: GraphStore, branch: BranchName, gone: frozenset[str] = frozenset()) -> Shown:
    """What all branches show, after making sure that nobody needs this one."""
    refuse_schema_change(store)
    store.require_branch(branch)
    _refuse_descendants(store, branch, gone)
    tags = [tag.name for tag in list_tags(store).values() if tag.branch == branch]
    if tags:
        raise ConflictError(
            f"cannot delete branch '{branch}' because tag '{tags[0]}' shows it; delete {', '.join(tags)} first"
        )
    await_turn(store, branch, frozenset(store.snapshot(branch).entries))
    shown = what_is_shown(store)
    others = what_is_shown(store, apart_from=gone | {branch})
    users = sorted(key for location, line in others.forks if line == branch for key in others.tables.get(location, ()))
    if users:
        raise ConflictError(
            f"cannot delete branch '{branch}' because '{users[0]}' is shown from it on another branch, now or earlier: "
            "delete that branch first, or keep this one"
        )
    return shown


def _refuse_descendants(store: GraphStore, branch: BranchName, gone: frozenset[str]) -> None:
    children = sorted(name for name, ref in store.branch_refs().items() if ref.parent == branch and name not in gone)
    if children:
        raise ConflictError(
            f"cannot delete branch '{branch}' because descendant branch '{children[0]}' still depends on it; delete "
            f"{', '.join(children)} first"
        )


def _head(store: GraphStore, branch: BranchName) -> str | None:
    snapshot, rows = store.snapshot_with_rows(branch)
    return current_head(store, branch, snapshot.version, rows)


def _drop_fork(store: GraphStore, location: str, branch: BranchName) -> str | None:
    """Removes the fork of one table, unless somebody made the branch anew meanwhile and shows it."""
    try:
        with claimed(store, fork_claim(location, branch)) as claim:
            if (location, branch) in what_is_shown(store).forks:
                return None
            return _drop(store, location, branch, claim)
    except (WriterBusyError, StorageError) as error:
        return f"{location} keeps its fork of '{branch}' until cleanup: {error.message}"


def _drop(store: GraphStore, location: str, branch: BranchName, claim: Claim) -> str | None:
    try:
        dataset = store.open_dataset(location)
        if store.has_lance_branch(location, branch):
            claim.keep()
            drop_branch(dataset, branch)
    except (CommitFailed, StorageError) as error:
        return f"{location} keeps its part of '{branch}' until cleanup: {error}"
    return None
