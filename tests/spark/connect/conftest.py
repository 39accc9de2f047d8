"""A Spark Connect session. It cannot share a process with a classic one: these tests run with `-m connect` alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph.spark.java import ensure_java
from tests.spark.conftest import CONF
from tests.spark.graphs import branched_graph


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    ours = [item for item in items if here in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.connect)
    if config.getoption("-m") != "connect":
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Compiled cheaply: the server lives for seconds.
    os.environ.setdefault("JDK_JAVA_OPTIONS", CONF["spark.driver.extraJavaOptions"])
    # The server does not start its workers in this folder; an installed package would not need it.
    root = str(Path(__file__).parents[3])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    builder = SparkSession.builder.remote("local[2]")
    for key, value in CONF.items():
        if key.startswith("spark.sql."):
            builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def graph(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("graphs") / "g"
    branched_graph(root)
    return str(root)
