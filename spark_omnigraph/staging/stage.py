"""One input range → checked rows → staged fragments and a receipt. Runs on an executor; nothing becomes visible.

Rows are numbered per range and table by *ordinal*: their place among the rows that decoding and the checks inside a
batch accept. Decoding is a function of the input, so a second pass finds the same ordinals: that is how rows found bad
by questions that need the whole graph are named (`locate_rows`) and left out (`skip`), at no cost while there are none.
"""

from __future__ import annotations

import pickle
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.bad_rows import Mistake, Rule
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import NodeType
from spark_omnigraph.embed.counts import PropertyCounts, summed
from spark_omnigraph.errors import EmbeddingError
from spark_omnigraph.records.changes.ranks import joined_changes
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.records.jsonl.decode import DecodedTable, Rejected
from spark_omnigraph.records.mode import LoadMode
from spark_omnigraph.records.record_text import record_text
from spark_omnigraph.redaction import cut
from spark_omnigraph.staging.edge_ids import with_stored_ids
from spark_omnigraph.staging.filling import fill
from spark_omnigraph.staging.fragments import last_of_each, packed_lines, write_fragment, write_patches
from spark_omnigraph.staging.pieces import Checkers, Piece, range_pieces, raw_line, table_key_of, table_pieces
from spark_omnigraph.staging.receipt import (
    REPORT_LIMIT,
    ChangeLog,
    Int64s,
    KnownEdges,
    RangeReceipt,
    StageContext,
    StagedFragment,
    packed,
)
from spark_omnigraph.storage.input.ranges import InputRange, read_chunks
from spark_omnigraph.storage.input.table_rows import rows_of
from spark_omnigraph.storage.tables.keys import Matches, find_rows
from spark_omnigraph.storage.tables.staged import TableTarget
from spark_omnigraph.storage.values.unchanged import unchanged_rows

FLUSH_ROWS = 1_000_000
FLUSH_BYTES = 128 << 20


def stage_range(context: StageContext, range_: InputRange, skip: Mapping[str, Int64s] | None = None) -> RangeReceipt:
    """Decodes, checks and stages one range. With `skip`, stages only those tables, without the given ordinals."""
    is_table = range_.file.table is not None
    stager = _Stager(context, skip, from_frame=is_table)
    stager.run(range_pieces(context, range_))
    stager.reject(stager.conflicts if is_table else _with_text(context, range_, stager.conflicts))
    return stager.receipt(range_.index)


def stage_frame(context: StageContext, how: TableInput, batches: Iterable[pa.RecordBatch], index: int) -> RangeReceipt:
    """Decodes, checks and stages a partition of a frame, which is seen once: bad rows get their text at once."""
    stager = _Stager(context, None, from_frame=True)
    stager.run(table_pieces(context, how, rows_of(batches)))
    stager.reject(stager.conflicts)
    return stager.receipt(index)


def exists_already(key: TableKey, row_id: str) -> str:
    """What an append is told of an id that is stored."""
    return f"'{cut(row_id)}' exists in {key.type_name} already; mode merge (Spark: loadMode) replaces it"


class _Stager:
    """State of one task: rows waiting to be written per table, and the receipt so far.

    Rows that are refused after they were decoded are kept apart in `conflicts`: those of a range have no text yet.
    """

    def __init__(self, context: StageContext, skip: Mapping[str, Int64s] | None, from_frame: bool = False) -> None:
        self.conflicts: list[Rejected] = []
        self._context = context
        self._skip = skip
        self._from_frame = from_frame
        self._checkers = Checkers(context)
        self._waiting: dict[TableKey, list[DecodedTable]] = {}
        self._next_ordinal: Counter[str] = Counter()
        self._read: Counter[str] = Counter()
        self._bad: Counter[str] = Counter()
        self._per_rule: Counter[str] = Counter()
        self._rejected: list[Rejected] = []
        self._staged: dict[str, list[StagedFragment]] = {}
        self._given_ids: set[str] = set()
        self._unfilled: dict[str, list[Int64s]] = {}
        self._logs: dict[str, list[ChangeLog]] = {}
        self._new_ids: Counter[str] = Counter()
        self._known_edges = KnownEdges()
        self._unchanged: dict[str, list[npt.NDArray[np.uint64]]] = {}
        self._properties: dict[str, PropertyCounts] = {}
        self._lines = 0

    def run(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            self._lines += piece.lines
            self._read.update(piece.decoded.read)
            self.reject(self._checkers.complete(piece.decoded.rejected))
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
            unfilled={key: np.concatenate(parts) for key, parts in self._unfilled.items()},
            changes={key: ChangeLog.joined(logs).packed() for key, logs in self._logs.items()},
            new_ids=dict(self._new_ids),
            known_edges=self._known_edges,
            unchanged={key: packed(np.concatenate(parts)) for key, parts in self._unchanged.items()},
            properties=self._properties,
        )

    def reject(self, rejected: list[Rejected]) -> None:
        for row in rejected:
            self._per_rule.update(str(mistake.rule) for mistake in row.mistakes)
            self._bad[self._table_of(row)] += 1
        room = REPORT_LIMIT - len(self._rejected)
        self._rejected.extend(rejected[:room])

    def _table_of(self, row: Rejected) -> str:
        if row.record_type is None:
            return ""
        return table_key_of(self._context.catalog, row.record_type, row.is_edge) or ""

    def _add(self, table: DecodedTable) -> None:
        if self._skip is not None and table.table_key not in self._skip:
            return
        if not table.table.num_rows:
            return
        waiting = self._waiting.setdefault(table.table_key, [])
        waiting.append(table)
        if table.named.any():
            self._given_ids.add(table.table_key)
        if sum(t.table.num_rows for t in waiting) >= FLUSH_ROWS or sum(t.table.nbytes for t in waiting) >= FLUSH_BYTES:
            self._flush(table.table_key)

    def _flush(self, key: TableKey) -> None:
        waiting = self._waiting.pop(key, [])
        if not waiting:
            return
        rows, known = with_stored_ids(self._context, key, pa.concat_tables([t.table for t in waiting]))
        self._known_edges += known
        first = self._next_ordinal[key]
        self._next_ordinal[key] += rows.num_rows
        ordinals = np.arange(first, first + rows.num_rows, dtype=np.int64)
        target = self._context.target(key)
        keep = self._kept(key, ordinals)
        if self._context.decode.changes:
            keep &= ~self._log(key, waiting, rows, ordinals)
        if self._context.looks:
            return
        matches = self._matches(key, target, rows)
        if matches is not None and self._context.mode is LoadMode.APPEND:
            self._add_conflicts(key, waiting, rows, matches, keep)
            keep &= ~matches.hit
            matches = None
        keep &= ~self._as_stored(key, target, rows, matches)
        if self._context.fill is not None:
            rows, dropped = self._filled(key, waiting, rows, keep)
            keep &= ~dropped
            if dropped.any():
                self._unfilled.setdefault(key, []).append(ordinals[dropped])
        self._new_ids[key] += int((keep & ~np.concatenate([t.named for t in waiting])).sum())
        if not keep.any():
            return
        fragment, order = self._written(target, rows, ordinals, keep, matches)
        if self._from_frame:
            lines = np.concatenate([t.lines for t in waiting])
            fragment = replace(fragment, lines=packed_lines(lines[order], fragment))
        self._staged.setdefault(key, []).append(fragment)

    def _written(
        self,
        target: TableTarget,
        rows: pa.Table,
        ordinals: Int64s,
        keep: npt.NDArray[np.bool_],
        matches: Matches | None,
    ) -> tuple[StagedFragment, Int64s]:
        """A file of the rows that are kept, and these in its order."""
        options = self._context.storage_options
        if self._context.mode is not LoadMode.UPDATE:
            matches = None if matches is None else last_of_each(matches, keep)
            return write_fragment(target, rows, ordinals, keep, matches, options)
        order = np.flatnonzero(keep)
        return write_patches(target, rows.take(pa.array(order)), ordinals[order], options), order

    def _kept(self, key: str, ordinals: Int64s) -> npt.NDArray[np.bool_]:
        if self._skip is None:
            return np.ones(len(ordinals), dtype=bool)
        return ~np.isin(ordinals, self._skip[key])

    def _log(self, key: str, waiting: list[DecodedTable], rows: pa.Table, ordinals: Int64s) -> npt.NDArray[np.bool_]:
        """Keeps what the rows do; those that delete, which are not to be stored."""
        changes = joined_changes([t.changes for t in waiting if t.changes is not None])
        at = np.arange(len(ordinals)) if self._context.looks else np.flatnonzero(changes.deletes)
        lines = np.concatenate([t.lines for t in waiting])[at]
        ids = rows.column("id").take(pa.array(at)).combine_chunks()
        self._logs.setdefault(key, []).append(ChangeLog(changes, ordinals[at], lines, ids))
        return changes.deletes

    def _matches(self, key: str, target: TableTarget, rows: pa.Table) -> Matches | None:
        """Stored rows with the same ids; None when there can be none."""
        if self._context.mode in (LoadMode.OVERWRITE, LoadMode.UPDATE) or not target.row_count:
            return None
        if not self._context.validate:
            return None
        if key not in self._given_ids:
            return None
        matches = find_rows(target.open(self._context.storage_options), rows.column("id"))
        return matches if matches.hit.any() else None

    def _as_stored(
        self, key: str, target: TableTarget, rows: pa.Table, matches: Matches | None
    ) -> npt.NDArray[np.bool_]:
        """Which rows are stored as they are, where that is asked; the places of these are kept."""
        if matches is None or not self._context.compares:
            return np.zeros(rows.num_rows, dtype=np.bool_)
        entity, dataset = self._context.entity(key), target.open(self._context.storage_options)
        same = unchanged_rows(entity, dataset, rows, matches)
        self._unchanged.setdefault(key, []).append(matches.addresses[same[matches.hit]])
        return same

    def _add_conflicts(
        self, key: TableKey, waiting: list[DecodedTable], rows: pa.Table, matches: Matches, keep: npt.NDArray[np.bool_]
    ) -> None:
        ids, mistakes = rows.column("id"), {}
        for row in np.flatnonzero(matches.hit & keep).tolist():
            mistakes[row] = Mistake("id", Rule.KEY_CONFLICT, exists_already(key, ids[row].as_py()))
        self._refuse(key, waiting, rows, mistakes)

    def _filled(
        self, key: TableKey, waiting: list[DecodedTable], rows: pa.Table, keep: npt.NDArray[np.bool_]
    ) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
        """The rows with vectors, and which of them get none and are refused."""
        entity, how = self._context.entity(key), self._context.fill
        dropped = np.zeros(len(keep), dtype=bool)
        if how is None or not isinstance(entity, NodeType):
            return rows, dropped
        found = fill(how, entity, rows, keep)
        if found.mistakes and self._skip is not None:
            raise EmbeddingError(f"texts of {key.type_name} that were answered are not in the cache any more")
        self._properties = summed([self._properties, found.properties])
        dropped[list(found.mistakes)] = True
        self._refuse(key, waiting, rows, found.mistakes)
        return found.rows, dropped

    def _refuse(
        self, key: TableKey, waiting: list[DecodedTable], rows: pa.Table, mistakes: Mapping[int, Mistake]
    ) -> None:
        """Rows that were good until they were to be stored; those of a range get their text later."""
        if not mistakes:
            return
        at = list(mistakes)
        lines = np.concatenate([t.lines for t in waiting])
        offsets = np.concatenate([t.offsets for t in waiting])
        ids = rows.column("id")
        texts = record_text(self._context.entity(key), rows.take(at)) if self._from_frame else [""] * len(at)
        for i, text in zip(at, texts, strict=True):
            self.conflicts.append(
                Rejected(
                    line=int(lines[i]),
                    offset=int(offsets[i]),
                    record_type=key.type_name,
                    field=mistakes[i].field,
                    rule=mistakes[i].rule,
                    message=mistakes[i].message,
                    raw=text,
                    is_edge=key.kind == "edge",
                    id=ids[i].as_py(),
                )
            )


def _with_text(context: StageContext, range_: InputRange, conflicts: list[Rejected]) -> list[Rejected]:
    """The same rows with their raw text, read in a second pass over the range."""
    if not conflicts:
        return []
    by_line = {r.line: r for r in conflicts[:REPORT_LIMIT]}
    done: list[Rejected] = []
    for chunk in read_chunks(range_, dict(context.storage_options)):
        for line in by_line.keys() & set(range(chunk.first_line, chunk.first_line + len(chunk.lines))):
            done.append(replace(by_line[line], raw=raw_line(chunk, line)))
    return done + conflicts[REPORT_LIMIT:]
