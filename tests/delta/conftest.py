"""Tests of Delta on Spark: `pytest -m delta`, in a session that has the jars, which no other test can share;
`-m 'delta and long'` runs what takes minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.delta_jars import delta_jars, delta_session
from tests.support.delta_tables import unpack

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore:lance is not fork-safe")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.delta)
    chosen = str(config.getoption("-m"))
    if not ("delta" in chosen and "long" in chosen):  # other long tests have another session
        left = [item for item in ours if item.get_closest_marker("long") is not None]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    if delta_jars() is None:
        pytest.skip("the jars of Delta are not here: python -m tests.support.delta_jars fetches them")
    session = delta_session()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("tables"))
