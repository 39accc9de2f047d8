"""Staged compaction: small fragments, and those with many masked rows, written anew; nothing names the files yet."""

from __future__ import annotations

from lance import LanceDataset
from lance.optimize import Compaction, RewriteResult

from spark_omnigraph.storage.faults import reading

TARGET_ROWS = 1 << 20
"""Rows up to which neighbouring fragments are joined."""


def stage_compaction(dataset: LanceDataset, target_rows: int = TARGET_ROWS) -> tuple[RewriteResult, ...]:
    """Rewritten fragments of a table at its version; none when there is nothing to gain.

    Rows keep their stable ids and the versions at which they were made and changed. HEAD does not move.
    """
    with reading(f"compact {dataset.uri}"):
        plan = Compaction.plan(dataset, {"target_rows_per_fragment": target_rows})
        return tuple(task.execute(dataset) for task in plan.tasks)
