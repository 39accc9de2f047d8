"""Merging branches: cost by change and not by size, against the load and the append that would do the same.

Run it as `python -m tests.benchmarks.bench_merge [--rows N] [--changed N] [--new N] [--spark]`.

* A few changed rows of a table of vectors, and of one ten times as large: how much longer it takes, and memory.
* A fast-forward of new rows against the append that brought them.
* Changed rows that a branch has against the same rows loaded with mode merge.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np

from spark_omnigraph import Graph, LoadOptions, LocalExecutor
from spark_omnigraph.write.executor import Executor
from tests.support.measure import Contender, race, table, timed

FEW = 50
WIDTH = 768
VECTORS = f"node Text {{ name: String @key  place: Vector({WIDTH}) }}"
PEOPLE = "node Person { code: String @key  age: I32?  score: F64?  active: Bool? }"
NO_INDEX = LoadOptions(build_indexes=False)


def write_texts(path: Path, count: int, seed: int) -> None:
    """Vectors of small numbers: digits cost time to decode, not to merge."""
    values = np.random.default_rng(seed).integers(-9, 9, (FEW, WIDTH)).tolist()
    with path.open("w", encoding="utf-8") as out:
        for i in range(count):
            out.write(f'{{"type":"Text","data":{{"name":"text-{i:08d}","place":{values[i % FEW]}}}}}\n')


def write_people(path: Path, first: int, count: int, age: int) -> None:
    with path.open("w", encoding="utf-8") as out:
        for i in range(first, first + count):
            data = f'"code":"person-{i:08d}","age":{age},"score":{i}.5,"active":true'
            out.write(f'{{"type":"Person","data":{{{data}}}}}\n')


class Stored:
    """A graph on disk that is copied for every run, with an index of its keys."""

    def __init__(self, folder: Path, schema: str, lines: Path) -> None:
        self._stored, self._copy = folder / "stored", folder / "graph"
        graph = Graph.init(self._stored, schema)
        graph.load(lines, options=LoadOptions(executor=LocalExecutor(2)))
        graph.create_branch("draft")

    def prepare(self, work: Callable[[Graph], object]) -> None:
        """Something that every copy has."""
        work(Graph.open(self._stored))

    def run(self, work: Callable[[Graph], object]) -> float:
        """Seconds of the work on a fresh copy."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._stored, self._copy)
        lance.dataset(str(self._copy / "__manifest"))
        graph = Graph.open(self._copy)
        return timed(lambda: work(graph))


def of_vectors(folder: Path, rows: int) -> Contender:
    """A merge of few changed rows into a table of so many."""
    folder.mkdir()
    lines, changed = folder / "lines.jsonl", folder / "changed.jsonl"
    write_texts(lines, rows, 1)
    write_texts(changed, FEW, 2)
    stored = Stored(folder, VECTORS, lines)
    lines.unlink()
    stored.prepare(lambda graph: graph.load(changed, "merge", branch="draft", options=NO_INDEX))

    def work(graph: Graph) -> None:
        if graph.merge_branch("draft").tables["node:Text"].updated != FEW:
            raise AssertionError

    return Contender(f"{FEW} changed of {rows:,} × {WIDTH}", lambda: stored.run(work))


def of_people(folder: Path, rows: int, given: tuple[str, int, int], executor: Executor) -> list[Contender]:
    """A load in a mode, of so many rows from a first one on, and the merge of a branch that has loaded the same.

    Either builds indexes afterwards.
    """
    mode, first, count = given
    folder.mkdir()
    people, lines = folder / "people.jsonl", folder / "lines.jsonl"
    write_people(people, 0, rows, 20)
    write_people(lines, first, count, 30)
    loaded, merged = (Stored(folder / kind, PEOPLE, people) for kind in ("loaded", "merged"))
    merged.prepare(lambda graph: graph.load(lines, mode, branch="draft", options=NO_INDEX))

    def load(graph: Graph) -> None:
        graph.load(lines, mode, options=LoadOptions(executor=executor))

    def merge(graph: Graph) -> None:
        counts = graph.merge_branch("draft", executor=executor).tables["node:Person"]
        if counts.appended + counts.updated != count:
            raise AssertionError(counts)

    return [
        Contender(f"{count:,} rows loaded ({mode})", lambda: loaded.run(load)),
        Contender(f"{count:,} rows merged (after {mode})", lambda: merged.run(merge)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000, help="rows of the smaller table of vectors")
    parser.add_argument("--people", type=int, default=40_000, help="rows of the narrow table")
    parser.add_argument("--changed", type=int, default=10_000, help="changed rows of it")
    parser.add_argument("--new", type=int, default=10_000, help="rows appended to it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--spark", action="store_true", help="loads and merges of the narrow table by Spark")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-merge-") as name:
        run(Path(name), options)


def run(folder: Path, options: argparse.Namespace) -> None:
    sizes = [options.rows, 10 * options.rows]
    contenders = [of_vectors(folder / str(rows), rows) for rows in sizes]
    race(contenders, options.rounds)
    print(table(contenders, FEW, contenders[0].name))
    spark = None
    executor: Executor = LocalExecutor(2)
    if options.spark:
        from spark_omnigraph.spark.executor import SparkExecutor  # noqa: PLC0415 - slow, and only with --spark
        from spark_omnigraph.spark.session import local_session  # noqa: PLC0415 - slow, and only with --spark

        spark = local_session("bench_merge", 2, {"spark.local.dir": str(folder / "spark")})
        executor = SparkExecutor(spark)
    for given in (("append", options.people, options.new), ("merge", 0, options.changed)):
        pair = of_people(folder / given[0], options.people, given, executor)
        race(pair, options.rounds)
        print(f"\n{table(pair, given[2], pair[0].name)}")
    if spark is not None:
        spark.stop()


if __name__ == "__main__":
    main()
