"""One input range → checked rows → staged fragments and a receipt. Runs on an executor; nothing becomes visible.

Rows are numbered per range and table by *ordinal*: their place among the rows that decoding and the checks inside a
batch accept. Decoding is a function of the input, so a second pass finds the same ordinals: that is how rows found bad
by questions that need the whole graph are named (`locate_rows`) and left out (`skip`), at no cost while there are none.
"""

from __future__ import annotations

import pickle
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.catalog.types import Catalog, EdgeType
from spark_omnigraph.errors import InternalError, Rule
from spark_omnigraph.records.decode import DecodedTable, LineChunk, RecordDecoder, Rejected, raw_text
from spark_omnigraph.records.mode import DecodeOptions, LoadMode
from spark_omnigraph.storage.keys import Matches, find_rows
from spark_omnigraph.storage.lines import InputRange, read_chunks
from spark_omnigraph.storage.staged import StagedFile, TableTarget, stage_rows
from spark_omnigraph.validate.batch import BatchChecker

FLUSH_ROWS = 1_000_000
FLUSH_BYTES = 128 << 20
REPORT_LIMIT = 1_000_000
"""Bad rows of one range that are reported in full; further ones are counted only."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StageContext:
    """What every task of a load needs; picklable. `targets` lists the tables that rows may go to."""

    catalog: Catalog
    mode: LoadMode
    decode: DecodeOptions
    targets: Mapping[str, TableTarget]
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    validate: bool = True


@dataclass(frozen=True, slots=True)
class StagedFragment:
    """One staged file. The first `hits` rows replace stored rows at `removed` (physical addresses).

    `ordinals` gives each row's ordinal, or None when they run from `first_ordinal` without a gap.
    """

    file: StagedFile
    hits: int
    first_ordinal: int
    ordinals: bytes | None
    removed: bytes | None

    def row_ordinals(self) -> Int64s:
        if self.ordinals is None:
            return np.arange(self.first_ordinal, self.first_ordinal + self.file.rows, dtype=np.int64)
        return np.frombuffer(zlib.decompress(self.ordinals), dtype=np.int32).astype(np.int64)

    def removed_addresses(self) -> npt.NDArray[np.uint64]:
        if self.removed is None:
            return np.empty(0, dtype=np.uint64)
        return np.frombuffer(zlib.decompress(self.removed), dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class RangeReceipt:
    """What one task did. `rejected` holds the bad rows (see `unpack_rejected`), `bad` counts all of them per table."""

    index: int
    lines: int
    read: Mapping[str, int]
    bad: Mapping[str, int]
    per_rule: Mapping[str, int]
    rejected: bytes
    staged: Mapping[str, tuple[StagedFragment, ...]]
    given_ids: frozenset[str]

    @property
    def bad_total(self) -> int:
        return sum(self.per_rule.values())

    def unpack_rejected(self) -> list[Rejected]:
        """Bad rows of the range in line order, at most REPORT_LIMIT."""
        if not self.rejected:
            return []
        loaded: list[Rejected] = pickle.loads(zlib.decompress(self.rejected))
        return loaded


@dataclass(frozen=True, slots=True)
class LocatedRow:
    """Where a row stands: 0-based line in its range, byte offset in its file, text."""

    line: int
    offset: int
    raw: str


def stage_range(context: StageContext, range_: InputRange, skip: Mapping[str, Int64s] | None = None) -> RangeReceipt:
    """Decodes, checks and stages one range. With `skip`, stages only those tables, without the given ordinals."""
    return _RangeStager(context, range_, skip).run()


class _Kind(msgspec.Struct, gc=False):
    """Only the members that say what a record is."""

    type: object = None
    edge: object = None


def tables_mentioned(context: StageContext, range_: InputRange) -> set[str]:
    """Tables that the records of a range name; lines that are not records are left to decoding."""
    decode = msgspec.json.Decoder(_Kind).decode
    named: set[tuple[str, bool]] = set()
    for chunk in read_chunks(range_, dict(context.storage_options)):
        for line in chunk.lines:
            try:
                kind = decode(line.removeprefix(_BYTE_ORDER_MARK))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            if isinstance(kind.type, str):
                named.add((kind.type, False))
            elif isinstance(kind.edge, str):
                named.add((kind.edge, True))
    return {key for name, is_edge in named if (key := _table_key(context.catalog, name, is_edge)) is not None}


def _table_key(catalog: Catalog, name: str, is_edge: bool) -> str | None:
    if is_edge:
        edge = catalog.edge_by_word(name)
        return edge.table_key if edge is not None else None
    node = catalog.nodes.get(name)
    return node.table_key if node is not None else None


def locate_rows(
    context: StageContext, range_: InputRange, wanted: Mapping[str, Int64s]
) -> dict[str, dict[int, LocatedRow]]:
    """Line, offset and text of rows by table and ordinal, from a second pass over the range."""
    checkers = _Checkers(context)
    decoder = RecordDecoder(context.catalog, context.decode)
    seen: Counter[str] = Counter()
    sought = {key: set(ordinals.tolist()) for key, ordinals in wanted.items()}
    found: dict[str, dict[int, LocatedRow]] = {key: {} for key in wanted}
    for chunk in read_chunks(range_, dict(context.storage_options)):
        for table in decoder.decode(chunk).tables:
            good, _ = checkers.split(table, chunk)
            first = seen[good.table_key]
            seen[good.table_key] += len(good.lines)
            for ordinal in sought.get(good.table_key, set()).intersection(range(first, seen[good.table_key])):
                line = int(good.lines[ordinal - first])
                raw = _raw(chunk, line)
                found[good.table_key][ordinal] = LocatedRow(line, int(good.offsets[ordinal - first]), raw)
    return found


class _Checkers:
    """Batch checkers of all types, made on first use."""

    def __init__(self, context: StageContext) -> None:
        self._context = context
        self._checkers: dict[str, BatchChecker] = {}

    def split(self, table: DecodedTable, chunk: LineChunk) -> tuple[DecodedTable, list[Rejected]]:
        """Rows that pass the checks, and the others as rejected."""
        if not self._context.validate:
            return table, []
        entity = self._context.catalog.table(table.table_key)
        if entity is None:
            raise InternalError(f"decoding produced rows of the unknown table '{table.table_key}'")
        checker = self._checkers.setdefault(table.table_key, BatchChecker(entity))
        violations = checker.check(table.table)
        if not violations:
            return table, []
        keep = np.ones(table.table.num_rows, dtype=bool)
        rejected = []
        for v in violations:
            keep[v.row] = False
            line, offset = int(table.lines[v.row]), int(table.offsets[v.row])
            raw, is_edge = _raw(chunk, line), isinstance(entity, EdgeType)
            rejected.append(Rejected(line, offset, entity.name, v.field, v.rule, v.message, raw, is_edge))
        return _filtered(table, keep), rejected


class _RangeStager:
    """State of one task: rows waiting to be written per table, and the receipt so far."""

    def __init__(self, context: StageContext, range_: InputRange, skip: Mapping[str, Int64s] | None) -> None:
        self._context = context
        self._range = range_
        self._skip = skip
        self._checkers = _Checkers(context)
        self._decoder = RecordDecoder(context.catalog, context.decode)
        self._waiting: dict[str, list[DecodedTable]] = {}
        self._next_ordinal: Counter[str] = Counter()
        self._read: Counter[str] = Counter()
        self._bad: Counter[str] = Counter()
        self._per_rule: Counter[str] = Counter()
        self._rejected: list[Rejected] = []
        self._conflicts: list[Rejected] = []
        self._staged: dict[str, list[StagedFragment]] = {}
        self._given_ids: set[str] = set()
        self._lines = 0

    def run(self) -> RangeReceipt:
        for chunk in self._chunks():
            self._lines += len(chunk.lines)
            decoded = self._decoder.decode(chunk)
            self._read.update(decoded.read)
            self._reject(list(decoded.rejected))
            for table in decoded.tables:
                good, rejected = self._checkers.split(table, chunk)
                self._reject(rejected)
                self._add(good)
        for key in list(self._waiting):
            self._flush(key)
        self._reject(self._with_text(self._conflicts))
        ordered = sorted(self._rejected, key=lambda r: r.line)
        return RangeReceipt(
            index=self._range.index,
            lines=self._lines,
            read=dict(self._read),
            bad=dict(self._bad),
            per_rule=dict(self._per_rule),
            rejected=zlib.compress(pickle.dumps(ordered), 1) if ordered else b"",
            staged={key: tuple(fragments) for key, fragments in self._staged.items()},
            given_ids=frozenset(self._given_ids),
        )

    def _chunks(self) -> Iterator[LineChunk]:
        return read_chunks(self._range, dict(self._context.storage_options))

    def _reject(self, rejected: list[Rejected]) -> None:
        for row in rejected:
            self._per_rule[str(row.rule)] += 1
            self._bad[self._table_of(row)] += 1
        room = REPORT_LIMIT - len(self._rejected)
        self._rejected.extend(rejected[:room])

    def _table_of(self, row: Rejected) -> str:
        if row.record_type is None:
            return ""
        return _table_key(self._context.catalog, row.record_type, row.is_edge) or ""

    def _add(self, table: DecodedTable) -> None:
        if self._skip is not None and table.table_key not in self._skip:
            return
        if not table.table.num_rows:
            return
        waiting = self._waiting.setdefault(table.table_key, [])
        waiting.append(table)
        if table.explicit_ids:
            self._given_ids.add(table.table_key)
        if sum(t.table.num_rows for t in waiting) >= FLUSH_ROWS or sum(t.table.nbytes for t in waiting) >= FLUSH_BYTES:
            self._flush(table.table_key)

    def _flush(self, key: str) -> None:
        waiting = self._waiting.pop(key, [])
        if not waiting:
            return
        rows = pa.concat_tables([t.table for t in waiting])
        first = self._next_ordinal[key]
        self._next_ordinal[key] += rows.num_rows
        ordinals = np.arange(first, first + rows.num_rows, dtype=np.int64)
        target = self._context.targets[key]
        keep = self._kept(key, ordinals)
        matches = self._matches(key, target, rows, keep)
        if matches is not None and self._context.mode is LoadMode.APPEND:
            self._add_conflicts(key, waiting, rows, matches, keep)
            keep &= ~matches.hit
            matches = None
        if not keep.any():
            return
        fragment = _write(target, rows, ordinals, keep, matches, self._context.storage_options)
        self._staged.setdefault(key, []).append(fragment)

    def _kept(self, key: str, ordinals: Int64s) -> npt.NDArray[np.bool_]:
        if self._skip is None:
            return np.ones(len(ordinals), dtype=bool)
        return ~np.isin(ordinals, self._skip[key])

    def _matches(self, key: str, target: TableTarget, rows: pa.Table, keep: npt.NDArray[np.bool_]) -> Matches | None:
        """Stored rows with the same ids as rows that are kept; None when there can be none."""
        if self._context.mode is LoadMode.OVERWRITE or not target.row_count or not self._context.validate:
            return None
        if key not in self._given_ids:
            return None
        matches = find_rows(target.open(self._context.storage_options), rows.column("id"))
        if not matches.hit.any():
            return None
        return matches if self._context.mode is LoadMode.APPEND else _last_of_each(_only(matches, keep))

    def _add_conflicts(
        self, key: str, waiting: list[DecodedTable], rows: pa.Table, matches: Matches, keep: npt.NDArray[np.bool_]
    ) -> None:
        lines = np.concatenate([t.lines for t in waiting])
        offsets = np.concatenate([t.offsets for t in waiting])
        kind, _, name = key.partition(":")
        ids = rows.column("id")
        for i in np.flatnonzero(matches.hit & keep).tolist():
            message = f"'{ids[i].as_py()}' exists in {name} already; load with mode merge to replace it"
            self._conflicts.append(
                Rejected(int(lines[i]), int(offsets[i]), name, "id", Rule.KEY_CONFLICT, message, "", kind == "edge")
            )

    def _with_text(self, conflicts: list[Rejected]) -> list[Rejected]:
        """The same rows with their raw text, read in a second pass over the range."""
        if not conflicts:
            return []
        by_line = {r.line: r for r in conflicts[:REPORT_LIMIT]}
        done: list[Rejected] = []
        for chunk in self._chunks():
            for line in by_line.keys() & set(range(chunk.first_line, chunk.first_line + len(chunk.lines))):
                done.append(replace(by_line[line], raw=_raw(chunk, line)))
        return done + conflicts[REPORT_LIMIT:]


def _write(
    target: TableTarget,
    rows: pa.Table,
    ordinals: Int64s,
    keep: npt.NDArray[np.bool_],
    matches: Matches | None,
    options: Mapping[str, str],
) -> StagedFragment:
    """One fragment of the kept rows: those that replace stored rows first, then the new ones."""
    if matches is None:
        if keep.all():
            return StagedFragment(stage_rows(target, rows, None, options), 0, int(ordinals[0]), None, None)
        order = np.flatnonzero(keep)
        file = stage_rows(target, rows.take(pa.array(order)), None, options)
        return StagedFragment(file, 0, int(ordinals[order[0]]), _packed(ordinals[order].astype(np.int32)), None)
    replaced = np.flatnonzero(matches.hit & keep)
    order = np.concatenate([replaced, np.flatnonzero(~matches.hit & keep)])
    kept_hits = keep[matches.hit]
    file = stage_rows(target, rows.take(pa.array(order)), matches.row_ids[kept_hits], options)
    return StagedFragment(
        file,
        len(replaced),
        int(ordinals[order[0]]),
        _packed(ordinals[order].astype(np.int32)),
        _packed(matches.addresses[kept_hits]),
    )


def _only(matches: Matches, keep: npt.NDArray[np.bool_]) -> Matches:
    """Matches of the rows that are kept; a row that is left out claims no stored row."""
    kept = keep[matches.hit]
    return Matches(matches.hit & keep, matches.row_ids[kept], matches.addresses[kept])


def _last_of_each(matches: Matches) -> Matches:
    """The same matches with only the last of several rows for one stored row counted as its replacement.

    The earlier ones are superseded or refused by the checks; until then they may not claim the same stable row id.
    """
    backwards = matches.row_ids[::-1]
    last = np.sort(len(backwards) - 1 - np.unique(backwards, return_index=True)[1])
    if len(last) == len(matches.row_ids):
        return matches
    hit = np.zeros(len(matches.hit), dtype=bool)
    hit[np.flatnonzero(matches.hit)[last]] = True
    return Matches(hit, matches.row_ids[last], matches.addresses[last])


def _packed(values: npt.NDArray[np.int32] | npt.NDArray[np.uint64]) -> bytes:
    return zlib.compress(values.tobytes(), 1)


def _filtered(table: DecodedTable, keep: npt.NDArray[np.bool_]) -> DecodedTable:
    return DecodedTable(
        table.table_key, table.table.filter(pa.array(keep)), table.offsets[keep], table.lines[keep], table.explicit_ids
    )


def _raw(chunk: LineChunk, line: int) -> str:
    return raw_text(chunk.lines[line - chunk.first_line])
