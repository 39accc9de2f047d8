"""Load: records → checked, staged fragments of all types at once → one commit.

    plan_load          capture branch, snapshot, schema; fork what a branch writes first     driver
    stage_range        decode, check, stage                                                  executors
    check_load         probes over staged plus pinned key columns                            driver
    check_and_finish   prepare and hand to the commit protocol                               driver

A load that lost a race is planned anew, a bounded number of times, where the mode's meaning allows it: overwrite only
while nothing that it replaces has moved, the other modes always.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import uuid4

import numpy as np
import pyarrow as pa

from spark_omnigraph.bad_rows import BadRowSummary, Rule
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import EntityType, Scalar, Unique
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.plan import PreparedCommit, Published, WriterKind
from spark_omnigraph.embed.counts import Properties, PropertyCounts, cost_of, summed
from spark_omnigraph.errors import BadRowsError
from spark_omnigraph.graph.load.bad_rows import SAMPLE, FoundRows, ReportTarget, bad_rows, write_report
from spark_omnigraph.graph.load.changes import DeletedRows, LoadDeletes
from spark_omnigraph.graph.load.edges import edges_added_again, refuse_known_edges
from spark_omnigraph.graph.load.filling import told, vector_fill
from spark_omnigraph.graph.load.inputs import accepted, check_tables
from spark_omnigraph.graph.load.options import LoadOptions, LoadReport, TableCounts, decoding
from spark_omnigraph.graph.load.patch import PatchedRows, PatchRules, by_patch
from spark_omnigraph.graph.load.second_pass import InputAgain, SecondPass
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.facts import CommitFacts, CommitOrigin, RowFacts
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.progress.meter import begin, tell
from spark_omnigraph.records.mode import LoadMode
from spark_omnigraph.staging.edge_ids import check_edge_id
from spark_omnigraph.staging.pieces import tables_mentioned
from spark_omnigraph.staging.receipt import RangeReceipt, StageContext, StagedFragment
from spark_omnigraph.staging.stage import exists_already, stage_range
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.input.ranges import InputFile, InputRange, cut, input_digest
from spark_omnigraph.storage.input.tables import bounds
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.validate.probes import tables_read
from spark_omnigraph.write.attempts import in_attempts
from spark_omnigraph.write.candidates import Base, candidate, capture, fork_first, target_of
from spark_omnigraph.write.changes import ChangeChecker
from spark_omnigraph.write.checker import CheckResult, Finding, WriteChecker
from spark_omnigraph.write.clock import Clock
from spark_omnigraph.write.executor import Executor, LocalExecutor
from spark_omnigraph.write.personal import without_personal
from spark_omnigraph.write.staged_files import StagedFiles, staged_files
from spark_omnigraph.write.staged_table import Rows, StagedTable, gather

SMALL_INPUT = 48 << 20
"""Bytes up to which starting worker processes costs more than they save."""


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What the caller asked for; `branch` None is main. The base is echoed in the report."""

    files: tuple[InputFile, ...]
    branch: Branch
    mode: LoadMode
    actor: str | None = None
    options: LoadOptions = field(default_factory=LoadOptions)
    base: str | None = None
    branch_created: bool = False
    transaction: Transaction | None = None
    """The name of the write: refused when it was committed before."""
    stages: tuple[str, ...] = ()
    """Of a frame: under which its rows are staged."""
    origin: CommitOrigin = field(default_factory=CommitOrigin)
    mapping_digest: str | None = None
    frame: str = "<partition {}>"
    """What messages call a part of a frame, which has a number."""
    distinct: frozenset[str] = frozenset()
    """Tables of whose rows equal ones count once."""
    call: str = field(default_factory=lambda: uuid4().hex)
    """Of all its attempts."""
    compares: bool = False
    """Of a frame: whether rows are left out that are stored as they are. What it was compared with must still stand."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """One attempt: what it is planned on, and what its tasks need."""

    base: Base
    context: StageContext
    ranges: tuple[InputRange, ...] = ()
    named: frozenset[str] = frozenset()
    """Tables that the caller named, whether the input has records of them or not."""
    started: float = field(default_factory=time.time)
    """When the write began: that of a frame is planned in one process and checked in another."""


@dataclass(frozen=True, slots=True)
class StagedLoad:
    """Receipts of all ranges and the staged rows as tables. Nothing refers to the files yet."""

    plan: LoadPlan
    receipts: tuple[RangeReceipt, ...]
    tables: Mapping[str, StagedTable]
    again: SecondPass
    executor: Executor
    spent: Properties = field(default_factory=dict)
    """What attempts before this one took."""

    @property
    def properties(self) -> Properties:
        """What it took to give rows the vectors that they lack, with what attempts before had asked for."""
        before = {name: cost_of(counts) for name, counts in self.spent.items()}
        return summed([before, *(receipt.properties for receipt in self.receipts)])

    @property
    def read(self) -> Counter[str]:
        """Records by table, bad ones included."""
        return sum((Counter(receipt.read) for receipt in self.receipts), Counter[str]())

    @property
    def mentioned(self) -> frozenset[str]:
        """Tables that the input has records of, and those that the caller named."""
        return self.plan.named.union(key for key in self.read if key)


@dataclass(frozen=True, slots=True)
class CheckedLoad:
    """A staged load with the answers of the probes; bad and superseded rows are out of the staged files."""

    staged: StagedLoad
    bad_rows: BadRowSummary
    bad_per_table: Mapping[str, int]
    superseded: Mapping[str, int]
    patched: Mapping[str, PatchedRows] = field(default_factory=dict)
    """Of an update, whose staged rows are patches: the rows that they make."""
    deleted: DeletedRows | None = None
    """In mode `changes`: the stored rows that it takes away."""


def load(store: GraphStore, request: LoadRequest) -> LoadReport:
    """Loads all records in one commit, or refuses and changes nothing.

    Raises BadRowsError (every bad row was looked for), ConstraintError, or ConflictError after bounded replanning.
    """
    size = sum(file.size for file in request.files)
    executor = request.options.executor or LocalExecutor(1 if size <= SMALL_INPUT else None)
    clock = Clock()
    mentioned: set[str] = set()
    spent: dict[str, PropertyCounts] = {}

    def attempt() -> LoadReport:
        with staged_files(store) as files:
            staged = replace(stage_load(store, request, executor, clock, files), spent=dict(spent))
            mentioned.update(staged.mentioned)
            spent.update(staged.properties)
            return check_and_finish(store, request, staged, clock, files)

    def again(moved: str) -> set[str] | None:
        lost = request.mode is LoadMode.OVERWRITE and (moved in mentioned or not moved)
        return None if lost else mentioned

    return in_attempts(store, request.branch, attempt, again)


def stage_load(
    store: GraphStore, request: LoadRequest, executor: Executor, clock: Clock, files: StagedFiles
) -> StagedLoad:
    """Plans an attempt and stages all ranges."""
    with clock.phase("plan"):
        plan = plan_load(store, request, executor)
    if request.options.max_deletes is not None:
        with clock.phase("look"):
            _look(store, request, plan, executor)
    receipts: list[RangeReceipt] = []
    rows = 0
    begin(request.options.progress, "stage", len(plan.ranges))
    with clock.phase("stage"):
        for receipt in executor.map(partial(stage_range, plan.context), plan.ranges):
            receipts.append(receipt)
            files.add(receipt.files)
            rows += sum(receipt.read.values())
            tell(request.options.progress, "stage", len(receipts), len(plan.ranges), rows)
    reach(CrashPoint.STAGED)
    tables = gather(receipts, plan.context.targets, plan.context.storage_options)
    return StagedLoad(plan, tuple(receipts), tables, InputAgain(plan.context, executor, plan.ranges), executor)


def _look(store: GraphStore, request: LoadRequest, plan: LoadPlan, executor: Executor) -> None:
    """TooManyDeletesError before anything is staged. It is asked again when all rows are checked."""
    context = replace(plan.context, looks=True)
    receipts = list(executor.map(partial(stage_range, context), plan.ranges))
    tables = gather(receipts, context.targets, context.storage_options)
    LoadDeletes(store, plan.base).look(tables, request.options)


def check_and_finish(
    store: GraphStore, request: LoadRequest, staged: StagedLoad, clock: Clock, files: StagedFiles
) -> LoadReport:
    """The second half of an attempt."""
    begin(request.options.progress, "check")
    with clock.phase("check"):
        checked = check_load(store, request, staged, files)
    reach(CrashPoint.CHECKED)
    if request.options.dry_run:
        return _report(request, checked, staged.plan.base.unchanged, clock)
    with clock.phase("stage"):
        changes = _changes(request, checked, files)
    prepared = replace(prepare(store, request, checked, changes), facts=_facts(request, checked, clock))
    if prepared.is_empty:
        return _report(request, checked, staged.plan.base.unchanged, clock)
    begin(request.options.progress, "commit")
    with clock.phase("commit"):
        published = files.commit(prepared)
    return _report(request, checked, published, clock)


def plan_load(store: GraphStore, request: LoadRequest, executor: Executor) -> LoadPlan:
    """Plans an attempt at loading files. On a branch, the tables that the input mentions are forked first."""
    options = store.storage_options
    ranges = tuple(cut(request.files, executor.parallelism, partial(bounds, options=options)))
    base, written = capture(store, request.branch, request.transaction), set[str]()
    decode = decoding(request.options, request.mode)
    check_tables(accepted(base.contract.catalog, request.options), request.files, decode, options)
    if any(entry.branch != base.snapshot.branch for entry in base.snapshot.entries.values()):
        mentioned = partial(tables_mentioned, base.contract.catalog, options)
        written.update(*executor.map(mentioned, ranges))
        fork_first(store, base.snapshot, written)
    return replace(plan_on(store, request, base, written, executor.parallelism), ranges=ranges)


def plan_on(store: GraphStore, request: LoadRequest, base: Base, written: Set[str], tasks: int = 1) -> LoadPlan:
    """A plan whose tasks, so many at a time, stage rows in the forks of the `written` tables, and read the others where
    they are.
    """
    snapshot, catalog, options = base.snapshot, base.contract.catalog, request.options
    targets = {}
    for key, entry in snapshot.entries.items():
        branch = snapshot.branch if key in written else entry.branch
        targets[key] = target_of(store, snapshot, key, branch, _behind_blobs(catalog.table(key)))
    reach(CrashPoint.PLANNED)
    fill = vector_fill(store, catalog, options, tasks)
    decode = decoding(options, request.mode)
    check_edge_id(catalog, decode.edge_id)
    context = StageContext(catalog, request.mode, decode, targets, store.storage_options, fill=fill)
    return LoadPlan(base, replace(context, adopt_edges=options.adopt_edges, compares=request.compares))


def _behind_blobs(entity: EntityType | None) -> tuple[str, ...]:
    """Columns of unique values that stand behind the first blob of a type."""
    if entity is None:
        return ()
    blob = next((p.name for p in entity.properties if p.type.scalar is Scalar.BLOB), None)
    if blob is None:
        return ()
    unique = {name for c in entity.constraints if isinstance(c, Unique) for name in c.columns}
    return tuple(p.name for p in entity.properties if p.name in unique and p.name > blob)


def check_load(store: GraphStore, request: LoadRequest, staged: StagedLoad, files: StagedFiles) -> CheckedLoad:
    """Asks the probes, writes the bad-row report, and takes bad and superseded rows out of the staged files.

    Raises BadRowsError when there are more bad rows than the options allow, or an overwrite has only such for
    a type; ConstraintError when an overwrite would leave stored edges dangling; TooManyDeletesError.
    """
    refuse_known_edges(request.options, staged.receipts)
    deletes = LoadDeletes(store, staged.plan.base) if request.mode is LoadMode.CHANGES else None
    patched = _patched(request, staged)
    checker = _checker(request, staged, patched, deletes)
    checker.distinct = request.distinct
    checker.by_ends = request.options.edge_id is not None
    overtaken = _overtaken(staged) if request.mode is LoadMode.APPEND else []
    result = checker.run(staged.mentioned)
    own = by_patch(patched, result.findings) if patched else [*overtaken, *result.findings]
    result = replace(result, findings=own)
    summary = _report_bad_rows(store.root, request, staged, result)
    if not request.options.allows(summary.total, staged.read.total()):
        limit = request.options.limit_of(staged.read.total())
        raise BadRowsError(f"load refused, nothing changed: {summary.told(limit)}", summary)
    bad = sum((Counter(receipt.bad) for receipt in staged.receipts), Counter(bad_rows(result.findings)))
    if request.mode is LoadMode.OVERWRITE:
        _refuse_emptying(staged, bad, summary)
        checker.refuse_dangling(staged.mentioned)
    if request.mode is LoadMode.UPDATE:
        return CheckedLoad(staged, summary, bad, {}, patched)
    deleted = None if deletes is None else deletes.done(staged.tables, request.options)
    rest = _restage(staged)
    files.add({file for r in rest.receipts for file in r.files}.difference(*(r.files for r in staged.receipts)))
    return CheckedLoad(rest, summary, bad, result.superseded, deleted=deleted)


def _checker(
    request: LoadRequest, staged: StagedLoad, patched: Mapping[str, PatchedRows], deletes: LoadDeletes | None
) -> WriteChecker:
    context, on_duplicate = staged.plan.context, request.options.on_duplicate
    catalog, targets, options = context.catalog, context.targets, context.storage_options
    if deletes is not None:
        return ChangeChecker(catalog, on_duplicate, staged.tables, targets, options, deletes.take)
    return WriteChecker(catalog, request.mode, on_duplicate, patched or staged.tables, targets, options)


def _overtaken(staged: StagedLoad) -> list[Finding]:
    """Rows of a frame to append whose ids somebody else has stored since they were staged."""
    found = []
    for table in staged.tables.values():
        rows = table.replacing
        if len(rows):
            table.drop(rows)
            taken = table.column("id").take(pa.array(rows))
            told = partial(_told_of, table.table_key, taken)
            found.append(Finding(table.table_key, "id", Rule.KEY_CONFLICT, rows, told, ids=table.column("id")))
    return found


def _told_of(key: TableKey, ids: pa.ChunkedArray, place: int) -> str:
    return exists_already(key, ids[place].as_py())


def _patched(request: LoadRequest, staged: StagedLoad) -> dict[str, PatchedRows]:
    """Of an update, the rows that its patches make."""
    if request.mode is not LoadMode.UPDATE:
        return {}
    options, context = request.options, staged.plan.context
    rules = PatchRules(options.missing, options.on_duplicate)
    return {
        key: PatchedRows(
            context.entity(key), table, replace(rules, distinct=key in request.distinct), context.storage_options
        )
        for key, table in staged.tables.items()
    }


def _refuse_emptying(staged: StagedLoad, bad: Mapping[str, int], summary: BadRowSummary) -> None:
    """Nobody who overwrites with rows means to empty the type, however many bad rows are allowed."""
    read = staged.read
    for key in sorted(staged.mentioned):
        if read[key] and bad[key] >= read[key]:
            raise BadRowsError(
                f"all {read[key]} rows for '{key}' are bad: load refused, nothing changed: {summary.told()}", summary
            )


def _report_bad_rows(root: str, request: LoadRequest, staged: StagedLoad, result: CheckResult) -> BadRowSummary:
    ranges, receipts = staged.plan.ranges, staged.receipts
    found = FoundRows(staged.tables, result.findings, SAMPLE if request.options.bad_rows is None else None)
    found.locate(staged.again)
    options, path = request.options, request.options.report
    if options.batch is not None and not (result.findings or any(receipt.bad_total for receipt in receipts)):
        path = None
    context = staged.plan.context
    run = request.origin.run_id or request.call
    number = 1 if options.batch is None else options.batch + 1
    target = ReportTarget(path, context.storage_options, root, display(request.branch), run, number)
    summary = write_report(ranges, receipts, found, target)
    return without_personal(summary, context.catalog)


def _restage(staged: StagedLoad) -> StagedLoad:
    """Writes the files anew from which rows were dropped, without those rows."""
    plan = staged.plan
    skips: dict[int, dict[str, Rows]] = {}
    for key, table in staged.tables.items():
        for index, ordinals in table.dropped_by_range().items():
            skips.setdefault(index, {})[key] = ordinals
    if not skips:
        return staged
    for receipt in staged.receipts:
        for key, ordinals in receipt.unfilled.items():
            if key in skips.get(receipt.index, {}):
                skips[receipt.index][key] = np.concatenate([skips[receipt.index][key], ordinals])
    renewed = staged.again.stage(skips)
    receipts = tuple(_renewed(r, skips.get(r.index, {}), renewed.get(r.index, {})) for r in staged.receipts)
    tables = gather(receipts, plan.context.targets, plan.context.storage_options)
    return replace(staged, receipts=receipts, tables=tables)


def _renewed(
    receipt: RangeReceipt, replaced: Mapping[str, Rows], fragments: Mapping[str, tuple[StagedFragment, ...]]
) -> RangeReceipt:
    kept = {key: staged for key, staged in receipt.staged.items() if key not in replaced}
    return replace(receipt, staged={**kept, **fragments})


def _changes(request: LoadRequest, checked: CheckedLoad, files: StagedFiles) -> dict[str, TableChange]:
    """What becomes of each table; that of patches is staged now."""
    staged = checked.staged
    if request.mode is LoadMode.UPDATE:
        return {key: rows.stage_change(staged.executor, files) for key, rows in checked.patched.items()}
    replacing = request.mode is LoadMode.OVERWRITE
    keys = staged.mentioned if replacing else frozenset(staged.tables)
    changes = {key: _change(staged.tables.get(key), replacing) for key in sorted(keys)}
    return changes if checked.deleted is None else checked.deleted.beside(changes)


def prepare(
    store: GraphStore, request: LoadRequest, checked: CheckedLoad, changes: Mapping[str, TableChange]
) -> PreparedCommit:
    """The checked load as data for the commit protocol; tables that would not advance are left out."""
    base, deleted, replacing = checked.staged.plan.base, checked.deleted, request.mode is LoadMode.OVERWRITE
    if deleted is not None:
        fork_first(store, base.snapshot, deleted.masks)  # edges may go of types that the input does not name
    advancing = {
        k: c for k, c in changes.items() if c.staged or c.masked or (replacing and base.snapshot.entry(k).row_count)
    }
    read = tables_read(base.contract.catalog, advancing.keys(), replacing)
    read |= changes.keys() if replacing else frozenset()  # those that do not advance must still be empty
    read |= frozenset() if deleted is None else deleted.looked_at
    read |= checked.staged.mentioned if request.compares else frozenset()
    prepared = candidate(store, base, WriterKind.LOAD, request.actor, advancing, read)
    return replace(prepared, transaction=request.transaction)


def _change(table: StagedTable | None, replacing: bool) -> TableChange:
    fragments = [fragment for _, fragment in table.parts] if table is not None else []
    masks = [fragment.removed_addresses() for fragment in fragments if fragment.hits]
    removed = np.unique(np.concatenate(masks)) if masks else None
    return TableChange(tuple(fragment.file for fragment in fragments), removed, replacing)


def _report(request: LoadRequest, checked: CheckedLoad, published: Published, clock: Clock) -> LoadReport:
    plan, tables = checked.staged.plan, _counts(request, checked)
    return LoadReport(
        mode=str(request.mode),
        branch=display(request.branch),
        base_branch=request.base,
        branch_created=request.branch_created,
        commit=published.commit_id,
        base_commit=plan.base.commit,
        manifest_version=published.manifest_version,
        tables=tables,
        bad_rows=checked.bad_rows,
        phases=clock.seconds(),
        warnings=(*published.warnings, *edges_added_again(request.mode, checked.staged.receipts, tables)),
        properties=told(checked.staged.properties, request.options),
    )


def _facts(request: LoadRequest, checked: CheckedLoad, clock: Clock) -> CommitFacts:
    return CommitFacts(
        "load",
        str(request.mode),
        {key: RowFacts(c.inserted, c.updated, c.deleted, c.bad) for key, c in _counts(request, checked).items()},
        seconds=clock.total(),
        origin=request.origin,
        transaction=request.transaction,
        input_digest=input_digest(request.files),
        mapping_digest=request.mapping_digest,
    )


def _counts(request: LoadRequest, checked: CheckedLoad) -> dict[str, TableCounts]:
    staged, read, counts = checked.staged, checked.staged.read, {}
    gone = {} if checked.deleted is None else checked.deleted.masks
    for key in sorted({*staged.mentioned, *gone}):
        table, patched = staged.tables.get(key), checked.patched.get(key)
        inserted, updated = (table.rows - table.hits, table.hits) if table is not None else (0, 0)
        if patched is not None:
            inserted, updated = patched.inserted, patched.updated
        entry = staged.plan.base.snapshot.entry(key)
        bad = checked.bad_per_table.get(key, 0)
        found = TableCounts(
            read=read[key],
            valid=read[key] - bad,
            bad=bad,
            inserted=inserted,
            updated=updated,
            deleted=entry.row_count if request.mode is LoadMode.OVERWRITE else 0,
            superseded=checked.superseded.get(key, 0),
        )
        counts[key] = found if checked.deleted is None else checked.deleted.counted(key, found, table)
    return counts
