"""Whole rows of a table in id order, blobs included, for export, look-ups by id and updates."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from lance import LanceDataset
from lance.dataset import ColumnOrdering

from spark_omnigraph.records.arrow_schema import BLOB
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.tables.blobs import Blob, StoredBlobs
from spark_omnigraph.storage.tables.scan import BATCH_BYTES, blob_runs

_BATCH = 8192


def rows_in_id_order(
    dataset: LanceDataset, blob_columns: Sequence[str], where: str | None = None
) -> Iterator[pa.RecordBatch]:
    """All rows, or those of a filter. Blob columns come as text: the external URI, or `base64:` and the bytes."""
    for batch in rows_to_write(dataset, blob_columns, where):
        texts = (pa.array(map(_text, batch.column(name).to_pylist()), pa.string()) for name in blob_columns)
        yield _with_columns(batch, dict(zip(blob_columns, texts, strict=True)))


def rows_to_write(
    dataset: LanceDataset, blob_columns: Sequence[str], where: str | None = None, *, in_id_order: bool = True
) -> Iterator[pa.RecordBatch]:
    """All rows, or those of a filter, as they could be written again: blobs as their bytes or their reference, of so
    many rows at a time that they fit a bounded amount of memory. All rows come by id, unless stored order will do.
    """
    with reading(f"scan {dataset.uri}"):
        scanner = dataset.scanner(
            filter=where,
            order_by=[ColumnOrdering("id")] if where is None and in_id_order else None,
            batch_size=_BATCH,
            batch_size_bytes=BATCH_BYTES,
            with_row_id=bool(blob_columns),
            with_row_address=bool(blob_columns),
        )
        blobs = StoredBlobs(dataset)
        for batch in scanner.to_batches():
            for run in blob_runs(batch, blob_columns):
                yield _with_blobs(run, blob_columns, blobs) if blob_columns else run


def _with_blobs(batch: pa.RecordBatch, columns: Sequence[str], blobs: StoredBlobs) -> pa.RecordBatch:
    rows = batch.column("_rowid").to_pylist(), batch.column("_rowaddr").to_pylist()
    found = {name: pa.array(blobs.take(name, batch.column(name).to_pylist(), rows), BLOB) for name in columns}
    stored = [name for name in batch.schema.names if name not in ("_rowid", "_rowaddr")]
    return _with_columns(batch.select(stored), found)


def _with_columns(batch: pa.RecordBatch, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    arrays = [columns.get(name, batch.column(name)) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _text(blob: Blob | None) -> str | None:
    if blob is None or blob["data"] is None:
        return None if blob is None else blob["uri"]
    return "base64:" + base64.b64encode(blob["data"]).decode()
