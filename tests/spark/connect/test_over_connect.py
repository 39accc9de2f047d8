"""What is particular to Spark Connect; everything else here runs there too, with `-m connect`."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.java_gateway import JavaGateway
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_omnigraph.spark.api import is_remote, read_nodes
from spark_omnigraph.spark.session import is_submitted, running_session
from tests.spark.graphs import branched_graph, publish
from tests.unit.spark.graph_types import stored_things


def test_no_jvm_is_in_reach(spark: SparkSession) -> None:
    assert is_remote(spark)
    for name in ("sparkContext", "_jvm", "_jsparkSession", "_sc"):
        with pytest.raises(AttributeError):
            getattr(spark, name)
    with pytest.raises(PySparkException):
        _ = spark.range(1).rdd
    with pytest.raises(PySparkException):
        SparkContext.getOrCreate()
    with pytest.raises(AssertionError, match="a JVM was asked for"):
        JavaGateway()


def test_the_session_is_found(spark: SparkSession) -> None:
    assert running_session() is spark
    assert not is_submitted({})


def test_a_helpers_frame_is_a_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    """That of a bare `load()` is Spark's choice: it may be worked out anew for every action."""
    store, _ = branched_graph(tmp_path / "g")
    frame = read_nodes(spark, store.root, "Thing")
    publish(store, {"node:Thing": stored_things()})
    assert frame.count() == 6
    assert frame.filter("b").count() == 2
    assert read_nodes(spark, store.root, "Thing").count() == 12
