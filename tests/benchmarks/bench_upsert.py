"""Upsert of 1 M rows into 4 M, half of them new, against pylance's own `merge_insert(use_index=False)`.

Run it as `python tests/benchmarks/bench_upsert.py [--quick]`.

Our side reads JSONL, decodes it and checks every row; pylance gets a finished Arrow table and checks nothing. The third
line is the decoding alone, so that both readings of the ratio can be made.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import lance
import numpy as np
import pyarrow as pa

from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.spark.executor import SparkExecutor
from spark_omnigraph.spark.session import local_session
from spark_omnigraph.write.executor import Executor, LocalExecutor
from tests.support.graph_files import pins
from tests.support.measure import Contender, phases, race, table

SCHEMA = """
node Person { code: String @key  age: I32?  score: F64?  active: Bool?  serial: I64? }
"""


@dataclass(frozen=True)
class Sizes:
    stored: int
    given: int

    @property
    def first_given(self) -> int:
        """Half of the given serials are stored ones, the other half follow them."""
        return self.stored - self.given // 2


def line(serial: int, age: int) -> str:
    data = f'"code":"person-{serial:08d}","age":{age},"score":{serial}.5,"active":true,"serial":{serial}'
    return f'{{"type":"Person","data":{{{data}}}}}\n'


def write_lines(path: Path, first: int, count: int, age: int) -> None:
    order = np.random.default_rng(1).permutation(count) + first
    with path.open("w", encoding="utf-8") as out:
        out.writelines(line(serial, age) for serial in order.tolist())


class Bench:
    """A stored graph that is copied for every run, and the input in both forms."""

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        self._folder = folder
        self._sizes = sizes
        self._stored = folder / "stored"
        self._given = folder / "given.jsonl"
        initial = folder / "initial.jsonl"
        write_lines(initial, 0, sizes.stored, 20)
        write_lines(self._given, sizes.first_given, sizes.given, 30)
        graph = Graph.init(str(self._stored), SCHEMA)
        graph.load(str(initial), options=LoadOptions(executor=LocalExecutor(2)))
        initial.unlink()
        self.last: dict[str, float] = {}

    def ours(self, executor: Executor) -> float:
        root = self._copy()
        graph = Graph.open(str(root))
        start = time.perf_counter()
        options = LoadOptions(executor=executor, build_indexes=False)
        report = graph.load(str(self._given), mode="merge", options=options)
        seconds = time.perf_counter() - start
        counts = report.tables["node:Person"]
        half = self._sizes.given // 2
        if (counts.inserted, counts.updated) != (self._sizes.given - half, half):
            raise AssertionError(counts)
        self.last = dict(report.phases)
        return seconds

    def native(self) -> float:
        root = self._copy()
        ds = pins(root)["node:Person"].open(root)
        rows = self._arrow(ds.schema)
        start = time.perf_counter()
        builder = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        builder.use_index(False).execute(rows)
        return time.perf_counter() - start

    def _arrow(self, schema: pa.Schema) -> pa.Table:
        serials = np.random.default_rng(1).permutation(self._sizes.given) + self._sizes.first_given
        ids = pa.array([f"person-{serial:08d}" for serial in serials.tolist()])
        columns = {
            "id": ids,
            "code": ids,
            "age": pa.array(np.full(len(serials), 30, np.int32)),
            "score": pa.array(serials + 0.5),
            "active": pa.array(np.ones(len(serials), bool)),
            "serial": pa.array(serials),
        }
        return pa.table({name: columns[name] for name in schema.names}, schema=schema)

    def _copy(self) -> Path:
        root = self._folder / "graph"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(self._stored, root)
        lance.dataset(str(root / "__manifest"))
        return root


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, one measured round, no Spark")
    options = parser.parse_args()
    sizes = Sizes(400_000, 100_000) if options.quick else Sizes(4_000_000, 1_000_000)
    with tempfile.TemporaryDirectory(prefix="bench-upsert-") as name:
        run(Path(name), sizes, options.quick)


def run(folder: Path, sizes: Sizes, quick: bool) -> None:
    spark = None if quick else local_session("bench_upsert", 2, {"spark.local.dir": str(folder / "spark")})
    bench = Bench(folder, sizes)
    contenders = [
        Contender("pylance merge_insert, no index", bench.native),
        Contender("omnigraph merge, local, 2 processes", lambda: bench.ours(LocalExecutor(2))),
    ]
    if spark is not None:
        on_spark = SparkExecutor(spark)
        contenders.append(Contender("omnigraph merge, Spark", lambda: bench.ours(on_spark)))
    race(contenders, 1 if quick else 3)
    if spark is not None:
        spark.stop()
    print(f"\n{sizes.given:,} rows into {sizes.stored:,}\n")
    print(table(contenders, sizes.given, "pylance merge_insert, no index"))
    print(f"\nphases of the last merge: {phases(bench.last)}")


if __name__ == "__main__":
    main()
