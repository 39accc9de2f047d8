"""Staged compaction: small fragments, and those with many masked rows, written anew; nothing names the files yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import lance
from lance import LanceDataset
from lance.optimize import Compaction, CompactionPlan, CompactionTask, RewriteResult

from spark_omnigraph.progress.meter import in_phase
from spark_omnigraph.storage.faults import reading

TARGET_ROWS = 1 << 20
"""Rows up to which neighbouring fragments are joined."""

MASKED_SHARE = 0.1
"""Share of masked rows above which a file is written anew: Lance's own."""

T = TypeVar("T")
R = TypeVar("R")


class Workers(Protocol):
    """What runs the tasks of a compaction."""

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]: ...


@dataclass(frozen=True, slots=True)
class _Compacted:
    uri: str
    version: int
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def plan_compaction(
    dataset: LanceDataset, target_rows: int = TARGET_ROWS, masked_share: float = MASKED_SHARE
) -> CompactionPlan:
    """Which fragments would be written anew together, one task each; reads no row."""
    with reading(f"compact {dataset.uri}"):
        return Compaction.plan(
            dataset, {"target_rows_per_fragment": target_rows, "materialize_deletions_threshold": masked_share}
        )


@dataclass(frozen=True, slots=True)
class Wear:
    """What a table has that a compaction would mend: files now and afterwards, rows that are masked in them."""

    files: int
    files_after: int
    masked_rows: int


def wear(dataset: LanceDataset) -> Wear:
    """How worn a table is; reads no row."""
    files = dataset.get_fragments()
    joined = sum(len(task.fragments) - 1 for task in plan_compaction(dataset).tasks)
    return Wear(len(files), len(files) - joined, sum(file.num_deletions for file in files))


def stage_compaction(
    dataset: LanceDataset, plan: CompactionPlan, workers: Workers, options: Mapping[str, str]
) -> tuple[RewriteResult, ...]:
    """Rewritten fragments of a table at the version of the plan, made by the workers; none when nothing is to gain.

    Rows keep their stable ids and the versions at which they were made and changed. HEAD does not move.
    """
    work = partial(_rewrite, _Compacted(dataset.uri, int(dataset.version), options))
    return tuple(workers.map(work, plan.tasks))


@in_phase("compact")
def _rewrite(table: _Compacted, task: CompactionTask) -> RewriteResult:
    with reading(f"compact {table.uri}"):
        dataset = lance.dataset(table.uri, version=table.version, storage_options=dict(table.options) or None)
        return task.execute(dataset)
