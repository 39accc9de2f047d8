"""Runs under another release of pylance, without this project: reads and writes datasets of a graph on request.

Standard input is one JSON object `{"steps": [{"do": …, "path": …, …}]}`; standard output the list of answers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa


def as_table(ds: lance.LanceDataset, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=ds.schema)


def scan(ds: lance.LanceDataset, columns: list[str], where: str | None = None) -> dict[str, Any]:
    table = ds.to_table(columns=columns, filter=where).sort_by(columns[0])
    return {"version": ds.version, "rows": table.to_pylist(), "types": [str(field.type) for field in table.schema]}


def append(ds: lance.LanceDataset, rows: list[dict[str, Any]]) -> dict[str, Any]:
    moved = lance.write_dataset(as_table(ds, rows), ds.uri, mode="append")
    return {"version": moved.version, "count": moved.count_rows()}


def append_blobs(ds: lance.LanceDataset, blobs: dict[str, str | None]) -> dict[str, Any]:
    """Rows of an id, a blob `body` (null, or the text's bytes) and a `name` that is the id."""
    values = [None if text is None else {"data": text.encode(), "uri": None} for text in blobs.values()]
    kind = pa.struct([pa.field("data", pa.large_binary()), pa.field("uri", pa.string())])
    body = pa.field("body", kind, metadata={"ARROW:extension:name": "lance.blob.v2"})
    key = [pa.field(name, pa.string(), nullable=False) for name in ("id", "name")]
    columns = [pa.array(list(blobs)), pa.array(values, kind), pa.array(list(blobs))]
    rows = pa.Table.from_arrays(columns, schema=pa.schema([key[0], body, key[1]]))
    moved = lance.write_dataset(rows, ds.uri, mode="append")
    return {"version": moved.version}


def merge(ds: lance.LanceDataset, rows: list[dict[str, Any]]) -> dict[str, Any]:
    builder = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    stats = builder.execute(as_table(ds, rows))
    return {"version": ds.version, "count": ds.count_rows(), "stats": stats}


def delete(ds: lance.LanceDataset, where: str) -> dict[str, Any]:
    ds.delete(where)
    return {"version": ds.version, "count": ds.count_rows()}


def index(ds: lance.LanceDataset, columns: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Builds indexes by column and kind, anew where there are any."""
    for column, kind in columns.items():
        if kind.startswith("IVF_"):
            ds.create_index(column, kind, num_partitions=1, replace=True, **options)
        else:
            ds.create_scalar_index(column, kind, replace=True)
    return {"version": lance.dataset(ds.uri).version}


def optimize_indices(ds: lance.LanceDataset) -> dict[str, Any]:
    ds.optimize.optimize_indices()
    return {"version": lance.dataset(ds.uri).version, "indexes": [index.name for index in ds.describe_indices()]}


def compact(ds: lance.LanceDataset) -> dict[str, Any]:
    ds.optimize.compact_files()
    return {"version": lance.dataset(ds.uri).version, "files": len(ds.get_fragments())}


def search(ds: lance.LanceDataset, column: str, text: str) -> dict[str, Any]:
    query = {"columns": [column], "query": text}
    found = ds.scanner(full_text_query=query, columns=["id", "_score"]).to_table()
    return {"rows": sorted(found["id"].to_pylist())}


def nearest(ds: lance.LanceDataset, column: str, vector: list[float], k: int) -> dict[str, Any]:
    query = {"column": column, "q": pa.array(vector, pa.float32()), "k": k}
    return {"rows": ds.to_table(columns=["id"], nearest=query)["id"].to_pylist()}


DO: dict[str, Callable[..., dict[str, Any]]] = {
    "scan": scan,
    "append": append,
    "append_blobs": append_blobs,
    "merge": merge,
    "delete": delete,
    "index": index,
    "optimize_indices": optimize_indices,
    "compact": compact,
    "search": search,
    "nearest": nearest,
}


def main() -> None:
    request = json.load(sys.stdin)
    answers: list[dict[str, Any]] = [{"pylance": lance.__version__}]
    for step in request["steps"]:
        work = DO[step.pop("do")]
        ds = lance.dataset(step.pop("path"), version=step.pop("at", None))
        answers.append(work(ds, **step))
    json.dump(answers, sys.stdout, default=str)


main()
