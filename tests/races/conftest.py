"""Two other processes for the whole folder: their start costs more than most tests, so they change graphs instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.workers import Worker


@pytest.fixture(scope="session")
def _pair() -> Iterator[list[Worker]]:
    pair: list[Worker] = []
    yield pair
    with ExitStack() as stack:
        for worker in pair:
            stack.enter_context(worker)


@pytest.fixture
def partners(_pair: list[Worker], root: Path) -> tuple[Worker, Worker]:
    """Both with the graph of the test open; new ones when a test before left them busy or dead."""
    for worker in [worker for worker in _pair if not worker.is_idle]:
        _pair.remove(worker)
        with worker:
            worker.kill()
    while len(_pair) < 2:
        _pair.append(Worker("tests.races.partner"))
    for worker in _pair:
        worker.send("open", root=str(root))
    a, b = _pair
    assert (a.receive(), b.receive()) == (True, True)
    return a, b
