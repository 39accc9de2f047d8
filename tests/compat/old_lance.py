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


def merge(ds: lance.LanceDataset, rows: list[dict[str, Any]]) -> dict[str, Any]:
    builder = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    stats = builder.execute(as_table(ds, rows))
    return {"version": ds.version, "count": ds.count_rows(), "stats": stats}


def delete(ds: lance.LanceDataset, where: str) -> dict[str, Any]:
    ds.delete(where)
    return {"version": ds.version, "count": ds.count_rows()}


DO: dict[str, Callable[..., dict[str, Any]]] = {"scan": scan, "append": append, "merge": merge, "delete": delete}


def main() -> None:
    request = json.load(sys.stdin)
    answers: list[dict[str, Any]] = [{"pylance": lance.__version__}]
    for step in request["steps"]:
        work = DO[step.pop("do")]
        ds = lance.dataset(step.pop("path"), version=step.pop("at", None))
        answers.append(work(ds, **step))
    json.dump(answers, sys.stdout, default=str)


main()
