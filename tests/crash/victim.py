"""A process that writes and is killed at a named point: `python -m tests.crash.victim ROOT WRITER POINT`."""

from __future__ import annotations

import sys

from spark_omnigraph import Graph
from spark_omnigraph.commit.crash_points import CrashPoint, kill_process, stop_at
from tests.crash.worlds import WRITERS, run

if __name__ == "__main__":
    root, writer, point = sys.argv[1:]
    with stop_at(CrashPoint(point), kill_process):
        run(Graph.open(root), WRITERS[writer])
