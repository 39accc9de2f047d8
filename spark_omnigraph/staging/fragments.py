"""Staged files: written with the rows that replace stored ones first, and read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.catalog.types import EdgeType, Scalar
from spark_omnigraph.errors import BadRequestError, ConflictError
from spark_omnigraph.records.arrow_schema import BLOB, physical_schema
from spark_omnigraph.records.mode import LoadMode
from spark_omnigraph.records.record_text import record_text
from spark_omnigraph.staging.edge_ids import edge_ids, with_stored_ids
from spark_omnigraph.staging.located import TEXTS
from spark_omnigraph.staging.receipt import ChangeLog, Int64s, StageContext, StagedFragment, packed
from spark_omnigraph.storage.tables.keys import Matches, find_rows, read_staged
from spark_omnigraph.storage.tables.staged import TableTarget, stage_rows
from spark_omnigraph.storage.values.staged import stage_values


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
    target = context.target(key)
    rows = _staged_rows(context, key, fragment).filter(pa.array(keep))
    if moved:
        _require_same_ids(context, key, rows)
    matches = None
    if (fragment.hits or moved) and target.row_count:
        matches = find_rows(target.open(context.storage_options), rows.column("id"))
    everything = np.ones(rows.num_rows, dtype=bool)
    written, order = write_fragment(target, rows, ordinals[keep], everything, matches, context.storage_options)
    return replace(written, lines=packed_lines(lines[keep][order], written))


def _require_same_ids(context: StageContext, key: str, rows: pa.Table) -> None:
    """ConflictError where edges with the ends of staged ones were written meanwhile under other ids."""
    edge, columns = context.entity(key), context.decode.edge_id
    if columns is None or not isinstance(edge, EdgeType):
        return
    by_ends = rows.set_column(0, rows.schema.field(0), edge_ids(edge, rows, columns))
    again, known = with_stored_ids(context, key, by_ends)
    refused = known.taken + (known.ambiguous if context.adopt_edges else known.foreign)
    if refused or not again.column("id").equals(rows.column("id")):
        raise ConflictError(f"edges of '{key}' with the same ends were written by others meanwhile; run it again")


def locate_staged(
    context: StageContext, key: str, fragment: StagedFragment, wanted: Int64s
) -> Iterator[tuple[int, int, str]]:
    """Ordinal, line and text of those of the wanted rows that a staged file holds, read from it."""
    ordinals, lines = fragment.row_ordinals(), fragment.row_lines()
    places = np.flatnonzero(np.isin(ordinals, wanted))
    if not len(places):
        return
    places = places[np.argsort(ordinals[places])]
    rows = _staged_rows(context, key, fragment, with_blobs=False)
    for start in range(0, len(places), TEXTS):
        some = places[start : start + TEXTS]
        texts = record_text(context.entity(key), rows.take(pa.array(some)))
        yield from zip(ordinals[some].tolist(), lines[some].tolist(), texts, strict=True)


def locate_deletes(context: StageContext, key: str, log: ChangeLog, wanted: Int64s) -> Iterator[tuple[int, int, str]]:
    """The same of those that delete, of which the id is known."""
    at = np.flatnonzero(np.isin(log.ordinals, wanted))
    rows = pa.table({"id": log.ids.take(pa.array(at))})
    texts = record_text(context.entity(key), rows)
    yield from zip(log.ordinals[at].tolist(), log.lines[at].tolist(), texts, strict=True)


def _staged_rows(context: StageContext, key: str, fragment: StagedFragment, with_blobs: bool = True) -> pa.Table:
    """Rows of a staged file in stored layout; BadRequestError when blobs, which are not read back, are asked for."""
    entity, target = context.entity(key), context.target(key)
    blobs = [p.name for p in entity.properties if p.type.scalar is Scalar.BLOB]
    if blobs and with_blobs:
        raise BadRequestError(
            f"rows of '{entity.name}' must be left out after they were written, which its blobs do not allow; "
            "remove bad rows, and of changes all but the last of each row, first, or load the records from files"
        )
    if context.mode is LoadMode.UPDATE:
        shown = [field.name for field in physical_schema(entity) if field.type != BLOB]
        return read_staged(fragment.file, shown, context.storage_options)
    fields = list(physical_schema(entity))
    # Lance finds no column of a file that stands behind blobs: what comes before them, and what travels beside the
    # file, must do for a report.
    before = list(takewhile(lambda field: field.name not in blobs, fields))
    schema = pa.schema([*before, *(field for field in fields[len(before) :] if field.name in target.beside)])
    return read_staged(fragment.file, schema.names, context.storage_options).cast(schema)


def write_patches(target: TableTarget, rows: pa.Table, ordinals: Int64s, options: Mapping[str, str]) -> StagedFragment:
    """One file of patches, which are applied once all are known."""
    file = stage_values(target, rows, options)
    return StagedFragment(file, 0, int(ordinals[0]), packed(ordinals.astype(np.int32)), None)


def write_fragment(
    target: TableTarget,
    rows: pa.Table,
    ordinals: Int64s,
    keep: npt.NDArray[np.bool_],
    matches: Matches | None,
    options: Mapping[str, str],
) -> tuple[StagedFragment, Int64s]:
    """One fragment of the kept rows, those that replace stored rows first, then the new ones; and their order.

    The former lie by stable row id: ascending ids take a quarter of the place, or less, in the manifest that every
    reader of the table reads.
    """
    if matches is None:
        order = np.flatnonzero(keep)
        if len(order) == len(rows) and ordinals[-1] - ordinals[0] + 1 == len(rows):
            return StagedFragment(stage_rows(target, rows, None, options), 0, int(ordinals[0]), None, None), order
        file = stage_rows(target, rows.take(pa.array(order)), None, options)
        return StagedFragment(file, 0, int(ordinals[order[0]]), packed(ordinals[order].astype(np.int32)), None), order
    kept_hits = keep[matches.hit]
    row_ids, addresses = matches.row_ids[kept_hits], matches.addresses[kept_hits]
    by_id = np.argsort(row_ids)
    replaced = np.flatnonzero(matches.hit & keep)[by_id]
    order = np.concatenate([replaced, np.flatnonzero(~matches.hit & keep)])
    file = stage_rows(target, rows.take(pa.array(order)), row_ids[by_id], options)
    fragment = StagedFragment(
        file,
        len(replaced),
        int(ordinals[order[0]]),
        packed(ordinals[order].astype(np.int32)),
        packed(addresses[by_id]),
    )
    return fragment, order


def last_of_each(matches: Matches, keep: npt.NDArray[np.bool_]) -> Matches:
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


def packed_lines(lines: Int64s, fragment: StagedFragment) -> bytes | None:
    """Lines of a file's rows to keep beside it; None when they are the ordinals."""
    if np.array_equal(lines, fragment.row_ordinals()):
        return None
    return packed(lines.astype(np.int32))
