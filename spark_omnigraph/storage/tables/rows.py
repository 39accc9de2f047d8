"""Whole rows of a table in id order, blobs included, for export and look-ups by id."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

import pyarrow as pa
from lance import LanceDataset
from lance.dataset import ColumnOrdering

from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.tables.blobs import EXTERNAL, BlobNulls, Descriptor

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
        nulls = BlobNulls(dataset)
        for batch in scanner.to_batches():
            yield _with_blob_text(dataset, batch, blob_columns, nulls) if blob_columns else batch


def _with_blob_text(
    dataset: LanceDataset, batch: pa.RecordBatch, columns: Sequence[str], nulls: BlobNulls
) -> pa.RecordBatch:
    row_ids, addresses = batch.column("_rowid").to_pylist(), batch.column("_rowaddr").to_pylist()
    arrays, names = [], []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in ("_rowid", "_rowaddr"):
            continue
        names.append(name)
        if name in columns:
            descriptors = column.to_pylist()
            pairs = zip(descriptors, addresses, strict=True)
            known = [None if nulls.is_null(name, d, address) else d for d, address in pairs]
            arrays.append(_blob_texts(dataset, name, known, row_ids))
        else:
            arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _blob_texts(
    dataset: LanceDataset, name: str, descriptors: Sequence[Descriptor | None], row_ids: list[int]
) -> pa.Array:
    """Text per row; None for null."""
    texts: list[str | None] = [None] * len(row_ids)
    inline: list[int] = []
    for i, descriptor in enumerate(descriptors):
        if descriptor is None:
            continue
        if descriptor["kind"] == EXTERNAL:
            texts[i] = str(descriptor["blob_uri"])
        else:
            inline.append(i)
    if inline:
        blobs = dataset.take_blobs(name, ids=[row_ids[i] for i in inline])
        for i, blob in zip(inline, blobs, strict=True):
            if blob is not None:
                with blob as opened:
                    texts[i] = "base64:" + base64.b64encode(opened.read()).decode()
    return pa.array(texts, pa.string())
