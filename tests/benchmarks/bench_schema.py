"""Schema changes of one table: columns renamed and dropped, a value for stored rows, a rule that is tightened.

Run it as `python tests/benchmarks/bench_schema.py [--rows 4000000] [--rounds 7]`. Seconds are of the processor,
all threads together; commits and the look at indexes afterwards are among them. Of the last two also what they cost
above a change that reads and writes no row (a description, in the same round), which is the same for any table.
"""

from __future__ import annotations

import argparse
import statistics
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
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    count = asked.rows
    with tempfile.TemporaryDirectory() as folder:
        graph = Graph.init(f"{folder}/g", SCHEMA)
        options = LoadOptions(build_indexes=False, executor=LocalExecutor(1))
        for first in range(0, count, PART):
            graph.load(lines(first, min(PART, count - first)), options=options)
        graph.ensure_indices()
        for name, seconds, of, base, bar in [*rows(graph, folder, asked.rounds), *columns(graph)]:
            print(f"| {name} | {seconds:.3f} s | {of} {base:.3f} s | {seconds / base:.2f} | {bar} |")


def change(graph: Graph, text: str, **choices: object) -> float:
    return spent(lambda: graph.apply_schema(text, **choices))  # type: ignore[arg-type]  # choices of the one call


def rows(graph: Graph, folder: str, rounds: int) -> list[tuple[str, float, str, float, float]]:
    """A rule and values, against what has to be read and written for them; medians of rounds after one."""

    def table() -> lance.LanceDataset:
        return graph.store.open_table(graph.snapshot().entry("node:Person"))

    found: list[dict[str, float]] = []
    labels = ""
    for turn in range(rounds + 1):
        wide = SCHEMA.replace("note:", f"{labels} note:").replace(" }", f"\n  @range(age, 0..{300 - turn}) }}")
        change(graph, wide)
        fixed = change(graph, wide.replace("Person {", f'Person @description("{turn}") {{'))
        change(graph, wide)
        scanned = spent(lambda: table().to_table(columns=["age"]))
        tight = wide.replace(f"0..{300 - turn}", f"0..{100 + turn}")
        tightened = change(graph, tight)
        given = pa.table({"label": table().to_table(columns=["note"]).column("note")})
        place = f"{folder}/column{turn}"
        written = spent(lambda: lance.write_dataset(given, place, data_storage_version="2.2"))  # noqa: B023 - it is called at once
        labels += f" label{turn}: String? "
        added = change(
            graph,
            tight.replace("note:", f" label{turn}: String?  note:"),
            values={f"Person.label{turn}": FromColumn("note")},
        )
        found.append(
            {"fixed": fixed, "scanned": scanned, "tightened": tightened, "written": written, "added": added}
            | {"checked": tightened - fixed, "filled": added - fixed}
        )
    change(graph, SCHEMA)
    m = {name: statistics.median(each[name] for each in found[1:]) for name in found[0]}
    return [
        ("a value for stored rows", m["added"], "writing that column", m["written"], 1.5),
        (f"the same above {m['fixed']:.3f} s of any change", m["filled"], "writing that column", m["written"], 1.5),
        ("a tighter @range", m["tightened"], "scanning the column", m["scanned"], 2.0),
        (f"the same above {m['fixed']:.3f} s of any change", m["checked"], "scanning the column", m["scanned"], 2.0),
    ]


def columns(graph: Graph) -> list[tuple[str, float, str, float, float]]:
    """Columns renamed and dropped, against rewriting the table."""
    renamed_text = SCHEMA.replace("score: F64?", 'points: F64? @rename_from("score")')
    renamed = change(graph, renamed_text)
    dropped_text = renamed_text.replace("note: String?", "")
    dropped = change(graph, dropped_text)
    rewritten = change(graph, dropped_text.replace("serial: I64?", ""), allow_data_loss=True)
    return [
        ("rename of a column", renamed, "rewriting the table", rewritten, 0.1),
        ("drop of a column", dropped, "rewriting the table", rewritten, 0.1),
    ]


if __name__ == "__main__":
    main()
