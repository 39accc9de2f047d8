"""Recovery: finishes or undoes an armed write whose writer is gone, from its sidecar.

    claim ──fence──▶ decide ──put back──▶ publish ──record──▶ audit ──▶ remove sidecar and lease

A writer that only seems gone cannot land, publish or undo anything afterwards: its datasets are behind a fence before
anything is decided, and the manifest no longer shows the versions that it expects. A recovery that dies is recovered in
the same way, from the same sidecar; one that only seems dead finds the sidecar gone, or its publish refused, and
realigns what it moved. Sidecars of other engines are treated alike; without expectations of ours the versions decide.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit import sidecar as sidecars
from spark_omnigraph.commit.announced import announced
from spark_omnigraph.commit.claim import REALIGNING, RECOVERING, abandoned, claimed, recovery_claim
from spark_omnigraph.commit.classify import Decision, Mode, PinClass, PinState, classify, decide, mode_of
from spark_omnigraph.commit.contract import current_hash
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.ending import (
    ACTOR,
    Ending,
    RecoveryKind,
    commit_id,
    find_ending,
    lacks_tables,
    recovering,
    without_publish,
)
from spark_omnigraph.commit.fence import FencedTable, content_version, fence, put_back
from spark_omnigraph.commit.lease import lease_path
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.owners import LOST_WAIT, is_live, remove_orphans
from spark_omnigraph.commit.plan import WriterKind
from spark_omnigraph.commit.publisher import Publication, publish
from spark_omnigraph.commit.realign import realign, realign_all
from spark_omnigraph.commit.schema.change import SchemaChange, SchemaRows, reconcile
from spark_omnigraph.commit.schema.lock import release_lost_lock
from spark_omnigraph.commit.schema.removal import end_removals
from spark_omnigraph.commit.sidecar import Sidecar, SidecarPin
from spark_omnigraph.errors import (
    ConflictError,
    DamagedError,
    ExpectedVersionMismatch,
    OmnigraphError,
    RecoveryRequiredError,
    SchemaFilesError,
    StorageError,
)
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.rows import RowKind, TableUpdate, last_transaction, rewound_rows
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.redaction import excerpt
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import RECOVERY, branch_path
from spark_omnigraph.storage.manifest.commit_log import (
    RecoveryAudit,
    audit_recovery,
    complete_commit,
)
from spark_omnigraph.storage.tables.commits import OPERATION_KEY, read_properties

_ROUNDS = 5
"""Times a recovery looks again because the writer it gave up published meanwhile."""


class Scope(Enum):
    """What a recovery may do with writes of others."""

    FULL = "full"
    """Finish or undo: at a read-write open, and by the verb `recover`."""
    FORWARD_ONLY = "forward_only"
    """Finish what is finished; leave the rest to a full recovery: at the entry of every writer, and on refresh."""


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """From which version a table came, and which logical version it shows now."""

    table_key: TableKey
    from_version: int
    to_version: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """One recovered write."""

    operation_id: str
    writer_kind: WriterKind | str
    kind: RecoveryKind
    branch: Branch
    manifest_version: int
    outcomes: tuple[TableOutcome, ...]


def recover(store: GraphStore, scope: Scope = Scope.FULL, break_lock: bool = False) -> list[Recovered]:
    """Recovers every pending write without a live lease, in name order. Live writers are left alone. With `break_lock`
    the lock of another engine's schema change goes, too, where no sidecar stands beside it.

    Whatever stops one does not stop the others: once all are done, RecoveryRequiredError names every sidecar that
    cannot be read or brought to an end. What stopped a single one for the moment is raised as it is.
    """
    done, unreadable, problems = _recover_all(store, scope, break_lock)
    _raise_all([*unreadable, *problems])
    if scope is Scope.FULL:
        _sweep(store)
    return done


def recover_for_writing(store: GraphStore, scope: Scope) -> list[Recovered]:
    """Like `recover`, for whoever is going to write. A sidecar that can be read and not be brought to an end bars the
    tables that it covers, for writers ask for it themselves; nobody knows what one covers that cannot be read.
    """
    done, unreadable, problems = _recover_all(store, scope)
    kept = [each for each in problems if isinstance(each, _KeptError)]
    _raise_all([*unreadable, *(each for each in problems if each not in kept)])
    if scope is Scope.FULL and not kept:
        _sweep(store)
    return done


def _recover_all(
    store: GraphStore, scope: Scope, break_lock: bool = False
) -> tuple[list[Recovered], list[OmnigraphError], list[OmnigraphError]]:
    """What was recovered, which sidecars cannot be read, and what stopped others."""
    done: list[Recovered] = []
    found = sidecars.look(store)
    problems: list[OmnigraphError] = []
    if scope is Scope.FULL and not found.problems and not any(each.is_schema_change for each in found.sidecars):
        try:
            reconcile(store)
            release_lost_lock(store, break_lock)
        except OmnigraphError as error:
            problems.append(error)
    for sidecar in found.sidecars:
        try:
            result = None if is_live(store, sidecar) else _recover_claimed(store, sidecar, scope)
        except OmnigraphError as error:
            problems.append(_KeptError.of(store, sidecar, error))
        else:
            done += [result] if result is not None else []
    return done, [RecoveryRequiredError(each) for each in found.problems], problems


class _KeptError(RecoveryRequiredError):
    """A sidecar that can be read and not be brought to an end."""

    @classmethod
    def of(cls, store: GraphStore, sidecar: Sidecar, error: OmnigraphError) -> OmnigraphError:
        """What stopped the recovery of a sidecar, with its name. What another try may well get over stays as it is."""
        if isinstance(error, (ConflictError, StorageError)) and not isinstance(error, (DamagedError, SchemaFilesError)):
            return error
        place = sidecars.sidecar_path(sidecar.name)
        if place in error.message:
            return cls(error.message)
        return cls(f"sidecar {store.root}/{place} was kept, and its tables were left as they are: {error.message}")


def _raise_all(errors: Sequence[OmnigraphError]) -> None:
    if len(errors) == 1 and not isinstance(errors[0], _KeptError):
        raise errors[0]
    if errors:
        raise RecoveryRequiredError("; ".join(each.message for each in errors))


def _sweep(store: GraphStore) -> None:
    """Claims whose owners died may stand for tables that were fenced and never published, with no sidecar any more."""
    found = announced(store)
    traces = abandoned(store, found, (RECOVERING, REALIGNING))
    if traces:
        realign_all(store)
    for name in traces:
        with claimed(store, name):
            pass  # taken over and removed
    end_removals(store, found)
    remove_orphans(store, found)


def _recover_claimed(store: GraphStore, found: Sidecar, scope: Scope) -> Recovered | None:
    """One write, under a claim that exactly one process holds; None when it is gone, alive or left for later."""
    with claimed(store, recovery_claim(found.operation_id)):
        reach(CrashPoint.RECOVERY_CLAIMED)
        sidecar = sidecars.read(store, found.name)
        if sidecar is None or is_live(store, sidecar):
            return None
        return _Recovery(store, sidecar).run(scope)


class _TakenOver(Exception):  # noqa: N818 - a turn of events inside this module, not an error for callers
    """Another process recovers, or has recovered, the same write."""


class _Recovery:
    """Recovery of one sidecar. The token makes its fences its own."""

    def __init__(self, store: GraphStore, sidecar: Sidecar) -> None:
        self._store = store
        self._sidecar = sidecar
        self._token = new_ulid()
        self._change = SchemaChange(store, sidecar) if sidecar.is_schema_change else None
        self._pins = sidecar.pins
        self._is_partial = False

    def run(self, scope: Scope) -> Recovered | None:
        """Carries the write to an end, or returns None when this scope may not."""
        branch = self._sidecar.branch
        if branch is not None and branch not in self._store.branch_names():
            return self._discard_orphan()
        if self._change is not None and scope is Scope.FORWARD_ONLY:
            return None
        whole = WholeBranch(self._store, branch)
        if self._is_without_tables(self._store.snapshot(branch)):
            return self._close(without_publish(self._store, self._sidecar, RecoveryKind.ROLLED_BACK, branch), ())
        for attempt in range(_ROUNDS):
            if attempt and self._is_gone():
                break
            snapshot = self._store.snapshot(branch)
            decision = self._decide(snapshot, self._contents(snapshot))
            reach(CrashPoint.RECOVERY_DECIDED)
            if scope is Scope.FORWARD_ONLY and decision in (Decision.ABORT, Decision.ROLL_BACK):
                return None
            if decision is Decision.ABORT:
                raise RecoveryRequiredError(
                    f"{self._where()} covers a table whose HEAD is behind its published version: files of it are "
                    "gone. Nothing was moved; put them back from a backup, then recover again"
                )
            try:
                return self._stale(snapshot) if decision is Decision.STALE else self._finish(whole, snapshot)
            except _TakenOver:
                break
            except ExpectedVersionMismatch:
                continue  # the writer published before its tables were fenced; what it did stands
        else:
            raise ConflictError(f"{self._where()} kept changing while it was recovered; try again")
        self._leave()
        return None

    def _is_without_tables(self, snapshot: Snapshot) -> bool:
        """Whether the write cannot have left anything: its tables were dropped, or never forked for its branch.

        RecoveryRequiredError for tables that the graph does not have, or has elsewhere: nothing is moved then.
        """
        if not self._sidecar.pins:
            return False
        if all(self._is_dropped(pin, snapshot) for pin in self._sidecar.pins):
            return True
        for pin in self._sidecar.pins:
            self._refuse_missing(pin)
            self._refuse_stranger(pin, snapshot)
        self._pins = tuple(pin for pin in self._sidecar.pins if self._exists(self._path(pin)))
        self._is_partial = self._pins != self._sidecar.pins
        return not self._pins

    def _is_dropped(self, pin: SidecarPin, snapshot: Snapshot) -> bool:
        if pin.table_key in snapshot.entries:
            return False
        rows = self._store.manifest_rows(self._store.manifest(self._sidecar.branch))
        return any(row.kind == RowKind.TOMBSTONE and row.table_key == pin.table_key for row in rows)

    def _refuse_missing(self, pin: SidecarPin) -> None:
        if not self._exists(pin.location):
            raise RecoveryRequiredError(
                f"{self._where()} covers '{excerpt(pin.table_key)}' at '{excerpt(pin.path)}', but the graph has no "
                f"dataset {pin.location}; put it back, or move the sidecar away when it belongs to another graph"
            )

    def _refuse_stranger(self, pin: SidecarPin, snapshot: Snapshot) -> None:
        entry, what = snapshot.entries.get(pin.table_key), f"'{excerpt(pin.table_key)}' at {pin.location}"
        if entry is None:
            why = f"{what}, a table that branch '{display(snapshot.branch)}' of the graph does not show"
        elif entry.location != pin.location:
            why = f"{what}, but the graph keeps that table at {entry.location}"
        elif pin.branch != snapshot.branch:
            why = f"{what} on branch '{display(pin.branch)}', while its write is one of '{display(snapshot.branch)}'"
        else:
            return
        raise RecoveryRequiredError(
            f"{self._where()} covers {why}. Nothing was moved; when the sidecar belongs to another graph or to a type "
            f"that is gone, move it out of {RECOVERY}/"
        )

    def _exists(self, path: str) -> bool:
        return self._store.objects.has_prefix(f"{path}/_versions")

    def _contents(self, snapshot: Snapshot) -> dict[str, int]:
        return {
            pin.table_key: content_version(self._store.open_dataset(self._path(pin)), snapshot.pin(pin.table_key))
            for pin in self._pins
        }

    def _is_gone(self) -> bool:
        return sidecars.read(self._store, self._sidecar.name) is None

    def _leave(self) -> None:
        """Somebody else brought the write to its end while this process stood still: only our own traces are left."""
        for pin in self._pins:
            realign(self._store, self._sidecar.branch, pin.table_key)

    def _finish(self, whole: WholeBranch, snapshot: Snapshot) -> Recovered:
        """Fences all tables, decides on what they then hold, and publishes."""
        fenced: dict[str, FencedTable] = {}
        for pin in self._pins:
            path = self._path(pin)
            fenced[pin.table_key] = fence(self._store, path, snapshot.pin(pin.table_key), self._token)
            reach(CrashPoint.RECOVERY_FENCED_FIRST)
        reach(CrashPoint.RECOVERY_FENCED_ALL)
        if self._is_gone():
            raise _TakenOver
        contents = {key: table.content for key, table in fenced.items()}
        forward = self._decide(snapshot, contents) is Decision.ROLL_FORWARD
        if not forward:
            fenced = self._put_back(snapshot, fenced)
        kind = RecoveryKind.ROLLED_FORWARD if forward else RecoveryKind.ROLLED_BACK
        # Nothing but a publish stops a late owner that no table stands in the way of.
        if forward or fenced or (self._change is not None and self._sidecar.is_ours):
            ending = self._publish(whole, snapshot, fenced, kind)
        else:
            ending = without_publish(self._store, self._sidecar, kind, self._sidecar.branch)
        reach(CrashPoint.RECOVERY_PUBLISHED)
        self._see_to_schema(forward)
        outcomes = tuple(
            TableOutcome(
                pin.table_key,
                pin.expected if forward else contents[pin.table_key],
                fenced[pin.table_key].head if forward else snapshot.pin(pin.table_key),
            )
            for pin in self._pins
            if forward or contents[pin.table_key] != snapshot.pin(pin.table_key)
        )
        return self._close(ending, outcomes)

    def _put_back(self, snapshot: Snapshot, fenced: Mapping[str, FencedTable]) -> dict[str, FencedTable]:
        try:
            return {key: put_back(table, snapshot.pin(key), self._token) for key, table in fenced.items()}
        except ConflictError as error:
            raise _TakenOver from error

    def _decide(self, snapshot: Snapshot, contents: Mapping[str, int]) -> Decision:
        if not self._sidecar.pins and self._sidecar.planned_on is not None:
            # It changes no table that there was: it is published, or nothing of it is anywhere but staged schema files.
            if find_ending(self._store, self._sidecar).kind is RecoveryKind.ROLLED_FORWARD:
                return Decision.STALE
            is_ready = self._change is not None and self._change.is_staged(snapshot)
            return Decision.ROLL_FORWARD if is_ready and self._expectations_hold(snapshot) else Decision.ROLL_BACK
        mode = mode_of(self._sidecar.writer_kind, self._sidecar.version)
        if self._change is not None and self._sidecar.is_ours:
            mode = Mode.STRICT  # each table moves by one commit
        states = [self._state(pin, snapshot, contents[pin.table_key]) for pin in self._pins]
        decision = decide(states, mode)
        if self._change is not None and decision is not Decision.ABORT:
            decision = self._decide_schema(self._change, snapshot, decision)
        if decision is Decision.ROLL_FORWARD and (
            self._is_partial or not self._expectations_hold(snapshot) or lacks_tables(self._store, self._sidecar)
        ):
            return Decision.ROLL_BACK
        all_published = all(classify(s, mode) is PinClass.NO_MOVEMENT and s.pin > s.expected for s in states)
        return Decision.STALE if states and all_published else decision

    def _decide_schema(self, change: SchemaChange, snapshot: Snapshot, decision: Decision) -> Decision:
        """A published change is over; one that is not is finished only when all its schema files are staged."""
        if decision is Decision.STALE or (not self._sidecar.pins and change.is_shown(snapshot)):
            return Decision.STALE
        return decision if change.is_staged(snapshot) else Decision.ROLL_BACK

    def _see_to_schema(self, finished: bool) -> None:
        if self._change is not None and not self._is_gone():  # else the files and the lock may be the next change's
            if finished:
                self._change.promote()
            else:
                self._change.discard()
            self._change.unlock()

    def _state(self, pin: SidecarPin, snapshot: Snapshot, content: int) -> PinState:
        shown, post = snapshot.pin(pin.table_key), pin.post
        if self._sidecar.commit_id is not None and content == pin.post and not self._is_ours(pin):
            post = 0  # somebody else's commit stands where this write's should
        if content < shown <= self._head(pin):
            content = shown  # older content was put back over the published one: nothing of this write is above it
        return PinState(content, shown, pin.expected, post, pin.confirmed)

    def _head(self, pin: SidecarPin) -> int:
        return int(self._store.open_dataset(self._path(pin)).version)

    def _is_ours(self, pin: SidecarPin) -> bool:
        dataset = self._store.open_dataset(self._path(pin))
        return read_properties(dataset, pin.post).get(OPERATION_KEY) == self._sidecar.operation_id

    def _expectations_hold(self, snapshot: Snapshot) -> bool:
        """Whether what the write relied on still stands; a write that was reported lost never appears later."""
        reads = self._sidecar.reads or {}
        unmoved = all(snapshot.pin(key) == version for key, version in reads.items())
        known = self._sidecar.schema_hash
        return not self._is_repeated() and unmoved and (known is None or known == current_hash(self._store))

    def _is_repeated(self) -> bool:
        """Whether the same write, by the name its writer gave it, was published meanwhile."""
        name = self._sidecar.transaction
        if name is None or name.resets:
            return False
        last = last_transaction(self._store.manifest_rows(self._store.manifest(self._sidecar.branch)), name.app_id)
        return last is not None and last >= name.version

    def _publish(
        self, whole: WholeBranch, snapshot: Snapshot, fenced: Mapping[str, FencedTable], kind: RecoveryKind
    ) -> Ending:
        sidecar = self._sidecar
        updates = tuple(self._update(pin, fenced[pin.table_key]) for pin in self._pins)
        expectations: dict[str, int] = {pin.table_key: snapshot.pin(pin.table_key) for pin in self._pins}
        if kind is RecoveryKind.ROLLED_FORWARD:
            expectations |= sidecar.reads or {}
        schema = SchemaRows()
        if kind is RecoveryKind.ROLLED_FORWARD and self._change is not None:
            schema = self._change.rows(snapshot)
            expectations |= dict(schema.expectations)
        operation, commit = recovering(sidecar.operation_id, kind, self._token), commit_id(sidecar, kind)
        forward = kind is RecoveryKind.ROLLED_FORWARD
        transaction, facts = (sidecar.transaction, sidecar.facts) if forward else (None, None)
        turn = self._change.turn() if forward and self._change is not None else None
        rows = (*schema.rows, *rewound_rows(sidecar.rewound if forward else {}, operation, commit))
        what = (transaction, rows, facts, turn)
        found = publish(whole, Publication(updates, expectations, operation, commit, ACTOR, *what))
        return Ending(kind, found.manifest_version, commit, found.parent, ACTOR)

    def _update(self, pin: SidecarPin, table: FencedTable) -> TableUpdate:
        rows = int(table.dataset.count_rows())
        return self._store.table_update(pin.table_key, table.path, pin.branch, table.head, rows)

    def _stale(self, snapshot: Snapshot) -> Recovered:
        """The write is over, finished or undone; only rows, its sidecar, or HEAD of its tables are left to see to."""
        for pin in self._pins:
            realign(self._store, self._sidecar.branch, pin.table_key, self._sidecar.operation_id)
        ending = find_ending(self._store, self._sidecar)
        if self._change is not None:
            shown = ending.kind is RecoveryKind.ROLLED_FORWARD and self._change.is_shown(snapshot)
            self._see_to_schema(shown)
        known = self._sidecar.is_ours or ending.kind is RecoveryKind.ROLLED_FORWARD
        pins = self._pins if known else ()
        outcomes = tuple(TableOutcome(p.table_key, p.expected, snapshot.pin(p.table_key)) for p in pins)
        return self._close(ending, outcomes)

    def _discard_orphan(self) -> Recovered:
        """The graph branch is gone: so is whatever the write did on it. Main's newest commit tells of it."""
        return self._close(without_publish(self._store, self._sidecar, RecoveryKind.BRANCH_DISCARDED, None), ())

    def _close(self, ending: Ending, outcomes: tuple[TableOutcome, ...]) -> Recovered:
        """Commit row, audit row, then sidecar and lease. Each is looked for first, since a recovery may be repeated."""
        sidecar, location, kind = self._sidecar, self._store.location, ending.kind
        branch = None if kind is RecoveryKind.BRANCH_DISCARDED else sidecar.branch
        if ending.is_new:
            merged = sidecar.merge_source if kind is RecoveryKind.ROLLED_FORWARD else None
            version = ending.manifest_version
            row = Commit(ending.commit_id, branch, version, ending.parent, merged, _now(), ending.actor)
            try:
                complete_commit(location, row)
            except CommitFailed as failure:
                what = f"commit {row.id} of '{self._store.root}' could not be recorded: {failure}"
                raise StorageError(f"storage: {what}. Look at the store, then recover again") from failure
        reach(CrashPoint.RECOVERY_RECORDED)
        tables = [
            {"table_key": o.table_key, "from_version": o.from_version, "to_version": o.to_version} for o in outcomes
        ]
        audit = RecoveryAudit(
            ending.commit_id,
            kind.value,
            sidecar.actor,
            sidecar.operation_id,
            sidecar.writer_kind,
            json.dumps(tables, separators=(",", ":")),
            _now(),
        )
        audit_recovery(location, audit)
        reach(CrashPoint.RECOVERY_AUDITED)
        sidecars.disarm(self._store, sidecar.name)
        with suppress(StorageError):  # without its sidecar it is a lost one, which is swept
            self._store.objects.remove(lease_path(sidecar.operation_id), wait=LOST_WAIT)
        return Recovered(sidecar.operation_id, sidecar.writer_kind, kind, branch, ending.manifest_version, outcomes)

    def _path(self, pin: SidecarPin) -> str:
        """Path below the root of what physically holds the table."""
        return branch_path(pin.location, pin.branch)

    def _where(self) -> str:
        return f"sidecar {self._store.root}/{sidecars.sidecar_path(self._sidecar.name)}"


def _now() -> int:
    return time.time_ns() // 1000
