"""Schema changes of one table: columns renamed and dropped, a value for stored rows, a rule that is tightened.

Run it as `python tests/benchmarks/bench_schema.py [--rows 4000000]`. Seconds are of the processor,
all threads together; commits and the look at indexes afterwards are among them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import lance
import pyarrow as pa

from spark_omnigraph import FromColumn
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.write.executor import LocalExecutor

SCHEMA = "node Person { code: String @key  age: I32?  note: String?  score: F64?  serial: I64? }"
PART = 250_000


def lines(first: int, count: int) -> list[str]:
    return [
        f'{{"type":"Person","data":{{"code":"person-{i:08d}","age":{i % 90},"note":"note {i % 1000}","score":{i}.5,'
        f'"serial":{i}}}}}'
        for i in range(first, first + count)
    ]


def spent(work: Callable[[], object]) -> float:
    """Seconds of the processor."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    count = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        graph = Graph.init(f"{folder}/g", SCHEMA)
        options = LoadOptions(build_indexes=False, executor=LocalExecutor(1))
        for first in range(0, count, PART):
            graph.load(lines(first, min(PART, count - first)), options=options)
        graph.ensure_indices()
        for name, seconds, of, base, bar in measure(graph, folder):
            print(f"| {name} | {seconds:.2f} s | {of} {base:.2f} s | {seconds / base:.2f} | {bar} |")


def measure(graph: Graph, folder: str) -> list[tuple[str, float, str, float, float]]:
    def table() -> lance.LanceDataset:
        return graph.store.open_table(graph.snapshot().entry("node:Person"))

    def change(text: str, **choices: object) -> float:
        return spent(lambda: graph.apply_schema(text, **choices))  # type: ignore[arg-type]  # choices of the one call

    scanned = spent(lambda: table().to_table(columns=["age"]))
    ranged = SCHEMA.replace("serial: I64? }", "serial: I64?\n  @range(age, 0..100) }")
    tightened = change(ranged)
    given = pa.table({"label": table().to_table(columns=["note"]).column("note")})
    written = spent(lambda: lance.write_dataset(given, f"{folder}/column", data_storage_version="2.2"))
    with_value = ranged.replace("note:", "label: String?  note:")
    added = change(with_value, values={"Person.label": FromColumn("note")})
    renamed_text = with_value.replace("score: F64?", 'points: F64? @rename_from("score")')
    renamed = change(renamed_text)
    dropped_text = renamed_text.replace("note: String?", "")
    dropped = change(dropped_text)
    rewritten = change(dropped_text.replace("serial: I64?", ""), allow_data_loss=True)
    return [
        ("rename of a column", renamed, "rewriting the table", rewritten, 0.1),
        ("drop of a column", dropped, "rewriting the table", rewritten, 0.1),
        ("a value for stored rows", added, "writing that column", written, 1.5),
        ("a tighter @range", tightened, "scanning the column", scanned, 2.0),
    ]


if __name__ == "__main__":
    main()
