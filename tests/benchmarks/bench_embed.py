"""Embedding stored rows with the mock: what a run costs beside the provider, and finding few missing rows of many.

Run it as `python -m tests.benchmarks.bench_embed [--rows N] [--table N] [--spark]`.

* Rows a second at 256, 768 and 3,072 dimensions, against the mock alone over the same texts, in CPU seconds of this
  process; with `--spark` also through Spark, in seconds. Peak memory of the largest process that works.
* One row in a hundred of a table without a vector: a run against a scan of the same columns.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.storage.tables.keys import scan_columns
from spark_omnigraph.write.executor import Executor, LocalExecutor
from tests.support.measure import watched

MOCK = MockEmbedder("m")
NO_INDEX = LoadOptions(build_indexes=False)
TEXT = "a plot of some length that says what happens to whom in the film with the number"


def schema(dimension: int) -> str:
    return f'node Film {{ name: String @key  plot: String?  vec: Vector({dimension})? @embed("plot") }}'


def make(folder: Path, dimension: int, rows: int) -> Graph:
    path = folder / "films.jsonl"
    with path.open("w", encoding="utf-8") as out:
        for i in range(rows):
            out.write(f'{{"type":"Film","data":{{"name":"f{i:08d}","plot":"{TEXT} {i}"}}}}\n')
    graph = Graph.init(folder / "g", schema(dimension))
    graph.load(path, options=NO_INDEX)
    graph.ensure_indices()
    return graph


def taken(work: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds of this process, and seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def alone(dimension: int, rows: int) -> None:
    """The mock over the same texts in batches as a run asks them."""
    for start in range(0, rows, 512):
        texts = [f"{TEXT} {i}" for i in range(start, min(rows, start + 512))]
        MOCK.embed(texts, dimension=dimension, role=Role.DOCUMENT)


def by_dimension(rows: int, executor: Executor | None) -> None:
    print(f"{rows:,} rows at 256 dimensions, fewer at more; seconds of CPU (wall)")
    for dimension in (256, 768, 3072):
        count = rows * 256 // dimension
        with tempfile.TemporaryDirectory() as scratch:
            graph = make(Path(scratch), dimension, count)
            mock = taken(lambda: alone(dimension, count))  # noqa: B023 - it is called at once
            with watched() as peak:
                run = taken(lambda: graph.embed(embedder=MOCK, executor=executor or LocalExecutor(1)))  # noqa: B023 - it is called at once
            assert graph.embed(embedder=MOCK).commit is None
        told = f"mock {mock[0]:.2f} ({mock[1]:.2f})  run {run[0]:.2f} ({run[1]:.2f})"
        ratio = run[1] / mock[1] if executor else run[0] / mock[0]
        print(
            f"{dimension:5}  {count:8,} rows  {told}  {ratio:.2f} x  {count / run[1]:,.0f} rows/s  {peak}", flush=True
        )


def few_of_many(rows: int, dimension: int = 256) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        graph = make(Path(scratch), dimension, rows)
        graph.embed(embedder=MOCK)
        missing = pa.array([f"f{i:08d}" for i in range(0, rows, 100)])
        listed = ", ".join(f"'{name}'" for name in missing.to_pylist())
        graph.embed("Film", "vec", mode="clean", where=f"name IN ({listed})")
        shutil.rmtree(f"{graph.uri}.embeddings")
        provider = taken(lambda: alone(dimension, len(missing)))
        dataset = graph.store.open_table(graph.snapshot().entry("node:Film"))

        def scan() -> None:
            for _ in scan_columns(dataset, ["id", "plot", "vec"]):
                pass

        scanned = min((taken(scan) for _ in range(3)), key=lambda each: each[0])
        run = taken(lambda: graph.embed(embedder=MOCK))
    net = run[0] - provider[0]
    print(
        f"{len(missing):,} of {rows:,} rows missing: run {run[0]:.2f} ({run[1]:.2f}), mock {provider[0]:.2f}; "
        f"scan {scanned[0]:.2f} ({scanned[1]:.2f}): {net / scanned[0]:.2f} x"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--table", type=int, default=400_000)
    parser.add_argument("--spark", action="store_true")
    options = parser.parse_args()
    MOCK.embed([TEXT], dimension=8, role=Role.DOCUMENT)
    by_dimension(options.rows, None)
    few_of_many(options.table)
    if options.spark:
        from spark_omnigraph import SparkExecutor  # noqa: PLC0415 - needs pyspark
        from spark_omnigraph.spark.session import active_or_local  # noqa: PLC0415 - needs pyspark, as above

        executor = SparkExecutor(active_or_local("bench_embed"))
        executor.map(len, [[0]])
        by_dimension(options.rows, executor)


if __name__ == "__main__":
    main()
