"""Input or frames → decoded records, piece by piece, checked row by row; a second pass finds the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec
import numpy as np
import pyarrow as pa

from spark_omnigraph.bad_rows import Mistake, Rule
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, EdgeType
from spark_omnigraph.records.changes.ranks import DELETE
from spark_omnigraph.records.frames.changed_columns import changes_in_columns, refused_rows
from spark_omnigraph.records.frames.decode import FrameDecoder
from spark_omnigraph.records.frames.layouts import plain_batch
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.records.frames.rules import PlannedRows, plan_rows
from spark_omnigraph.records.json_line import BYTE_ORDER_MARK, InvalidJsonError, parse_line
from spark_omnigraph.records.jsonl.changed_lines import changes_in_lines
from spark_omnigraph.records.jsonl.decode import (
    DecodedChunk,
    DecodedTable,
    LineChunk,
    RecordDecoder,
    Rejected,
    partial_table,
    raw_text,
)
from spark_omnigraph.staging.edge_ids import identify
from spark_omnigraph.staging.located import LocatedRows, LocatedRowsBuilder
from spark_omnigraph.staging.receipt import Int64s, StageContext
from spark_omnigraph.storage.input.ranges import InputRange, read_chunks
from spark_omnigraph.storage.input.table_rows import BrokenRow, TableRows
from spark_omnigraph.storage.input.tables import read_table
from spark_omnigraph.validate.batch import BatchChecker, RowViolation


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive records of an input, decoded; `raw` gives the text of one of its lines."""

    lines: int
    decoded: DecodedChunk
    raw: Callable[[int], str]


def range_pieces(context: StageContext, range_: InputRange) -> Iterator[Piece]:
    """The chunks of an input range."""
    if range_.file.table is not None:
        yield from table_pieces(context, range_.file.table, read_table(range_, context.storage_options))
        return
    decoder = RecordDecoder(context.accepted, context.decode)
    for chunk in read_chunks(range_, dict(context.storage_options)):
        yield Piece(len(chunk.lines), _decoded(decoder, context, chunk), partial(raw_line, chunk))


def _decoded(decoder: RecordDecoder, context: StageContext, chunk: LineChunk) -> DecodedChunk:
    if not context.decode.changes:
        return decoder.decode(chunk)
    plain, changes, refused = changes_in_lines(chunk)
    found = decoder.decode(plain, changes)
    rejected = tuple(_as_written(chunk, row) for row in found.rejected)
    return _with_refused(context, replace(found, rejected=rejected), refused)


def _as_written(chunk: LineChunk, row: Rejected) -> Rejected:
    """A bad line of which members were taken out: with all of its text, and the place in it where it is no JSON."""
    row = replace(row, raw=raw_line(chunk, row.line))
    if row.rule is Rule.INVALID_JSON:
        try:
            parse_line(chunk.lines[row.line - chunk.first_line])
        except InvalidJsonError as error:
            return replace(row, message=f"invalid JSON: {error}")
    return row


def _with_refused(context: StageContext, decoded: DecodedChunk, refused: Sequence[Rejected]) -> DecodedChunk:
    """A chunk, and records of it that were not decoded since they do not say what they change."""
    if not refused:
        return decoded
    keys = (table_key_of(context.catalog, r.record_type, r.is_edge) if r.record_type else None for r in refused)
    read = Counter(decoded.read) + Counter(key or "" for key in keys)
    return replace(decoded, rejected=tuple(sorted((*decoded.rejected, *refused), key=lambda r: r.line)), read=read)


def table_pieces(context: StageContext, how: TableInput, tables: Iterable[TableRows]) -> Iterator[Piece]:
    """The rows of tables of the same columns, by the rules of their input; lines count rows of the tables."""
    readers: list[tuple[PlannedRows, FrameDecoder]] = []
    decode = replace(context.decode, coerce=context.decode.coerce or how.coerce)
    for rows in tables:
        if not readers:
            planned = plan_rows(context.accepted, how, rows.batch.schema, decode)
            readers = [(plan, FrameDecoder(context.accepted, decode, plan.frame)) for plan in planned]
        batch, count = plain_batch(rows.batch), rows.count
        key, at, changes = readers[0][0].frame.table_key, rows.lines, None
        refused: list[Rejected] = []
        if decode.changes:
            changes, mistakes = changes_in_columns(batch)
            refused = refused_rows(batch, at, mistakes, key)
            telling = changes.ranks >= DELETE
            batch, at, changes = batch.filter(pa.array(telling)), at[telling], changes.take(telling)
        for plan, decoder in readers:
            chosen, kept = plan.rows(batch)
            lines = at if kept is None else at[kept]
            if len(lines):
                told = changes if changes is None or kept is None else changes.take(kept)
                decoded, raw = decoder.decode(chosen, 0, told)
                yield Piece(count, _on_lines(decoded, lines), partial(_text_on, raw, lines))
                count = 0
        if count or rows.broken or refused:
            yield Piece(count, _broken(key, rows.broken, refused), str)


def _on_lines(decoded: DecodedChunk, lines: Int64s) -> DecodedChunk:
    """What was decoded of some rows, on the lines that they have in their range."""
    tables = tuple(replace(table, lines=lines[table.lines]) for table in decoded.tables)
    rejected = tuple(replace(row, line=int(lines[row.line])) for row in decoded.rejected)
    return DecodedChunk(tables, rejected, decoded.read)


def _text_on(raw: Callable[[int], str], lines: Int64s, line: int) -> str:
    return raw(int(np.searchsorted(lines, line)))


def _broken(key: TableKey | None, rows: Sequence[BrokenRow], refused: Sequence[Rejected]) -> DecodedChunk:
    """Rows that do not fit their table, as bad ones of its first type, and others that were refused."""
    name, is_edge = (None, False) if key is None else (key.type_name, key.kind == "edge")
    rejected = [Rejected(r.line, 0, name, None, Rule.INVALID_ROW, r.message, r.text, is_edge) for r in rows]
    rejected += refused
    return DecodedChunk((), tuple(rejected), {key or "": len(rejected)} if rejected else {})


class _Kind(msgspec.Struct, gc=False):
    """Only the members that say what a record is."""

    type: object = None
    edge: object = None


def tables_mentioned(catalog: Catalog, options: Mapping[str, str], range_: InputRange) -> set[str]:
    """Tables that the records of a range name; lines that are not records are left to decoding."""
    how = range_.file.table
    if how is not None and all(rule.table_key is not None for rule in how.rules):
        return {catalog.require(rule.table_key).table_key for rule in how.rules if rule.table_key is not None}
    if how is not None:
        return _named_in(catalog, read_table(range_, options))
    decode = msgspec.json.Decoder(_Kind).decode
    named: set[tuple[str, bool]] = set()
    for chunk in read_chunks(range_, dict(options)):
        for line in chunk.lines:
            try:
                kind = decode(line.removeprefix(BYTE_ORDER_MARK))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            if isinstance(kind.type, str):
                named.add((kind.type, False))
            elif isinstance(kind.edge, str):
                named.add((kind.edge, True))
    return {key for name, is_edge in named if (key := table_key_of(catalog, name, is_edge)) is not None}


def _named_in(catalog: Catalog, tables: Iterable[TableRows]) -> set[str]:
    """Tables that records in tables name."""
    named: set[tuple[object, bool]] = set()
    for rows in tables:
        for column, is_edge in (("type", False), ("edge", True)):
            place = rows.batch.schema.get_field_index(column)
            if place >= 0:
                named.update((name, is_edge) for name in rows.batch.column(place).unique().to_pylist())
    found = (table_key_of(catalog, name, is_edge) for name, is_edge in named if isinstance(name, str))
    return {key for key in found if key is not None}


def table_key_of(catalog: Catalog, name: str, is_edge: bool) -> TableKey | None:
    """The table of a type as records name it: edges in any case. None for an unknown one."""
    if is_edge:
        edge = catalog.edge_by_word(name)
        return edge.table_key if edge is not None else None
    node = catalog.nodes.get(name)
    return node.table_key if node is not None else None


class Checkers:
    """Batch checkers of all types, made on first use."""

    def __init__(self, context: StageContext) -> None:
        self._context = context
        self._checkers: dict[str, BatchChecker] = {}

    def split(self, table: DecodedTable, raw_of: Callable[[int], str]) -> tuple[DecodedTable, list[Rejected]]:
        """Rows that pass the checks, and the others as rejected."""
        if not self._context.validate:
            return table, []
        entity = self._context.entity(table.table_key)
        columns, others = self._context.decode.edge_id, dict[int, Mistake]()
        if columns is not None:
            table, others = identify(entity, table, columns)
        found = self._violations(table)
        for row, mistake in others.items():
            found.setdefault(row, []).insert(0, mistake)
        if not found:
            return table, []
        keep = np.ones(table.table.num_rows, dtype=bool)
        keep[list(found)] = False
        ids = table.table.column("id")
        rejected = []
        for row, (v, *further) in sorted(found.items()):
            line, offset = int(table.lines[row]), int(table.offsets[row])
            raw, is_edge = raw_of(line), isinstance(entity, EdgeType)
            given = ids[row].as_py() if table.named[row] else None
            first = Rejected(line, offset, entity.name, v.field, v.rule, v.message, raw, is_edge, given)
            rejected.append(first.add(further))
        return table.keep(keep), rejected

    def _violations(self, table: DecodedTable) -> dict[int, list[Mistake]]:
        """Rules that rows break which are to be stored, by row."""
        deletes = None if table.changes is None else table.changes.deletes
        if deletes is None or not deletes.any():
            return _by_row(self._checker(table.table_key).check(table.table))
        found = _by_row(self._checker(table.table_key).check(table.table.filter(pa.array(~deletes))))
        places = np.flatnonzero(~deletes)
        return {int(places[row]): mistakes for row, mistakes in found.items()}

    def complete(self, rejected: Sequence[Rejected]) -> list[Rejected]:
        """Records that decoding refused, with the rules that their readable values break."""
        done = {at: replace(row, values=None) for at, row in enumerate(rejected)}
        groups: dict[TableKey, list[int]] = {}
        for at, row in enumerate(rejected):
            if self._context.validate and row.values and row.record_type is not None:
                key = table_key_of(self._context.catalog, row.record_type, row.is_edge)
                groups.setdefault(key or TableKey(), []).append(at)
        for key, places in groups.items():
            read = [rejected[at].values or {} for at in places]
            table = partial_table(self._context.entity(key), read)
            for place, found in _by_row(self._checker(key).check(table)).items():
                at = places[place]
                done[at] = done[at].add([mistake for mistake in found if mistake.field in read[place]])
        return list(done.values())

    def _checker(self, table_key: str) -> BatchChecker:
        if table_key not in self._checkers:
            self._checkers[table_key] = BatchChecker(self._context.accepted.require(table_key))
        return self._checkers[table_key]


def _by_row(violations: Iterable[RowViolation]) -> dict[int, list[Mistake]]:
    found: dict[int, list[Mistake]] = {}
    for v in violations:
        found.setdefault(v.row, []).append(Mistake(v.field, v.rule, v.message))
    return found


def locate_rows(context: StageContext, range_: InputRange, wanted: Mapping[str, Int64s]) -> dict[str, LocatedRows]:
    """Line, offset and text of rows by table, from a second pass over the range; those that are gone are missing."""
    checkers = Checkers(context)
    seen: Counter[str] = Counter()
    sought = {key: np.sort(ordinals) for key, ordinals in wanted.items()}
    found = {key: LocatedRowsBuilder() for key in wanted}
    for piece in range_pieces(context, range_):
        for table in piece.decoded.tables:
            good, _ = checkers.split(table, piece.raw)
            first = seen[good.table_key]
            seen[good.table_key] += len(good.lines)
            if good.table_key not in sought:
                continue
            inside = np.searchsorted(sought[good.table_key], [first, seen[good.table_key]])
            for ordinal in sought[good.table_key][inside[0] : inside[1]].tolist():
                line, offset = int(good.lines[ordinal - first]), int(good.offsets[ordinal - first])
                found[good.table_key].add(ordinal, line, offset, piece.raw(line))
    return {key: rows.built() for key, rows in found.items()}


def raw_line(chunk: LineChunk, line: int) -> str:
    """A line of a chunk as reports show it."""
    return raw_text(chunk.lines[line - chunk.first_line])
