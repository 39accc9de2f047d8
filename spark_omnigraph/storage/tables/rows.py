"""Whole rows of a table in id order, blobs included, for export and look-ups by id."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

import pyarrow as pa
from lance import LanceDataset
from lance.dataset import ColumnOrdering

from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.tables.blobs import Blob, StoredBlobs

_BATCH = 8192


def rows_in_id_order(
    dataset: LanceDataset, blob_columns: Sequence[str], where: str | None = None
) -> Iterator[pa.RecordBatch]:
    """All rows, or those of a filter. Blob columns come as text: the external URI, or `base64:` and the bytes."""
    with reading(f"scan {dataset.uri}"):
        scanner = dataset.scanner(
            filter=where,
            order_by=[ColumnOrdering("id")] if where is None else None,
            batch_size=_BATCH,
            with_row_id=bool(blob_columns),
            with_row_address=bool(blob_columns),
        )
        blobs = StoredBlobs(dataset)
        for batch in scanner.to_batches():
            yield _with_blob_text(batch, blob_columns, blobs) if blob_columns else batch


def _with_blob_text(batch: pa.RecordBatch, columns: Sequence[str], blobs: StoredBlobs) -> pa.RecordBatch:
    rows = batch.column("_rowid").to_pylist(), batch.column("_rowaddr").to_pylist()
    kept = {name: batch.column(name) for name in batch.schema.names if name not in ("_rowid", "_rowaddr")}
    for name in columns:
        texts = [_text(blob) for blob in blobs.take(name, kept[name].to_pylist(), rows)]
        kept[name] = pa.array(texts, pa.string())
    return pa.RecordBatch.from_arrays(list(kept.values()), names=list(kept))


def _text(blob: Blob | None) -> str | None:
    if blob is None or blob["data"] is None:
        return None if blob is None else blob["uri"]
    return "base64:" + base64.b64encode(blob["data"]).decode()
