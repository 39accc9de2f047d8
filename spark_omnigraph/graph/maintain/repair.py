"""Repair: tables that another program committed to past the manifest (storage format, section 9.5, there main only).

Such a table cannot be written, since its HEAD is not the version that the manifest shows. What moved it is looked up
version by version. Compaction changes no row and may be published as it is; anything else is published only when the
caller insists, because nobody checked it against the schema.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit.claim import refuse_remade
from spark_omnigraph.commit.fence import is_ours_above
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.owners import interrupted, is_live, until
from spark_omnigraph.commit.publisher import Publication, publish
from spark_omnigraph.commit.realign import realign
from spark_omnigraph.commit.schema.lock import refuse_schema_change
from spark_omnigraph.commit.sidecar import pending
from spark_omnigraph.commit.stage import staging
from spark_omnigraph.draw.card import Card, commit_line, grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRequestError, ConflictError, DamagedError, StorageError, WriterBusyError
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.facts import CommitFacts, CommitOrigin
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.rows import TableUpdate
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import branch_path
from spark_omnigraph.storage.manifest.commit_log import append_commit
from spark_omnigraph.storage.messages.transactions import operations
from spark_omnigraph.storage.tables.handles import Dataset
from spark_omnigraph.words import TextEnum
from spark_omnigraph.write.clock import Clock

ACTOR = "omnigraph:repair"
FORCED_ACTOR = "omnigraph:repair:force"
MAINTENANCE = frozenset({"Rewrite", "ReserveFragments"})
"""Kinds of change that leave every row as it is: the two commits of a compaction."""
_ROUNDS = 5
"""Looks at a graph that others keep writing."""


class Verdict(TextEnum):
    """What moved a table."""

    VERIFIED = "verified_maintenance"
    """Compaction alone."""
    SUSPICIOUS = "suspicious"
    """Something that may have changed rows, columns or indexes."""
    UNVERIFIABLE = "unverifiable"
    """Some version does not say what made it."""
    OWN_STEPS = "own_steps"
    """Steps of this library that a stopped recovery left; the published content is put back."""


class RepairAction(TextEnum):
    """What a repair did to one table."""

    NO_OP = "no_op"
    PREVIEW = "preview"
    """It drifted, and the repair only looked."""
    HEALED = "healed"
    FORCED = "forced"
    """Published although nobody checked it."""
    REFUSED = "refused"
    """Left as it is."""


@dataclass(frozen=True, slots=True)
class Drift:
    """A table whose HEAD is ahead of the published version. `operations` are the kinds of change in between."""

    table_key: TableKey
    folder: str
    published: int
    head: int
    verdict: Verdict
    operations: tuple[str, ...]
    rows_published: int
    rows_head: int

    @property
    def advice(self) -> str:
        """What was found and how to go on, for people."""
        if self.verdict is Verdict.VERIFIED:
            return "only compaction, which changes no row: publish it with repair --confirm"
        if self.verdict is Verdict.OWN_STEPS:
            return "left by an interrupted recovery: repair --confirm, or the next write, puts the published rows back"
        if self.verdict is Verdict.UNVERIFIABLE:
            found = "what made some of these versions cannot be read"
        else:
            found = f"changed by {', '.join(self.operations)} past all checks"
        return (
            f"{found}; compare versions {self.published} and {self.head} of {self.folder}. To keep what is there: "
            f"repair --confirm --force. To drop it: restore version {self.published} with Lance, then the same"
        )


@dataclass(frozen=True, slots=True, repr=False)
class RepairReport(Displayed):
    """All drift of a branch, and which tables of it were published (none in a dry run). `tables` are all that the
    branch owns.
    """

    drifts: tuple[Drift, ...]
    repaired: tuple[str, ...] = ()
    commit: str | None = None
    manifest_version: int | None = None
    warnings: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    confirmed: bool = False

    def _card(self) -> Card:
        actions = self.actions()
        rows = (
            (each.table_key, each.published, each.head, each.verdict, actions.get(each.table_key), each.advice)
            for each in self.drifts
        )
        columns = ("table", "published", "head", "verdict", "action", "advice")
        seen = f"{len(self.drifts):,} of {len(self.tables):,} tables drifted, {len(self.repaired):,} published"
        return Card(
            "RepairReport",
            f"{seen}, {commit_line(self.commit)}",
            {"manifest version": self.manifest_version},
            without_empty(grid("Tables that drifted", columns, rows, len(self.drifts))),
            self.warnings,
        )

    def actions(self) -> dict[str, RepairAction]:
        """What was done to each table."""
        drifted: dict[str, Drift] = {drift.table_key: drift for drift in self.drifts}
        return {key: self._action(key, drifted.get(key)) for key in self.tables}

    def _action(self, key: str, drift: Drift | None) -> RepairAction:
        if drift is None:
            return RepairAction.NO_OP
        if key not in self.repaired:
            return RepairAction.REFUSED if self.confirmed else RepairAction.PREVIEW
        return RepairAction.HEALED if drift.verdict in (Verdict.VERIFIED, Verdict.OWN_STEPS) else RepairAction.FORCED


def repair(
    store: GraphStore,
    branch: Branch = None,
    confirm: bool = False,
    force: bool = False,
    origin: CommitOrigin | None = None,
) -> RepairReport:
    """Finds drift of a branch; with `confirm` publishes verified maintenance, with `force` all of it, in one commit.

    Refuses while a write is pending or a schema change runs: WriterBusyError, ConflictError, or RecoveryRequiredError.
    DamagedError for a table whose HEAD is behind what the manifest shows, BadRequestError for `force` alone.
    """
    if force and not confirm:
        raise BadRequestError("force publishes what nobody checked, and needs confirm, too: repair --force --confirm")
    whole = WholeBranch(store, branch)
    if confirm:
        with staging(store):
            refuse_remade(store)
            return _repair(whole, force, origin or CommitOrigin())
    snapshot, drifts = find_drift(store, branch)
    return RepairReport(drifts, manifest_version=snapshot.version, tables=_own(snapshot))


def _own(snapshot: Snapshot) -> tuple[str, ...]:
    return tuple(sorted(key for key, entry in snapshot.entries.items() if entry.branch == snapshot.branch))


def _repair(whole: WholeBranch, force: bool, origin: CommitOrigin) -> RepairReport:
    store, branch, clock = whole.store, whole.branch, Clock()
    snapshot, drifts = find_drift(store, branch)
    own = [d.table_key for d in drifts if d.verdict is Verdict.OWN_STEPS]
    realigned = tuple(key for key in own if realign(store, branch, key))
    publishable = (Verdict.VERIFIED,) if not force else (Verdict.VERIFIED, Verdict.SUSPICIOUS, Verdict.UNVERIFIABLE)
    chosen = tuple(d for d in drifts if d.verdict in publishable)
    if not chosen:
        version = store.snapshot(branch).version
        return RepairReport(drifts, realigned, None, version, tables=_own(snapshot), confirmed=True)
    facts = CommitFacts("repair", seconds=clock.total(), origin=origin)
    report = _publish(whole, snapshot, drifts, chosen, facts)
    repaired = tuple(sorted((*realigned, *report.repaired)))
    return replace(report, repaired=repaired, tables=_own(snapshot), confirmed=True)


def _publish(
    whole: WholeBranch, snapshot: Snapshot, drifts: tuple[Drift, ...], chosen: tuple[Drift, ...], facts: CommitFacts
) -> RepairReport:
    unproven = any(d.verdict is not Verdict.VERIFIED for d in chosen)
    actor = FORCED_ACTOR if unproven else ACTOR
    commit_id = new_ulid()
    expectations: dict[str, int] = {d.table_key: d.published for d in chosen}
    updates = tuple(_update(whole.store, snapshot.entries[d.table_key], d) for d in chosen)
    landed = publish(whole, Publication(updates, expectations, new_ulid(), commit_id, actor, facts=facts))
    row = Commit(
        commit_id, snapshot.branch, landed.manifest_version, landed.parent, None, time.time_ns() // 1000, actor
    )
    warnings = landed.overtaken
    try:
        append_commit(whole.store.location, row)
    except (CommitFailed, StorageError) as failure:
        warnings += (f"published, but commit {commit_id} is missing in the history: {failure}",)
    return RepairReport(drifts, tuple(d.table_key for d in chosen), commit_id, landed.manifest_version, warnings)


def find_drift(store: GraphStore, branch: Branch) -> tuple[Snapshot, tuple[Drift, ...]]:
    """The newest snapshot of a branch and its drift, looked at while nobody wrote.

    A writer that lands while it is looked at is told from drift: it left a sidecar before, or moved a pin by the end.
    """
    for _ in range(_ROUNDS):
        refuse_pending(store)
        snapshot = store.snapshot(branch)
        drifts = _drifts(store, snapshot)
        refuse_pending(store)
        if store.snapshot(branch).entries == snapshot.entries:
            return snapshot, drifts
    raise ConflictError(f"'{store.root}' kept changing while its tables were looked at; try again later")


def refuse_pending(store: GraphStore) -> None:
    """Raises while any sidecar is there or a schema change holds its lock."""
    for sidecar in pending(store):
        if not is_live(store, sidecar):
            raise interrupted(store, sidecar)
        raise WriterBusyError(
            f"a {sidecar.writer_kind} ({sidecar.operation_id}) is running, and repair waits for no writer; "
            f"{until(store, sidecar)}"
        )
    refuse_schema_change(store)


def _drifts(store: GraphStore, snapshot: Snapshot) -> tuple[Drift, ...]:
    behind: list[str] = []
    drifts: list[Drift] = []
    own = (entry for entry in snapshot.entries.values() if entry.branch == snapshot.branch)
    for entry in own:
        dataset = store.open_dataset(branch_path(entry.location, entry.branch))
        head = int(dataset.version)
        if head < entry.version:
            behind.append(f"'{entry.table_key}' shows version {entry.version}, but {dataset.uri} ends at {head}")
        elif head > entry.version:
            drifts.append(_drift(store, entry, dataset))
    if behind:
        raise DamagedError(
            f"{'; '.join(behind)}: published versions are gone, so repair can do nothing. Put the missing versions "
            "back from a backup of these folders, or restore the whole graph from one backup."
        )
    return tuple(drifts)


def _drift(store: GraphStore, entry: TableEntry, dataset: Dataset) -> Drift:
    folder = branch_path(entry.location, entry.branch)
    head, rows = int(dataset.version), int(dataset.count_rows())
    kinds = tuple(operations(store.objects, folder, dataset, entry.version).values())
    shown = tuple(dict.fromkeys(kind if kind is not None else "unreadable" for kind in kinds))
    verdict = _verdict(kinds, rows == entry.row_count)
    if verdict is Verdict.SUSPICIOUS and is_ours_above(dataset, entry.version):
        verdict = Verdict.OWN_STEPS
    return Drift(entry.table_key, folder, entry.version, head, verdict, shown, entry.row_count, rows)


def _verdict(kinds: tuple[str | None, ...], same_rows: bool) -> Verdict:
    if any(kind is not None and kind not in MAINTENANCE for kind in kinds):
        return Verdict.SUSPICIOUS
    if None in kinds:
        return Verdict.UNVERIFIABLE
    return Verdict.VERIFIED if same_rows else Verdict.SUSPICIOUS


def _update(store: GraphStore, entry: TableEntry, drift: Drift) -> TableUpdate:
    return store.table_update(drift.table_key, drift.folder, entry.branch, drift.head, drift.rows_head)
