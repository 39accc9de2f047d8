"""Options and fixtures that every test folder shares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph.spark.session import local_session
from tests.support.short_jvm import SHORT_LIVED


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cases", type=Path, default=None, help="folder of conformance case files (default: tests/conformance/cases)"
    )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two task slots and four attempts a task, in a session that lasts for the whole run."""
    scratch = tmp_path_factory.mktemp("spark")
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": SHORT_LIVED,
    }
    session = local_session("spark_omnigraph tests", "2,4", conf)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
