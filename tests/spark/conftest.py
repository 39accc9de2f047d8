"""One Spark session for all tests here. With `-m connect` it is one of Spark Connect, and the same tests run on it;
with `-m connect_long` those that take minutes do.

The two kinds of session cannot share a process, so the default run has the classic one alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.graphs import branched_graph
from tests.spark.sessions import classic_session, connect_session
from tests.support.embedding_server import EmbeddingServer

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    # Lance warns when the JVM is started by a process that has used it; the child never touches Lance.
    config.addinivalue_line("filterwarnings", "ignore:lance is not fork-safe")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    if on_connect(config):
        for item in ours:
            is_long = item.get_closest_marker("long") is not None
            if item.get_closest_marker("classic") is None:
                item.add_marker(pytest.mark.connect_long if is_long else pytest.mark.connect)
        return
    for item in ours:
        item.add_marker(pytest.mark.spark)
    only_there = [item for item in ours if HERE / "connect" in item.path.parents]
    config.hook.pytest_deselected(items=only_there)
    items[:] = [item for item in items if item not in only_there]


def on_connect(config: pytest.Config) -> bool:
    """Whether this run is that of Spark Connect."""
    return config.getoption("-m") in ("connect", "connect_long")


@pytest.fixture(scope="session")
def remote(pytestconfig: pytest.Config) -> bool:
    """True on a Connect session, for the few places where Spark itself behaves differently."""
    return on_connect(pytestconfig)


@pytest.fixture(scope="session")
def spark(remote: bool, provider: EmbeddingServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    with ExitStack() as stack:
        with provider.named():
            session = stack.enter_context((connect_session if remote else classic_session)(folder))
        yield session


@pytest.fixture(scope="session")
def graph(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Root of a graph with things, links, and a branch `dev/one`; never changed."""
    root = tmp_path_factory.mktemp("graphs") / "g"
    branched_graph(root)
    return str(root)
