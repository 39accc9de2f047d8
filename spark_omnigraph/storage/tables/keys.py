"""Key look-ups: which stored rows have these ids or values, and key columns of files that are only staged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.file import LanceFileReader

from spark_omnigraph.catalog.types import Scalar
from spark_omnigraph.predicates.sql import is_text_of, number, one_of
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.tables.index import coverage
from spark_omnigraph.storage.tables.staged import StagedFile

IN_LIST_LIMIT = 5_000
"""Keys of one IN filter (served by a BTREE where there is one); so many beat reading the whole key column."""
_ROWS_A_LOOKUP = 100
"""Stored rows that are read in the time of one look-up in an index, about."""
_AT_ONCE = 4
"""Stored rows a value that are looked through at once where the whole column is read."""
_SCAN_BATCH = 1 << 19
_NOTHING = np.empty(0, dtype=np.uint64)
_NO_ROWS = pa.schema([("id", pa.string()), ("_rowid", pa.uint64()), ("_rowaddr", pa.uint64())]).empty_table()


@dataclass(frozen=True, slots=True)
class Matches:
    """Stored rows for a list of probed ids: `hit[i]` says whether id i is stored; `row_ids` and `addresses` are
    those of the hits, in probe order.
    """

    hit: npt.NDArray[np.bool_]
    row_ids: npt.NDArray[np.uint64]
    addresses: npt.NDArray[np.uint64]


def find_rows(dataset: LanceDataset, ids: pa.Array | pa.ChunkedArray) -> Matches:
    """Stored rows whose `id` is among these (distinct or not). In memory is what is found, and some columns of at most
    `_AT_ONCE` stored rows a probed id.
    """
    probe = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    found = list(rows_among(dataset, ["id", "_rowid", "_rowaddr"], ["id"], probe.unique()))
    stored = pa.Table.from_batches(found) if found else _NO_ROWS
    place = pc.index_in(probe, value_set=stored.column("id").combine_chunks())
    hit = np.asarray(place.is_valid())
    at = place.drop_null()
    return Matches(
        hit,
        np.asarray(stored.column("_rowid").take(at)).astype(np.uint64),
        np.asarray(stored.column("_rowaddr").take(at)).astype(np.uint64),
    )


def stored_among(dataset: LanceDataset, column: str, values: pa.Array) -> pa.Array:
    """Those of the distinct `values` that a string column of a table holds."""
    found = [batch.column(column).unique() for batch in rows_among(dataset, [column], [column], values)]
    return pa.chunked_array(found, type=pa.string()).unique()


def rows_among(
    dataset: LanceDataset, columns: Sequence[str], keys: Sequence[str], values: pa.Array
) -> Iterator[pa.RecordBatch]:
    """Rows of which any of one or two string columns `keys` holds one of the distinct `values`; one that both find may
    come twice. Columns may name `_rowid` and `_rowaddr`.

    Few values, or a small share of a table with an index, are asked for by filters; otherwise all rows go by.
    """
    slices = _slices(dataset, keys, values)
    with reading(f"look up keys in {dataset.uri}"):
        for part in slices if slices is not None else [None]:
            scanner = dataset.scanner(
                columns=[name for name in columns if not name.startswith("_row")],
                filter=" OR ".join(is_text_of(key, part.to_pylist()) for key in keys) if part is not None else None,
                with_row_id="_rowid" in columns,
                with_row_address="_rowaddr" in columns,
                batch_size=_SCAN_BATCH,
            )
            batches = scanner.to_batches()
            yield from batches if part is not None else _among(batches, keys, values)


def _slices(dataset: LanceDataset, keys: Sequence[str], values: pa.Array) -> list[pa.Array] | None:
    """The values in parts for IN filters, None where reading the whole columns is less work."""
    if len(values) <= IN_LIST_LIMIT:
        return [values]
    rows = dataset.count_rows()
    parts = -(-len(values) // IN_LIST_LIMIT)
    if len(values) * _ROWS_A_LOOKUP > rows:
        return None
    # What an index does not cover is read anew for every part.
    covered = {index.columns[0]: index.rows for index in coverage(dataset) if index.kind.upper() == "BTREE"}
    if any((rows - covered.get(key, 0)) * parts > rows for key in keys):
        return None
    ordered = values.sort()
    return [ordered.slice(first, IN_LIST_LIMIT) for first in range(0, len(ordered), IN_LIST_LIMIT)]


def _among(batches: Iterable[pa.RecordBatch], keys: Sequence[str], values: pa.Array) -> Iterator[pa.RecordBatch]:
    """The rows of batches that hold one of the values, several batches at a time: Arrow makes its table of the values
    anew for every call. Those outside of the values' limits, which are often all but a few, go first.
    """
    limits = pc.min_max(values)
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        near = batch.filter(_any(_between(batch.column(key), limits["min"], limits["max"]) for key in keys))
        if near.num_rows:
            waiting.append(near)
        if sum(part.num_rows for part in waiting) >= _AT_ONCE * len(values):
            yield from _exactly(waiting, keys, values)
            waiting = []
    yield from _exactly(waiting, keys, values)


def _exactly(parts: list[pa.RecordBatch], keys: Sequence[str], values: pa.Array) -> Iterator[pa.RecordBatch]:
    if parts:
        rows = pa.Table.from_batches(parts)
        kept = rows.filter(_any(pc.is_in(rows.column(key), value_set=values) for key in keys))
        yield from kept.to_batches()


def _between(column: pa.Array, low: pa.Scalar, high: pa.Scalar) -> pa.Array:
    return pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))


def _any(masks: Iterable[pa.Array | pa.ChunkedArray]) -> pa.Array | pa.ChunkedArray:
    return reduce(pc.or_, masks)


def scan_columns(dataset: LanceDataset, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Batches of some columns of all rows."""
    return scan_where(dataset, columns, None)


def scan_addresses(dataset: LanceDataset) -> pa.Table:
    """Ids and physical addresses (`_rowaddr`) of all rows."""
    with reading(f"scan {dataset.uri}"):
        return dataset.scanner(columns=["id"], with_row_address=True, batch_size=_SCAN_BATCH).to_table()


def scan_where(dataset: LanceDataset, columns: Sequence[str], condition: str | None) -> Iterator[pa.RecordBatch]:
    """Batches of some columns of the rows that meet a Lance filter."""
    with reading(f"scan {dataset.uri}"):
        yield from dataset.scanner(columns=list(columns), filter=condition, batch_size=_SCAN_BATCH).to_batches()


@dataclass(frozen=True, slots=True)
class Found:
    """Ids and physical addresses of stored rows."""

    ids: pa.Array
    addresses: npt.NDArray[np.uint64]


def rows_where(dataset: LanceDataset, condition: str) -> Found:
    """Stored rows that meet a Lance filter."""
    with reading(f"scan {dataset.uri}"):
        scanner = dataset.scanner(columns=["id"], filter=condition, with_row_address=True, batch_size=_SCAN_BATCH)
        return _found(list(scanner.to_batches()))


def rows_with(dataset: LanceDataset, columns: Sequence[str], values: pa.Array) -> Found:
    """Stored rows of which any of these string columns holds one of the distinct `values`."""
    wanted = list(dict.fromkeys(("id", *columns, "_rowaddr")))
    return _found(list(rows_among(dataset, wanted, columns, values)))


def _found(batches: Sequence[pa.RecordBatch]) -> Found:
    """Ids and addresses, each row once."""
    addresses = [np.asarray(batch.column("_rowaddr")).astype(np.uint64) for batch in batches]
    together, first = np.unique(np.concatenate([_NOTHING, *addresses]), return_index=True)
    ids = pa.chunked_array([batch.column("id") for batch in batches], pa.string()).combine_chunks()
    return Found(ids.take(pa.array(first)), together)


def any_of(rows: pa.Table) -> str | None:
    """Lance filter that every row meets which has in each column one of the values there; None when that is too long,
    or a column's values have no exact literal.
    """
    parts = []
    for name in rows.column_names:
        values = rows.column(name).unique()
        if len(values) > IN_LIST_LIMIT:
            return None
        if pa.types.is_string(values.type):
            parts.append(is_text_of(name, values.to_pylist()))
        elif pa.types.is_integer(values.type):
            parts.append(one_of(name, (number(Scalar.I64, value) for value in values.to_pylist())))
    return " AND ".join(parts) or None


def read_staged(file: StagedFile, columns: Sequence[str], options: Mapping[str, str]) -> pa.Table:
    """Some columns of a staged data file, rows in file order."""
    beside = file.read_beside()
    inside = [name for name in columns if name not in beside.column_names]
    if not inside:
        return beside.select(list(columns))
    with reading(f"read staged file {file.uri}"):
        reader = LanceFileReader(file.uri, storage_options=dict(options) or None, columns=inside)
        found = reader.read_all(batch_size=_SCAN_BATCH).to_table()
    for name in columns:
        if name not in inside:
            found = found.append_column(name, beside.column(name))
    return found.select(list(columns))
