"""A process that writes and is killed at a named point: `python -m tests.crash.victim ROOT WRITER POINT [OPTIONS]`.

Storage options are JSON; the writer `index` builds the indexes, and `optimize` compacts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from spark_omnigraph import Graph
from spark_omnigraph.commit.crash_points import CrashPoint, kill_process, stop_at
from tests.crash.worlds import WRITERS, run


def kill_at(root: Path | str, writer: str, point: CrashPoint, options: Mapping[str, str] | None = None) -> None:
    """Runs the process until the kernel has killed it."""
    command = [
        sys.executable,
        "-m",
        "tests.crash.victim",
        str(root),
        writer,
        point.value,
        json.dumps(dict(options or {})),
    ]
    assert subprocess.run(command, check=False, timeout=120).returncode == -9


if __name__ == "__main__":
    root, writer, point = sys.argv[1:4]
    graph = Graph.open(root, storage_options=json.loads(sys.argv[4]))
    with stop_at(CrashPoint(point), kill_process):
        if writer == "index":
            graph.ensure_indices()
        elif writer == "optimize":
            graph.optimize()
        else:
            run(graph, WRITERS[writer])
