"""A graph on S3 through Spark: the store's options travel to tasks and to the commit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph import Graph
from spark_omnigraph.spark.api import read_nodes
from spark_omnigraph.spark.errors import typed_errors
from spark_omnigraph.spark.session import STORAGE_PREFIX
from tests.support.object_store import BUCKET, S3Server

pytestmark = [pytest.mark.s3, pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def graph(s3: S3Server, uri: str) -> Graph:
    return Graph.init(uri, "node A { name: String @key }", storage_options=s3.storage_options)


@pytest.fixture
def configured(spark: SparkSession, s3: S3Server) -> Iterator[SparkSession]:
    for name, value in s3.storage_options.items():
        spark.conf.set(STORAGE_PREFIX + name, value)
    yield spark
    for name in s3.storage_options:
        spark.conf.unset(STORAGE_PREFIX + name)


def test_options_reach_the_store(spark: SparkSession, s3: S3Server, graph: Graph) -> None:
    storage = {f"storage.{name}": value for name, value in s3.storage_options.items()}
    report = f"s3://{BUCKET}/reports/spark.jsonl"
    frame = spark.createDataFrame([("a",), ("b",), ("a",)], "name string")
    with typed_errors():
        frame.write.format("omnigraph").mode("append").options(
            **storage, node="A", maxBadRows="1", badRowsPath=report
        ).save(graph.uri)
    read = read_nodes(spark, graph.uri, "A", where=[("name", ">", "a")], storage_options=s3.storage_options)
    assert [row["name"] for row in read.collect()] == ["b"]
    assert spark.read.format("omnigraph").options(**storage, node="A").load(graph.uri).count() == 2


def test_helpers_take_them_from_the_session(configured: SparkSession, graph: Graph) -> None:
    graph.load(['{"type": "A", "data": {"name": "a"}}'])
    assert read_nodes(configured, graph.uri, "A").count() == 1
