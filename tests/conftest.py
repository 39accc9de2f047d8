"""Options and fixtures that every test folder shares."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from spark_omnigraph.embed.config import KEYS, VARIABLES
from spark_omnigraph.spark.session import local_session
from tests.support.embedding_server import EmbeddingServer
from tests.support.short_jvm import SHORT_LIVED, WARM

DEFAULT_RUN = "not long and not benchmark and not delta"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cases", type=Path, default=None, help="folder of conformance case files (default: tests/conformance/cases)"
    )


FOLDERS = ("spark", "races", "conformance", "s3", "crash", "model", "scale", "compat")
"""Groups of tests that share what is dear, or start many processes, the longest first. Elsewhere a file is a group."""


def group_of(nodeid: str) -> str:
    """Tests of a group run in one process, so that a run has one Spark session, one S3 server and one old Lance."""
    path = nodeid.split("::")[0]
    if "_spark" in path or path.endswith("test_repeated_tasks.py") or nodeid.endswith("-spark]"):
        return "spark"
    folder = path.split("/")[1]
    return {"faults": "s3"}.get(folder, folder) if folder in (*FOLDERS, "faults") else path


class Groups(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types here
    """Hands out whole groups."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Groups:
    return Groups(config, log)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two processes for the whole of the default run, and none for a part of it or for what measures."""
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.getoption("-k")
    return 2 if is_whole and config.getoption("-m") == DEFAULT_RUN else 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes longest comes first, or one process would end with it while the other has nothing left."""
    if hasattr(config, "workerinput"):
        order = {group: place for place, group in enumerate(FOLDERS)}
        items.sort(key=lambda item: order.get(group_of(item.nodeid), len(order)))


for name in (*VARIABLES, *KEYS):
    os.environ.pop(name, None)  # no test asks the provider that a developer has configured

settings.register_profile("tests", deadline=None)
settings.load_profile("tests")


@pytest.fixture(scope="session")
def provider() -> Iterator[EmbeddingServer]:
    """Of vectors: the one that the environment of the processes names in which Spark plans. Their JVM begins with the
    first test of a process that needs Spark, whichever folder that stands in.
    """
    with EmbeddingServer() as server:
        yield server


@pytest.fixture(scope="session")
def spark(provider: EmbeddingServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two task slots and four attempts a task, in a session that lasts for the whole run."""
    scratch = tmp_path_factory.mktemp("spark")
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        **WARM,
    }
    with provider.named():
        session = local_session("spark_omnigraph tests", "2,4", conf)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
