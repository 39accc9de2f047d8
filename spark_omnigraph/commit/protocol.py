"""The commit protocol. Whoever needs to know what may follow what reads this file.

    prepared ──revalidate──▶ bound ──arm──▶ armed ──land──▶ landed ──publish──▶ published ──record──▶ done
       │                       │             │               │                     │
       └─ nothing moved: plain errors ───────┤               │                     └─ the write stands
                                             └── undo ◀──────┘
                                                  │
                                                  └─ undo failed or outcome unknown: RecoveryRequiredError

Rules for editors: every step takes the value of the stage before it and returns the value of the next one, so a step
cannot be run out of order; whatever fails does so inside an `_Attempt.step`, where `observe` says what that proves and
`RULES` what is done about it, and nothing else decides.

* Before *arm* a failure costs nothing.
* Between *arm* and *publish* a definite loss is undone by the writer itself while it holds its lease: restore, publish
  the restored versions, remove the sidecar, raise the conflict. An unknown outcome is never guessed.
* After *publish* the write stands. A missing commit row leaves the sidecar behind for recovery.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum

from spark_omnigraph.commit import sidecar
from spark_omnigraph.commit.announced import Announced, announced
from spark_omnigraph.commit.claim import branch_claim, is_claimed, is_held, recovery_claim
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.landing import land, landed_update
from spark_omnigraph.commit.lease import Lease
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.owners import await_turn, covering
from spark_omnigraph.commit.plan import ArmedCommit, BoundWrite, LandedTable, PreparedCommit, Published, TableWrite
from spark_omnigraph.commit.publisher import Publication, PublishedVersion, check_expectations, publish
from spark_omnigraph.commit.realign import realign
from spark_omnigraph.commit.schema.files import name_files, schema_rows, schema_turn, stage_files, take_back_files
from spark_omnigraph.commit.schema.lock import refuse_other_schema, refuse_schema_change
from spark_omnigraph.commit.stage import has_ended
from spark_omnigraph.commit.undo import undo, unknown_outcome
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
from spark_omnigraph.manifest.rows import TableUpdate, rewound_rows
from spark_omnigraph.storage.faults import CommitFailed, Outcome
from spark_omnigraph.storage.graph_store import TIDY_ABOVE, GraphStore
from spark_omnigraph.storage.layout import MANIFEST, SCHEMA_VERSION, branch_path
from spark_omnigraph.storage.manifest.commit_log import append_commit, complete_commit
from spark_omnigraph.storage.manifest.stamp import migrate
from spark_omnigraph.storage.tables.commits import (
    OPERATION_KEY,
    newest_version,
    prepare_change,
)
from spark_omnigraph.storage.tables.staged import discard

TURNS = 20
"""Times a writer steps back for others that armed at the same moment."""


class Phase(Enum):
    """Where a write stands when something fails."""

    BIND = "bind"
    NAME = "name"
    """The publish of a write that changes no table."""
    ARM = "arm"
    LAND = "land"
    PUBLISH = "publish"
    RECORD = "record"
    CLEAN = "clean"


class Observation(Enum):
    """What a failure proves."""

    FAILED = "failed"
    """The step did not take effect: somebody else won, or it was refused."""
    UNKNOWN = "unknown"
    """It may have taken effect."""


class Action(Enum):
    """What the protocol does about it."""

    REFUSE = "refuse"
    """Nothing is there to be taken back: raise."""
    ABORT = "abort"
    """Nothing moved: remove sidecar and lease, raise."""
    UNDO = "undo"
    """Restore what moved, publish that, remove sidecar and lease, raise."""
    RECOVER = "recover"
    """Leave sidecar and lease; recovery decides: raise RecoveryRequiredError."""
    STAND = "stand"
    """The write is visible; return it with a warning."""


RULES: dict[tuple[Phase, Observation], Action] = {
    (Phase.BIND, Observation.FAILED): Action.REFUSE,
    (Phase.BIND, Observation.UNKNOWN): Action.REFUSE,
    (Phase.NAME, Observation.FAILED): Action.REFUSE,
    (Phase.NAME, Observation.UNKNOWN): Action.REFUSE,
    (Phase.ARM, Observation.FAILED): Action.ABORT,
    (Phase.ARM, Observation.UNKNOWN): Action.ABORT,
    (Phase.LAND, Observation.FAILED): Action.UNDO,
    (Phase.LAND, Observation.UNKNOWN): Action.RECOVER,
    (Phase.PUBLISH, Observation.FAILED): Action.UNDO,
    (Phase.PUBLISH, Observation.UNKNOWN): Action.RECOVER,
    (Phase.RECORD, Observation.FAILED): Action.STAND,
    (Phase.RECORD, Observation.UNKNOWN): Action.STAND,
    (Phase.CLEAN, Observation.FAILED): Action.STAND,
    (Phase.CLEAN, Observation.UNKNOWN): Action.STAND,
}
"""(phase, observation) → action; complete, so that no failure is unforeseen."""


def observe(phase: Phase, failure: CommitFailed | OmnigraphError) -> Observation:
    """What a failure of a step proves. Whatever is not proven is unknown."""
    if isinstance(failure, CommitFailed):
        return Observation.FAILED if failure.outcome is Outcome.LOST else Observation.UNKNOWN
    if isinstance(failure, RecoveryRequiredError):
        return Observation.UNKNOWN
    is_read_back = phase in (Phase.NAME, Phase.PUBLISH)  # a publish says it when it does not know
    return Observation.FAILED if is_read_back or isinstance(failure, ConflictError) else Observation.UNKNOWN


@dataclass(slots=True)
class _Attempt:
    """One write on its way: what of it has landed so far, and the one place that deals with its failures."""

    store: GraphStore
    prepared: PreparedCommit
    lease: Lease
    landed: list[LandedTable] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    """How many files each dataset of the commit log has that this write added to."""

    @property
    def whole(self) -> WholeBranch:
        return WholeBranch(self.store, self.prepared.branch)

    @contextmanager
    def step(self, phase: Phase) -> Iterator[None]:
        """Does what RULES says about a failure in this block, and raises it, as RecoveryRequiredError when recovery
        decides. An interrupt is no outcome of a step: like a crash it leaves everything to recovery.
        """
        try:
            yield
        except (CommitFailed, OmnigraphError) as failure:
            action = RULES[phase, observe(phase, failure)]
            if action is Action.UNDO and self.landed:
                undo(self.whole, self.prepared, tuple(self.landed))
            if action is Action.UNDO and self.prepared.schema is not None:
                take_back_files(self.store, self.prepared.schema)
            if action in (Action.ABORT, Action.UNDO):
                sidecar.disarm(self.store, self.prepared.identity.operation_id)
                self.lease.release()
            if action is Action.RECOVER and not isinstance(failure, RecoveryRequiredError):
                raise unknown_outcome(self.prepared, failure) from failure
            if action is not Action.STAND:
                raise
            self.warnings.append(f"published, but {phase.value} failed: {failure}; recovery completes it")


def commit(store: GraphStore, prepared: PreparedCommit) -> Published:
    """Makes a prepared write visible, whole or not at all.

    Its staged files go when it ends before anything could land; later nobody knows but `cleanup`, which looks at every
    version. Raises ExpectedVersionMismatch or another ConflictError when somebody else won (nothing changed),
    RecoveryRequiredError when the outcome is unknown.
    """
    if prepared.is_empty:
        raise InternalError("a write without tables was handed to the commit protocol")
    attempt = _Attempt(store, prepared, Lease(store, prepared.identity.operation_id))
    with attempt.lease:
        try:
            if not prepared.writes and not prepared.stands_alone:
                return _done(attempt, _publish_name(attempt))
            armed = _take_turn(attempt)
        except OmnigraphError as refused:
            if not prepared.keeps_files:
                discard(store.objects, prepared.staged)
            refused.nothing_landed = True
            raise
        version = _publish(attempt, _land_all(attempt, armed))
        reach(CrashPoint.PUBLISHED)
        _name_schema(attempt)
        _record(attempt, version)
        _clean(attempt)
    return _done(attempt, version)


def _done(attempt: _Attempt, version: PublishedVersion) -> Published:
    branch = attempt.prepared.branch
    manifest = {branch_path(MANIFEST, branch): TIDY_ABOVE + 1 if version.files is None else version.files}
    attempt.store.tidy(branch, known=attempt.files | manifest)
    return Published(
        attempt.prepared.identity.commit_id if attempt.landed or attempt.prepared.stands_alone else None,
        version.parent,
        version.manifest_version,
        {table.bound.write.table_key: table.version for table in attempt.landed},
        (*version.overtaken, *attempt.warnings),
    )


def _publish_name(attempt: _Attempt) -> PublishedVersion:
    """Publishes the name of a write that changes no table, so that it does not act when it comes again.

    One compare-and-swap of two manifest rows: nothing lands, so there is nothing to arm, to record or to undo.
    """
    try:
        with attempt.step(Phase.NAME):
            refuse_schema_change(attempt.store)
            _refuse_another_branch(attempt.store, attempt.prepared)
            _refuse_late(attempt)
            return publish(attempt.whole, _publication(attempt.prepared, (), None))
    except RecoveryRequiredError as unknown:
        raise StorageError(
            f"storage: whether the name of this write was recorded is not known ({unknown.__cause__ or unknown}); it "
            "had nothing else to write, so run it again"
        ) from unknown


def _publication(prepared: PreparedCommit, updates: tuple[TableUpdate, ...], commit_id: str | None) -> Publication:
    identity = prepared.identity
    return Publication(
        updates,
        prepared.expectations(),
        identity.operation_id,
        commit_id,
        identity.actor,
        prepared.transaction,
        (*schema_rows(prepared), *rewound_rows(prepared.rewound, identity.operation_id, commit_id)),
        prepared.facts,
        schema_turn(prepared),
    )


def _take_turn(attempt: _Attempt) -> ArmedCommit:
    """Arms when no other writer covers the same tables."""
    store, prepared = attempt.store, attempt.prepared
    for turn in range(TURNS):
        with attempt.step(Phase.BIND):
            await_turn(store, prepared.branch, prepared.tables)
            bound = revalidate(attempt.whole, prepared)
            reach(CrashPoint.BOUND)
            attempt.lease.acquire()
            reach(CrashPoint.LEASED)
        with suppress(_SteppedBackError):
            return arm(attempt, bound)
        time.sleep(random.uniform(0, 0.02 * 2 ** min(turn, 6)))
    raise WriterBusyError(f"other writers kept getting in the way of {sorted(prepared.tables)}; try again later")


class _SteppedBackError(WriterBusyError):
    """Another writer had armed on the same tables, or the branch is being deleted."""


def arm(attempt: _Attempt, bound: tuple[BoundWrite, ...]) -> ArmedCommit:
    """Phase A: the sidecar is durable, as the lease is already. Nothing has moved when it fails.

    Each writer arms first and looks second, so of two that meet at least one sees the other; who sees one steps back.
    Two overlapping writers of this library therefore never both land.
    """
    store, prepared = attempt.store, attempt.prepared
    with attempt.step(Phase.ARM):
        sidecar.arm(store, prepared)
        found, own = announced(store), prepared.identity.operation_id
        if covering(store, prepared.branch, prepared.tables, own, found.sidecars) is not None:
            raise _SteppedBackError("another writer armed at the same moment")
        if prepared.branch is not None and is_held(store, branch_claim(prepared.branch)):
            # Whoever deletes a branch takes its claim first and looks for sidecars second.
            raise _SteppedBackError(f"branch '{prepared.branch}' is being deleted")
        # Whoever changes the schema takes its lock first and looks for sidecars second, too.
        refuse_other_schema(store, prepared, found)
        _refuse_another_branch(store, prepared)
        _refuse_moved(store, prepared, bound)
        _refuse_late(attempt, found)
    reach(CrashPoint.ARMED)
    return ArmedCommit(prepared, bound)


def _refuse_another_branch(store: GraphStore, prepared: PreparedCommit) -> None:
    """Refuses a write whose branch went after it was planned: from the sidecar on nobody deletes it. One that was made
    anew may show other rows in the same versions.
    """
    if prepared.branch_id is None:
        return
    other = store.branch_id(prepared.branch) != prepared.branch_id
    if other or not all(_are_there(store, write) for write in prepared.writes):
        raise ConflictError(
            f"branch '{prepared.branch}' was deleted and made anew while this write was under way; nothing has "
            "changed, run it again"
        )


def _are_there(store: GraphStore, write: TableWrite) -> bool:
    """Whether the files that a write has staged are: they may go with a fork before the write is planned anew."""
    staged = {file.uri.rpartition("/")[2] for file in write.change.staged}
    return not staged or staged <= set(store.objects.list(f"{branch_path(write.entry.location, write.branch)}/data"))


def _refuse_moved(store: GraphStore, prepared: PreparedCommit, writes: tuple[BoundWrite, ...]) -> None:
    """Looks at HEAD again where Lance would land a change on a newer one too, as it does with indexes and compactions.

    Whoever armed, published and cleaned up since this write was bound is seen neither by a sidecar nor by Lance.
    """
    for bound in writes:
        if bound.write.change.tolerates and newest_version(bound.dataset) != bound.write.entry.version:
            raise _loss(store, prepared, bound)


def _refuse_late(attempt: _Attempt, found: Announced | None = None) -> None:
    """Refuses a write whose stage was taken for dead while it stood still: clean-up may have removed what it staged."""
    if has_ended(attempt.store, attempt.prepared.stages, found):
        raise ConflictError(
            "this write stood still for so long that it was taken for dead, or the graph is being made anew by an init "
            "(one that died is seen to by a read-write open, or by recover); what it had staged may be gone, nothing "
            "has changed, run it again"
        )


def _refuse_taken(attempt: _Attempt) -> None:
    """Refuses to land anything once this process' own clocks say that others may have taken the write for dead."""
    if not attempt.lease.may_be_taken():
        return
    late = ConflictError("this write stood still for so long that it may have been taken for dead; run it again")
    if is_claimed(attempt.store, recovery_claim(attempt.prepared.identity.operation_id)):
        raise unknown_outcome(attempt.prepared, late)
    raise late


def _refuse_unlocked(attempt: _Attempt) -> None:
    """Refuses to touch schema files once the lock may be somebody else's."""
    _refuse_taken(attempt)
    refuse_other_schema(attempt.store, attempt.prepared)


def revalidate(whole: WholeBranch, prepared: PreparedCommit) -> tuple[BoundWrite, ...]:
    """Binds each table write to its dataset at the pin, after checking that nothing it relies on has moved.

    Raises ExpectedVersionMismatch for a moved pin and DriftError for a HEAD that is ahead of its pin. The schema is
    looked at once the write is armed: only then nobody changes it any more.
    """
    store = whole.store
    # A stamp that must not be written is found here, where nothing has moved yet, and not by the publish.
    snapshot = store.snapshot(prepared.branch)
    if store.form().stamp != SCHEMA_VERSION:
        migrate(store.manifest(prepared.branch))
    check_expectations(snapshot, prepared.expectations())
    ordered = sorted(prepared.writes, key=lambda w: w.table_key)
    return tuple(_bind(store, prepared, write) for write in ordered)


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


def _land_all(attempt: _Attempt, armed: ArmedCommit) -> tuple[LandedTable, ...]:
    for bound in armed.bound:
        try:
            with attempt.step(Phase.LAND):
                _refuse_taken(attempt)
                table = land(bound)
                attempt.landed.append(table)
                reach(CrashPoint.LANDED_FIRST)
                if table.version != bound.write.landing:  # undo ours, keep theirs
                    raise CommitFailed(Outcome.LOST, "it was rebased over a commit that we do not know")
        except CommitFailed as failure:
            loss = _loss(attempt.store, armed.prepared, bound)
            if loss.actual == loss.expected:
                # Nobody won: the store refused.
                what = f"'{bound.write.table_key}' ({bound.dataset.uri}) took no commit: {failure}"
                raise StorageError(f"storage: {what}. Look at the store, then run it again") from failure
            raise loss from failure
    reach(CrashPoint.LANDED_ALL)
    if armed.prepared.merged is not None and attempt.landed:
        with attempt.step(Phase.LAND):
            # Other engines finish a merge only when it says so; it says what it reached, and nothing else is published.
            versions: dict[str, int] = {table.bound.write.table_key: table.version for table in attempt.landed}
            sidecar.confirm(attempt.store, armed.prepared.identity.operation_id, versions)
        reach(CrashPoint.CONFIRMED)
    if armed.prepared.schema is not None:
        with attempt.step(Phase.LAND):
            stage_files(attempt.store, armed.prepared.schema, lambda: _refuse_unlocked(attempt))
        reach(CrashPoint.SCHEMA_STAGED)
    return tuple(attempt.landed)


def _publish(attempt: _Attempt, landed: tuple[LandedTable, ...]) -> PublishedVersion:
    """Phase C: the write becomes visible."""
    updates = tuple(landed_update(attempt.store, table, table.bound.write.row_count) for table in landed)
    with attempt.step(Phase.PUBLISH):
        if attempt.prepared.schema is not None:
            _refuse_taken(attempt)  # it may have no table behind a fence of those who took it over
        return publish(attempt.whole, _publication(attempt.prepared, updates, attempt.prepared.identity.commit_id))


def _name_schema(attempt: _Attempt) -> None:
    """The files of a new schema get their names. When that fails, the sidecar is left for recovery to do it."""
    if attempt.prepared.schema is not None:
        with attempt.step(Phase.RECORD):
            _refuse_unlocked(attempt)  # the next change may have staged its own
            name_files(attempt.store)
            reach(CrashPoint.SCHEMA_NAMED)


def _record(attempt: _Attempt, version: PublishedVersion) -> None:
    """Adds the commit row; maintenance has none. When that fails, the sidecar is left for recovery to add it."""
    identity = attempt.prepared.identity
    if identity.commit_id is None:
        return
    row = Commit(
        identity.commit_id,
        attempt.prepared.branch,
        version.manifest_version,
        version.parent,
        attempt.prepared.merged,
        time.time_ns() // 1000,
        identity.actor,
    )
    # Whoever took this write for dead has added the row.
    add = complete_commit if attempt.lease.may_be_taken() else append_commit
    with attempt.step(Phase.RECORD):
        attempt.files |= add(attempt.store.location, row)
        reach(CrashPoint.RECORDED)


def _clean(attempt: _Attempt) -> None:
    """Phase D, unless something was left for recovery to complete."""
    if attempt.warnings:
        return
    store, operation_id = attempt.store, attempt.prepared.identity.operation_id
    with attempt.step(Phase.CLEAN):
        if attempt.lease.may_be_taken() and is_claimed(store, recovery_claim(operation_id)):
            # Its fences must not stay behind without the sidecar that says whose they are.
            raise ConflictError("another process took this write for dead and has its sidecar")
        sidecar.disarm(store, operation_id)
        reach(CrashPoint.DISARMED)
        attempt.lease.release()


def _loss(store: GraphStore, prepared: PreparedCommit, bound: BoundWrite) -> ExpectedVersionMismatch:
    expected = bound.write.entry.version
    actual = store.snapshot(prepared.branch).pin(bound.write.table_key)
    if actual == expected:
        actual = store.head_version(bound.write.entry.location, bound.write.branch)
    return ExpectedVersionMismatch(bound.write.table_key, expected, actual)
