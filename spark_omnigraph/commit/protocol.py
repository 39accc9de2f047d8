"""The commit protocol. Whoever needs to know what may follow what reads this file.

    prepared ──revalidate──▶ bound ──arm──▶ armed ──land──▶ landed ──publish──▶ published ──record──▶ done
       │                       │             │               │                     │
       └─ nothing moved: plain errors ───────┤               │                     └─ the write stands
                                             └── undo ◀──────┘
                                                  │
                                                  └─ undo failed or outcome unknown: RecoveryRequiredError

Rules for editors: every step takes the value of the stage before it and returns the value of the next one, so a step
cannot be run out of order; whatever fails, `RULES` says what is done about it, and nothing else decides.

* Before *arm* a failure costs nothing.
* Between *arm* and *publish* a definite loss is undone by the writer itself while it holds its lease: restore, publish
  the restored versions, remove the sidecar, raise the conflict. An unknown outcome is never guessed.
* After *publish* the write stands. A missing commit row leaves the sidecar behind for recovery.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from enum import Enum

from spark_omnigraph.commit import sidecar
from spark_omnigraph.commit.claim import is_claimed, recovery_claim
from spark_omnigraph.commit.contract import current_hash
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.ending import undoing
from spark_omnigraph.commit.lease import Lease, has_ended
from spark_omnigraph.commit.lost import refuse_lost
from spark_omnigraph.commit.owners import await_turn, covering
from spark_omnigraph.commit.plan import ArmedCommit, BoundWrite, LandedTable, PreparedCommit, Published, TableWrite
from spark_omnigraph.commit.publisher import Publication, PublishedVersion, check_expectations, publish
from spark_omnigraph.commit.realign import realign
from spark_omnigraph.errors import (
    ConflictError,
    DriftError,
    ExpectedVersionMismatch,
    InternalError,
    OmnigraphError,
    RecoveryRequiredError,
    StorageError,
    WriterBusyError,
)
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.rows import TableUpdate
from spark_omnigraph.storage.faults import CommitFailed, Outcome
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import branch_path, manifest_file
from spark_omnigraph.storage.manifest.commit_log import append_commit, complete_commit
from spark_omnigraph.storage.manifest.stamp import migrate, read_format
from spark_omnigraph.storage.tables.commits import (
    CONTENT_KEY,
    FENCE_KEY,
    OPERATION_KEY,
    at_version,
    commit_compaction,
    commit_strict,
    landed_version,
    newest_version,
    prepare_change,
    restore,
)

TURNS = 20
"""Times a writer steps back for others that armed at the same moment."""


class Phase(Enum):
    """Where a write stands when something fails."""

    ARM = "arm"
    LAND = "land"
    PUBLISH = "publish"
    RECORD = "record"
    CLEAN = "clean"


class Observation(Enum):
    """What a failure proves."""

    LOST = "lost"
    """Somebody else won."""
    FAILED = "failed"
    """The step did not take effect."""
    UNKNOWN = "unknown"
    """It may have taken effect."""


class Action(Enum):
    """What the protocol does about it."""

    ABORT = "abort"
    """Nothing moved: remove sidecar and lease, raise."""
    UNDO = "undo"
    """Restore what moved, publish that, remove sidecar and lease, raise."""
    RECOVER = "recover"
    """Leave sidecar and lease; recovery decides."""
    STAND = "stand"
    """The write is visible; return it with a warning."""


RULES: dict[tuple[Phase, Observation], Action] = {
    (Phase.ARM, Observation.LOST): Action.ABORT,
    (Phase.ARM, Observation.FAILED): Action.ABORT,
    (Phase.ARM, Observation.UNKNOWN): Action.ABORT,
    (Phase.LAND, Observation.LOST): Action.UNDO,
    (Phase.LAND, Observation.FAILED): Action.UNDO,
    (Phase.LAND, Observation.UNKNOWN): Action.RECOVER,
    (Phase.PUBLISH, Observation.LOST): Action.UNDO,
    (Phase.PUBLISH, Observation.FAILED): Action.UNDO,
    (Phase.PUBLISH, Observation.UNKNOWN): Action.RECOVER,
    (Phase.RECORD, Observation.LOST): Action.STAND,
    (Phase.RECORD, Observation.FAILED): Action.STAND,
    (Phase.RECORD, Observation.UNKNOWN): Action.STAND,
    (Phase.CLEAN, Observation.LOST): Action.STAND,
    (Phase.CLEAN, Observation.FAILED): Action.STAND,
    (Phase.CLEAN, Observation.UNKNOWN): Action.STAND,
}
"""(phase, observation) → action; complete, so that no failure is unforeseen."""


def commit(store: GraphStore, prepared: PreparedCommit, abandon: Callable[[], None] = lambda: None) -> Published:
    """Makes a prepared write visible, whole or not at all.

    `abandon` is called when the write ends before anything could land, so that its staged files may be removed. Raises
    ExpectedVersionMismatch or another ConflictError when somebody else won (nothing changed), RecoveryRequiredError
    when the outcome is unknown.
    """
    if prepared.is_empty:
        raise InternalError("a write without tables was handed to the commit protocol")
    if not prepared.writes:
        return _publish_name(store, prepared, abandon)
    lease = Lease(store, prepared.identity.operation_id)
    with lease:
        try:
            armed = _take_turn(store, prepared, lease)
        except OmnigraphError:
            abandon()
            raise
        landed = _land_all(store, armed, lease)
        version = _publish_or_undo(store, armed, landed, lease)
        reach(CrashPoint.PUBLISHED)
        warnings = record(store, armed, version, lease) or _clean(store, armed, lease, version)
    store.tidy(prepared.branch)
    return Published(
        prepared.identity.commit_id,
        version.parent,
        version.manifest_version,
        {t.bound.write.table_key: t.version for t in landed},
        version.overtaken + warnings,
    )


def _publish_name(store: GraphStore, prepared: PreparedCommit, abandon: Callable[[], None]) -> Published:
    """Publishes the name of a write that changes no table, so that it does not act when it comes again.

    One compare-and-swap of two manifest rows: nothing lands, so there is nothing to arm, to record or to undo.
    """
    try:
        _refuse_schema_change(store)
        refuse_lost(store, prepared.branch)
        _refuse_late(store, prepared)
        version = publish(store, _publication(prepared, (), None))
    except RecoveryRequiredError as unknown:
        abandon()
        raise StorageError(
            f"storage: whether the name of this write was recorded is not known ({unknown.__cause__ or unknown}); it "
            "had nothing else to write, so run it again"
        ) from unknown
    except OmnigraphError:
        abandon()
        raise
    store.tidy(prepared.branch)
    return Published(None, version.parent, version.manifest_version, {}, version.overtaken)


def _publication(prepared: PreparedCommit, updates: tuple[TableUpdate, ...], commit_id: str | None) -> Publication:
    identity = prepared.identity
    return Publication(
        prepared.branch,
        updates,
        prepared.expectations(),
        identity.operation_id,
        commit_id,
        identity.actor,
        prepared.transaction,
    )


def _take_turn(store: GraphStore, prepared: PreparedCommit, lease: Lease) -> ArmedCommit:
    """Arms when no other writer covers the same tables.

    Each writer arms first and looks second, so of two that meet at least one sees the other; who sees one steps back.
    Two overlapping writers of this library therefore never both land.
    """
    own = prepared.identity.operation_id
    for attempt in range(TURNS):
        await_turn(store, prepared.branch, prepared.tables)
        bound = revalidate(store, prepared)
        reach(CrashPoint.BOUND)
        armed = arm(store, prepared, bound, lease)
        try:
            other = covering(store, prepared.branch, prepared.tables, other_than=own)
            if other is None:
                _refuse_moved(store, armed)
                _refuse_late(store, prepared)
        except OmnigraphError:
            _act(RULES[Phase.ARM, Observation.UNKNOWN], store, armed, (), lease)
            raise
        if other is None:
            reach(CrashPoint.ARMED)
            return armed
        _act(RULES[Phase.ARM, Observation.LOST], store, armed, (), lease)
        time.sleep(random.uniform(0, 0.02 * 2 ** min(attempt, 6)))
    raise WriterBusyError(f"other writers kept getting in the way of {sorted(prepared.tables)}; try again later")


def _refuse_moved(store: GraphStore, armed: ArmedCommit) -> None:
    """Looks at HEAD again where Lance would land a change on a newer one too, as it does with indexes and compactions.

    Whoever armed, published and cleaned up since this write was bound is seen neither by a sidecar nor by Lance.
    """
    for bound in armed.bound:
        if bound.write.change.tolerates and newest_version(bound.dataset) != bound.write.entry.version:
            raise _loss(store, armed, bound)


def _refuse_late(store: GraphStore, prepared: PreparedCommit) -> None:
    """Refuses a write whose stage was taken for dead while it stood still: clean-up may have removed what it staged."""
    if has_ended(store, prepared.stages):
        raise ConflictError(
            "this write stood still for so long that it was taken for dead, or the graph is being made anew by an init "
            "(one that died is seen to by a read-write open, or by recover); what it had staged may be gone, nothing "
            "has changed, run it again"
        )


def _refuse_taken(store: GraphStore, armed: ArmedCommit, landed: tuple[LandedTable, ...], lease: Lease) -> None:
    """Refuses to land anything once this process' own clocks say that others may have taken the write for dead."""
    if not lease.may_be_taken():
        return
    late = ConflictError("this write stood still for so long that it may have been taken for dead; run it again")
    if is_claimed(store, recovery_claim(armed.prepared.identity.operation_id)):
        raise _unknown(armed, late)
    _act(RULES[Phase.LAND, Observation.LOST], store, armed, landed, lease)
    raise late


def revalidate(store: GraphStore, prepared: PreparedCommit) -> tuple[BoundWrite, ...]:
    """Binds each table write to its dataset at the pin, after checking that nothing it relies on has moved.

    Raises ExpectedVersionMismatch for a moved pin and ConflictError for a changed schema, a running schema change or
    a HEAD that is ahead of its pin; DriftError also when the manifest lacks publishes.
    """
    _refuse_schema_change(store)
    if current_hash(store) != prepared.schema_hash:
        raise ConflictError("the schema changed after this write was planned; plan it again")
    refuse_lost(store, prepared.branch)
    # A stamp that must not be written is found here, where nothing has moved yet, and not by the publish.
    manifest = migrate(store.manifest(prepared.branch))
    snapshot = read_format(manifest).reduce(prepared.branch, int(manifest.version), store.manifest_rows(manifest))
    check_expectations(snapshot, prepared.expectations())
    ordered = sorted(prepared.writes, key=lambda w: w.table_key)
    return tuple(_bind(store, prepared, write) for write in ordered)


def _refuse_schema_change(store: GraphStore) -> None:
    if store.has_schema_lock():
        raise ConflictError(
            "a schema change is running, or died: writes are refused until it is over. One that died is seen to by a "
            "read-write open some minutes later, or by recover"
        )


def _bind(store: GraphStore, prepared: PreparedCommit, write: TableWrite) -> BoundWrite:
    expected = write.entry.version
    dataset = store.open_dataset(branch_path(write.entry.location, write.branch))
    head = int(dataset.version)
    if head != expected:
        if covering(store, prepared.branch, frozenset({write.table_key})) is not None:
            raise ExpectedVersionMismatch(write.table_key, expected, head)
        # A writer that published and removed its sidecar since the snapshot was read shows as a moved pin.
        check_expectations(store.snapshot(prepared.branch), {write.table_key: expected})
        if realign(store, prepared.branch, write.table_key):
            raise ExpectedVersionMismatch(
                write.table_key, expected, store.snapshot(prepared.branch).pin(write.table_key)
            )
        raise DriftError(
            f"'{write.table_key}' is at version {head} but version {expected} is published, and no running write "
            "covers it: another program committed to it past the manifest. Run repair: it says what happened and how "
            "to go on."
        )
    if write.change.rewrites:
        return BoundWrite(write, dataset, None)
    properties = {OPERATION_KEY: prepared.identity.operation_id}
    return BoundWrite(write, dataset, prepare_change(dataset, write.change, properties))


def arm(store: GraphStore, prepared: PreparedCommit, bound: tuple[BoundWrite, ...], lease: Lease) -> ArmedCommit:
    """Phase A: lease, then sidecar, are durable. Nothing has moved when it fails."""
    lease.acquire()
    reach(CrashPoint.LEASED)
    armed = ArmedCommit(prepared, bound)
    try:
        sidecar.arm(store, prepared)
    except OmnigraphError:
        _act(RULES[Phase.ARM, Observation.FAILED], store, armed, (), lease)
        raise
    return armed


def land(bound: BoundWrite) -> LandedTable:
    """Phase B for one table: its transaction lands at exactly pin + 1, or CommitFailed says that it did not.

    Every failure is read back: a client that asks again after a lost answer is refused by its own success.
    """
    if bound.transaction is None:
        return _land_compaction(bound)
    try:
        dataset = commit_strict(bound.dataset, bound.transaction)
    except CommitFailed as failure:
        version = landed_version(bound.dataset, bound.transaction)
        if version is None:
            raise CommitFailed(Outcome.LOST, f"{failure} (read back: it did not land)") from failure
        dataset = at_version(bound.dataset, version)
    return LandedTable(bound, dataset)


def _land_compaction(bound: BoundWrite) -> LandedTable:
    """Like `land`, at exactly pin + 2. It changes no row, so recovery may finish it wherever it stopped: what is not
    plainly done or plainly undone is left to that.
    """
    table = bound.write.table_key
    try:
        landed = LandedTable(bound, commit_compaction(bound.dataset, bound.write.change.rewrites))
    except CommitFailed as failure:
        if newest_version(bound.dataset) == bound.write.entry.version:
            raise CommitFailed(Outcome.LOST, f"{failure} (read back: it did not land)") from failure
        raise StorageError(f"storage: the compaction of '{table}' stopped half-way: {failure}") from failure
    if landed.version != bound.write.landing:
        raise StorageError(f"storage: the compaction of '{table}' landed over a commit that no write here covers")
    return landed


def _land_all(store: GraphStore, armed: ArmedCommit, lease: Lease) -> tuple[LandedTable, ...]:
    landed: list[LandedTable] = []
    for bound in armed.bound:
        _refuse_taken(store, armed, tuple(landed), lease)
        try:
            table = land(bound)
        except CommitFailed as failure:
            _act(RULES[Phase.LAND, Observation.LOST], store, armed, tuple(landed), lease)
            loss = _loss(store, armed, bound)
            if isinstance(loss, ExpectedVersionMismatch) and loss.actual == loss.expected:
                raise StorageError(f"storage: {failure}") from failure  # nobody won: the store refused
            raise loss from failure
        except StorageError as failure:
            _act(RULES[Phase.LAND, Observation.UNKNOWN], store, armed, tuple(landed), lease)
            raise _unknown(armed, failure) from failure
        landed.append(table)
        reach(CrashPoint.LANDED_FIRST)
        if table.version != bound.write.landing:
            # It was rebased over a commit that we do not know: undo ours, keep theirs.
            _act(RULES[Phase.LAND, Observation.LOST], store, armed, tuple(landed), lease)
            raise _loss(store, armed, bound)
    reach(CrashPoint.LANDED_ALL)
    return tuple(landed)


def _publish_or_undo(
    store: GraphStore, armed: ArmedCommit, landed: tuple[LandedTable, ...], lease: Lease
) -> PublishedVersion:
    updates = tuple(_update(store, table, table.bound.write.row_count) for table in landed)
    publication = _publication(armed.prepared, updates, armed.prepared.identity.commit_id)
    try:
        return publish(store, publication)
    except RecoveryRequiredError:
        _act(RULES[Phase.PUBLISH, Observation.UNKNOWN], store, armed, landed, lease)
        raise
    except ConflictError:
        _act(RULES[Phase.PUBLISH, Observation.LOST], store, armed, landed, lease)
        raise
    except OmnigraphError:
        _act(RULES[Phase.PUBLISH, Observation.FAILED], store, armed, landed, lease)
        raise


def record(store: GraphStore, armed: ArmedCommit, version: PublishedVersion, lease: Lease) -> tuple[str, ...]:
    """Adds the commit row; maintenance has none. A failure leaves the sidecar and becomes a warning."""
    identity = armed.prepared.identity
    if identity.commit_id is None:
        return ()
    row = Commit(
        identity.commit_id,
        armed.prepared.branch,
        version.manifest_version,
        version.parent,
        None,
        time.time_ns() // 1000,
        identity.actor,
    )
    # Whoever took this write for dead has added the row.
    add = complete_commit if lease.may_be_taken() else append_commit
    try:
        add(store.location, row)
    except (CommitFailed, StorageError) as failure:
        return (f"published, but the commit row could not be written ({failure}); recovery completes it",)
    reach(CrashPoint.RECORDED)
    return ()


def _clean(store: GraphStore, armed: ArmedCommit, lease: Lease, version: PublishedVersion) -> tuple[str, ...]:
    operation_id = armed.prepared.identity.operation_id
    try:
        if lease.may_be_taken() and is_claimed(store, recovery_claim(operation_id)):
            # Its fences must not stay behind without the sidecar that says whose they are.
            return ("published, while another process took this write for dead; recovery removes its sidecar",)
        sidecar.disarm(store, operation_id)
        reach(CrashPoint.DISARMED)
        lease.release()
    except StorageError as failure:
        return (f"published as manifest version {version.manifest_version}, but cleaning up failed: {failure.message}",)
    return ()


def _act(action: Action, store: GraphStore, armed: ArmedCommit, landed: tuple[LandedTable, ...], lease: Lease) -> None:
    """Carries out what RULES says; returns when the graph is whole again, raises RecoveryRequiredError when not."""
    if action in (Action.RECOVER, Action.STAND):
        return
    if action is Action.UNDO and landed:
        undo(store, armed, landed)
    sidecar.disarm(store, armed.prepared.identity.operation_id)
    lease.release()


def undo(store: GraphStore, armed: ArmedCommit, landed: tuple[LandedTable, ...]) -> None:
    """Gives every landed table its published content back and publishes those versions, so that HEAD = pin again."""
    reach(CrashPoint.UNDO_STARTED)
    try:
        updates = []
        for table in landed:
            # Our change may have landed over somebody's commit: then the version below ours is theirs to keep.
            below = table.version - table.bound.write.change.versions
            properties = {FENCE_KEY: armed.prepared.identity.operation_id, CONTENT_KEY: str(below)}
            restored = restore(table.dataset, below, properties)
            if int(restored.version) != table.version + 1:
                overtaken = StorageError(f"storage: the restore of '{table.bound.write.table_key}' was overtaken")
                raise _unknown(armed, overtaken)
            if below == table.bound.write.entry.version:
                updates.append(_update(store, LandedTable(table.bound, restored), table.bound.write.entry.row_count))
        reach(CrashPoint.UNDO_RESTORED)
        if updates:
            pins = {t.bound.write.table_key: t.bound.write.entry.version for t in landed}
            keys = {u.table_key for u in updates}
            identity = armed.prepared.identity
            expected = {k: v for k, v in pins.items() if k in keys}
            operation = undoing(identity.operation_id)
            publish(
                store, Publication(armed.prepared.branch, tuple(updates), expected, operation, None, identity.actor)
            )
    except RecoveryRequiredError:
        raise
    except (CommitFailed, OmnigraphError) as failure:
        raise _unknown(armed, failure) from failure
    reach(CrashPoint.UNDO_PUBLISHED)


def _update(store: GraphStore, table: LandedTable, row_count: int) -> TableUpdate:
    write = table.bound.write
    uri = store.table_uri(write.entry.location, write.branch)
    path = store.manifest_path(uri, manifest_file(table.version))
    return TableUpdate(write.table_key, table.version, write.branch, row_count, path)


def _loss(store: GraphStore, armed: ArmedCommit, bound: BoundWrite) -> ConflictError:
    expected = bound.write.entry.version
    actual = store.snapshot(armed.prepared.branch).pin(bound.write.table_key)
    if actual == expected:
        actual = store.head_version(bound.write.entry.location, bound.write.branch)
    return ExpectedVersionMismatch(bound.write.table_key, expected, actual)


def _unknown(armed: ArmedCommit, failure: BaseException) -> RecoveryRequiredError:
    return RecoveryRequiredError(
        f"write {armed.prepared.identity.operation_id} was interrupted and its outcome is not known ({failure}); its "
        "sidecar was kept and recovery decides"
    )
