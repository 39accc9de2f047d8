"""One S3 server for the whole folder, a proxy in front of it, and a graph behind both."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from spark_omnigraph import Graph
from tests.crash.worlds import make_graph
from tests.faults.proxy import Proxy, running_proxy
from tests.support.object_store import BUCKET, S3Server, running_server

_NUMBERS = count()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def _proxy(s3: S3Server) -> Iterator[Proxy]:
    with running_proxy(s3) as proxy:
        yield proxy


@pytest.fixture
def proxy(_proxy: Proxy) -> Iterator[Proxy]:
    """Passes everything on until a test gives it a plan, and again afterwards."""
    _proxy.reset()
    yield _proxy
    _proxy.reset()


@pytest.fixture
def options(proxy: Proxy, s3: S3Server) -> dict[str, str]:
    """Storage options that lead through the proxy."""
    return proxy.server(s3).storage_options


@pytest.fixture
def uri() -> str:
    """A graph root that no other test uses."""
    return f"s3://{BUCKET}/f{next(_NUMBERS)}"


@pytest.fixture
def graph(uri: str, options: dict[str, str]) -> Graph:
    """The graph of the crash tests, behind the proxy."""
    return make_graph(uri, options)
