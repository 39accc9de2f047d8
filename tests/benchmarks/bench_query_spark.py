"""Where Spark begins to pay: the same questions to the embedded engine, in one process and in tasks, to the engine of
Spark, and in SQL.

Run it as `python tests/benchmarks/bench_query_spark.py [--people 1000000] [--degree 4] [--hub 1000000] [--rounds 2]`;
it needs the extras `spark` and `sql`.
Contenders take turns, and what they return has to be the same. Beside the time that passes stands that of the
processor, of this process, the JVM and the Python workers together, and the highest memory of each. The JVM has both of
its compilers.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

sys.path.insert(0, str(Path(__file__).parents[2]))

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from spark_omnigraph import Graph, read_query
from spark_omnigraph.errors import LimitError, QueryEngineError
from spark_omnigraph.memory import Memory
from spark_omnigraph.spark.session import local_session
from spark_omnigraph.storage.tables.reader import ReadCache
from tests.benchmarks.query_data import NARROW, many_edges, narrow_people
from tests.spark.graphs import new_graph, publish
from tests.support.measure import Peak, watched

Found: TypeAlias = "pa.Table | Path"
"""Rows, or the files that have them."""


@dataclass(frozen=True)
class Question:
    """One question in two languages. The rows of a large answer go to files; shares of it can be had one by one."""

    name: str
    gq: str
    sql: str | None
    large: bool = False

    def text(self, count: int) -> str:
        return f"query q() {{ {self._filled(self.gq, count)} }}"

    def statement(self, count: int) -> str:
        return self._filled(str(self.sql), count)

    @staticmethod
    def _filled(text: str, count: int) -> str:
        return text.replace("ONE", f"p{count // 2:07d}").replace("FEW", f"{200 / count:.9f}").replace("SHARE", "0.001")


@dataclass
class Spent:
    """Of one contender and question: seconds that passed and of the processor, by round, and memory."""

    seconds: list[tuple[float, float]] = field(default_factory=list)
    peak: Peak = field(default_factory=Peak)
    refused: bool = False


HOP = "Person p JOIN Knows k ON k.src = p.id JOIN Person q ON q.id = k.dst"
QUESTIONS = (
    Question("look-up", 'match { $p: Person { name: "ONE" } } return { $p.age, $p.city }',
             "SELECT age, city FROM Person WHERE id = 'ONE'"),
    Question("two hops from one",
             'match { $p: Person { name: "ONE" } $p knows $q $q knows $r } return { $r.name, $r.age }',
             f"SELECT r.name, r.age FROM {HOP} JOIN Knows l ON l.src = q.id JOIN Person r ON r.id = l.dst "
             "WHERE p.id = 'ONE'"),
    Question("1 to 3 hops from 200",
             "match { $p: Person $p.score < FEW $p knows{1,3} $q } return { count($q) as n, sum($q.age) as a }", None),
    Question("two hops from a share, by city",
             "match { $p: Person $p.score < SHARE $p knows $q $q knows $r } return { $r.city, count($p) as n }",
             None),
    Question("scan with filter", "match { $p: Person $p.score < SHARE $p.age >= 50 } return { $p.name, $p.age }",
             "SELECT name, age FROM Person WHERE score < SHARE AND age >= 50"),
    Question("aggregate by city", "match { $p: Person } return { $p.city, count($p) as n, max($p.age) as a }",
             "SELECT city, count(*), max(age) FROM Person GROUP BY city"),
    Question("ten best", "match { $p: Person } return { $p.name, $p.score } order { $p.score desc } limit 10",
             "SELECT name, score FROM Person ORDER BY score DESC LIMIT 10"),
    Question("anti-join over a hop",
             "match { $p: Person not { $p knows $q $q.age >= 50 } } return { count($p) as n, sum($p.age) as a }",
             "SELECT count(*), sum(age) FROM Person p WHERE NOT EXISTS "
             "(SELECT 1 FROM Knows k JOIN Person q ON q.id = k.dst WHERE k.src = p.id AND q.age >= 50)"),
    Question("hop from everybody by city",
             "match { $p: Person $p knows $q } return { $p.city, count($q) as n }",
             f"SELECT p.city, count(*) FROM {HOP} GROUP BY p.city"),
    Question("all people to files", "match { $p: Person } return { $p.name, $p.age, $p.city, $p.score }",
             "SELECT name, age, city, score FROM Person", large=True),
    Question("hop from everybody to files",
             "match { $p: Person $p knows $q } return { $p.name as one, $q.name as other, $q.city, $q.age }",
             f"SELECT p.name AS one, q.name AS other, q.city, q.age FROM {HOP}", large=True),
)  # laid out as a table  # fmt: skip


class Ways:
    """The contenders."""

    def __init__(self, folder: Path, spark: SparkSession, count: int) -> None:
        self.graph = Graph.open(folder / "graph", "r")
        self.folder = folder
        self.spark = spark
        self.count = count

    def of(self, question: Question) -> dict[str, Callable[[], Found]]:
        """Those that can answer."""
        found: dict[str, Callable[[], Found]] = {
            "embedded cold": lambda: self._embedded(question, cold=True),
            "embedded warm": lambda: self._embedded(question, cold=False),
        }
        if question.large:
            found["embedded in tasks"] = lambda: self._frame(question, self._in_tasks(question))
        found["spark"] = lambda: self._frame(
            question, read_query(self.spark, self.graph.uri, question.text(self.count), engine="spark")
        )
        if question.sql is not None:
            found["sql"] = lambda: self._sql(question)
        return found

    def _embedded(self, question: Question, cold: bool) -> Found:
        if cold:
            self.graph.store.reads = ReadCache(Memory())
        table = self.graph.query(question.text(self.count)).to_arrow()
        return self._written(iter(table.to_batches()), table.schema) if question.large else table

    def _sql(self, question: Question) -> Found:
        result = self.graph.sql(question.statement(self.count))
        if not question.large:
            return result.to_arrow()
        batches = result.batches()
        first = next(batches)

        def every() -> Iterator[pa.RecordBatch]:
            yield first
            yield from batches

        return self._written(every(), first.schema)

    def _written(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Path:
        path = self._new()
        with pq.ParquetWriter(path, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return path

    def _in_tasks(self, question: Question) -> DataFrame:
        reader = self.spark.read.format("omnigraph").option("query", question.text(self.count))
        return reader.load(self.graph.uri)

    def _frame(self, question: Question, frame: DataFrame) -> Found:
        if not question.large:
            return frame.toArrow()
        path = self._new()
        frame.write.parquet(str(path))
        return path

    def _new(self) -> Path:
        path = self.folder / "answer"
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        return path


def summary(found: Found) -> tuple[int, list[float]]:
    """What has to be the same of all answers: the number of rows, and the sum of each column of numbers."""
    if isinstance(found, pa.Table):
        batches: Iterator[pa.RecordBatch] = iter(found.to_batches())
        names = found.schema
    else:
        data = ds.dataset(found, format="parquet")
        batches, names = data.to_batches(), data.schema
    rows, sums = 0, [0.0 for each in names.types if pa.types.is_integer(each) or pa.types.is_floating(each)]
    for batch in batches:
        rows += batch.num_rows
        numbers = [c for c in batch.columns if pa.types.is_integer(c.type) or pa.types.is_floating(c.type)]
        sums = [total + (pc.sum(column).as_py() or 0) for total, column in zip(sums, numbers, strict=True)]
    return rows, sums


def agree(one: tuple[int, list[float]], other: tuple[int, list[float]]) -> bool:
    same = all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(one[1], other[1], strict=True))
    return one[0] == other[0] and same


def measure(question: Question, ways: Ways, rounds: int, without: set[str]) -> tuple[dict[str, Spent], int]:
    """Rounds in which the contenders take turns, and the number of rows; a first round more does not count where there
    are several.
    """
    spent: dict[str, Spent] = {}
    expected: tuple[int, list[float]] | None = None
    for number in range(rounds + (rounds > 1)):
        for name, way in ways.of(question).items():
            each = spent.setdefault(name, Spent())
            if each.refused or name in without:
                continue
            before = time.perf_counter()
            try:
                with watched() as peak:
                    found = way()
            except (LimitError, QueryEngineError) as error:
                print(f"{question.name}, {name}: {error.message}", file=sys.stderr)
                each.refused = True
                continue
            seconds = time.perf_counter() - before, peak.seconds
            print(f"{question.name}, {name}: {seconds[0]:.2f} / {seconds[1]:.2f} s; {peak}", file=sys.stderr)
            if number or rounds == 1:
                each.seconds.append(seconds)
                for kind in ("jvm", "driver", "worker"):
                    each.peak.note(kind, getattr(peak, kind))
            shown = summary(found)
            expected = expected or shown
            if not agree(expected, shown):
                raise AssertionError(f"{question.name}, {name}: {shown}, not {expected}")
    return spent, 0 if expected is None else expected[0]


def cell(spent: Spent | None) -> str:
    """Seconds that passed and of the processor, the least of the rounds."""
    if spent is None or not spent.seconds:
        return "refused" if spent is not None and spent.refused else "-"
    wall, cpu = (min(seconds[i] for seconds in spent.seconds) for i in (0, 1))
    return f"{wall:.2f} / {cpu:.2f}"


def memory(spent: Spent | None) -> str:
    if spent is None or not spent.seconds:
        return "-"
    return f"{spent.peak.driver:,.0f} / {spent.peak.jvm:,.0f} / {spent.peak.worker:,.0f}"


CONTENDERS = ("embedded cold", "embedded warm", "embedded in tasks", "spark", "sql")


def build(folder: Path, count: int, degree: int, hub: int) -> None:
    store = new_graph(folder / "graph", NARROW)
    clock = time.perf_counter()
    publish(store, {"node:Person": narrow_people(count), "edge:Knows": many_edges(count, degree, hub)})
    written = time.perf_counter()
    graph = Graph.open(folder / "graph")
    graph.ensure_indices()
    rows = {key: entry.row_count for key, entry in graph.snapshot().entries.items()}
    print(f"{rows}: written in {written - clock:.0f} s, indexes in {time.perf_counter() - written:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--degree", type=int, default=4, help="edges of each of them")
    parser.add_argument("--hub", type=int, default=0, help="edges besides of a single one")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--memory", default="6g", help="of the JVM")
    parser.add_argument("--questions", default="", help="only those whose names have one of these in them, by comma")
    parser.add_argument("--without", default="", help="contenders that are left out, by comma")
    parser.add_argument("--folder", type=Path, help="keeps the graph there, and takes one that is there already")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder: Path = chosen.folder or Path(scratch)
        folder.mkdir(exist_ok=True)
        if not (folder / "graph").exists():
            build(folder, chosen.people, chosen.degree, chosen.hub)
        conf = {"spark.driver.memory": chosen.memory, "spark.local.dir": str(folder / "spark")}
        spark = local_session("bench_query_spark", 2, conf)
        ways = Ways(folder, spark, chosen.people)
        ways.of(QUESTIONS[0])["spark"]()  # the start of workers
        print(f"| query | {' | '.join(CONTENDERS)} | rows |\n|---|{'---:|' * (len(CONTENDERS) + 1)}", flush=True)
        peaks = []
        for question in QUESTIONS:
            if any(part in question.name for part in chosen.questions.split(",")):
                spent, rows = measure(question, ways, chosen.rounds, set(chosen.without.split(",")))
                cells = " | ".join(cell(spent.get(name)) for name in CONTENDERS)
                print(f"| {question.name} | {cells} | {rows:,} |", flush=True)
                peaks.append(f"| {question.name} | {' | '.join(memory(spent.get(name)) for name in CONTENDERS)} |")
        print("\nPeak MiB of this process / the JVM / a worker\n")
        print("\n".join(peaks))
        spark.stop()
        shutil.rmtree(folder / "spark", ignore_errors=True)


if __name__ == "__main__":
    main()
