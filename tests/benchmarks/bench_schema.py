"""Schema changes of one table: columns renamed and dropped, values for stored rows, a rule that is tightened.

Run it as `python tests/benchmarks/bench_schema.py [--rows 4000000] [--rounds 7]`. Seconds are of the processor,
all threads together; commits and the look at indexes afterwards are among them. Each is compared with what Lance takes
to read or write the column alone. Besides, what it costs above a change that reads and writes no row (a description, in
the same round), which is the same for any table.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
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
        fixed, found = rows(graph, folder, asked.rounds)
        print(f"| any change | {fixed:.3f} s |")
        for name, seconds, of, base, bar in [*found, *columns(graph)]:
            above = f"{(seconds - fixed) / base:.2f}"
            print(f"| {name} | {seconds:.3f} s | {of} {base:.3f} s | {seconds / base:.2f} | {above} | {bar} |")


def change(graph: Graph, text: str, **choices: object) -> float:
    return spent(lambda: graph.apply_schema(text, **choices))  # type: ignore[arg-type]  # choices of the one call


def rows(graph: Graph, folder: str, rounds: int) -> tuple[float, list[tuple[str, float, str, float, float | str]]]:
    """What any change takes, and values and a rule against what has to be read and written for them; medians of rounds
    after one.
    """

    def table() -> pa.Table:
        return graph.store.open_table(graph.snapshot().entry("node:Person")).to_table(columns=["note", "age"])

    def written(column: Callable[[], pa.Array | pa.ChunkedArray], name: str) -> float:
        place = f"{folder}/{name}"
        return spent(lambda: lance.write_dataset(pa.table({"c": column()}), place, data_storage_version="2.2"))

    found: list[dict[str, float]] = []
    for turn in range(rounds + 1):
        (note, age), constant = table().columns, pa.scalar("a text of a few words")
        bounded = SCHEMA.replace(" }", f"\n  @range(age, 0..{300 - turn}) }}")
        change(graph, bounded)
        timed = {"fixed": change(graph, bounded.replace("Person {", f'Person @description("{turn}") {{'))}
        change(graph, bounded)
        timed["scan"] = spent(
            lambda: graph.store.open_table(graph.snapshot().entry("node:Person")).to_table(columns=["age"])
        )
        timed["tighter"] = change(graph, bounded.replace(f"0..{300 - turn}", f"0..{100 + turn}"))
        timed["write text"] = written(partial(note.slice, 0), f"note{turn}")
        like = SCHEMA.replace("note:", "label: String?  note:")
        timed["like"] = change(graph, like, values={"Person.label": FromColumn("note")})
        change(graph, SCHEMA)
        timed["write one"] = written(partial(pa.repeat, constant, len(age)), f"one{turn}")
        timed["one"] = change(graph, like, values={"Person.label": constant.as_py()})
        change(graph, SCHEMA)
        timed["required"] = change(graph, SCHEMA.replace("note: String?", "note: String"), values={"Person.note": "-"})
        change(graph, SCHEMA)
        timed["write wide"] = written(partial(age.cast, pa.int64()), f"age{turn}")
        narrow = SCHEMA.replace(" }", "  wide: I32? }")
        change(graph, narrow, values={"Person.wide": FromColumn("age")})
        timed["wider"] = change(graph, narrow.replace("wide: I32?", "wide: I64?"))
        change(graph, SCHEMA)
        found.append(timed)
    m = {name: statistics.median(each[name] for each in found[1:]) for name in found[0]}
    return m["fixed"], [
        ("a value for stored rows, of another property", m["like"], "writing that column", m["write text"], 1.5),
        ("a value for stored rows, one for all", m["one"], "writing that column", m["write one"], 1.5),
        ("a property required, a value where it is null", m["required"], "writing that column", m["write text"], ""),
        ("a wider type", m["wider"], "writing that column", m["write wide"], ""),
        ("a tighter @range", m["tighter"], "scanning the column", m["scan"], 2.0),
    ]


def columns(graph: Graph) -> list[tuple[str, float, str, float, float | str]]:
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
