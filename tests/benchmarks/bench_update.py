"""One property of 1 M of 4 M rows: patches of it against a merge of the whole rows, from JSON lines and from Parquet.

Run it as `python tests/benchmarks/bench_update.py [--rows N] [--changed N] [--rounds N]`. The figures are seconds of
processor time in one process, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.write.executor import LocalExecutor
from tests.support.measure import Contender, phases, race, table

SCHEMA = """
node Person { code: String @key  age: I32?  score: F64?  active: Bool?  serial: I64?  bio: String? }
"""
LOCAL = LoadOptions(executor=LocalExecutor(1), build_indexes=False)


def rows(serials: np.ndarray, age: int) -> pa.Table:
    return pa.table(
        {
            "code": [f"person-{serial:08d}" for serial in serials.tolist()],
            "age": np.full(len(serials), age, np.int32),
            "score": serials + 0.5,
            "active": np.ones(len(serials), bool),
            "serial": serials,
            "bio": [f"about person {serial} there is this to say" for serial in serials.tolist()],
        }
    )


class Bench:
    """A stored graph that is copied for every run, and the input: whole rows and patches, in two formats."""

    def __init__(self, folder: Path, stored: int, given: int) -> None:
        self._folder, self._stored, self.given = folder, folder / "stored", given
        graph = Graph.init(self._stored, SCHEMA)
        graph.load_table("node:Person", rows(np.arange(stored), 20), options=LOCAL)
        chosen = np.random.default_rng(1).permutation(stored)[:given]
        whole = rows(chosen, 30)
        for name, part in (("merge", whole), ("update", whole.select(["code", "age"]))):
            parquet.write_table(part, folder / f"{name}.parquet")
            with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as out:
                for row in part.to_pylist():
                    out.write(_line(row))
        self.last: dict[str, float] = {}

    def run(self, mode: str, form: str) -> float:
        graph, start = fresh(self._stored), time.process_time()
        node = None if form == "jsonl" else "Person"
        report = graph.load(str(self._folder / f"{mode}.{form}"), mode, options=LOCAL, node=node)
        seconds = time.process_time() - start
        if report.tables["node:Person"].updated != self.given:
            raise AssertionError(report.tables)
        self.last = dict(report.phases)
        return seconds


def _line(row: dict[str, object]) -> str:
    data = ",".join(f'"{name}":{_json(value)}' for name, value in row.items())
    return f'{{"type":"Person","data":{{{data}}}}}\n'


def _json(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def fresh(stored: Path) -> Graph:
    """A copy of a stored graph, in the place of the last one."""
    root = stored.parent / "graph"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(stored, root)
    return Graph.open(root)


def asked(about: str | None) -> tuple[int, int, int]:
    """How many rows are stored, how many change, and the rounds."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rows", type=int, default=4_000_000, help="stored rows")
    parser.add_argument("--changed", type=int, help="rows that change; a quarter of the stored ones unless it is said")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    return given.rows, given.rows // 4 if given.changed is None else given.changed, given.rounds


def main() -> None:
    stored, changed, rounds = asked(__doc__)
    with tempfile.TemporaryDirectory(prefix="bench-update-") as name:
        bench = Bench(Path(name), stored, changed)
        print(f"\n{changed:,} of {stored:,} rows\n")
        for form in ("jsonl", "parquet"):
            contenders = [
                Contender(f"{mode} of {what}, {form}", partial(bench.run, mode, form))
                for mode, what in (("merge", "whole rows"), ("update", "one property"))
            ]
            race(contenders, rounds)
            print(table(contenders, changed, contenders[0].name))
            whole, patched = (contender.median for contender in contenders)
            print(f"update takes {patched / whole:.2f} of the time of merge; the bar is 1.00")
            print(f"phases of the last update: {phases(bench.last)}\n")


if __name__ == "__main__":
    main()
