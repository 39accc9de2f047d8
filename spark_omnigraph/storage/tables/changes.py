"""Which rows of a table two of its versions differ in, found without reading what they share.

Fragments with the same files and deletions are the same rows. Of a fragment that only lost rows, the addresses say
which; what is left of both versions, gone rows and new ones, is matched by id. So the cost follows the change, and
compaction, which moves rows, is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from spark_omnigraph.records.equality import equal_rows
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.tables.blobs import StoredBlobs
from spark_omnigraph.storage.tables.scan import UPDATED, PinnedTable, column_names, open_pinned, replace_blobs
from spark_omnigraph.storage.tables.stored_rows import StoredRows

TAKE_ROWS = 8192
_ADDRESS, _ROW = "_rowaddr", "_rowid"


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Row ids (uint64): of `inserted` and `updated` rows in the later version; in the earlier one of `deleted` rows,
    and of `replaced` ones, which are the `updated` before their update, in the same order.
    """

    inserted: pa.Array
    updated: pa.Array
    replaced: pa.Array
    deleted: pa.Array

    @property
    def is_empty(self) -> bool:
        return not (len(self.inserted) or len(self.updated) or len(self.deleted))


def row_changes(before: PinnedTable | None, after: PinnedTable | None, same_line: bool) -> RowChanges:
    """What turns one version of a table into another; None is a table without rows.

    On the `same_line` of versions a row that was written again is updated, whatever its values. Otherwise it is
    updated when a value differs: then row versions of the two are not comparable.
    """
    old = None if before is None else open_pinned(before)
    new = None if after is None else open_pinned(after)
    gone, come = _differing(old, new)
    place = pc.index_in(come["id"], value_set=gone["id"].combine_chunks())
    matched, at = come.filter(pc.is_valid(place)), place.filter(pc.is_valid(place))
    replaced = gone.take(at)
    if before is None or after is None or not len(matched):
        touched = pa.array([], pa.bool_())
    elif same_line:
        touched = pc.greater(matched[UPDATED], before.version)
    else:
        touched = _differ((before, replaced[_ROW]), (after, matched[_ROW]))
    stays = pc.invert(pc.is_in(gone["id"], value_set=matched["id"].combine_chunks()))
    return RowChanges(
        inserted=_ids(come.filter(pc.is_null(place))),
        updated=_ids(matched.filter(touched)),
        replaced=_ids(replaced.filter(touched)),
        deleted=_ids(gone.filter(stays)),
    )


def moved_rows(before: PinnedTable | None, after: PinnedTable | None) -> pa.Table:
    """Rows that two versions may differ in: `id`, and row ids (uint64) `before` and `after`, null where there is none.

    A row that was written again, or that compaction moved, is among them, whether or not a value differs.
    """
    old = None if before is None else open_pinned(before)
    new = None if after is None else open_pinned(after)
    gone, come = (
        rows.select(["id", _ROW]).rename_columns(["id", name])
        for rows, name in zip(_differing(old, new), ("before", "after"), strict=True)
    )
    return gone.join(come, keys="id", join_type="full outer").combine_chunks()


def read_rows(table: PinnedTable, rows: pa.Array, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Rows by row id, in that order; blob columns arrive as their bytes."""
    dataset = open_pinned(table)
    nulls = StoredBlobs(dataset)
    for start in range(0, len(rows), TAKE_ROWS):
        wanted = rows.slice(start, TAKE_ROWS).to_pylist()
        with reading(f"read changed rows of {table.uri}"):
            taken = dataset._take_rows(wanted, columns=[*columns, _ADDRESS])
        for batch in taken.combine_chunks().to_batches():
            yield from replace_blobs(dataset, batch, columns, nulls)


def _differing(old: LanceDataset | None, new: LanceDataset | None) -> tuple[pa.Table, pa.Table]:
    """Id, row id and version of the rows that only one of the two has at their place."""
    had, have = _fragments(old), _fragments(new)
    same = had.keys() & have.keys()
    gone = _scan(old, [f for files, f in had.items() if files not in same])
    come = _scan(new, [f for files, f in have.items() if files not in same])
    for files in same:
        if _deletions(had[files]) == _deletions(have[files]):
            continue
        before, after = _places(old, had[files]), _places(new, have[files])
        gone = pa.concat_tables([gone, _taken(old, before, after)])
        come = pa.concat_tables([come, _taken(new, after, before)])
    return gone, come


def _fragments(dataset: LanceDataset | None) -> dict[tuple[object, ...], lance.LanceFragment]:
    """Fragments by their files, whose names are unique within a table, also across its branches, and what is read in
    each: a column may lie where another one does, which may have gone since.
    """
    if dataset is None:
        return {}
    found = {}
    for fragment in dataset.get_fragments():
        files = ((file.path.rsplit("/", 1)[-1], *file.fields) for file in fragment.metadata.files)
        found[(fragment.fragment_id, *files)] = fragment
    return found


def _deletions(fragment: lance.LanceFragment) -> tuple[int, int] | None:
    found = fragment.metadata.deletion_file
    return None if found is None else (found.read_version, found.id)


def _places(dataset: LanceDataset | None, fragment: lance.LanceFragment) -> pa.Table:
    """Row ids and addresses of a fragment's rows that are alive; no data file is read for them."""
    assert dataset is not None
    with reading(f"read deletions of {dataset.uri}"):
        scanner = dataset.scanner(columns=[], fragments=[fragment], with_row_id=True, with_row_address=True)
        return scanner.to_table()


def _taken(dataset: LanceDataset | None, places: pa.Table, others: pa.Table) -> pa.Table:
    """The rows of a fragment at places that its other version lacks."""
    assert dataset is not None
    mine, theirs = _offsets(places), _offsets(others)
    shared = np.zeros(1 + max(mine.max(initial=0), theirs.max(initial=0)), dtype=np.bool_)
    shared[theirs] = True
    rows = places.filter(pa.array(~shared[mine]))[_ROW]
    parts = [_SCANNED.empty_table()]
    for start in range(0, len(rows), TAKE_ROWS):
        wanted = rows.slice(start, TAKE_ROWS)
        with reading(f"read ids of {dataset.uri}"):
            taken = dataset._take_rows(wanted.to_pylist(), columns=["id", UPDATED])
        parts.append(taken.append_column(_ROW, wanted).select(_SCANNED.names).cast(_SCANNED))
    return pa.concat_tables(parts)


def _offsets(places: pa.Table) -> npt.NDArray[np.int64]:
    """Places inside the fragment: the lower half of addresses."""
    addresses: npt.NDArray[np.uint64] = places[_ADDRESS].to_numpy()
    return (addresses & np.uint64(0xFFFFFFFF)).astype(np.int64)


_SCANNED = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field(UPDATED, pa.uint64()),
        pa.field(_ROW, pa.uint64()),
    ]
)


def _scan(dataset: LanceDataset | None, fragments: list[lance.LanceFragment]) -> pa.Table:
    if dataset is None or not fragments:
        return _SCANNED.empty_table()
    with reading(f"read ids of {dataset.uri}"):
        scanner = dataset.scanner(columns=["id", UPDATED], fragments=fragments, with_row_id=True)
        return scanner.to_table().select(_SCANNED.names).cast(_SCANNED)


def _ids(rows: pa.Table) -> pa.Array:
    return rows[_ROW].combine_chunks()


def _differ(old: tuple[PinnedTable, pa.ChunkedArray], new: tuple[PinnedTable, pa.ChunkedArray]) -> pa.Array:
    """Whether the rows of two aligned lists have different values, compared by the columns that both versions store."""
    known = set(column_names(old[0]))
    columns = tuple(name for name in column_names(new[0]) if name in known)
    one, other = StoredRows.open(old[0], columns), StoredRows.open(new[0], columns)
    answers = [np.empty(0, dtype=np.bool_)]
    for start in range(0, len(old[1]), TAKE_ROWS):
        parts = (each.take(rows.slice(start, TAKE_ROWS)) for each, rows in ((one, old[1]), (other, new[1])))
        answers.append(~equal_rows(*parts))
    return pa.array(np.concatenate(answers))
