"""Delta tables in and out, without a JVM, in CPU seconds: the same rows loaded from Delta and from Parquet in turn, and
what an export costs by the number of rows that changed.

Run it as `python tests/benchmarks/bench_delta.py [--rows N] [--rounds N]`; the first round is thrown away. Bars: a load
from Delta ≤ 1.2 × of that from Parquet; an incremental export costs by the change.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.write.executor import LocalExecutor

SCHEMA = "node Person { code: String @key  age: I32  score: F64  at: DateTime  note: String? }"
PLAIN = LoadOptions(build_indexes=False, executor=LocalExecutor(1))


def people(rows: int, first: int = 0) -> pa.Table:
    chance = random.Random(first)
    return pa.table(
        {
            "code": [f"p{i:08}" for i in range(first, first + rows)],
            "age": pa.array([chance.randrange(100) for _ in range(rows)], pa.int32()),
            "score": [chance.random() * 100 for _ in range(rows)],
            "at": pa.array([chance.randrange(2**50) for _ in range(rows)], pa.timestamp("us", "UTC")).cast(
                pa.timestamp("ms", "UTC"), safe=False
            ),
            "note": [f"a note of {i}" if i % 3 else None for i in range(rows)],
        }
    )


def seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def loads(folder: Path, rows: int, rounds: int) -> None:
    """The same files of rows, as a folder of Parquet and as a Delta table."""
    (folder / "parquet").mkdir()
    each = max(1, rows // 6)
    for at in range(0, rows, each):
        part = people(min(each, rows - at), at)
        pq.write_table(part, folder / "parquet" / f"{at:09}.parquet")
        write_deltalake(str(folder / "delta"), part, mode="append")
    found: dict[str, list[float]] = {"parquet": [], "delta": []}
    for turn in range(rounds + 1):
        for name, times in found.items():
            graph = Graph.init(folder / f"{name}-{turn}", SCHEMA)
            source = f"delta:{folder}/delta" if name == "delta" else str(folder / "parquet")
            times.append(seconds(partial(graph.load, source, node="Person", options=PLAIN)))
            assert graph.count("node:Person") == rows
    parquet, delta = (median(times[1:]) for times in found.values())
    print(f"load of {rows:,} rows: parquet {parquet:.2f} s, delta {delta:.2f} s, {delta / parquet:.2f} x")


def exports(folder: Path, rows: int, rounds: int) -> None:
    """Whole, and by changes of neighbours: what is written anew of the table is the files that have one of them."""
    graph, out = Graph.init(folder / "g", SCHEMA), str(folder / "out")
    graph.load(f"delta:{folder}/delta", node="Person", options=PLAIN)
    whole = seconds(lambda: graph.export_tables(out))
    print(f"export of all {rows:,} rows: {whole:.2f} s")
    for changed in (0, rows // 1000, rows // 100, rows // 10):
        times = []
        for turn in range(rounds + 1):
            graph.load_table("node:Person", people(max(1, changed), turn * changed), "merge", options=PLAIN)
            if changed == 0:
                graph.export_tables(out, incremental=True)
            times.append(seconds(lambda: graph.export_tables(out, incremental=True)))
        took = median(times[1:])
        print(f"export of {changed:,} changed rows: {took:.2f} s, {took / whole:.2f} of all")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        loads(Path(name), given.rows, given.rounds)
        exports(Path(name), given.rows, given.rounds)


if __name__ == "__main__":
    main()
