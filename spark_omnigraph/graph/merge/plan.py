"""What a merge is planned on: both heads, where they parted, and which tables the two sides show differently."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from spark_omnigraph.branch.conflicts import OnConflict
from spark_omnigraph.commit.owners import await_turn
from spark_omnigraph.commit.schema.lock import refuse_schema_change
from spark_omnigraph.errors import BadRequestError, ConflictError, NotFoundError
from spark_omnigraph.graph.merge.decisions import TableDecisions
from spark_omnigraph.graph.merge.rows import TableSides
from spark_omnigraph.graph.read.scan import pinned_rows
from spark_omnigraph.manifest.ancestry import lost_bases, merge_bases, missing
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.write.candidates import Base, capture

_PAUSES = (*(0.05 * 1.5**turn for turn in range(10)), 0.0)
"""Seconds between two looks for a commit that is not logged yet."""


@dataclass(frozen=True, slots=True)
class MergePlan:
    """One attempt. `bases` are the commits where the branches parted and what they show, newest first; several after
    the branches were merged into each other.
    """

    source: Base
    target: Base
    bases: tuple[tuple[Commit, Snapshot], ...]
    branch_ids: Mapping[Branch, str | None]
    """What told every branch from a later one of its name before anything was read of it."""
    lost: frozenset[str]
    """Commits that both sides have and that cannot be read any more, ahead of the bases."""

    @property
    def warnings(self) -> tuple[str, ...]:
        if not self.lost:
            return ()
        commits = f"{len(self.lost)} commit{'s' * (len(self.lost) > 1)}"
        return (
            f"both branches have {commits} in common that went with a branch or with a clean-up, such as "
            f"{min(self.lost)}: compared with where they parted before, so look at rows that one of them has set back",
        )

    def read_from(self) -> dict[Branch, str | None]:
        """Branches that are read besides the target, with their ids."""
        read = {self.source.snapshot.branch, *(commit.branch for commit, _ in self.bases)}
        return {branch: self.branch_ids.get(branch) for branch in read - {self.target.snapshot.branch}}

    @property
    def source_commit(self) -> str:
        return _commit(self.source)

    @property
    def target_commit(self) -> str:
        return _commit(self.target)

    @property
    def is_contained(self) -> bool:
        """Whether the target has every commit of the source."""
        return any(commit.id == self.source.commit for commit, _ in self.bases)

    @property
    def is_fast_forward(self) -> bool:
        """Whether the source has every commit of the target."""
        return any(commit.id == self.target.commit for commit, _ in self.bases)

    def changed_tables(self) -> list[str]:
        """Tables that the source shows in another version than the target and than some base, in key order.

        One base that it agrees with is not enough: the target may agree with another one, and then the two disagree.
        """
        keys = {entity.table_key for entity in self.target.contract.catalog.tables()}
        source = self.source.snapshot
        others = [base for _, base in self.bases]
        differ = (key for key in keys if not _same(source, self.target.snapshot, key))
        return sorted(key for key in differ if any(not _same(source, base, key) for base in others))

    def sides(
        self, store: GraphStore, table_key: str, on_conflict: OnConflict, decisions: TableDecisions
    ) -> TableSides:
        """A type as every side shows it."""
        entity = self.target.contract.catalog.require(table_key)
        bases = tuple(pinned_rows(store, base, table_key) for _, base in self.bases)
        source, target = (pinned_rows(store, head.snapshot, table_key) for head in (self.source, self.target))
        return TableSides(entity, source, target, bases, on_conflict, decisions)


def plan_merge(store: GraphStore, source: Branch, target: Branch) -> MergePlan:
    """Captures both branches and finds where they parted.

    Raises BadRequestError for branches that have nothing in common, NotFoundError for a missing one, ConflictError
    while a schema change runs.
    """
    refuse_schema_change(store)
    store.require_branch(source)
    store.require_branch(target)
    ids: dict[Branch, str | None] = {name: ref.id for name, ref in store.branch_refs().items()}
    one, other = capture(store, source), capture(store, target)
    heads = (_commit(one), _commit(other))
    commits = _logged(store, (one, other), heads)
    found = _bases(store, commits, heads)
    if not found:
        raise BadRequestError(
            f"branches '{display(source)}' and '{display(target)}' have no common ancestor that is still stored: "
            "export the one and load that into the other"
        )
    return MergePlan(one, other, found, ids, lost_bases(commits, *heads, (commit for commit, _ in found)))


def _bases(
    store: GraphStore, commits: Mapping[str, Commit], heads: tuple[str, str]
) -> tuple[tuple[Commit, Snapshot], ...]:
    """Where the branches parted, of what can be read yet."""
    gone: set[str] = set()
    while True:
        shown = [(commit, _shown(store, commit)) for commit in merge_bases(commits, *heads, gone)]
        lost = {commit.id for commit, snapshot in shown if snapshot is None}
        if not lost:
            return tuple((commit, snapshot) for commit, snapshot in shown if snapshot is not None)
        gone |= lost


def _logged(store: GraphStore, sides: tuple[Base, Base], heads: tuple[str, str]) -> dict[str, Commit]:
    """The commits behind both heads. A head that was published a moment ago is waited for: without its row in the log
    nobody knows what is behind it. RecoveryRequiredError when its writer died, ConflictError when it never comes.
    """
    for pause in _PAUSES:
        commits = _read_logs(store, [side.snapshot.branch for side in sides], heads)
        late = [side for side, head in zip(sides, heads, strict=True) if head not in commits]
        if not late:
            return commits
        for side in late:
            await_turn(store, side.snapshot.branch, frozenset(side.snapshot.entries))
        time.sleep(pause)
    raise ConflictError(
        f"the newest commit of branch '{display(late[0].snapshot.branch)}' is not in the commit log: its writer is "
        "slow, or died; run recover, then merge again"
    )


def _commit(base: Base) -> str:
    if base.commit is None:
        raise BadRequestError(f"branch '{display(base.snapshot.branch)}' has no commit: load something first")
    return base.commit


def _read_logs(store: GraphStore, sides: list[Branch], heads: tuple[str, str]) -> dict[str, Commit]:
    """Logs of both sides, and of further branches until no commit behind the heads is missing: what was merged from a
    third branch is told of there.
    """
    commits: dict[str, Commit] = {}
    others = (each for each in store.graph_branches() if each not in sides)
    for branch in (*sides, *others):
        if branch not in sides and not missing(commits, heads):
            break
        commits |= {commit.id: commit for commit in store.commits(branch)}
    return commits


def _shown(store: GraphStore, commit: Commit) -> Snapshot | None:
    """What a commit left, None when its branch is gone."""
    try:
        return store.snapshot(commit.branch, commit.manifest_version)
    except NotFoundError:
        return None


def _same(one: Snapshot, other: Snapshot, table_key: str) -> bool:
    return one.place(table_key) == other.place(table_key)
