"""One S3 server for the whole folder, on the loopback interface."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.support.object_store import BUCKET, S3Server, running_server

_NUMBERS = count()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def uri() -> str:
    """A graph root that no other test uses."""
    return f"s3://{BUCKET}/g{next(_NUMBERS)}"
