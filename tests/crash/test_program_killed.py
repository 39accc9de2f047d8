"""`kill -9` in the middle of a load of the program: nothing is acknowledged, nothing is half, the next run goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.cli.program import main
from spark_omnigraph.commit.crash_points import CrashPoint

KILLED = """
import sys
from spark_omnigraph.cli.program import main
from spark_omnigraph.commit.crash_points import CrashPoint, kill_process, stop_at
with stop_at(CrashPoint(sys.argv[1]), kill_process):
    main(sys.argv[2:])
"""
SCHEMA = "node Film { name: String @key }\nnode Person { name: String @key }\nedge Directed: Person -> Film"
OLD = '{"type":"Film","data":{"name":"Heat"}}'
NEW = (
    '{"type":"Film","data":{"name":"Alien"}}\n{"type":"Person","data":{"name":"Ridley Scott"}}\n'
    '{"edge":"Directed","from":"Ridley Scott","to":"Alien"}\n'
)
TABLES = ("node:Film", "node:Person", "edge:Directed")


@pytest.mark.parametrize(
    ("point", "seen"),
    [
        (CrashPoint.STAGED, [1, 0, 0]),
        (CrashPoint.LANDED_FIRST, [1, 0, 0]),
        (CrashPoint.PUBLISHED, [2, 1, 1]),
    ],
)
def test_a_killed_load_is_there_as_a_whole_or_not_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], point: CrashPoint, seen: list[int]
) -> None:
    root, lines = tmp_path / "g", tmp_path / "in.jsonl"
    Graph.init(root, SCHEMA).load([OLD], options=LoadOptions(build_indexes=False))
    lines.write_text(NEW)
    words = ["merge", "--graph", str(root), "--input", str(lines), "--no-index"]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, point.value, *words], capture_output=True, text=True, timeout=120, check=False
    )
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "")
    reader = Graph.open(root, mode="r")
    assert [reader.count(table) for table in TABLES] == seen
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["status"] == "done"
    after = Graph.open(root, mode="r")
    assert [after.count(table) for table in TABLES][:2] == [2, 1]
    assert after.count("edge:Directed") == seen[2] + 1
    assert after.interrupted() == after.running() == []
