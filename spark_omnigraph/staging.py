"""One input range → checked rows → staged fragments and a receipt. Runs on an executor; nothing becomes visible.

Rows are numbered per range and table by *ordinal*: their place among the rows that decoding and the checks inside a
batch accept. Decoding is a function of the input, so a second pass finds the same ordinals: that is how rows found bad
by questions that need the whole graph are named (`locate_rows`) and left out (`skip`), at no cost while there are none.
"""

from __future__ import annotations

import pickle
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType, Scalar
from spark_omnigraph.errors import BadRequestError, InternalError, Rule
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.records.decode import DecodedChunk, DecodedTable, LineChunk, RecordDecoder, Rejected, raw_text
from spark_omnigraph.records.frame import FrameDecoder
from spark_omnigraph.records.mode import DecodeOptions, LoadMode
from spark_omnigraph.records.record_text import record_text
from spark_omnigraph.storage.keys import Matches, find_rows, read_staged
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

    `ordinals` gives each row's ordinal, or None when they run from `first_ordinal` without a gap. `lines`, kept for
    frames alone, gives each row's line, or None when it is the ordinal.
    """

    file: StagedFile
    hits: int
    first_ordinal: int
    ordinals: bytes | None
    removed: bytes | None
    lines: bytes | None = None

    def row_ordinals(self) -> Int64s:
        if self.ordinals is None:
            return np.arange(self.first_ordinal, self.first_ordinal + self.file.rows, dtype=np.int64)
        return np.cumsum(np.frombuffer(zlib.decompress(self.ordinals), dtype=np.int32), dtype=np.int64)

    def row_lines(self) -> Int64s:
        if self.lines is None:
            return self.row_ordinals()
        return np.cumsum(np.frombuffer(zlib.decompress(self.lines), dtype=np.int32), dtype=np.int64)

    def removed_addresses(self) -> npt.NDArray[np.uint64]:
        if self.removed is None:
            return np.empty(0, dtype=np.uint64)
        return np.cumsum(np.frombuffer(zlib.decompress(self.removed), dtype=np.uint64), dtype=np.uint64)


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
    stager = _Stager(context, skip)
    stager.run(_range_pieces(context, range_))
    stager.reject(_with_text(context, range_, stager.conflicts))
    return stager.receipt(range_.index)


def stage_frame(
    context: StageContext, decoder: FrameDecoder, batches: Iterable[pa.RecordBatch], index: int
) -> RangeReceipt:
    """Decodes, checks and stages a partition of a frame, which is seen once: bad rows get their text at once."""
    stager = _Stager(context, None, from_frame=True)
    stager.run(_frame_pieces(decoder, batches))
    stager.reject(stager.conflicts)
    return stager.receipt(index)


def stage_rest(
    context: StageContext, key: str, fragment: StagedFragment, skip: Int64s, moved: bool = False
) -> StagedFragment | None:
    """Writes a staged file again without some ordinals, out of the file itself; None when no row is left.

    `moved`: the target is at another version than when the file was written, so stored rows are looked up again.
    """
    ordinals, lines = fragment.row_ordinals(), fragment.row_lines()
    keep = ~np.isin(ordinals, skip)
    if not keep.any():
        return None
    target = context.targets[key]
    rows = _staged_rows(context, key, fragment).filter(pa.array(keep))
    matches = None
    if (fragment.hits or moved) and target.row_count:
        matches = find_rows(target.open(context.storage_options), rows.column("id"))
    everything = np.ones(rows.num_rows, dtype=bool)
    written, order = _write(target, rows, ordinals[keep], everything, matches, context.storage_options)
    return replace(written, lines=_packed_lines(lines[keep][order], written))


def locate_staged(context: StageContext, key: str, fragment: StagedFragment, wanted: Int64s) -> dict[int, LocatedRow]:
    """Line and text of staged rows by ordinal, read from the staged file."""
    ordinals, lines = fragment.row_ordinals(), fragment.row_lines()
    places = np.flatnonzero(np.isin(ordinals, wanted))
    if not len(places):
        return {}
    entity = _entity(context, key)
    rows = _staged_rows(context, key, fragment, with_blobs=False).take(pa.array(places))
    texts = record_text(entity, rows)
    return {
        int(ordinals[at]): LocatedRow(int(lines[at]), 0, text) for at, text in zip(places.tolist(), texts, strict=True)
    }


def _staged_rows(context: StageContext, key: str, fragment: StagedFragment, with_blobs: bool = True) -> pa.Table:
    """Rows of a staged file in stored layout; BadRequestError when blobs, which are not read back, are asked for."""
    entity, target = _entity(context, key), context.targets[key]
    blobs = [p.name for p in entity.properties if p.type.scalar is Scalar.BLOB]
    if blobs and with_blobs:
        raise BadRequestError(
            f"rows of '{entity.name}' must be left out after they were written, which its blobs do not allow; "
            "remove the bad rows first, or load the records from files"
        )
    fields = list(physical_schema(entity))
    # Lance finds no column of a file that stands behind blobs: what comes before them must do for a report.
    schema = pa.schema(takewhile(lambda field: field.name not in blobs, fields))
    return read_staged(target.uri, fragment.file, schema.names, context.storage_options).cast(schema)


def _entity(context: StageContext, key: str) -> EntityType:
    entity = context.catalog.table(key)
    if entity is None:
        raise InternalError(f"rows of the unknown table '{key}'")
    return entity


@dataclass(frozen=True, slots=True)
class _Piece:
    """Consecutive records of an input, decoded; `raw` gives the text of one of its lines."""

    lines: int
    decoded: DecodedChunk
    raw: Callable[[int], str]


def _range_pieces(context: StageContext, range_: InputRange) -> Iterator[_Piece]:
    decoder = RecordDecoder(context.catalog, context.decode)
    for chunk in read_chunks(range_, dict(context.storage_options)):
        yield _Piece(len(chunk.lines), decoder.decode(chunk), partial(_raw, chunk))


def _frame_pieces(decoder: FrameDecoder, batches: Iterable[pa.RecordBatch]) -> Iterator[_Piece]:
    first = 0
    for batch in batches:
        if batch.num_rows:
            decoded, raw = decoder.decode(batch, first)
            yield _Piece(batch.num_rows, decoded, raw)
            first += batch.num_rows


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
    seen: Counter[str] = Counter()
    sought = {key: set(ordinals.tolist()) for key, ordinals in wanted.items()}
    found: dict[str, dict[int, LocatedRow]] = {key: {} for key in wanted}
    for piece in _range_pieces(context, range_):
        for table in piece.decoded.tables:
            good, _ = checkers.split(table, piece.raw)
            first = seen[good.table_key]
            seen[good.table_key] += len(good.lines)
            for ordinal in sought.get(good.table_key, set()).intersection(range(first, seen[good.table_key])):
                line = int(good.lines[ordinal - first])
                raw = piece.raw(line)
                found[good.table_key][ordinal] = LocatedRow(line, int(good.offsets[ordinal - first]), raw)
    return found


class _Checkers:
    """Batch checkers of all types, made on first use."""

    def __init__(self, context: StageContext) -> None:
        self._context = context
        self._checkers: dict[str, BatchChecker] = {}

    def split(self, table: DecodedTable, raw_of: Callable[[int], str]) -> tuple[DecodedTable, list[Rejected]]:
        """Rows that pass the checks, and the others as rejected."""
        if not self._context.validate:
            return table, []
        entity = _entity(self._context, table.table_key)
        checker = self._checkers.setdefault(table.table_key, BatchChecker(entity))
        violations = checker.check(table.table)
        if not violations:
            return table, []
        keep = np.ones(table.table.num_rows, dtype=bool)
        rejected = []
        for v in violations:
            keep[v.row] = False
            line, offset = int(table.lines[v.row]), int(table.offsets[v.row])
            raw, is_edge = raw_of(line), isinstance(entity, EdgeType)
            rejected.append(Rejected(line, offset, entity.name, v.field, v.rule, v.message, raw, is_edge))
        return _filtered(table, keep), rejected


class _Stager:
    """State of one task: rows waiting to be written per table, and the receipt so far.

    Rows that are stored already and may not be are kept apart in `conflicts`: those of a range have no text yet.
    """

    def __init__(self, context: StageContext, skip: Mapping[str, Int64s] | None, from_frame: bool = False) -> None:
        self.conflicts: list[Rejected] = []
        self._context = context
        self._skip = skip
        self._from_frame = from_frame
        self._checkers = _Checkers(context)
        self._waiting: dict[str, list[DecodedTable]] = {}
        self._next_ordinal: Counter[str] = Counter()
        self._read: Counter[str] = Counter()
        self._bad: Counter[str] = Counter()
        self._per_rule: Counter[str] = Counter()
        self._rejected: list[Rejected] = []
        self._staged: dict[str, list[StagedFragment]] = {}
        self._given_ids: set[str] = set()
        self._lines = 0

    def run(self, pieces: Iterable[_Piece]) -> None:
        for piece in pieces:
            self._lines += piece.lines
            self._read.update(piece.decoded.read)
            self.reject(list(piece.decoded.rejected))
            for table in piece.decoded.tables:
                good, rejected = self._checkers.split(table, piece.raw)
                self.reject(rejected)
                self._add(good)
        for key in list(self._waiting):
            self._flush(key)

    def receipt(self, index: int) -> RangeReceipt:
        ordered = sorted(self._rejected, key=lambda r: r.line)
        return RangeReceipt(
            index=index,
            lines=self._lines,
            read=dict(self._read),
            bad=dict(self._bad),
            per_rule=dict(self._per_rule),
            rejected=zlib.compress(pickle.dumps(ordered), 1) if ordered else b"",
            staged={key: tuple(fragments) for key, fragments in self._staged.items()},
            given_ids=frozenset(self._given_ids),
        )

    def reject(self, rejected: list[Rejected]) -> None:
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
        fragment, order = _write(target, rows, ordinals, keep, matches, self._context.storage_options)
        if self._from_frame:
            lines = np.concatenate([t.lines for t in waiting])
            fragment = replace(fragment, lines=_packed_lines(lines[order], fragment))
        self._staged.setdefault(key, []).append(fragment)

    def _kept(self, key: str, ordinals: Int64s) -> npt.NDArray[np.bool_]:
        if self._skip is None:
            return np.ones(len(ordinals), dtype=bool)
        return ~np.isin(ordinals, self._skip[key])

    def _matches(self, key: str, target: TableTarget, rows: pa.Table, keep: npt.NDArray[np.bool_]) -> Matches | None:
        """Stored rows with the same ids; None when there can be none."""
        if self._context.mode is LoadMode.OVERWRITE or not target.row_count or not self._context.validate:
            return None
        if key not in self._given_ids:
            return None
        matches = find_rows(target.open(self._context.storage_options), rows.column("id"))
        if not matches.hit.any():
            return None
        return matches if self._context.mode is LoadMode.APPEND else _last_of_each(matches, keep)

    def _add_conflicts(
        self, key: str, waiting: list[DecodedTable], rows: pa.Table, matches: Matches, keep: npt.NDArray[np.bool_]
    ) -> None:
        lines = np.concatenate([t.lines for t in waiting])
        offsets = np.concatenate([t.offsets for t in waiting])
        kind, _, name = key.partition(":")
        ids = rows.column("id")
        hit = np.flatnonzero(matches.hit & keep).tolist()
        texts = record_text(_entity(self._context, key), rows.take(hit)) if self._from_frame else [""] * len(hit)
        for i, text in zip(hit, texts, strict=True):
            message = f"'{ids[i].as_py()}' exists in {name} already; load with mode merge to replace it"
            self.conflicts.append(
                Rejected(int(lines[i]), int(offsets[i]), name, "id", Rule.KEY_CONFLICT, message, text, kind == "edge")
            )


def _with_text(context: StageContext, range_: InputRange, conflicts: list[Rejected]) -> list[Rejected]:
    """The same rows with their raw text, read in a second pass over the range."""
    if not conflicts:
        return []
    by_line = {r.line: r for r in conflicts[:REPORT_LIMIT]}
    done: list[Rejected] = []
    for chunk in read_chunks(range_, dict(context.storage_options)):
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
) -> tuple[StagedFragment, Int64s]:
    """One fragment of the kept rows, those that replace stored rows first, then the new ones; and their order."""
    if matches is None:
        order = np.flatnonzero(keep)
        if len(order) == len(rows) and ordinals[-1] - ordinals[0] + 1 == len(rows):
            return StagedFragment(stage_rows(target, rows, None, options), 0, int(ordinals[0]), None, None), order
        file = stage_rows(target, rows.take(pa.array(order)), None, options)
        return StagedFragment(file, 0, int(ordinals[order[0]]), _packed(ordinals[order].astype(np.int32)), None), order
    replaced = np.flatnonzero(matches.hit & keep)
    order = np.concatenate([replaced, np.flatnonzero(~matches.hit & keep)])
    kept_hits = keep[matches.hit]
    file = stage_rows(target, rows.take(pa.array(order)), matches.row_ids[kept_hits], options)
    fragment = StagedFragment(
        file,
        len(replaced),
        int(ordinals[order[0]]),
        _packed(ordinals[order].astype(np.int32)),
        _packed(matches.addresses[kept_hits]),
    )
    return fragment, order


def _last_of_each(matches: Matches, keep: npt.NDArray[np.bool_]) -> Matches:
    """The same matches with only the last kept one of several rows for one stored row counted as its replacement.

    The earlier ones are superseded or refused by the checks; until then they may not claim the same stable row id.
    """
    hits, kept = np.flatnonzero(matches.hit), keep[matches.hit]
    row_ids, addresses = matches.row_ids[kept], matches.addresses[kept]
    backwards = row_ids[::-1]
    last = np.sort(len(backwards) - 1 - np.unique(backwards, return_index=True)[1])
    if len(last) == len(matches.row_ids):
        return matches
    hit = np.zeros(len(matches.hit), dtype=bool)
    hit[hits[kept][last]] = True
    return Matches(hit, row_ids[last], addresses[last])


def _packed_lines(lines: Int64s, fragment: StagedFragment) -> bytes | None:
    if np.array_equal(lines, fragment.row_ordinals()):
        return None
    return _packed(lines.astype(np.int32))


def _packed(values: npt.NDArray[np.int32] | npt.NDArray[np.uint64]) -> bytes:
    # Differences, which wrap around exactly: of neighbouring rows next to nothing travels.
    return zlib.compress(np.diff(values, prepend=values.dtype.type(0)).tobytes(), 1)


def _filtered(table: DecodedTable, keep: npt.NDArray[np.bool_]) -> DecodedTable:
    return DecodedTable(
        table.table_key, table.table.filter(pa.array(keep)), table.offsets[keep], table.lines[keep], table.explicit_ids
    )


def _raw(chunk: LineChunk, line: int) -> str:
    return raw_text(chunk.lines[line - chunk.first_line])
