"""Writing a frame: planned before its tasks run, and checked and committed, by the same steps as a load, after them.

A frame is seen once. So bad rows that only the checks of the whole graph find are read from the staged files, and an
append or a merge that lost a race is tried again with them: they are written anew for the versions that won.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.branch.fork import require_forks
from spark_omnigraph.catalog.types import Scalar
from spark_omnigraph.commit.publisher import check_transaction
from spark_omnigraph.commit.recovery import Scope, recover_for_writing
from spark_omnigraph.errors import BadRequestError, ConflictError
from spark_omnigraph.graph.load.bad_rows import check_report_path
from spark_omnigraph.graph.load.load import (
    LoadPlan,
    LoadRequest,
    StagedLoad,
    check_and_finish,
    plan_on,
)
from spark_omnigraph.graph.load.options import LoadOptions, LoadReport, check_mode
from spark_omnigraph.graph.load.second_pass import StagedAgain
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.staging.receipt import RangeReceipt, StageContext
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.input.ranges import InputFile, InputRange
from spark_omnigraph.write.after import after
from spark_omnigraph.write.attempts import in_attempts
from spark_omnigraph.write.candidates import Base, capture, fork_first
from spark_omnigraph.write.clock import Clock
from spark_omnigraph.write.executor import LocalExecutor
from spark_omnigraph.write.staged_files import StagedFiles
from spark_omnigraph.write.staged_table import gather

_LOOKED_UP = (LoadMode.APPEND, LoadMode.MERGE, LoadMode.CHANGES)
"""Modes whose staged rows say which stored ones they replace. Patches are looked up when all are staged."""


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
    check_mode(options, mode)
    check_report_path(options.bad_rows, ())
    name = parse_branch(branch) if branch is not None else None
    return LoadRequest((), name, mode, actor, options, transaction=transaction)


def plan_frame_load(store: GraphStore, request: LoadRequest, table_key: str | None, tasks: int = 1) -> LoadPlan:
    """What the tasks of a frame need, so many at a time, from a driver that has entered."""
    enter_frame(store, request, table_key)
    return capture_frame(store, request, table_key, tasks)


def enter_frame(store: GraphStore, request: LoadRequest, table_key: str | None) -> None:
    """What a write of a frame changes before its tasks run, so on the driver alone: it heals what others left, and
    forks what a branch is going to write. A frame of records may hold any type: all tables are forked for it.

    NotFoundError for a missing branch.
    """
    check_report_path(request.options.bad_rows, (), store.root)
    store.require_branch(request.branch, "; create it first")
    recover_for_writing(store, Scope.FORWARD_ONLY)
    base = capture(store, request.branch)
    fork_first(store, base.snapshot, _may_be_written(base, table_key))


def capture_frame(store: GraphStore, request: LoadRequest, table_key: str | None, tasks: int = 1) -> LoadPlan:
    """What tasks of a frame need, as it stands now; reads alone. The stage of the write is open by then.

    ConflictError when a fork is gone that the driver had made, as by a clean-up before the stage was opened.
    """
    base = capture(store, request.branch)
    written = _may_be_written(base, table_key)
    require_forks(store, base.snapshot, written)
    # Overwriting a type with a frame without rows empties it; its name was given, so it is no accident of the input.
    return replace(plan_on(store, request, base, written, tasks), named=frozenset({table_key} if table_key else ()))


def finish_frame_load(
    store: GraphStore, request: LoadRequest, plan: LoadPlan, parts: Sequence[StagedPart]
) -> LoadReport:
    """Checks and commits what the tasks staged, in partition order. Raises what a load raises, and
    TransactionCommittedError for a named write that was committed before.

    A frame is seen once, its files are not: an append or a merge that lost a race is tried again with them.
    """
    numbered = tuple(replace(part.receipt, index=i) for i, part in enumerate(parts))
    staged = frozenset(key for receipt in numbered for key in receipt.staged)
    plans = [plan]

    def attempt() -> LoadReport:
        current = plans.pop() if plans else _renewed(store, request, plan, staged)
        if request.transaction is not None:
            check_transaction(store.manifest_rows(store.manifest(request.branch)), request.transaction)
        if any(part.schema != current.base.contract.schema_hash for part in parts):
            raise ConflictError("the schema changed after rows of this frame were staged; write the frame again")
        receipts = numbered
        if request.mode in _LOOKED_UP and any(part.moved(current.context) for part in parts):
            if _with_blobs(current, staged):
                raise ConflictError("a table moved after rows with blobs were staged for it; write the frame again")
            receipts = StagedAgain(current.context, numbered).renew()
            files.add(file for receipt in receipts for file in receipt.files)
        return check_and_finish(store, request, _staged(current, request, receipts), Clock(plan.started), files)

    def again(_: str) -> frozenset[str] | None:
        lost = request.mode is LoadMode.OVERWRITE or (request.mode in _LOOKED_UP and _with_blobs(plan, staged))
        return None if lost or request.compares else staged

    with StagedFiles(store, request.stages, several_attempts=True) as files:
        files.add(file for receipt in numbered for file in receipt.files)
        report = in_attempts(store, request.branch, attempt, again)
    return after(store, request.branch, report, "write") if request.options.build_indexes else report


def discard_parts(store: GraphStore, parts: Iterable[StagedPart]) -> None:
    """Removes what the tasks of a write staged that will not be committed."""
    with StagedFiles(store) as files:
        files.add(file for part in parts for file in part.receipt.files)


def _with_blobs(plan: LoadPlan, staged: Set[str]) -> bool:
    """Whether a type that rows were staged of has blobs, which are not read back."""
    types = (entity for entity in plan.context.catalog.tables() if entity.table_key in staged)
    return any(p.type.scalar is Scalar.BLOB for entity in types for p in entity.properties)


def _staged(plan: LoadPlan, request: LoadRequest, receipts: tuple[RangeReceipt, ...]) -> StagedLoad:
    context, executor = plan.context, request.options.executor or LocalExecutor(1)
    ranges = tuple(_partition(request.frame, i) for i in range(len(receipts)))
    tables = gather(receipts, context.targets, context.storage_options)
    return StagedLoad(replace(plan, ranges=ranges), receipts, tables, StagedAgain(context, receipts), executor)


def _renewed(store: GraphStore, request: LoadRequest, plan: LoadPlan, staged: Set[str]) -> LoadPlan:
    base, written = capture(store, request.branch), staged | plan.named
    fork_first(store, base.snapshot, written)
    return replace(plan_on(store, request, base, written), named=plan.named)


def _may_be_written(base: Base, table_key: str | None) -> set[str]:
    return {table_key} if table_key is not None else {entity.table_key for entity in base.contract.catalog.tables()}


def _partition(frame: str, index: int) -> InputRange:
    """A partition of a frame as reports name it; there is nothing in it to read."""
    return InputRange(index, InputFile(frame.format(index), 0, ""), 0, 0)
