"""Load of a JSONL graph against other ways to get the same rows onto disk.

Run it as `python tests/benchmarks/bench_load.py [--quick]`.

Everything takes turns in one session; the first round is thrown away.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from pyspark.sql import SparkSession

from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.load import LoadRequest, plan_load
from spark_omnigraph.graph.load.options import LoadOptions, LoadReport
from spark_omnigraph.records.mode import LoadMode
from spark_omnigraph.spark.executor import SparkExecutor
from spark_omnigraph.spark.session import local_session
from spark_omnigraph.staging.stage import stage_range
from spark_omnigraph.storage.input.found import list_inputs
from spark_omnigraph.write.executor import Executor, LocalExecutor
from tests.benchmarks.graph_data import SCHEMA, generate
from tests.support.measure import Contender, phases, race, table, timed

FRAME = """type STRING, edge STRING, `from` STRING, `to` STRING, data STRUCT<code STRING, age INT, score DOUBLE,
joined STRING, active BOOLEAN, tier STRING, name STRING, staff BIGINT, rating FLOAT, listed BOOLEAN, founded STRING,
size STRING, sku STRING, price DOUBLE, stock INT, released STRING, fragile BOOLEAN, grade STRING, since STRING,
weight FLOAT, role STRING, hours INT, quantity INT, paid DOUBLE>"""


class Bench:
    """The input and a scratch folder; every method is one contender and starts from nothing."""

    def __init__(self, spark: SparkSession, folder: Path, source: Path, counts: dict[str, int]) -> None:
        self._spark = spark
        self._scratch = folder / "scratch"
        self._source = source
        self._counts = counts
        self.last: LoadReport | None = None

    def ours(self, executor: Executor, indexes: bool) -> float:
        graph = Graph.init(str(self._clean() / "graph"), SCHEMA)
        start = time.perf_counter()
        report = graph.load(str(self._source), options=LoadOptions(executor=executor, build_indexes=indexes))
        seconds = time.perf_counter() - start
        loaded = {f"node:{name}": n for name, n in report.nodes_loaded.items()}
        loaded |= {f"edge:{name}": n for name, n in report.edges_loaded.items()}
        if loaded != self._counts:
            raise AssertionError(f"{loaded} loaded, {self._counts} expected")
        self.last = report
        return seconds

    def staging(self, executor: Executor) -> float:
        """What the tasks of a load do, without the checks and without a commit."""
        graph = Graph.init(str(self._clean() / "graph"), SCHEMA)
        request = LoadRequest(list_inputs(str(self._source), {}).files, None, LoadMode.APPEND)
        start = time.perf_counter()
        plan = plan_load(graph.store, request, executor)
        work = partial(stage_range, replace(plan.context, validate=False))
        staged = sum(sum(receipt.read.values()) for receipt in executor.map(work, plan.ranges))
        seconds = time.perf_counter() - start
        if staged != sum(self._counts.values()):
            raise AssertionError(f"{staged} records staged")
        return seconds

    def parquet(self) -> float:
        target = str(self._clean() / "parquet")
        return timed(lambda: self._spark.read.schema(FRAME).json(str(self._source)).write.parquet(target))

    def plain(self) -> float:
        command = [sys.executable, "-m", "tests.support.plain_load", str(self._source), str(self._clean())]
        root = Path(__file__).parents[2]
        run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root)
        return float(run.stdout)

    def _clean(self) -> Path:
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir()
        return self._scratch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, one measured round")
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--edges", type=int)
    parser.add_argument("--rounds", type=int)
    options = parser.parse_args()
    nodes = options.nodes or (100_000 if options.quick else 1_000_000)
    edges = options.edges or (200_000 if options.quick else 2_000_000)
    rounds = options.rounds or (1 if options.quick else 3)
    with tempfile.TemporaryDirectory(prefix="bench-load-") as name:
        run(Path(name), nodes, edges, rounds)


def run(folder: Path, nodes: int, edges: int, rounds: int) -> None:
    source = folder / "graph.jsonl"
    counts = generate(source, nodes, edges, 1)
    spark = local_session("bench_load", 2, {"spark.driver.memory": "2g", "spark.local.dir": str(folder / "spark")})
    try:
        bench = Bench(spark, folder, source, counts)
        on_spark, local = SparkExecutor(spark), LocalExecutor(2)
        contenders = [
            Contender("omnigraph, Spark", lambda: bench.ours(on_spark, indexes=False)),
            Contender("omnigraph, local, 2 processes", lambda: bench.ours(local, indexes=False)),
            Contender("omnigraph, Spark, staging without checks", lambda: bench.staging(on_spark)),
            Contender("omnigraph, Spark, with indexes", lambda: bench.ours(on_spark, indexes=True)),
            Contender("Spark read.json to Parquet", bench.parquet),
            Contender("one process, no checks, pylance", bench.plain),
        ]
        race(contenders, rounds)
        bench.ours(on_spark, indexes=True)
    finally:
        spark.stop()
    size = source.stat().st_size / 1e6
    print(f"\n{nodes + edges:,} records, {size:.0f} MB, {rounds} rounds\n")
    print(table(contenders, nodes + edges, "Spark read.json to Parquet"))
    if bench.last is not None:
        print(f"\nphases of the last load: {phases(bench.last.phases)}")


if __name__ == "__main__":
    main()
