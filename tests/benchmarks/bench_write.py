"""Writing a DataFrame into a graph against Spark's own Parquet writer, and the time to the first row of a small graph.

Run it as `python -m tests.benchmarks.bench_write [--quick]`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import count
from pathlib import Path

from pyspark.sql import DataFrame

from spark_omnigraph import Graph
from spark_omnigraph.spark.api import read_nodes
from spark_omnigraph.spark.session import local_session
from tests.benchmarks.bench_read import make_parquet, rows
from tests.support.measure import Contender, race, table, timed

SCHEMA = """
node Person { age: I32  city: String  created: DateTime  name: String @key  score: F64 @range(score, 0..1) }
node Plain { age: I32  city: String  created: DateTime  name: String  score: F64 }
"""


def contenders(frame: DataFrame, folder: Path) -> list[Contender]:
    """Every round writes to a new place: an append to what is there would cost more and more."""
    number = count()

    def to_graph(node: str, index: bool = True) -> float:
        graph = Graph.init(folder / f"graph{next(number)}", SCHEMA)
        columns = frame.drop("id") if node == "Person" else frame
        writer = columns.write.format("omnigraph").mode("append").option("node", node).option("index", index)
        return timed(lambda: writer.save(graph.uri))

    return [
        Contender("Parquet", lambda: timed(lambda: frame.write.parquet(str(folder / f"parquet{next(number)}")))),
        Contender("omnigraph, ids given", lambda: to_graph("Plain")),
        Contender("omnigraph, a key and a range", lambda: to_graph("Person")),
        Contender("omnigraph, the same with index=false", lambda: to_graph("Person", index=False)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows, one measured round")
    options = parser.parse_args()
    people = rows(200_000 if options.quick else 1_000_000)
    # Unique names, since one contender takes them for its key.
    people = people.set_column(people.schema.get_field_index("name"), "name", people.column("id"))
    with tempfile.TemporaryDirectory(prefix="bench-write-") as name:
        folder = Path(name)
        source = make_parquet(folder / "source", people)
        small = Graph.init(folder / "small", "node A { name: String @key }")
        small.load([f'{{"type": "A", "data": {{"name": "{n}"}}}}' for n in range(10)])
        began = time.perf_counter()
        spark = local_session("bench_write", 2, {"spark.local.dir": str(folder / "spark")})
        started = time.perf_counter()
        read_nodes(spark, small.uri, "A").first()
        first = time.perf_counter()
        again = timed(lambda: read_nodes(spark, small.uri, "A").first())
        bare = timed(lambda: spark.range(10).first())
        racing = contenders(spark.read.parquet(source), folder)
        race(racing, 1 if options.quick else 5)
        spark.stop()
    print(f"\nsession {started - began:.1f} s, then first row of a small graph {first - started:.1f} s")
    print(f"a row of a small graph once warm {again:.2f} s; of spark.range {bare:.2f} s\n")
    print(f"{people.num_rows} rows, {people.nbytes / 1e6:.0f} MB in Arrow\n")
    print(table(racing, people.num_rows, "Parquet"))


if __name__ == "__main__":
    main()
