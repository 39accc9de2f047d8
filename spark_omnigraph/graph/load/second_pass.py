"""Going back for rows that the checks of the whole graph found bad: into the input, or into the staged files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import merge
from itertools import chain
from typing import Protocol

import numpy as np

from spark_omnigraph.staging.fragments import locate_deletes, locate_staged, stage_rest
from spark_omnigraph.staging.located import LocatedRows, LocatedRowsBuilder
from spark_omnigraph.staging.pieces import locate_rows
from spark_omnigraph.staging.receipt import ChangeLog, RangeReceipt, StageContext, StagedFragment
from spark_omnigraph.staging.stage import stage_range
from spark_omnigraph.storage.input.ranges import InputRange
from spark_omnigraph.write.executor import Executor
from spark_omnigraph.write.staged_table import Rows

Located = dict[str, LocatedRows]
Staged = Mapping[str, tuple[StagedFragment, ...]]
ByRange = Mapping[int, Mapping[str, Rows]]
"""Ordinals by range index and table."""


class SecondPass(Protocol):
    """What can be asked about rows after they were staged."""

    def locate(self, wanted: ByRange) -> dict[int, Located]:
        """Line and text of rows, by range."""

    def stage(self, skips: ByRange) -> dict[int, Staged]:
        """Fragments of these tables without the rows to skip, by range."""


@dataclass(frozen=True, slots=True)
class InputAgain:
    """Reads ranges of the input once more."""

    context: StageContext
    executor: Executor
    ranges: Sequence[InputRange]

    def locate(self, wanted: ByRange) -> dict[int, Located]:
        items = [(self.ranges[i], rows) for i, rows in sorted(wanted.items())]
        found = self.executor.map(partial(_locate, self.context), items)
        return dict(zip(sorted(wanted), found, strict=True))

    def stage(self, skips: ByRange) -> dict[int, Staged]:
        items = [(self.ranges[i], rows) for i, rows in sorted(skips.items())]
        return {r.index: r.staged for r in self.executor.map(partial(_stage, self.context), items)}


@dataclass(frozen=True, slots=True)
class StagedAgain:
    """Reads staged files: the input was a frame and is gone."""

    context: StageContext
    receipts: Sequence[RangeReceipt]

    def locate(self, wanted: ByRange) -> dict[int, Located]:
        found: dict[int, Located] = {}
        for receipt in self.receipts:
            for key, ordinals in wanted.get(receipt.index, {}).items():
                rows = LocatedRowsBuilder()
                staged = (locate_staged(self.context, key, each, ordinals) for each in receipt.staged.get(key, ()))
                log = receipt.changes.get(key)
                deletes = iter(()) if log is None else self._deletes(key, log, ordinals)
                for ordinal, line, text in merge(chain.from_iterable(staged), deletes):
                    rows.add(ordinal, line, 0, text)
                found.setdefault(receipt.index, {})[key] = rows.built()
        return found

    def _deletes(self, key: str, log: bytes, ordinals: Rows) -> Iterator[tuple[int, int, str]]:
        return locate_deletes(self.context, key, ChangeLog.unpacked(log), ordinals)

    def stage(self, skips: ByRange) -> dict[int, Staged]:
        done: dict[int, Staged] = {}
        for receipt in self.receipts:
            if receipt.index in skips:
                tables = skips[receipt.index]
                rest = {key: self._rest(receipt.staged.get(key, ()), key, rows) for key, rows in tables.items()}
                done[receipt.index] = {key: fragments for key, fragments in rest.items() if fragments}
        return done

    def renew(self) -> tuple[RangeReceipt, ...]:
        """All staged files written anew for the versions that the context names now."""
        nothing = np.empty(0, dtype=np.int64)
        return tuple(
            replace(r, staged={key: self._rest(files, key, nothing, moved=True) for key, files in r.staged.items()})
            for r in self.receipts
        )

    def _rest(
        self, fragments: Sequence[StagedFragment], key: str, skip: Rows, moved: bool = False
    ) -> tuple[StagedFragment, ...]:
        rest = []
        for fragment in fragments:
            untouched = not moved and not np.isin(fragment.row_ordinals(), skip).any()
            kept = fragment if untouched else stage_rest(self.context, key, fragment, skip, moved)
            if kept is not None:
                rest.append(kept)
        return tuple(rest)


def _locate(context: StageContext, item: tuple[InputRange, Mapping[str, Rows]]) -> Located:
    return locate_rows(context, item[0], item[1])


def _stage(context: StageContext, item: tuple[InputRange, Mapping[str, Rows]]) -> RangeReceipt:
    return stage_range(context, item[0], item[1])
