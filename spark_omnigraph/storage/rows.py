"""Whole rows of a table in id order, blobs included, for export and look-ups by id."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

import pyarrow as pa
from lance import LanceDataset
from lance.dataset import ColumnOrdering

from spark_omnigraph.storage.faults import reading

_BATCH = 8192
_EXTERNAL_BLOB = 3


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
        )
        for batch in scanner.to_batches():
            yield _with_blob_text(dataset, batch, blob_columns) if blob_columns else batch


def id_filter(entity_id: str) -> str:
    """Lance filter for one id."""
    quoted = entity_id.replace("'", "''")
    return f"id = '{quoted}'"


def _with_blob_text(dataset: LanceDataset, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    row_ids = batch.column("_rowid").to_pylist()
    arrays, names = [], []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name == "_rowid":
            continue
        names.append(name)
        arrays.append(_blob_texts(dataset, name, column, row_ids) if name in columns else column)
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _blob_texts(dataset: LanceDataset, name: str, column: pa.Array, row_ids: list[int]) -> pa.Array:
    """Text per row; null, and an empty inline blob, which the format cannot tell from null, become null."""
    texts: list[str | None] = [None] * len(row_ids)
    inline: list[int] = []
    for i, descriptor in enumerate(column.to_pylist()):
        if descriptor is None or descriptor["kind"] is None:
            continue
        if descriptor["kind"] == _EXTERNAL_BLOB:
            texts[i] = descriptor["blob_uri"]
        elif descriptor["size"] or descriptor["position"] or descriptor["kind"]:
            inline.append(i)
    if inline:
        blobs = dataset.take_blobs(name, ids=[row_ids[i] for i in inline])
        for i, blob in zip(inline, blobs, strict=True):
            if blob is not None:
                with blob as opened:
                    texts[i] = "base64:" + base64.b64encode(opened.read()).decode()
    return pa.array(texts, pa.string())
