"""SQL that does not fit is refused, and takes no more memory than it may until then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

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
    print("allow more by memory" in error.message, (getrusage(RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


LEFT = """
import logging, sys, threading
from spark_omnigraph import Graph, LimitError

class Waits(logging.Handler):
    def emit(self, record):
        threading.Event().wait(1)

layer = logging.getLogger("datafusion_physical_plan")
layer.addHandler(Waits())
layer.setLevel(logging.DEBUG)
try:
    Graph.open(sys.argv[1], "r").sql(
        "SELECT count(*) FROM N a JOIN N b ON a.t = b.t AND a.n < b.n", memory=int(sys.argv[2])
    ).to_arrow()
except LimitError:
    print("refused")
"""
"""Threads of the statement that was refused tell of it, and are not done when the process ends."""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of a thousand characters."""
    at = tmp_path_factory.mktemp("sql") / "g"
    made = Graph.init(at, "node N { k: String @key  n: I64  t: String }")
    texts = [f"{n:0>1000}" for n in range(ROWS)]
    made.load_table("node:N", pa.table({"k": list(map(str, range(ROWS))), "n": range(ROWS), "t": texts}))
    return at


def said(text: str, graph: Path) -> list[str]:
    """The words that a process of its own says; it ends well."""
    command = [sys.executable, "-c", text, str(graph), str(ALLOWED)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout.split()


def test_a_join_that_does_not_fit_is_refused_in_bounded_memory(graph: Path) -> None:
    names_the_way_out, taken = said(JOINED, graph)
    assert names_the_way_out == "True"
    assert int(taken) < ALLOWED + SLACK


def test_a_process_ends_well_while_threads_of_a_refused_statement_are_at_work(graph: Path) -> None:
    assert said(LEFT, graph) == ["refused"]
