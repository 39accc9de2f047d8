"""SQL that does not fit is refused, and takes no more memory than it may until then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from spark_omnigraph.graph.handle import Graph

ROWS = 300_000
ALLOWED = 32 << 20
SLACK = 160 << 20
"""What Lance's scans and Arrow's batches take besides; the join would take more than twice as much as both."""
JOINED = """
import sys
from resource import RUSAGE_SELF, getrusage
from spark_omnigraph import Graph, LimitError
graph = Graph.open(sys.argv[1], "r")
graph.sql("SELECT t FROM N ORDER BY n LIMIT 10").to_arrow()  # what the first statement of a process brings
before = getrusage(RUSAGE_SELF).ru_maxrss
try:
    graph.sql("SELECT count(*) FROM N a JOIN N b ON a.t = b.t AND a.n < b.n", memory=int(sys.argv[2])).to_arrow()
except LimitError as error:
    print("raise memory" in error.message, (getrusage(RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_a_join_that_does_not_fit_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node N { k: String @key  n: I64  t: String }")
    texts = [f"{n:0>1000}" for n in range(ROWS)]
    graph.load_table("node:N", pa.table({"k": list(map(str, range(ROWS))), "n": range(ROWS), "t": texts}))
    command = [sys.executable, "-c", JOINED, str(tmp_path / "g"), str(ALLOWED)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout.split()
    assert said[0] == "True"
    assert int(said[1]) < ALLOWED + SLACK
