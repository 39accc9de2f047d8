"""A Delta table that a graph follows, as `deltalake` reads it; through Spark it is `spark/delta.py`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.load.frame import StagedPart, staged_part
from spark_omnigraph.graph.load.load import SMALL_INPUT
from spark_omnigraph.graph.load.source import LocalRows, OnceRows
from spark_omnigraph.records.changes.ranks import DELETE, RecordChanges
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.records.mode import InputFormat
from spark_omnigraph.redaction import has_credentials
from spark_omnigraph.staging.receipt import ChangeLog, RangeReceipt, StageContext, unpacked_addresses
from spark_omnigraph.staging.stage import stage_range
from spark_omnigraph.storage.input.delta import delta_input, delta_scan, delta_schema, is_scanned
from spark_omnigraph.storage.input.delta_feed import DeltaState, delta_changes, delta_state
from spark_omnigraph.storage.input.ranges import InputFile, cut
from spark_omnigraph.storage.input.tables import bounds
from spark_omnigraph.storage.tables.keys import scan_addresses
from spark_omnigraph.storage.tables.staged import StagedFile
from spark_omnigraph.storage.uri import DELTA, plain
from spark_omnigraph.validate.key_index import all_distinct
from spark_omnigraph.write.executor import Executor, LocalExecutor
from spark_omnigraph.write.staged_table import StagedTable, gather

_NO_IDS = pa.array([], pa.string())


class DeltaSource(Protocol):
    """A Delta table and who reads it."""

    @property
    def place(self) -> str:
        """Where it lies, in one spelling."""

    def newest(self) -> DeltaState:
        """What it is now. NotFoundError when there is none."""

    def rows(self, version: int) -> OnceRows:
        """All rows of a version."""

    def changes(self, first: int, last: int) -> OnceRows:
        """What changed in these versions, former images as deletes. FeedLostError when not all of it is there."""


def place_of(uri: str) -> str:
    """One spelling for the place of a table. It stays in the graph: BadRequestError for one that holds credentials."""
    place = plain(uri.removeprefix(DELTA)).rstrip("/")
    if has_credentials(place):
        raise BadRequestError("the URI of a table must not hold credentials; give them as storage options")
    return place if "://" in place else os.path.abspath(place)


def changes_name(place: str, first: int, last: int) -> str:
    """What messages and reports call the changes of these versions."""
    return f"{DELTA}{place}@v{first}" + (f"-{last}" if last > first else "")


@dataclass(frozen=True, slots=True)
class LocalDelta:
    """A table that is read in this process and its workers."""

    place: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    executor: Executor | None = None

    def newest(self) -> DeltaState:
        return delta_state(self.place, None, self.options)

    def rows(self, version: int) -> OnceRows:
        file = delta_input(self.place, version, self.options)
        if is_scanned(file, self.options):
            return LocalRows(delta_scan(file, self.options), file.name, has_order=False)
        executor = self.executor or LocalExecutor(1 if file.size <= SMALL_INPUT else None)
        return _Ranges(file, delta_schema(file, self.options), executor)

    def changes(self, first: int, last: int) -> OnceRows:
        rows = delta_changes(self.place, first, last, self.options)
        return LocalRows(rows, changes_name(self.place, first, last), has_order=False)


@dataclass(frozen=True, slots=True)
class _Ranges:
    """The rows of a version, by its files."""

    file: InputFile
    schema: pa.Schema
    executor: Executor
    has_order: bool = False

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def parallelism(self) -> int:
        return self.executor.parallelism

    def stage(self, context: StageContext, how: TableInput) -> list[StagedPart]:
        file = replace(self.file, table=replace(how, format=InputFormat.DELTA))
        ranges = cut((file,), self.executor.parallelism, partial(bounds, options=context.storage_options))
        receipts = self.executor.map(partial(stage_range, context), ranges)
        return [staged_part(context, receipt) for receipt in receipts]


@dataclass(frozen=True, slots=True)
class FollowedRows:
    """Rows of a Delta table, which come in no order; its classes say how they are staged."""

    rows: OnceRows

    @property
    def name(self) -> str:
        return self.rows.name

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema

    @property
    def has_order(self) -> bool:
        return False

    @property
    def parallelism(self) -> int:
        return self.rows.parallelism


@dataclass(frozen=True, slots=True)
class ComparedTable(FollowedRows):
    """All rows of a table against what is stored: those that differ are upserts. What is not among them goes: of the
    ids by type that `may_go` has, or whatever it is where that is None.
    """

    may_go: Mapping[str, pa.Array] | None

    def stage(self, context: StageContext, how: TableInput) -> list[StagedPart]:
        parts = self.rows.stage(replace(context, decode=replace(context.decode, changes=False)), how)
        receipts, logs = [part.receipt for part in parts], {}
        for key in (rule.table_key for rule in how.rules if rule.table_key is not None):
            seen = _seen(receipts, key)
            stored = _stored(context, key)
            _refuse_repeated(seen, stored, key, self.name)
            gone = stored.column("id").filter(pa.array(~np.isin(np.asarray(stored.column("_rowaddr")), seen)))
            if self.may_go is not None:
                gone = gone.filter(pc.is_in(gone, value_set=self.may_go.get(key, _NO_IDS)))
            if len(gone):
                order = np.arange(len(gone), dtype=np.int64)
                changes = RecordChanges.of(DELETE, len(gone))
                logs[str(key)] = ChangeLog(changes, order, order, gone.combine_chunks()).packed()
        deletes = RangeReceipt(len(parts), 0, {}, {}, {}, b"", {}, frozenset(), changes=logs)
        return [*parts, staged_part(context, deletes)] if logs else parts


class NotToldError(Exception):
    """Changes alone do not tell what a table shows: it is to be compared. `gone` has by type the ids of which rows were
    deleted, `files` are those that were staged.
    """

    def __init__(self, gone: Mapping[str, pa.Array], files: Sequence[StagedFile]) -> None:
        super().__init__()
        self.gone, self.files = gone, files


@dataclass(frozen=True, slots=True)
class ToldChanges(FollowedRows):
    """The changes of some versions. Staging them raises NotToldError where a table had several rows of one id, of which
    any may be the one that stands, and where one of them is bad that may have been corrected since (`takes_bad`: not
    for that).
    """

    takes_bad: bool

    def stage(self, context: StageContext, how: TableInput) -> list[StagedPart]:
        parts = self.rows.stage(context, how)
        receipts = [replace(part.receipt, index=number) for number, part in enumerate(parts)]
        tables = gather(receipts, context.targets, context.storage_options)
        has_bad = any(receipt.bad_total for receipt in receipts) and not self.takes_bad
        if has_bad or any(_had_several(table) for table in tables.values()):
            gone = ((key, table.column("id").filter(pa.array(table.changes.deletes))) for key, table in tables.items())
            files = [file for receipt in receipts for file in receipt.files]
            raise NotToldError({key: ids.combine_chunks() for key, ids in gone}, files)
        return parts


def _had_several(table: StagedTable) -> bool:
    """Whether there were more rows of one id than one after any version, that which is stored counted."""
    ids = table.column("id")
    if not table.hits and all_distinct(ids):
        return False
    groups = np.asarray(ids.combine_chunks().dictionary_encode().indices).astype(np.int64)
    stored = np.zeros(len(groups), dtype=np.int64)
    stored[groups[table.replacing]] = 1
    by = np.lexsort((table.changes.versions, groups))
    groups, versions = groups[by], table.changes.versions[by]
    steps = np.where(table.changes.deletes[by], -1, 1)
    starts = np.append(True, groups[1:] != groups[:-1])
    ends = np.append(starts[1:] | (versions[1:] != versions[:-1]), True)
    total = np.cumsum(steps)
    before = (total - steps)[np.flatnonzero(starts)][np.cumsum(starts) - 1]
    return bool((stored[groups] + total - before > 1)[ends].any())


def _seen(receipts: list[RangeReceipt], key: TableKey) -> npt.NDArray[np.uint64]:
    """Addresses of stored rows that the table has, too."""
    same = [unpacked_addresses(receipt.unchanged.get(key)) for receipt in receipts]
    others = [fragment.removed_addresses() for receipt in receipts for fragment in receipt.staged.get(key, ())]
    return np.concatenate([np.empty(0, dtype=np.uint64), *same, *others])


def _stored(context: StageContext, key: TableKey) -> pa.Table:
    """Ids and addresses of the stored rows of a type."""
    target = context.target(key)
    if not target.row_count:
        return pa.table({"id": pa.array([], pa.string()), "_rowaddr": pa.array([], pa.uint64())})
    return scan_addresses(target.open(context.storage_options))


def _refuse_repeated(seen: npt.NDArray[np.uint64], stored: pa.Table, key: TableKey, name: str) -> None:
    """A row that was left out as it is stored, and one that was not, may be of one id."""
    found, counts = np.unique(seen, return_counts=True)
    if (counts > 1).any():
        place = int(np.flatnonzero(np.asarray(stored.column("_rowaddr")) == found[counts > 1][0])[0])
        raise BadRequestError(
            f"'{name}' has several rows of the id '{stored.column('id')[place].as_py()}' of {key.type_name}, of which "
            "a graph has one: correct the table, or map other columns to the key"
        )
