"""Writing a frame: planned before its tasks run, and checked and committed, by the same steps as a load, after them.

A frame is seen once. So a write that loses a race is refused as a conflict and not planned anew, and bad rows that only
the checks of the whole graph find are read from the staged files.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.commit.recovery import Scope, recover
from spark_omnigraph.errors import BadRequestError, NotFoundError, OmnigraphError
from spark_omnigraph.graph.clock import Clock
from spark_omnigraph.graph.contract import current_hash
from spark_omnigraph.graph.index import ensure_indices
from spark_omnigraph.graph.load import LoadPlan, LoadRequest, StagedLoad, check_and_finish, plan_attempt
from spark_omnigraph.graph.load_options import LoadOptions, LoadReport
from spark_omnigraph.graph.second_pass import StagedAgain
from spark_omnigraph.graph.staged_table import gather
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.staging import RangeReceipt, StageContext
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.lines import InputFile, InputRange
from spark_omnigraph.storage.staged import discard


def frame_request(branch: str | None, mode: LoadMode, actor: str | None, options: LoadOptions) -> LoadRequest:
    """The request of a frame. BadRequestError when a later row is to win: rows of a frame have no order."""
    if options.on_duplicate is OnDuplicate.LAST:
        raise BadRequestError(
            "on_duplicate 'last' needs rows in an order, and a frame has none; drop duplicates before the write"
        )
    return LoadRequest((), parse_branch(branch) if branch is not None else None, mode, actor, options)


def plan_frame_load(store: GraphStore, request: LoadRequest, table_key: str | None) -> LoadPlan:
    """What the tasks of a frame need. A frame of records may hold any type: on a branch all tables are forked for it.

    NotFoundError for a missing branch.
    """
    if request.branch is not None and request.branch not in store.branch_names():
        raise NotFoundError(f"branch '{request.branch}' not found; create it first")
    recover(store, lambda: current_hash(store), Scope.FORWARD_ONLY)
    plan = plan_attempt(store, request, (), lambda context: _may_be_written(context, table_key))
    # Overwriting a type with a frame without rows empties it; its name was given, so it is no accident of the input.
    return replace(plan, named=frozenset({table_key} if table_key else ()))


def finish_frame_load(
    store: GraphStore, request: LoadRequest, plan: LoadPlan, receipts: Sequence[RangeReceipt]
) -> LoadReport:
    """Checks and commits what the tasks staged; receipts in partition order. Raises what a load raises."""
    numbered = tuple(replace(receipt, index=i) for i, receipt in enumerate(receipts))
    ranges = tuple(_partition(i) for i in range(len(numbered)))
    context = plan.context
    staged = StagedLoad(
        replace(plan, ranges=ranges),
        numbered,
        gather(numbered, context.targets, context.storage_options),
        StagedAgain(context, numbered),
    )
    report = check_and_finish(store, request, staged, Clock())
    if report.commit is None or not request.options.build_indexes:
        return report
    return _indexed(store, request, report)


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
        ensure_indices(store, request.branch, report.tables)
    except OmnigraphError as error:
        warnings += (f"the write is committed, but indexes could not be built: {error.message}",)
    phases = {**report.phases, "index": round(time.perf_counter() - started, 4)}
    return replace(report, phases=phases, warnings=warnings)
