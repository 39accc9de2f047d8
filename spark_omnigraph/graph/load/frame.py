"""Writing a frame: planned before its tasks run, and checked and committed, by the same steps as a load, after them.

A frame is seen once. So bad rows that only the checks of the whole graph find are read from the staged files, and an
append or a merge that lost a race is tried again with them: they are written anew for the versions that won.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.catalog.types import Scalar
from spark_omnigraph.commit.owners import await_turn
from spark_omnigraph.commit.publisher import check_transaction
from spark_omnigraph.commit.recovery import Scope, recover_for_writing
from spark_omnigraph.errors import BadRequestError, ConflictError, ExpectedVersionMismatch, OmnigraphError
from spark_omnigraph.graph.load.bad_rows import check_report_path
from spark_omnigraph.graph.load.load import (
    REPLANS,
    Kept,
    LoadPlan,
    LoadRequest,
    StagedLoad,
    check_and_finish,
    plan_attempt,
)
from spark_omnigraph.graph.load.options import LoadOptions, LoadReport
from spark_omnigraph.graph.load.second_pass import StagedAgain
from spark_omnigraph.graph.maintain.index import ensure_indices
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.staging.receipt import RangeReceipt, StageContext
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.input.ranges import InputFile, InputRange
from spark_omnigraph.storage.tables.staged import discard
from spark_omnigraph.write.clock import Clock
from spark_omnigraph.write.staged_table import gather


@dataclass(frozen=True, slots=True)
class StagedPart:
    """What one task staged, the versions of the tables among whose rows it looked for stored ids, and the hash of the
    schema that the rows were checked by.
    """

    receipt: RangeReceipt
    versions: Mapping[str, int]
    schema: str

    def moved(self, context: StageContext) -> bool:
        """Whether a table that it staged rows for is at another version in a context."""
        return any(context.targets[key].version != self.versions[key] for key in self.receipt.staged)


def staged_part(context: StageContext, receipt: RangeReceipt) -> StagedPart:
    """A receipt with the versions and the schema of the context that it was staged in."""
    return StagedPart(receipt, {key: context.targets[key].version for key in receipt.staged}, context.catalog.ir_hash)


def frame_request(
    branch: str | None,
    mode: LoadMode,
    actor: str | None,
    options: LoadOptions,
    transaction: Transaction | None = None,
) -> LoadRequest:
    """The request of a frame. BadRequestError when a later row is to win: rows of a frame have no order."""
    if options.on_duplicate is OnDuplicate.LAST:
        raise BadRequestError(
            "'last' for repeated ids (option onDuplicate) needs rows in an order, and a frame has none; drop "
            "duplicates before the write"
        )
    check_report_path(options.bad_rows, ())
    name = parse_branch(branch) if branch is not None else None
    return LoadRequest((), name, mode, actor, options, transaction=transaction)


def plan_frame_load(store: GraphStore, request: LoadRequest, table_key: str | None) -> LoadPlan:
    """What the tasks of a frame need. A frame of records may hold any type: on a branch all tables are forked for it.

    NotFoundError for a missing branch.
    """
    check_report_path(request.options.bad_rows, (), store.root)
    store.require_branch(request.branch, "; create it first")
    recover_for_writing(store, Scope.FORWARD_ONLY)
    plan = plan_attempt(store, request, (), lambda context: _may_be_written(context, table_key))
    # Overwriting a type with a frame without rows empties it; its name was given, so it is no accident of the input.
    return replace(plan, named=frozenset({table_key} if table_key else ()))


def finish_frame_load(
    store: GraphStore, request: LoadRequest, plan: LoadPlan, parts: Sequence[StagedPart]
) -> LoadReport:
    """Checks and commits what the tasks staged, in partition order. Raises what a load raises, and
    TransactionCommittedError for a named write that was committed before.

    A frame is seen once, its files are not: an append or a merge that lost a race is tried again with them.
    """
    numbered = tuple(replace(part.receipt, index=i) for i, part in enumerate(parts))
    kept = Kept()
    try:
        report = _with_replans(store, request, plan, parts, numbered, kept)
    except OmnigraphError:
        if not kept.armed:
            discard_receipts(store, plan, numbered)
        raise
    if report.commit is None or not kept.armed:
        discard_receipts(store, plan, numbered)
    if report.commit is None or not request.options.build_indexes:
        return report
    return _indexed(store, request, report)


def _with_replans(
    store: GraphStore,
    request: LoadRequest,
    plan: LoadPlan,
    parts: Sequence[StagedPart],
    numbered: tuple[RangeReceipt, ...],
    kept: Kept,
) -> LoadReport:
    attempt = 1
    while True:
        if request.transaction is not None:
            check_transaction(store.manifest_rows(store.manifest(request.branch)), request.transaction)
        if any(part.schema != plan.contract.schema_hash for part in parts):
            raise ConflictError("the schema changed after rows of this frame were staged; write the frame again")
        moved = request.mode is not LoadMode.OVERWRITE and any(part.moved(plan.context) for part in parts)
        receipts = StagedAgain(plan.context, numbered).renew() if moved else numbered
        try:
            return check_and_finish(store, request, _staged(plan, receipts, None if moved else kept), Clock())
        except ExpectedVersionMismatch as lost:
            if attempt == REPLANS or request.mode is LoadMode.OVERWRITE or _with_blobs(plan, numbered):
                raise
            attempt += 1
            await_turn(store, request.branch, frozenset(key for r in numbered for key in r.staged) | {lost.table_key})
            plan = _renewed(store, request, plan)


def _with_blobs(plan: LoadPlan, receipts: Iterable[RangeReceipt]) -> bool:
    """Whether a type that rows were staged of has blobs, which are not read back."""
    staged = {key for receipt in receipts for key in receipt.staged}
    types = (entity for entity in plan.context.catalog.tables() if entity.table_key in staged)
    return any(p.type.scalar is Scalar.BLOB for entity in types for p in entity.properties)


def _staged(plan: LoadPlan, receipts: tuple[RangeReceipt, ...], kept: Kept | None) -> StagedLoad:
    context = plan.context
    ranges = tuple(_partition(i) for i in range(len(receipts)))
    tables = gather(receipts, context.targets, context.storage_options)
    return StagedLoad(replace(plan, ranges=ranges), receipts, tables, StagedAgain(context, receipts), kept)


def _renewed(store: GraphStore, request: LoadRequest, plan: LoadPlan) -> LoadPlan:
    forked = {key for key, target in plan.context.targets.items() if target.uri == plan.physical_uris[key]}
    return replace(plan_attempt(store, request, (), lambda _: forked), named=plan.named)


def discard_receipts(store: GraphStore, plan: LoadPlan, receipts: Iterable[RangeReceipt]) -> None:
    """Removes what tasks of a write staged that ends without a commit."""
    for receipt in receipts:
        for key, fragments in receipt.staged.items():
            discard(store.objects, plan.context.targets[key].uri, (fragment.file for fragment in fragments))


def _may_be_written(context: StageContext, table_key: str | None) -> set[str]:
    return {table_key} if table_key is not None else {entity.table_key for entity in context.catalog.tables()}


def _partition(index: int) -> InputRange:
    """A partition of a frame as reports name it; there is nothing in it to read."""
    return InputRange(index, InputFile(f"<partition {index}>", 0, ""), 0, 0)


def _indexed(store: GraphStore, request: LoadRequest, report: LoadReport) -> LoadReport:
    started = time.perf_counter()
    warnings = report.warnings
    try:
        warnings += ensure_indices(store, request.branch, report.tables).warnings
    except OmnigraphError as error:
        warnings += (f"the write is committed, but indexes could not be built: {error.message}",)
    phases = {**report.phases, "index": round(time.perf_counter() - started, 4)}
    return replace(report, phases=phases, warnings=warnings)
