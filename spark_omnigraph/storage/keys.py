"""Key look-ups: which stored rows have these ids or values, and key columns of files that are only staged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.file import LanceFileReader

from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.staged import StagedFile

IN_LIST_LIMIT = 5_000
"""Keys up to which an IN filter (served by a BTREE where there is one) beats reading the whole key column."""
_SCAN_BATCH = 1 << 19


@dataclass(frozen=True, slots=True)
class Matches:
    """Stored rows for a list of probed ids: `hit[i]` says whether id i is stored; `row_ids` and `addresses` are
    those of the hits, in probe order.
    """

    hit: npt.NDArray[np.bool_]
    row_ids: npt.NDArray[np.uint64]
    addresses: npt.NDArray[np.uint64]


def find_rows(dataset: LanceDataset, ids: pa.Array | pa.ChunkedArray) -> Matches:
    """Stored rows whose `id` is among these (distinct or not); the work grows with the smaller side."""
    probe = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    stored = _rows_with_ids(dataset, probe)
    place = pc.index_in(probe, value_set=stored.column("id").combine_chunks())
    hit = np.asarray(place.is_valid())
    at = place.drop_null()
    return Matches(
        hit,
        np.asarray(stored.column("_rowid").take(at)).astype(np.uint64),
        np.asarray(stored.column("_rowaddr").take(at)).astype(np.uint64),
    )


def _rows_with_ids(dataset: LanceDataset, probe: pa.Array) -> pa.Table:
    wanted = probe.unique()
    parts: list[pa.Table] = []
    with reading(f"look up keys in {dataset.uri}"):
        condition = in_list("id", wanted) if len(wanted) <= IN_LIST_LIMIT else None
        scanner = dataset.scanner(
            columns=["id"], filter=condition, with_row_id=True, with_row_address=True, batch_size=_SCAN_BATCH
        )
        schema = scanner.projected_schema
        for batch in scanner.to_batches():
            keep = pc.is_in(batch.column("id"), value_set=wanted)
            parts.append(pa.Table.from_batches([batch.filter(keep)]))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def stored_among(dataset: LanceDataset, column: str, values: pa.Array) -> pa.Array:
    """Those of the distinct `values` that a string column of a table holds."""
    found: list[pa.Array] = []
    for batch in scan_columns(dataset, [column], column, values):
        found.append(batch.column(column).filter(pc.is_in(batch.column(column), value_set=values)).unique())
    return pa.chunked_array(found, type=pa.string()).unique()


def scan_columns(
    dataset: LanceDataset, columns: Sequence[str], key: str | None = None, values: pa.Array | None = None
) -> Iterator[pa.RecordBatch]:
    """Batches of some columns; when few `values` of a string column `key` are wanted, only rows that have them."""
    condition = None
    if key is not None and values is not None and len(values) <= IN_LIST_LIMIT:
        condition = in_list(key, values)
    return scan_where(dataset, columns, condition)


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
    return _found(dataset, ["id"], condition, lambda batch: batch)


def rows_with(dataset: LanceDataset, columns: Sequence[str], values: pa.Array) -> Found:
    """Stored rows of which any of these string columns holds one of the distinct `values`."""
    few = len(values) <= IN_LIST_LIMIT
    condition = " OR ".join(in_list(column, values) for column in columns) if few else None

    def matching(batch: pa.RecordBatch) -> pa.RecordBatch:
        masks = [pc.is_in(batch.column(column), value_set=values) for column in columns]
        return batch.filter(masks[0] if len(masks) == 1 else pc.or_(masks[0], masks[1]))

    return _found(dataset, list(dict.fromkeys(("id", *columns))), condition, matching)


def _found(
    dataset: LanceDataset,
    columns: Sequence[str],
    condition: str | None,
    matching: Callable[[pa.RecordBatch], pa.RecordBatch],
) -> Found:
    ids: list[pa.Array] = []
    addresses: list[npt.NDArray[np.uint64]] = []
    with reading(f"scan {dataset.uri}"):
        scanner = dataset.scanner(
            columns=list(columns), filter=condition, with_row_address=True, batch_size=_SCAN_BATCH
        )
        for batch in scanner.to_batches():
            kept = matching(batch)
            ids.append(kept.column("id"))
            addresses.append(np.asarray(kept.column("_rowaddr")).astype(np.uint64))
    found = np.concatenate(addresses) if addresses else np.empty(0, dtype=np.uint64)
    return Found(pa.chunked_array(ids, pa.string()).combine_chunks(), found)


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
            parts.append(in_list(name, values))
        elif pa.types.is_integer(values.type):
            # The negative limit of 64 bits has no literal.
            numbers = [v for v in values.to_pylist() if v > -(2**63)]
            if len(numbers) == len(values):
                parts.append(f"`{name}` IN ({', '.join(map(str, numbers))})" if numbers else "false")
    return " AND ".join(parts) or None


def read_staged(table_uri: str, file: StagedFile, columns: Sequence[str], options: Mapping[str, str]) -> pa.Table:
    """Some columns of a staged data file, rows in file order."""
    beside = file.read_beside()
    inside = [name for name in columns if name not in beside.column_names]
    if not inside:
        return beside.select(list(columns))
    with reading(f"read staged file {file.path}"):
        reader = LanceFileReader(f"{table_uri}/data/{file.path}", storage_options=dict(options) or None, columns=inside)
        found = reader.read_all(batch_size=_SCAN_BATCH).to_table()
    for name in columns:
        if name not in inside:
            found = found.append_column(name, beside.column(name))
    return found.select(list(columns))


def in_list(column: str, values: pa.Array) -> str:
    """Lance filter `column IN (…)` with exactly these strings."""
    quoted = ", ".join("'" + v.replace("'", "''") + "'" for v in values.to_pylist())
    return f"`{column}` IN ({quoted})" if quoted else "false"
