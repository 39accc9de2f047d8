"""One Spark session for all tests here: two task slots, four attempts, compiled cheaply."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph.spark.session import local_session
from tests.spark.graphs import branched_graph

CONF = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.driver.memory": "1g",
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def pytest_configure(config: pytest.Config) -> None:
    # Lance warns when the JVM is started by a process that has used it; the child never touches Lance.
    config.addinivalue_line("filterwarnings", "ignore:lance is not fork-safe")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    folder = tmp_path_factory.mktemp("spark")
    conf = {**CONF, "spark.local.dir": str(folder / "local"), "spark.sql.warehouse.dir": str(folder / "warehouse")}
    session = local_session("spark_omnigraph tests", "2,4", conf)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def graph(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Root of a graph with things, links, and a branch `dev/one`; never changed."""
    root = tmp_path_factory.mktemp("graphs") / "g"
    branched_graph(root)
    return str(root)
