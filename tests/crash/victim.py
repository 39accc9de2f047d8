"""A process that writes and is killed at a named point: `python -m tests.crash.victim ROOT WRITER POINT [OPTIONS]`.

Storage options are JSON; the writer `index` builds the indexes, `optimize` compacts, `schema` changes the schema,
`create` and `drop` make and delete a branch.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from spark_omnigraph import Graph
from spark_omnigraph.commit.crash_points import CrashPoint, kill_process, stop_at
from tests.crash.evolving import evolve
from tests.crash.matrix import KEPT_ROWS, LINE_ROWS, change_kept, change_line
from tests.crash.worlds import WRITERS, run

CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", '"$@"; exit $?', "sh")
"""Runs a command in a process namespace of its own, on a process table of its own."""


@cache
def may_unshare() -> bool:
    """Whether this system lets us make such namespaces."""
    try:
        return subprocess.run([*CONTAINER, "true"], check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def kill_at(
    root: Path | str,
    writer: str,
    point: CrashPoint,
    options: Mapping[str, str] | None = None,
    inside: Sequence[str] = (),
) -> None:
    """Runs the process, as a command of another program if one is named, until the kernel has killed it."""
    command = [
        *inside,
        sys.executable,
        "-m",
        "tests.crash.victim",
        str(root),
        writer,
        point.value,
        json.dumps(dict(options or {})),
    ]
    code = subprocess.run(command, check=False, timeout=120).returncode
    assert code == (128 + signal.SIGKILL if inside else -signal.SIGKILL)


if __name__ == "__main__":
    root, writer, point = sys.argv[1:4]
    graph = Graph.open(root, storage_options=json.loads(sys.argv[4]))
    with stop_at(CrashPoint(point), kill_process):
        if writer == "index":
            graph.ensure_indices()
        elif writer == "optimize":
            graph.optimize()
        elif writer in KEPT_ROWS:
            change_kept(graph, writer)
        elif writer == "schema":
            evolve(graph)
        elif writer in LINE_ROWS:
            change_line(graph, writer)
        else:
            run(graph, WRITERS[writer])
