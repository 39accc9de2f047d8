"""The same records as JSON lines, Parquet, CSV and Arrow, loaded one after the other in this process, in CPU seconds.

Run it as `python tests/benchmarks/bench_inputs.py [--rows N] [--rounds N]`; the first round is thrown away.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from spark_omnigraph import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.write.executor import LocalExecutor

SCHEMA = """
node Person { code: String @key  age: I32  score: F64  joined: Date  active: Bool  note: String? }
edge Knows: Person -> Person { since: Date  weight: F32 }
"""

BARS = {"parquet": 0.6, "csv": 1.2}
"""What a format may cost, in parts of JSON lines."""


def people(rows: int) -> pa.Table:
    chance = random.Random(7)
    return pa.table(
        {
            "code": [f"p{i:08}" for i in range(rows)],
            "age": pa.array([chance.randrange(100) for _ in range(rows)], pa.int32()),
            "score": [chance.random() * 100 for _ in range(rows)],
            "joined": pa.array([chance.randrange(20_000) for _ in range(rows)], pa.int32()).cast(pa.date32()),
            "active": [chance.random() < 0.5 for _ in range(rows)],
            "note": [f"a note of {i}" if i % 3 else None for i in range(rows)],
        }
    )


def knows(rows: int, nodes: int) -> pa.Table:
    chance = random.Random(8)
    return pa.table(
        {
            "from": [f"p{chance.randrange(nodes):08}" for _ in range(rows)],
            "to": [f"p{chance.randrange(nodes):08}" for _ in range(rows)],
            "since": pa.array([chance.randrange(20_000) for _ in range(rows)], pa.int32()).cast(pa.date32()),
            "weight": pa.array([chance.random() for _ in range(rows)], pa.float32()),
        }
    )


def _arrow(table: pa.Table, path: Path) -> None:
    with ipc.new_file(path, table.schema) as out:
        out.write_table(table, max_chunksize=65_536)


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "parquet": pq.write_table,
    "csv": pacsv.write_csv,
    "arrow": _arrow,
}


def write(folder: Path, tables: dict[str, pa.Table]) -> None:
    with open(folder / "all.jsonl", "w", encoding="utf-8") as out:
        for name, table in tables.items():
            for row in table.to_pylist():
                data = {k: v.isoformat() if hasattr(v, "isoformat") else v for k, v in row.items() if v is not None}
                ends = {end: data.pop(end) for end in ("from", "to") if end in data}
                out.write(json.dumps({"edge" if ends else "type": name, **ends, "data": data}) + "\n")
    for ending, writer in WRITERS.items():
        for name, table in tables.items():
            writer(table, folder / f"{name}.{ending}")


def load(folder: Path, scratch: Path, ending: str) -> float:
    """CPU seconds of one load."""
    graph = Graph.init(scratch, SCHEMA, force=True)
    options = LoadOptions(executor=LocalExecutor(1), build_indexes=False)
    begun = time.process_time()
    if ending == "jsonl":
        graph.load(folder / "all.jsonl", options=options)
    else:
        inputs = [{"path": str(folder / f"Person.{ending}"), "node": "Person"}]
        inputs.append({"path": str(folder / f"Knows.{ending}"), "edge": "Knows"})
        graph.load(mapping={"inputs": inputs}, options=options)
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=4)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nodes = asked.rows // 3
        write(folder, {"Person": people(nodes), "Knows": knows(asked.rows - nodes, nodes)})
        seconds: dict[str, list[float]] = {ending: [] for ending in ("jsonl", *WRITERS)}
        for _ in range(asked.rounds):
            for ending, found in seconds.items():
                found.append(load(folder, folder / "graph", ending))
        base = median(seconds["jsonl"][1:])
        for ending, found in seconds.items():
            of_all = median(found[1:])
            bar = f", the bar is {BARS[ending]:.2f}" if ending in BARS else ""
            sys.stdout.write(f"{ending:8} {of_all:7.2f} CPU s   {of_all / base:5.2f} of JSON lines{bar}\n")


if __name__ == "__main__":
    main()
