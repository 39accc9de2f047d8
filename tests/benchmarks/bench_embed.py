"""Embedding stored rows with the mock: what a run costs beside the provider, and finding few rows of many.

Run it as `python -m tests.benchmarks.bench_embed [--rows N] [--table N] [--answers N] [--rounds N] [--spark]`.

* 256, 768 and 3,072 dimensions, in turns with the mock alone over the same texts, medians. In this process: seconds of
  the processor, in which threads of Lance that write beside the mock count too, and by the clock. In two processes, and
  with `--spark` in two tasks of Spark: by the clock, against the mock alone in as many tasks, which is what two cores
  give without us, and rows a second of both. And peak memory of the largest process that embeds and writes.
* One row in a hundred of a table without a vector, and one that is stale: a run against a scan of the same columns.
* One text in a hundred of a large cache, looked up.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.storage.tables.keys import scan_columns
from spark_omnigraph.storage.vectors import VectorStore, answered
from spark_omnigraph.write.executor import Executor, LocalExecutor
from tests.support.measure import watched

MOCK = MockEmbedder("m")
NO_INDEX = LoadOptions(build_indexes=False)
TEXT = "a plot of some length that says what happens to whom in the film with the number"


def schema(dimension: int) -> str:
    vector = f'vec: Vector({dimension})? @embed("plot")'
    return f"node Film {{ name: String @key  plot: String?  part: I32?  {vector} }}"


def make(folder: Path, dimension: int, rows: int) -> Graph:
    path = folder / "films.jsonl"
    with path.open("w", encoding="utf-8") as out:
        for i in range(rows):
            data = {"name": f"f{i:08d}", "plot": f"{TEXT} {i}", "part": i % 100}
            out.write(json.dumps({"type": "Film", "data": data}) + "\n")
    graph = Graph.init(folder / "g", schema(dimension))
    graph.load(path, options=NO_INDEX)
    graph.ensure_indices()
    return graph


def taken(work: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds of this process, and seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def alone(dimension: int, numbers: range) -> None:
    """The mock over the same texts in batches as a run asks them."""
    for start in range(numbers.start, numbers.stop, 512):
        texts = [f"{TEXT} {i}" for i in range(start, min(numbers.stop, start + 512))]
        MOCK.embed(texts, dimension=dimension, role=Role.DOCUMENT)


def alone_on(executor: Executor, dimension: int, rows: int) -> None:
    """The same in as many tasks as there may be."""
    size = -(-rows // executor.parallelism)
    parts = [range(start, min(rows, start + size)) for start in range(0, rows, size)]
    list(executor.map(partial(alone, dimension), parts))


def fresh(graph: Graph) -> Graph:
    """A copy without vectors, and without answers, in place of the one before."""
    place = Path(graph.uri).with_name("copy")
    shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree(f"{place}.embeddings", ignore_errors=True)
    shutil.copytree(graph.uri, place)
    return Graph.open(place)


def by_dimension(rows: int, rounds: int, executors: Mapping[str, Executor]) -> None:
    print(f"{rows:,} rows at 256 dimensions, fewer at more; medians of {rounds} rounds in turn")
    for dimension in (256, 768, 3072):
        count = rows * 256 // dimension
        with tempfile.TemporaryDirectory() as scratch:
            graph = make(Path(scratch), dimension, count)
            for name, executor in executors.items():
                compared(name, graph, (dimension, count), rounds, executor)


def compared(name: str, graph: Graph, size: tuple[int, int], rounds: int, executor: Executor) -> None:
    """A run on an executor against the mock alone on it."""
    dimension, count = size
    list(executor.map(len, [[0]] * executor.parallelism))  # its processes are there before it is looked at
    mocks, runs = [], []
    for _ in range(rounds):
        copy = fresh(graph)
        mocks.append(taken(lambda: alone_on(executor, dimension, count)))
        runs.append(taken(lambda: copy.embed(embedder=MOCK, executor=executor)))  # noqa: B023 - it is called at once
    (mock_cpu, mock), (run_cpu, run) = (
        [statistics.median(each) for each in zip(*found, strict=True)] for found in (mocks, runs)
    )
    told = f"clock {mock:.2f} → {run:.2f}, {run / mock:.2f} x, {count / mock:,.0f} → {count / run:,.0f} rows/s"
    if executor.parallelism == 1:
        more = f"processor {mock_cpu:.2f} → {run_cpu:.2f}, {run_cpu / mock_cpu:.2f} x"
    else:
        more = f"largest worker {workers_peak(fresh(graph), executor):.0f} MiB"
    print(f"{dimension:5}  {count:8,} rows  {name}: {told}; {more}", flush=True)


def workers_peak(graph: Graph, executor: Executor) -> float:
    """Memory, in MiB, of the largest of several processes that embed."""
    with watched() as peak:
        graph.embed(embedder=MOCK, executor=executor)
    assert graph.embed(embedder=MOCK).commit is None
    return peak.worker


def few_of_many(rows: int, dimension: int = 256) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        graph = make(Path(scratch), dimension, rows)
        graph.embed(embedder=MOCK, mode="stale")
        dataset = graph.store.open_table(graph.snapshot().entry("node:Film"))

        def scan() -> None:
            for _ in scan_columns(dataset, ["id", "plot", "vec"]):
                pass

        scanned = statistics.median(taken(scan)[0] for _ in range(3))
        graph.mutate(f'query q() {{ update Film set {{ plot: "{TEXT}" }} where part = 0 }}')
        stale = taken(lambda: graph.embed(embedder=MOCK, mode="stale"))[0]
        nothing = taken(lambda: graph.embed(embedder=MOCK, mode="stale"))[0]
        graph.embed("Film", "vec", mode="clean", where="part = 0")
        shutil.rmtree(f"{graph.uri}.embeddings")
        provider = taken(lambda: MOCK.embed([TEXT], dimension=dimension, role=Role.DOCUMENT))[0]
        missing = taken(lambda: graph.embed(embedder=MOCK))[0] - provider
    print(
        f"1 % of {rows:,} rows; a scan takes {scanned:.2f}: missing {missing:.2f}, {missing / scanned:.2f} x; stale "
        f"{stale:.2f}, {stale / scanned:.2f} x; nothing stale {nothing:.2f}, {nothing / scanned:.2f} x"
    )


def looked_up(answers: int, dimension: int = 8) -> None:
    """A part of a large cache, of which half is there."""
    with tempfile.TemporaryDirectory() as scratch:
        store = VectorStore(f"{scratch}/cache")
        keys = [sha256(str(number).encode()).hexdigest() for number in range(2 * answers)]
        for start in range(0, answers, 50_000):
            part = pa.array(keys[start : min(answers, start + 50_000)])
            store.add(dimension, [answered(part, np.ones((len(part), dimension), dtype=np.float32))])
        for count in (10, 1000, answers // 100):
            wanted = pa.array(keys[:: 2 * answers // count])
            spent = statistics.median(taken(lambda: store.answers(dimension).find(wanted))[0] for _ in range(5))  # noqa: B023 - it is called at once
            print(f"{len(wanted):,} texts looked up among {answers:,} answers: {spent:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--table", type=int, default=400_000)
    parser.add_argument("--answers", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spark", action="store_true")
    options = parser.parse_args()
    MOCK.embed([TEXT], dimension=8, role=Role.DOCUMENT)
    executors: dict[str, Executor] = {"one process": LocalExecutor(1), "two processes": LocalExecutor(2)}
    if options.spark:
        from spark_omnigraph import SparkExecutor  # noqa: PLC0415 - needs pyspark
        from spark_omnigraph.spark.session import active_or_local  # noqa: PLC0415 - needs pyspark, as above

        executors["Spark"] = SparkExecutor(active_or_local("bench_embed"))
    by_dimension(options.rows, options.rounds, executors)
    few_of_many(options.table)
    looked_up(options.answers)


if __name__ == "__main__":
    main()
