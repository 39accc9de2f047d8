"""The obvious script: one process, a JSON decoder, a list per column, one `write_dataset` a type; no check of any kind.

    python -m tests.support.plain_load INPUT.jsonl FOLDER

Prints the seconds that the work took, without the start of Python.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import lance
import msgspec
import pyarrow as pa

_EPOCH = date(1970, 1, 1)
_INTS = {"age": pa.int32(), "stock": pa.int32(), "hours": pa.int32(), "quantity": pa.int32(), "staff": pa.int64()}
_REALS = {"rating": pa.float32(), "weight": pa.float32()} | dict.fromkeys(("score", "price", "paid"), pa.float64())
_STAMPS = {"joined", "founded", "released"}
_KEYS = {"Person": "code", "Company": "name", "Product": "sku"}


def column(name: str, values: list[Any]) -> pa.Array:
    if name in _STAMPS:
        micros = [int(datetime.fromisoformat(v[:-1]).replace(tzinfo=timezone.utc).timestamp()) * 1000 for v in values]
        return pa.array(micros, pa.int64()).cast(pa.date64())
    if name == "since":
        return pa.array([(date.fromisoformat(v) - _EPOCH).days for v in values], pa.int32()).cast(pa.date32())
    return pa.array(values, _INTS.get(name) or _REALS.get(name))


def main() -> None:
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    start = time.perf_counter()
    columns: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    decode = msgspec.json.Decoder().decode
    with source.open("rb") as lines:
        for number, line in enumerate(lines):
            record = decode(line)
            name = record.get("type")
            if name is None:
                name = record["edge"]
                rows = columns[name]
                rows["id"].append(f"e{number}")
                rows["src"].append(record["from"])
                rows["dst"].append(record["to"])
            else:
                rows = columns[name]
                rows["id"].append(record["data"][_KEYS[name]])
            for key, value in record["data"].items():
                rows[key].append(value)
    for name, rows in columns.items():
        data = pa.table({key: column(key, values) for key, values in rows.items()})
        lance.write_dataset(data, str(folder / name), data_storage_version="2.2", enable_stable_row_ids=True)
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main()
