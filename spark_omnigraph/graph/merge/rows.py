"""One table of a merge: which rows may differ, what becomes of each, and the files in which that is staged.

Rows that both sides share with a base are never read. Ids and row ids come first (`candidates`); whole rows are read
for candidates alone, a bounded chunk at a time, on tasks (`merge_slice`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.branch.conflicts import OnConflict, Take, conflict_kind, digest_of
from spark_omnigraph.branch.merge import Bools, judge
from spark_omnigraph.catalog.types import EntityType
from spark_omnigraph.errors import InternalError
from spark_omnigraph.graph.merge.decisions import TableDecisions
from spark_omnigraph.progress.meter import in_phase
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.records.equality import equal_rows
from spark_omnigraph.records.record_text import record_text
from spark_omnigraph.storage.tables.changes import moved_rows
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.tables.scan import PinnedTable
from spark_omnigraph.storage.tables.staged import StagedFile, TableTarget, stage_rows
from spark_omnigraph.storage.tables.stored_rows import StoredRows

Int64s = npt.NDArray[np.int64]
"""int64[n]: places in a chunk."""

SLICE_ROWS = 1 << 18
"""Candidates that one task decides."""
CHUNK_BYTES = 32 << 20
"""Bytes of whole rows of one side that are in memory at once, about."""
_FIRST_ROWS, _MOST_ROWS, _GROWTH = 1 << 13, 1 << 16, 4
_TEXT_BYTES = 64
"""What a text or a list is taken to be long at least, for the size of the first chunk."""
_BLOB_BYTES = 128 << 10
"""The same of a blob: none of them says how long it is before it is read."""


@dataclass(frozen=True, slots=True)
class TableSides:
    """A type as the source, the target and every merge base show it, newest base first, and what becomes of rows on
    which the two disagree. Picklable.
    """

    entity: EntityType
    source: PinnedTable | None
    target: PinnedTable | None
    bases: tuple[PinnedTable | None, ...]
    on_conflict: OnConflict = OnConflict.FAIL
    decisions: TableDecisions = field(default_factory=TableDecisions)


CONFLICTS = pa.schema(
    [
        ("id", pa.string()),
        ("kind", pa.string()),
        ("decided", pa.string()),
        ("is_stale", pa.bool_()),
        ("base", pa.uint64()),
        ("source", pa.uint64()),
        ("target", pa.uint64()),
    ]
)
"""Rows on which the branches disagree: what was decided (a `Take`, or null), whether a decision was made on other rows,
and each side's row id, or null.
"""


@dataclass(frozen=True, slots=True, eq=False)
class MergedSlice:
    """What one task made of its candidates: staged files, addresses (uint64[n]) of rows of the target to mask, the ids
    (string[n]) of deleted rows, and the conflicts (`CONFLICTS`).
    """

    files: tuple[StagedFile, ...]
    removed: npt.NDArray[np.uint64]
    deleted: pa.Array
    inserted: int
    updated: int
    conflicts: pa.Table


@dataclass(frozen=True, slots=True)
class MergedTable:
    """Rows of one table that the target takes over, and rows on which the branches disagreed."""

    appended: int = 0
    updated: int = 0
    deleted: int = 0
    conflicts: int = 0
    pointer: bool = False
    """Whether the target shows the source's version itself. It never does: every difference is written as rows."""

    def figures(self) -> dict[str, int]:
        """The counts by the names that every report has for them."""
        return {
            "inserted": self.appended,
            "updated": self.updated,
            "deleted": self.deleted,
            "conflicts": self.conflicts,
        }


@dataclass(frozen=True, slots=True, eq=False)
class TableDelta:
    """What a merge does to one table of the target: what its tasks made, and where their files were staged."""

    sides: TableSides
    into: TableTarget
    slices: tuple[MergedSlice, ...]

    @property
    def counts(self) -> MergedTable:
        return MergedTable(
            sum(part.inserted for part in self.slices),
            sum(part.updated for part in self.slices),
            sum(len(part.deleted) for part in self.slices),
            self.conflicts.num_rows,
        )

    @property
    def has_changes(self) -> bool:
        """Whether the table of the target becomes another one."""
        return any(part.files or len(part.removed) for part in self.slices)

    @property
    def conflicts(self) -> pa.Table:
        """Rows on which the branches disagree (`CONFLICTS`), in id order."""
        return pa.concat_tables([part.conflicts for part in self.slices])

    @property
    def files(self) -> tuple[StagedFile, ...]:
        return tuple(file for part in self.slices for file in part.files)

    @property
    def deleted(self) -> pa.Array:
        """Ids (string[n]) of deleted rows."""
        return pa.concat_arrays([part.deleted for part in self.slices])

    @property
    def change(self) -> TableChange:
        removed = np.sort(np.concatenate([part.removed for part in self.slices]))
        return TableChange(self.files, removed if len(removed) else None)


def candidates(sides: TableSides) -> pa.Table:
    """Rows that the source may have changed, in id order: `id`; row ids `source` and `target`, null where there is no
    such row; and for each base i `base{i}`, and whether the source's and the target's row may differ from it
    (`source{i}`, `target{i}`).
    """
    moved = [moved_rows(base, sides.source) for base in sides.bases]
    ids = pa.chunked_array([chunk for each in moved for chunk in each.column("id").chunks], pa.string()).unique().sort()
    found = pa.table({"id": ids})
    source = target = pa.nulls(len(ids), pa.uint64())
    touched = np.zeros(len(ids), dtype=np.bool_)
    for i, (base, by_source) in enumerate(zip(sides.bases, moved, strict=True)):
        by_target = moved_rows(base, sides.target)
        in_source, source_before, source_after = _places(ids, by_source)
        in_target, target_before, target_after = _places(ids, by_target)
        # A row that neither touched is the same row of the same file on all three.
        source = _where(in_source, source_after, source)
        target = _where(in_target, target_after, _where(touched | ~in_source, target, source_before))
        touched |= in_target
        before = _where(in_source, source_before, target_before)
        found = found.append_column(f"base{i}", before)
        found = found.append_column(f"source{i}", pa.array(in_source)).append_column(f"target{i}", pa.array(in_target))
    return found.append_column("source", source).append_column("target", target)


def _places(ids: pa.Array, moved: pa.Table) -> tuple[Bools, pa.Array, pa.Array]:
    """For each id: whether the row moved, and its row ids before and after."""
    at = pc.index_in(ids, value_set=moved.column("id").combine_chunks())
    before, after = (moved.column(name).combine_chunks().take(at) for name in ("before", "after"))
    return np.asarray(at.is_valid()), before, after


def _where(condition: Bools, yes: pa.Array, no: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(condition), yes, no)


def slices(found: pa.Table) -> Iterator[pa.Table]:
    """Candidates in parts, one a task."""
    for start in range(0, found.num_rows, SLICE_ROWS):
        yield found.slice(start, SLICE_ROWS)


@in_phase("compare")
def merge_slice(sides: TableSides, into: TableTarget, options: Mapping[str, str], part: pa.Table) -> MergedSlice:
    """Decides on candidates and stages what the target takes over.

    Runs on an executor. Nothing refers to the files yet.
    """
    task = _Slice(sides, into, options)
    start, size = 0, task.first_rows()
    while start < part.num_rows:
        read = task.add(part.slice(start, size))
        start += size
        # The rows that were read tell how long those to come are.
        size = max(1, min(_GROWTH * size, size * CHUNK_BYTES // max(read, 1), _MOST_ROWS))
    return task.result()


def _width(entity: EntityType) -> int:
    """Bytes that a row has at least, about."""
    width = 0
    for kind in physical_schema(entity).types:
        vector = pa.types.is_fixed_size_list(kind)
        plain = pa.types.is_primitive(kind)
        variable = _BLOB_BYTES if pa.types.is_struct(kind) else _TEXT_BYTES
        width += 4 * kind.list_size if vector else kind.bit_width // 8 + 1 if plain else variable
    return width


def text_rows(entity: EntityType) -> int:
    """How many of them at most are in memory as texts, which are many times as long as numbers."""
    return max(1, min(_MOST_ROWS, CHUNK_BYTES // _width(entity)) // 16)


class _Slice:
    def __init__(self, sides: TableSides, into: TableTarget, options: Mapping[str, str]) -> None:
        self._into, self._options = into, options
        self._entity, self._decisions = sides.entity, sides.decisions
        self._otherwise = None if sides.on_conflict is OnConflict.FAIL else Take(sides.on_conflict)
        self._schema = physical_schema(sides.entity)
        names = self._schema.names
        self._source, self._target, *self._bases = (
            open_rows(table, names) for table in (sides.source, sides.target, *sides.bases)
        )
        self._files: list[StagedFile] = []
        self._removed: list[npt.NDArray[np.uint64]] = [np.empty(0, dtype=np.uint64)]
        self._deleted: list[pa.Array] = [pa.array([], pa.string())]
        self._conflicts: list[pa.Table] = [CONFLICTS.empty_table()]
        self._inserted = self._updated = 0

    def result(self) -> MergedSlice:
        return MergedSlice(
            tuple(self._files),
            np.concatenate(self._removed),
            pa.concat_arrays(self._deleted),
            self._inserted,
            self._updated,
            pa.concat_tables(self._conflicts),
        )

    def first_rows(self) -> int:
        """Rows of the first chunk, by the types of their values and what they take on disk."""
        stored = [side.bytes_per_row for side in (self._source, self._target) if side is not None]
        return max(1, min(_FIRST_ROWS, CHUNK_BYTES // max([_width(self._entity), *stored])))

    def add(self, chunk: pa.Table) -> int:
        """Decides on the rows of one chunk. Gives the bytes of those that were read, of the side that has more."""
        source, target = SideRows(self._source, chunk.column("source")), SideRows(self._target, chunk.column("target"))
        source_changed = target_changed = np.ones(chunk.num_rows, dtype=np.bool_)
        for i, rows in enumerate(self._bases):
            base = SideRows(rows, chunk.column(f"base{i}"))
            source_changed = source_changed & _differ(base, source, np.asarray(chunk.column(f"source{i}")))
            target_changed = target_changed & _differ(base, target, np.asarray(chunk.column(f"target{i}")))
        # Of two sides one of which agrees with the only base, and the other not, nothing is compared again.
        doubtful = source_changed & target_changed if len(self._bases) == 1 else source_changed == target_changed
        equal = (source_changed == target_changed) & ~_differ(target, source, doubtful)
        found = judge(source_changed, target_changed, equal)
        take = found.take.copy()
        if found.conflict.any():
            at = np.flatnonzero(found.conflict)
            decided = self._decide(at, chunk, source, target)
            take[[place for place, what in zip(at, decided, strict=True) if what is Take.SOURCE]] = True
            given = [place for place, what in zip(at, decided, strict=True) if what is Take.ROW]
            self._give(np.array(given, dtype=np.int64), chunk, target)
        self._take(take, chunk, source, target)
        return max(source.bytes_read, target.bytes_read)

    def _take(self, take: Bools, chunk: pa.Table, source: SideRows, target: SideRows) -> None:
        deleted = np.flatnonzero(take & ~source.there)
        self._deleted.append(chunk.column("id").take(pa.array(deleted)).combine_chunks())
        self._mask(deleted, target)
        written = _replacing_first(np.flatnonzero(take & source.there), target)
        if len(written):
            self._put(written, source.rows(pa.array(written)), target)

    def _give(self, at: Int64s, chunk: pa.Table, target: SideRows) -> None:
        """Rows that were given instead of both; one that the target has already changes nothing."""
        if not len(at):
            return
        old = at[target.there[at]]
        if len(old):
            same = equal_rows(self._decisions.rows_of(_names(chunk, old)), target.rows(pa.array(old)))
            at = np.setdiff1d(at, old[same])
        written = _replacing_first(at, target)
        if len(written):
            self._put(written, self._decisions.rows_of(_names(chunk, written)), target)

    def _put(self, at: Int64s, rows: pa.Table, target: SideRows) -> None:
        """Stages rows for places of the chunk; those that replace a row of the target come first."""
        updated = at[target.there[at]]
        self._inserted, self._updated = self._inserted + len(at) - len(updated), self._updated + len(updated)
        self._mask(updated, target)
        kept = np.asarray(target.row_ids.take(pa.array(updated)).cast(pa.uint64())).astype(np.uint64)
        rows = pa.Table.from_arrays(rows.columns, schema=self._schema)
        self._files.append(stage_rows(self._into, rows, kept, self._options))

    def _mask(self, gone: Int64s, target: SideRows) -> None:
        if len(gone) and self._target is not None:
            addresses = self._target.addresses(target.row_ids.take(pa.array(gone)))
            self._removed.append(np.asarray(addresses).astype(np.uint64))

    def _decide(self, at: Int64s, chunk: pa.Table, source: SideRows, target: SideRows) -> list[Take | None]:
        """What becomes of each row in conflict, None for those that are left open; all of them are noted."""
        names = _names(chunk, at)
        known = [self._decisions.by_id.get(name) for name in names]
        asked = np.array([i for i, each in enumerate(known) if each is not None], dtype=np.int64)
        digests: dict[int, str] = {}
        for start in range(0, len(asked), size := text_rows(self._entity)):
            part = asked[start : start + size]
            sides = [side.records(self._entity, at[part]) for side in (source, target)]
            digests.update(zip(part.tolist(), map(digest_of, *sides), strict=True))
        stale = [each is not None and each.digest != digests[i] for i, each in enumerate(known)]
        decided = [
            self._otherwise if each is None or old else each.take for each, old in zip(known, stale, strict=True)
        ]
        base = SideRows(self._bases[0], chunk.column("base0"))
        there = zip(*(side.there[at].tolist() for side in (base, source, target)), strict=True)
        kinds = [str(conflict_kind(*where)) for where in there]
        row_ids = [side.row_ids.take(pa.array(at)) for side in (base, source, target)]
        words = [None if each is None else str(each) for each in decided]
        columns = [pa.array(names, pa.string()), pa.array(kinds), pa.array(words, pa.string()), pa.array(stale)]
        self._conflicts.append(pa.table([*columns, *row_ids], schema=CONFLICTS))
        return decided


def _names(chunk: pa.Table, at: Int64s) -> list[str]:
    names: list[str] = chunk.column("id").take(pa.array(at)).to_pylist()
    return names


def _replacing_first(at: Int64s, target: SideRows) -> Int64s:
    there = target.there[at]
    return np.concatenate([at[there], at[~there]])


def open_rows(table: PinnedTable | None, names: Sequence[str]) -> StoredRows | None:
    """The rows of one side of a table, None when it has none."""
    return None if table is None else StoredRows.open(table, names)


class SideRows:
    """The rows of one side for some candidates, read once, when asked for. `row_ids`: uint64[n], null: none."""

    def __init__(self, stored: StoredRows | None, row_ids: pa.ChunkedArray) -> None:
        self.row_ids = row_ids
        self.there: Bools = np.asarray(row_ids.is_valid())
        self._stored = stored

    def rows(self, at: pa.Array) -> pa.Table:
        """Whole rows by their places in the chunk; all must be there."""
        return self._all.take(pa.array(self._place[np.asarray(at)]))

    @property
    def bytes_read(self) -> int:
        """Bytes of the rows, 0 unless they were asked for."""
        return self._all.nbytes if "_all" in vars(self) else 0

    @cached_property
    def _place(self) -> npt.NDArray[np.int64]:
        """int64[n]: the place of each row among those that are there."""
        return np.cumsum(self.there) - 1

    @cached_property
    def _all(self) -> pa.Table:
        if self._stored is None:
            raise InternalError("rows of a table that is not there were asked for")
        return self._stored.take(self.row_ids.drop_null())

    def records(self, entity: EntityType, at: npt.NDArray[np.int64]) -> list[str | None]:
        """Rows as records that could be loaded, None where there is none."""
        there = at[self.there[at]]
        texts = map(_strict, record_text(entity, self.rows(pa.array(there)), None)) if len(there) else []
        found = dict(zip(there.tolist(), texts, strict=True))
        return [found.get(place) for place in at.tolist()]


def _strict(record: str) -> str:
    """A record as strict JSON: numbers that are not finite, which other programs may store, by their names."""
    if "NaN" not in record and "Infinity" not in record:
        return record
    return json.dumps(json.loads(record, parse_constant=str), ensure_ascii=False)


def _differ(one: SideRows, other: SideRows, may: Bools) -> Bools:
    """Whether two sides have different rows, looked at where they may; a row that only one has differs."""
    differ: Bools = may & (one.there != other.there)
    both = np.flatnonzero(may & one.there & other.there)
    if len(both):
        at = pa.array(both)
        differ[both] = ~equal_rows(one.rows(at), other.rows(at))
    return differ
