"""What works on a classic session works over Spark Connect: no call here has a JVM in reach."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from spark_omnigraph.errors import (
    BadRequestError,
    BadRowsError,
    BadRowSummary,
    InternalError,
    NotFoundError,
    StorageError,
    UsageError,
)
from spark_omnigraph.spark.api import create_views, read_edges, read_nodes, register
from spark_omnigraph.spark.errors import translate, typed_errors
from spark_omnigraph.spark.executor import CHUNK_BYTES, SparkExecutor
from tests.spark.graphs import branched_graph, publish
from tests.unit.spark.graph_types import stored_things


def test_the_session_is_remote(spark: SparkSession) -> None:
    assert "connect" in type(spark).__module__
    with pytest.raises(PySparkException):
        _ = spark.sparkContext


def test_reading(spark: SparkSession, graph: str) -> None:
    assert spark.read.format("omnigraph").option("edge", "Link").load(graph).count() == 2
    register(spark)
    frame = read_nodes(spark, graph, "Thing", columns=["id", "i32"], where=[("i32", ">", 0)])
    assert sorted(r["i32"] for r in frame.collect()) == [1, 2**31 - 1]
    assert read_edges(spark, graph, "Link", branch="dev/one", limit=4).count() == 4


def test_a_helpers_frame_is_a_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    store, _ = branched_graph(tmp_path / "g")
    frame = read_nodes(spark, store.root, "Thing")
    publish(store, {"node:Thing": stored_things()})
    assert frame.count() == 6
    assert frame.filter("b").count() == 2
    assert read_nodes(spark, store.root, "Thing").count() == 12


def test_views(spark: SparkSession, graph: str) -> None:
    views = create_views(spark, graph, prefix="c_")
    assert views["node:Thing"] == "c_Thing"
    assert spark.sql("SELECT count(*) AS n FROM c_Thing WHERE b").collect() == [Row(n=2)]


def test_errors_are_typed(spark: SparkSession, graph: str) -> None:
    with pytest.raises(NotFoundError, match="Did you mean node type 'Thing'"):
        read_nodes(spark, graph, "Things")
    with pytest.raises(PySparkException) as caught:
        spark.read.format("omnigraph").option("node", "Thing").option("columns", "nope").load(graph).collect()
    assert type(translate(caught.value)) is BadRequestError
    frame = read_nodes(spark, graph, "Thing", where="1 / i32 > 0")
    with pytest.raises(BadRequestError, match="fails on a stored value"), typed_errors():
        frame.collect()


def test_writing(spark: SparkSession, tmp_path: Path) -> None:
    store, _ = branched_graph(tmp_path / "g")
    frame = spark.createDataFrame([("x", 2**32 - 1, "x"), ("y", None, "y")], "id string, u32 bigint, e string")
    writer = frame.write.format("omnigraph").mode("append").option("node", "Thing")
    with typed_errors():
        writer.save(store.root)
    assert read_nodes(spark, store.root, "Thing", where=[("u32", "=", 2**32 - 1), ("id", "=", "x")]).count() == 1
    with pytest.raises(BadRowsError) as caught, typed_errors():
        writer.save(store.root)
    assert caught.value.summary.per_rule == {"key_conflict": 2}


def test_tasks(spark: SparkSession) -> None:
    executor = SparkExecutor(spark)
    assert executor.parallelism == 2
    assert list(executor.map(lambda n: n * n, list(range(5)))) == [0, 1, 4, 9, 16]
    (large,) = executor.map(lambda n: b"x" * n, [CHUNK_BYTES + 5])
    assert len(large) == CHUNK_BYTES + 5


def test_errors_of_tasks(spark: SparkSession) -> None:
    def refuse(_: int) -> None:
        raise BadRowsError("2 bad rows", BadRowSummary(2, {"required": 2}))

    def missing(_: int) -> None:
        __import__("package_that_is_not_there")

    def full(_: int) -> None:
        raise OSError("disk full")

    executor = SparkExecutor(spark)
    with pytest.raises(BadRowsError) as caught:
        executor.map(refuse, [1])
    assert caught.value.summary.per_rule == {"required": 2}
    with pytest.raises(UsageError, match="'package_that_is_not_there' is missing on"):
        executor.map(missing, [1])
    with pytest.raises(StorageError) as failed:
        executor.map(full, [1])
    assert failed.value.message == "a Spark task failed: OSError: disk full"
    with pytest.raises(InternalError, match="a Spark task failed: ZeroDivisionError"):
        executor.map(lambda n: n // 0, [1])
