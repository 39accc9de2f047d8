"""A forced init, loads, frames and streams in every order of their steps: what was acknowledged is there."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from spark_omnigraph import Graph
from spark_omnigraph.commit.crash_points import CrashPoint
from tests.races.remaking import MAKING_POINTS, WRITER_POINTS, WRITERS, Run, codes, line, make, run
from tests.races.test_cleanup_races import read_everything
from tests.support.graph_files import recovery_files

NEW = {"w1", "w2", "w3"}
REFUSED = {"conflict", "writer_busy", "not_found", "storage", "expected_version_mismatch"}


def check(root: Path, found: Run) -> None:
    """Nobody is told of a success that is not there, whatever became of the other one."""
    assert found.unexpected == []
    assert {error.kind for error in (found.writer, found.init) if error is not None} <= REFUSED, found
    rows = codes(root)
    assert found.seen & NEW == (NEW if found.writer is None else set()), found
    gone = found.writer is not None or (found.init is None and not rows & NEW)  # replaced after it was acknowledged
    assert rows & NEW == (set() if gone else NEW), found
    assert ("old" in rows) is (found.init is not None), found
    graph = Graph.open(root)
    graph.load([line("later")], "merge")
    graph.cleanup(timedelta(0), confirm=True)
    assert codes(root) == rows | {"later"}
    assert read_everything(root) > 3
    assert [name for name in recovery_files(root) if not name.startswith("x_probe")] == []


FRAME_POINTS = [point for point in WRITER_POINTS if point is not CrashPoint.STAGED]
POINTS = {"load": WRITER_POINTS, "stream of processes": [CrashPoint.CHECKED]}
SHORT = [
    ("load", CrashPoint.BOUND, CrashPoint.MAKING_ALONE, False),
    ("load", CrashPoint.CHECKED, CrashPoint.MAKING_CREATED, False),
    ("load", CrashPoint.CHECKED, CrashPoint.MAKING_ALONE, True),
    ("load", CrashPoint.LANDED_ALL, CrashPoint.MAKING_LEASED, True),
    ("stream", CrashPoint.CHECKED, CrashPoint.MAKING_ALONE, True),
    ("stream", CrashPoint.STAGE_OPENED, CrashPoint.MAKING_STAGES_ENDED, False),
]


@pytest.mark.parametrize(("writer", "at", "making", "init_first"), SHORT)
def test_a_writer_and_a_forced_init_meet(
    tmp_path: Path, writer: str, at: CrashPoint, making: CrashPoint, init_first: bool
) -> None:
    check(tmp_path / "g", run(make(tmp_path / "g"), writer, at, making, init_first, cleans=True))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("writer", list(WRITERS))
def test_a_writer_and_a_forced_init_meet_everywhere(tmp_path: Path, writer: str) -> None:
    counts: Counter[str] = Counter()
    number = 0
    for at in POINTS.get(writer, FRAME_POINTS):
        for making in MAKING_POINTS:
            for init_first in (False, True):
                root = tmp_path / str(number)
                number += 1
                found = run(make(root), writer, at, making, init_first, cleans=number % 2 == 0)
                check(root, found)
                counts["writer" if found.writer is None else f"writer {found.writer.kind}"] += 1
                counts["init" if found.init is None else f"init {found.init.kind}"] += 1
                counts["both stopped"] += found.met
                counts["cleanups"] += found.cleanups
    print(f"{writer}: {number} orders, {dict(sorted(counts.items()))}")
    assert min(counts[what] for what in ("writer", "init", "both stopped", "cleanups")) > 0
