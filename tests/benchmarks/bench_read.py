"""Reading nodes through the data source against Spark's own scan of the same rows in Parquet.

Run it as `python tests/benchmarks/bench_read.py [--quick]`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from spark_omnigraph.spark.api import read_nodes
from spark_omnigraph.spark.session import local_session
from tests.spark.graphs import new_graph, publish
from tests.support.measure import Contender, race, table, timed

SCHEMA = """
node Person {
  age: I32
  city: String
  created: DateTime
  name: String
  score: F64
}
"""
FILES = 6


def rows(count: int) -> pa.Table:
    """Six narrow columns: three strings, an integer, a double, an instant."""
    random = np.random.default_rng(1)
    cities = pa.array(["Berlin", "Paris", "Rome", "Madrid", "Oslo"])
    columns = {
        "id": pa.array([f"person-{i:08d}" for i in range(count)]),
        "age": pa.array(random.integers(0, 100, count), pa.int32()),
        "city": cities.take(pa.array(random.integers(0, 5, count))),
        "created": pa.array(random.integers(0, 1_700_000_000_000, count), pa.int64()).view(pa.date64()),
        "name": pa.array([f"name {i * 7919 % 1_000_003}" for i in range(count)]),
        "score": pa.array(random.random(count)),
    }
    schema = pa.schema([pa.field(name, column.type, nullable=False) for name, column in columns.items()])
    return pa.Table.from_arrays(list(columns.values()), schema=schema)


def make_graph(root: Path, people: pa.Table) -> str:
    """One fragment for each commit, as loads leave them."""
    store = new_graph(root, SCHEMA)
    step = people.num_rows // FILES
    for start in range(0, people.num_rows, step):
        publish(store, {"node:Person": people.slice(start, step)})
    return store.root


def make_parquet(folder: Path, people: pa.Table) -> str:
    """The same rows as Spark reads them, in as many files."""
    folder.mkdir()
    created = people.column("created").cast(pa.timestamp("us", "UTC"))
    shown = people.set_column(people.schema.get_field_index("created"), "created", created)
    step = shown.num_rows // FILES
    for start in range(0, shown.num_rows, step):
        pq.write_table(shown.slice(start, step), folder / f"part-{start:08d}.parquet", compression="snappy")
    return str(folder)


def whole(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def contenders(spark: SparkSession, graph: str, parquet: str) -> list[Contender]:
    def ours(*columns: str) -> DataFrame:
        return read_nodes(spark, graph, "Person", columns=columns or None)

    def theirs() -> DataFrame:
        return spark.read.parquet(parquet)

    where = [("age", "=", 7)]
    return [
        Contender("Parquet, all columns", lambda: timed(lambda: whole(theirs()))),
        Contender("omnigraph, all columns", lambda: timed(lambda: whole(ours()))),
        Contender("Parquet, average by city", lambda: timed(lambda: theirs().groupBy("city").avg("score").collect())),
        Contender(
            "omnigraph, average by city",
            lambda: timed(lambda: ours("city", "score").groupBy("city").avg("score").collect()),
        ),
        Contender("Parquet, 1 % by filter", lambda: timed(lambda: whole(theirs().filter("age = 7")))),
        Contender(
            "omnigraph, 1 % by where", lambda: timed(lambda: whole(read_nodes(spark, graph, "Person", where=where)))
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows, one measured round")
    options = parser.parse_args()
    count = 300_000 if options.quick else 3_000_000
    with tempfile.TemporaryDirectory(prefix="bench-read-") as name:
        folder = Path(name)
        people = rows(count)
        graph, parquet = make_graph(folder / "graph", people), make_parquet(folder / "parquet", people)
        spark = local_session("bench_read", 2, {"spark.local.dir": str(folder / "spark")})
        racing = contenders(spark, graph, parquet)
        race(racing, 1 if options.quick else 7)
        spark.stop()
        print(f"\n{count} rows, {people.nbytes / 1e6:.0f} MB in Arrow\n")
        print(table(racing, count, "Parquet, all columns"))


if __name__ == "__main__":
    main()
