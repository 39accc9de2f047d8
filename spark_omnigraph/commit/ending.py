"""How an armed write ended when its tables stand at their published versions: read from the publish that ended it.

Every publish of ours names its operation in the sentinel row: the write itself, the undo of it, or a recovery and what
that decided. So a recovery that is repeated says the same again, and an undone write never gets a commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from spark_omnigraph.commit.publisher import current_head
from spark_omnigraph.commit.sidecar import Sidecar
from spark_omnigraph.errors import NotFoundError
from spark_omnigraph.manifest.ancestry import merge_bases
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.rows import PublishFacts, RowKind, sentinel_facts
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.manifest.commit_log import read_commits

ACTOR = "omnigraph:recovery"
"""Actor of everything that recovery publishes."""


class RecoveryKind(Enum):
    """How an interrupted write ended; the values are those of the recoveries dataset."""

    ROLLED_FORWARD = "RolledForward"
    ROLLED_BACK = "RolledBack"
    BRANCH_DISCARDED = "OrphanedBranchDiscarded"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a write ended, at which manifest version, and which commit tells of it.

    `is_new` says that this commit came with the ending and may still lack its row; otherwise it stood there before.
    """

    kind: RecoveryKind
    manifest_version: int
    commit_id: str
    parent: str | None
    actor: str | None
    is_new: bool = True


def undoing(operation_id: str) -> str:
    """Operation of the publish by which a writer takes back what it landed."""
    return f"undo:{operation_id}"


def recovering(operation_id: str, kind: RecoveryKind, token: str = "") -> str:
    """Operation of the publish of a recovery."""
    return f"recover:{operation_id}:{kind.value}:{token}"


def commit_id(sidecar: Sidecar, kind: RecoveryKind) -> str:
    """Commit that a recovery publishes. A write that is finished keeps the id that its caller may know; everything else
    gets one that every recovery of this sidecar would choose, so that none adds a second row.
    """
    own = sidecar.commit_id
    return own if kind is RecoveryKind.ROLLED_FORWARD and own is not None else sidecar.operation_id


def without_publish(store: GraphStore, sidecar: Sidecar, kind: RecoveryKind, branch: Branch) -> Ending:
    """The ending of a write that nothing was published for. One of ours is told of by the newest commit of the branch;
    one of another engine by a commit of its own, as that engine expects.
    """
    snapshot, rows = store.snapshot_with_rows(branch)
    newest = current_head(store, branch, snapshot.version, rows)
    if newest is None or not sidecar.is_ours:
        return Ending(kind, snapshot.version, sidecar.operation_id, newest, ACTOR)
    return Ending(kind, snapshot.version, newest, None, ACTOR, is_new=False)


def find_ending(store: GraphStore, sidecar: Sidecar) -> Ending:
    """The ending of a write whose tables were published since it began, by whomever.

    One of ours that no publish names ended without any. Other engines name none; there only confirmed versions that
    were published prove that a write is finished. The version that a loser meant to publish may be the winner's.
    """
    version = store.snapshot(sidecar.branch).version
    while version > 0:
        shown, rows = store.snapshot_with_rows(sidecar.branch, version)
        facts = sentinel_facts(rows)
        if facts is None or _is_before(sidecar, shown):
            break
        found = _ending(sidecar, facts)
        if found is not None:
            return found
        version = facts.base  # what stood before the publish that this version shows
    if sidecar.is_schema_change and not sidecar.is_ours:
        return without_publish(store, sidecar, RecoveryKind.ROLLED_FORWARD, sidecar.branch)
    if _is_proven(store, sidecar):
        return without_publish(store, sidecar, RecoveryKind.ROLLED_FORWARD, sidecar.branch)
    return _unproven(store, sidecar)


def _is_proven(store: GraphStore, sidecar: Sidecar) -> bool:
    """Whether the versions that a writer of another engine says it reached, one by one, were all published."""
    if sidecar.is_ours or not sidecar.pins:
        return False
    rows = store.manifest_rows(store.manifest(sidecar.branch))
    published = {(r.table_key, r.table_version, r.table_branch) for r in rows if r.kind == RowKind.VERSION}
    return all(
        pin.confirmed is not None
        and pin.confirmed > pin.expected
        and (pin.table_key, pin.confirmed, pin.branch) in published
        for pin in sidecar.pins
    )


def _unproven(store: GraphStore, sidecar: Sidecar) -> Ending:
    """The ending of a write of which nothing is known to have been published; the newest commit tells of it."""
    snapshot, rows = store.snapshot_with_rows(sidecar.branch)
    newest = current_head(store, sidecar.branch, snapshot.version, rows)
    return Ending(
        RecoveryKind.ROLLED_BACK, snapshot.version, newest or sidecar.operation_id, None, ACTOR, is_new=newest is None
    )


def _is_before(sidecar: Sidecar, shown: Snapshot) -> bool:
    """Whether a snapshot shows nothing of a write."""
    if sidecar.pins:
        return all(shown.pin(pin.table_key) <= pin.expected for pin in sidecar.pins)
    if sidecar.planned_on is not None:
        return shown.version <= sidecar.planned_on
    added = any(shown.pin(each.table_key) for each in sidecar.registrations)
    return not added and all(shown.pin(each.table_key) for each in sidecar.tombstones)


def _ending(sidecar: Sidecar, facts: PublishFacts) -> Ending | None:
    """The ending that a publish stands for, or None when it belongs to another write."""
    operation, version = sidecar.operation_id, facts.base + 1
    if facts.operation == operation and sidecar.commit_id is not None:
        kind = RecoveryKind.ROLLED_FORWARD
        return Ending(kind, version, sidecar.commit_id, facts.parent, sidecar.actor)
    if facts.operation in (operation, undoing(operation)):  # neither maintenance nor an undo makes a commit
        kind = RecoveryKind.ROLLED_FORWARD if facts.operation == operation else RecoveryKind.ROLLED_BACK
        return Ending(kind, version, facts.commit or operation, facts.parent, ACTOR, facts.commit is None)
    for kind in RecoveryKind:
        if facts.operation.startswith(recovering(operation, kind)):
            return Ending(kind, version, commit_id(sidecar, kind), facts.parent, ACTOR)
    return None


def lacks_tables(store: GraphStore, sidecar: Sidecar) -> bool:
    """Whether a merge by another engine was to change tables that its sidecar does not name. False for ours, which name
    all, and where the source's commit cannot be read any more.

    The reference engine publishes tables that it shows by pointer, or as a fork, along with those that it writes, and
    names only the latter. Finished from that the merge would count as done, and no later one would bring the others.
    """
    if sidecar.is_ours or sidecar.merge_source is None:
        return False
    commits: dict[str, Commit] = {}
    for branch in store.graph_branches():
        commits |= {commit.id: commit for commit in read_commits(store.location, branch)}
    source = commits.get(sidecar.merge_source)
    target, rows = store.snapshot_with_rows(sidecar.branch)
    head = current_head(store, sidecar.branch, target.version, rows)
    if source is None or head not in commits:
        return False
    try:
        theirs = store.snapshot(source.branch, source.manifest_version)
        bases = [store.snapshot(each.branch, each.manifest_version) for each in merge_bases(commits, source.id, head)]
    except NotFoundError:
        return False
    left = (key for key in theirs.entries if key not in sidecar.tables and theirs.place(key) != target.place(key))
    return any(theirs.place(key) != base.place(key) for key in left for base in bases)
