"""Load: records → checked, staged fragments of all types at once → one commit.

    plan_load      capture branch, snapshot, schema; fork what a branch writes first     driver
    stage_range    decode, check, stage                                                  executors
    check_load     probes over staged plus pinned key columns                            driver
    finish_load    prepare and hand to the commit protocol                               driver

A load that lost a race is planned anew, a bounded number of times, where the mode's meaning allows it: append and
merge always, overwrite only while nothing that it replaces has moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from spark_omnigraph.bad_rows import BadRowSummary
from spark_omnigraph.branch.control import display
from spark_omnigraph.branch.fork import fork_tables
from spark_omnigraph.catalog.types import Catalog, EntityType, Scalar, Unique
from spark_omnigraph.commit.contract import Contract, read_contract
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.lease import staging
from spark_omnigraph.commit.owners import await_turn
from spark_omnigraph.commit.plan import Identity, PreparedCommit, Published, TableWrite, WriterKind
from spark_omnigraph.commit.protocol import commit
from spark_omnigraph.commit.publisher import current_head
from spark_omnigraph.errors import BadRowsError, ExpectedVersionMismatch, InternalError, OmnigraphError
from spark_omnigraph.graph.load.bad_rows import SAMPLE, FoundRows, bad_rows, write_report
from spark_omnigraph.graph.load.options import LoadOptions, LoadReport, TableCounts
from spark_omnigraph.graph.load.second_pass import InputAgain, SecondPass
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.records.mode import DecodeOptions, LoadMode
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.staging.pieces import tables_mentioned
from spark_omnigraph.staging.receipt import RangeReceipt, StageContext, StagedFragment
from spark_omnigraph.staging.stage import stage_range
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.input.ranges import InputFile, InputRange, cut
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.tables.staged import TableTarget, discard
from spark_omnigraph.validate.probes import tables_read
from spark_omnigraph.write.checker import CheckResult, LoadChecker
from spark_omnigraph.write.clock import Clock
from spark_omnigraph.write.executor import Executor
from spark_omnigraph.write.personal import without_personal
from spark_omnigraph.write.staged_table import Rows, StagedTable, gather

REPLANS = 5
"""Attempts of a load whose tables other writers move."""


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What the caller asked for; `branch` None is main. The base is echoed in the report."""

    files: tuple[InputFile, ...]
    branch: str | None
    mode: LoadMode
    actor: str | None = None
    options: LoadOptions = field(default_factory=LoadOptions)
    base: str | None = None
    branch_created: bool = False
    transaction: Transaction | None = None
    """The name of the write: refused when it was committed before."""
    stages: tuple[str, ...] = ()
    """Under which its rows are staged."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """One attempt: the snapshot it is planned on, and what its tasks need."""

    contract: Contract
    snapshot: Snapshot
    base_commit: str | None
    context: StageContext
    ranges: tuple[InputRange, ...]
    physical_uris: Mapping[str, str]
    named: frozenset[str] = frozenset()
    """Tables that the caller named, whether the input has records of them or not."""


@dataclass(slots=True)
class Kept:
    """Says of a staged load that its files stay when an attempt fails, for another one, and what became of them."""

    armed: bool = False
    """They may have landed: nobody but `cleanup`, which looks at every version, may remove them."""


@dataclass(frozen=True, slots=True)
class StagedLoad:
    """Receipts of all ranges and the staged rows as tables. Nothing refers to the files yet."""

    plan: LoadPlan
    receipts: tuple[RangeReceipt, ...]
    tables: Mapping[str, StagedTable]
    again: SecondPass
    kept: Kept | None = None

    @property
    def mentioned(self) -> frozenset[str]:
        """Tables that the input has records of, bad ones included, and those that the caller named."""
        return self.plan.named.union(key for r in self.receipts for key, count in r.read.items() if key and count)

    @property
    def records(self) -> int:
        return sum(sum(r.read.values()) for r in self.receipts)


@dataclass(frozen=True, slots=True)
class CheckedLoad:
    """A staged load with the answers of the probes; bad and superseded rows are out of the staged files."""

    staged: StagedLoad
    bad_rows: BadRowSummary
    bad_per_table: Mapping[str, int]
    superseded: Mapping[str, int]


def load(store: GraphStore, request: LoadRequest, executor: Executor) -> LoadReport:
    """Loads all records in one commit, or refuses and changes nothing.

    Raises BadRowsError (every bad row was looked for), ConstraintError, or ConflictError after bounded replanning.
    """
    clock = Clock()
    attempt = 1
    mentioned: frozenset[str] = frozenset()
    while True:
        try:
            with staging(store) as stage:
                staged = stage_load(store, request, executor, clock)
                mentioned = staged.mentioned
                return check_and_finish(store, replace(request, stages=(stage,)), staged, clock)
        except ExpectedVersionMismatch as moved:
            replaced = request.mode is LoadMode.OVERWRITE and moved.table_key in mentioned
            if attempt == REPLANS or replaced:
                raise
            attempt += 1
            await_turn(store, request.branch, mentioned | {moved.table_key})


def stage_load(store: GraphStore, request: LoadRequest, executor: Executor, clock: Clock) -> StagedLoad:
    """Plans an attempt and stages all ranges."""
    with clock.phase("plan"):
        plan = plan_load(store, request, executor)
    receipts: list[RangeReceipt] = []
    with clock.phase("stage"):
        for receipt in executor.map(partial(stage_range, plan.context), plan.ranges):
            receipts.append(receipt)
            if request.options.progress is not None:
                request.options.progress("stage", len(receipts), len(plan.ranges))
    reach(CrashPoint.STAGED)
    tables = gather(receipts, plan.context.targets, plan.context.storage_options)
    return StagedLoad(plan, tuple(receipts), tables, InputAgain(plan.context, executor, plan.ranges))


def check_and_finish(store: GraphStore, request: LoadRequest, staged: StagedLoad, clock: Clock) -> LoadReport:
    """The second half of an attempt. Staged files are removed when it ends before anything was armed, unless kept."""
    kept = staged if staged.kept is not None else None
    try:
        with clock.phase("check"):
            checked = check_load(request, staged)
    except OmnigraphError:
        _discard(store, staged, kept)
        raise
    reach(CrashPoint.CHECKED)
    prepared = prepare(request, checked)
    if request.options.dry_run or prepared.is_empty:
        _discard(store, checked.staged, kept)
        return _report(request, checked, None, clock)
    if kept is None:
        # Files that were written anew without their bad and superseded rows.
        _discard(store, staged, checked.staged)
    with clock.phase("commit"):
        published = _commit(store, prepared, staged, checked.staged)
    if kept is not None:
        _discard(store, staged, checked.staged)
    return _report(request, checked, published, clock)


def _commit(store: GraphStore, prepared: PreparedCommit, staged: StagedLoad, checked: StagedLoad) -> Published:
    kept = staged.kept

    def abandon() -> None:
        if kept is not None:
            kept.armed = False
        _discard(store, checked, staged if kept is not None else None)

    if kept is not None:
        kept.armed = True
    return commit(store, prepared, abandon)


def plan_load(store: GraphStore, request: LoadRequest, executor: Executor) -> LoadPlan:
    """Plans an attempt at loading files. On a branch, the tables that the input mentions are forked first."""
    ranges = tuple(cut(request.files, executor.parallelism))

    def mentioned(context: StageContext) -> set[str]:
        return set().union(*executor.map(partial(tables_mentioned, context), ranges))

    return plan_attempt(store, request, ranges, mentioned)


def plan_attempt(
    store: GraphStore,
    request: LoadRequest,
    ranges: tuple[InputRange, ...],
    mentioned: Callable[[StageContext], Set[str]],
) -> LoadPlan:
    """Captures what an attempt is planned on, and forks tables of a branch; `mentioned` is only asked where any may."""
    contract = read_contract(store)
    snapshot, rows = store.snapshot_with_rows(request.branch)
    base_commit = current_head(store, request.branch, snapshot.version, rows)
    context = StageContext(
        contract.catalog,
        request.mode,
        DecodeOptions(request.options.unknown_fields, request.options.blob_schemes),
        {},
        store.storage_options,
    )
    forked: set[str] = set()
    if any(entry.branch != snapshot.branch for entry in snapshot.entries.values()):
        forked |= mentioned(context)
        fork_tables(store, snapshot, forked)
        reach(CrashPoint.FORKED)
    targets = {key: _target(store, contract.catalog, snapshot, key, forked) for key in snapshot.entries}
    physical = {key: store.table_uri(entry.location, snapshot.branch) for key, entry in snapshot.entries.items()}
    reach(CrashPoint.PLANNED)
    return LoadPlan(contract, snapshot, base_commit, replace(context, targets=targets), ranges, physical)


def _target(store: GraphStore, catalog: Catalog, snapshot: Snapshot, key: str, forked: set[str]) -> TableTarget:
    entry = snapshot.entries[key]
    branch = snapshot.branch if key in forked else entry.branch
    uri = store.table_uri(entry.location, branch)
    return TableTarget(key, uri, entry.version, entry.row_count, _behind_blobs(catalog.table(key)))


def _behind_blobs(entity: EntityType | None) -> tuple[str, ...]:
    """Columns of unique values that stand behind the first blob of a type."""
    if entity is None:
        return ()
    blob = next((p.name for p in entity.properties if p.type.scalar is Scalar.BLOB), None)
    if blob is None:
        return ()
    unique = {name for c in entity.constraints if isinstance(c, Unique) for name in c.columns}
    return tuple(p.name for p in entity.properties if p.name in unique and p.name > blob)


def check_load(request: LoadRequest, staged: StagedLoad) -> CheckedLoad:
    """Asks the probes, writes the bad-row report, and takes bad and superseded rows out of the staged files.

    Raises BadRowsError when there are more bad rows than the options allow, or an overwrite has only such for
    a type; ConstraintError when an overwrite would leave stored edges dangling.
    """
    context = staged.plan.context
    checker = LoadChecker(
        context.catalog,
        request.mode,
        request.options.on_duplicate,
        staged.tables,
        context.targets,
        context.storage_options,
    )
    result = checker.run(staged.mentioned)
    summary = _report_bad_rows(request, staged, result)
    if not request.options.allows(summary.total, staged.records):
        raise BadRowsError(_refusal(summary), summary)
    bad: Counter[str] = Counter()
    for receipt in staged.receipts:
        bad.update(receipt.bad)
    bad.update(bad_rows(result.findings))
    if request.mode is LoadMode.OVERWRITE:
        _refuse_emptying(staged, bad, summary)
        checker.refuse_dangling(staged.mentioned)
    return CheckedLoad(_restage(staged), summary, bad, result.superseded)


def _refuse_emptying(staged: StagedLoad, bad: Mapping[str, int], summary: BadRowSummary) -> None:
    """Nobody who overwrites with rows means to empty the type, however many bad rows are allowed."""
    read: Counter[str] = Counter()
    for receipt in staged.receipts:
        read.update(receipt.read)
    for key in sorted(staged.mentioned):
        if read[key] and bad[key] >= read[key]:
            raise BadRowsError(f"all {read[key]} rows for '{key}' are bad: {_refusal(summary)}", summary)


def _report_bad_rows(request: LoadRequest, staged: StagedLoad, result: CheckResult) -> BadRowSummary:
    ranges, receipts = staged.plan.ranges, staged.receipts
    found = FoundRows(staged.tables, result.findings, SAMPLE if request.options.bad_rows is None else None)
    found.locate(staged.again)
    options, path = request.options, request.options.report
    if options.batch is not None and not (result.findings or any(receipt.bad_total for receipt in receipts)):
        path = None
    context = staged.plan.context
    summary = write_report(ranges, receipts, found, path, context.storage_options)
    return without_personal(summary, context.catalog)


def _refusal(summary: BadRowSummary) -> str:
    rules = ", ".join(f"{count} {rule}" for rule, count in summary.per_rule.items())
    first = summary.sample[0]
    others = f" (and {len(first.further)} more in this row)" if first.further else ""
    more = f" Full report: {summary.report}." if summary.report else ""
    if summary.total > 1 and not more:
        more = " A file of all of them: --bad-rows, in Python bad_rows, in Spark badRowsPath."
    return (
        f"load refused, nothing changed: {summary.total} bad row{'s' if summary.total != 1 else ''} ({rules}). First: "
        f"{first.place}: {first.message}{others}.{more}"
    )


def _restage(staged: StagedLoad) -> StagedLoad:
    """Writes the files anew from which rows were dropped, without those rows."""
    plan = staged.plan
    skips: dict[int, dict[str, Rows]] = {}
    for key, table in staged.tables.items():
        for index, ordinals in table.dropped_by_range().items():
            skips.setdefault(index, {})[key] = ordinals
    if not skips:
        return staged
    renewed = staged.again.stage(skips)
    receipts = tuple(_renewed(r, skips.get(r.index, {}), renewed.get(r.index, {})) for r in staged.receipts)
    tables = gather(receipts, plan.context.targets, plan.context.storage_options)
    return replace(staged, receipts=receipts, tables=tables)


def _renewed(
    receipt: RangeReceipt, replaced: Mapping[str, Rows], fragments: Mapping[str, tuple[StagedFragment, ...]]
) -> RangeReceipt:
    kept = {key: staged for key, staged in receipt.staged.items() if key not in replaced}
    return replace(receipt, staged={**kept, **fragments})


def prepare(request: LoadRequest, checked: CheckedLoad) -> PreparedCommit:
    """The checked load as data for the commit protocol; tables that would not advance are left out."""
    staged = checked.staged
    plan = staged.plan
    replacing = request.mode is LoadMode.OVERWRITE
    keys = staged.mentioned if replacing else frozenset(staged.tables)
    writes = [_table_write(plan, key, staged.tables.get(key), replacing) for key in sorted(keys)]
    advancing = tuple(w for w in writes if w.change.fragments or (w.change.replace_all and w.entry.row_count))
    read = tables_read(plan.contract.catalog, {w.table_key for w in advancing}, replacing)
    read |= {w.table_key for w in writes if replacing and w not in advancing}  # they must still be empty
    identity = Identity(new_ulid(), new_ulid(), request.actor, WriterKind.LOAD)
    pins = {key: plan.snapshot.pin(key) for key in sorted(read)}
    schema = plan.contract.schema_hash
    return PreparedCommit(identity, request.branch, schema, advancing, pins, request.transaction, request.stages)


def _table_write(plan: LoadPlan, key: str, table: StagedTable | None, replacing: bool) -> TableWrite:
    entry = plan.snapshot.entry(key)
    if plan.context.targets[key].uri != plan.physical_uris[key]:
        where = display(plan.snapshot.branch)
        raise InternalError(f"rows of '{key}' were staged outside the folder that branch '{where}' writes")
    parts = table.parts if table is not None else ()
    masks = [fragment.removed_addresses() for _, fragment in parts if fragment.hits]
    removed = np.unique(np.concatenate(masks)) if masks else None
    change = TableChange(tuple(f.file.fragment for _, f in parts), removed, replacing)
    staged_rows = table.rows if table is not None else 0
    rows = staged_rows if replacing else entry.row_count + staged_rows - (len(removed) if removed is not None else 0)
    return TableWrite(entry, plan.snapshot.branch, change, rows)


def _discard(store: GraphStore, staged: StagedLoad, but: StagedLoad | None = None) -> None:
    """Removes staged files, but for those that another stage has too."""
    for key, table in staged.tables.items():
        spared = {f.file for _, f in but.tables[key].parts} if but is not None and key in but.tables else set()
        discard(store.objects, table.target.uri, (f.file for _, f in table.parts if f.file not in spared))


def _report(request: LoadRequest, checked: CheckedLoad, published: Published | None, clock: Clock) -> LoadReport:
    plan = checked.staged.plan
    return LoadReport(
        mode=str(request.mode),
        branch=display(request.branch),
        base_branch=request.base,
        branch_created=request.branch_created,
        commit=published.commit_id if published is not None else None,
        base_commit=plan.base_commit,
        manifest_version=published.manifest_version if published is not None else plan.snapshot.version,
        tables=_counts(request, checked),
        bad_rows=checked.bad_rows,
        phases=clock.seconds(),
        warnings=published.warnings if published is not None else (),
    )


def _counts(request: LoadRequest, checked: CheckedLoad) -> dict[str, TableCounts]:
    staged = checked.staged
    read: Counter[str] = Counter()
    for receipt in staged.receipts:
        read.update(receipt.read)
    counts = {}
    for key in sorted(staged.mentioned):
        table = staged.tables.get(key)
        rows, hits = (table.rows, table.hits) if table is not None else (0, 0)
        entry = staged.plan.snapshot.entry(key)
        bad = checked.bad_per_table.get(key, 0)
        counts[key] = TableCounts(
            read=read[key],
            valid=read[key] - bad,
            bad=bad,
            inserted=rows - hits,
            updated=hits,
            deleted=entry.row_count if request.mode is LoadMode.OVERWRITE else 0,
            superseded=checked.superseded.get(key, 0),
        )
    return counts
