"""A heartbeat that stands still inside its renewal, as on a disk that hangs, while others take its owner for dead."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph import Graph, LoadOptions, LoadReport, StorageError
from spark_omnigraph.commit import lease as lease_room
from spark_omnigraph.commit import owners
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at

PLAIN = LoadOptions(build_indexes=False)
BRIEF = 0.06


def film(name: str) -> str:
    return json.dumps({"type": "Film", "data": {"name": name}})


class Stuck:
    """A load that stands still once it has checked its rows, with its heartbeat between its look and its renewal."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, pool: ThreadPoolExecutor) -> None:
        self._beats, self._checked, self._heart_goes_on, self._load_goes_on = (threading.Event() for _ in range(4))
        self._plain, self._root = os.replace, root
        monkeypatch.setattr(os, "replace", self._hold)
        monkeypatch.setattr(owners, "LOST_WAIT", 0.05)
        monkeypatch.setattr(lease_room, "SKEW", 0.0)
        monkeypatch.setattr(lease_room, "TERM", BRIEF)
        self.report: Future[LoadReport] = pool.submit(self._load)
        assert self._beats.wait(60)
        assert self._checked.wait(60)
        time.sleep(2 * BRIEF)  # its term is past

    def let_go_on(self) -> None:
        self._heart_goes_on.set()
        self._load_goes_on.set()

    def _load(self) -> LoadReport:
        def stand() -> None:
            self._checked.set()
            assert self._beats.wait(60)
            assert self._load_goes_on.wait(60)

        with stop_at(CrashPoint.CHECKED, stand):
            return Graph.open(self._root).load([film("Heat")], options=PLAIN)

    def _hold(self, *arguments: Any) -> None:
        if not self._beats.is_set() and threading.current_thread().name == "omnigraph-lease":
            self._beats.set()
            assert self._heart_goes_on.wait(60)
        self._plain(*arguments)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(Graph.init(tmp_path / "g", "node Film { name: String @key }").uri)


def test_clean_up_removes_nothing_while_an_owner_stands_inside_its_renewal(
    root: Path, monkeypatch: pytest.MonkeyPatch, pool: ThreadPoolExecutor
) -> None:
    stuck = Stuck(root, monkeypatch, pool)
    before = sorted(path for path in root.rglob("*.lance") if path.is_file())
    try:
        with pytest.raises(StorageError, match=r"x_stage~\w+\.lease is locked by another process"):
            Graph.open(root).cleanup(timedelta(0), confirm=True)
        assert sorted(path for path in root.rglob("*.lance") if path.is_file()) == before
    finally:
        stuck.let_go_on()
    assert stuck.report.result(60).commit
    assert [json.loads(line) for line in Graph.open(root, mode="r").export()] == [
        {"type": "Film", "data": {"id": "Heat", "name": "Heat"}}
    ]


def test_a_read_write_open_goes_on_beside_an_owner_that_stands_inside_its_renewal(
    root: Path, monkeypatch: pytest.MonkeyPatch, pool: ThreadPoolExecutor
) -> None:
    stuck = Stuck(root, monkeypatch, pool)
    try:
        Graph.open(root).load([film("Alien")], options=PLAIN)
    finally:
        stuck.let_go_on()
    assert stuck.report.result(60).commit
    assert Graph.open(root, mode="r").count("node:Film") == 2
