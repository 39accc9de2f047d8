"""What help, mistakes and `lint --schema` import, and what they cost: nobody waits for Lance to read a usage line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SLOW = ("lance", "pandas", "numpy", "pyarrow", "pyarrow.dataset", "obstore", "loky", "pyspark", "yaml")
CHILD = """
import sys
from spark_omnigraph.cli import main
code = main(sys.argv[2:])
found = [name for name in sys.argv[1].split(",") if name in sys.modules]
print(code, found, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("", 2),
        ("--help", 0),
        ("--version", 0),
        ("query --help", 0),
        ("qury", 2),
        ("ingest --grap g --input x", 2),
        ("describe --graph g --as-of yesterday", 2),
        ("lint q.gq --schema s.pg", 0),
    ],
)
def test_nothing_slow_is_imported(line: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "s.pg").write_text("node T { k: String @key }")
    (tmp_path / "q.gq").write_text("query q() { match { $t: T } return { $t.k } }")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, ",".join(SLOW), *line.split()],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=True,
    )  # laid out as a table  # fmt: skip
    assert done.stderr.splitlines()[-1] == f"{code} []"


def test_who_only_looks_imports_neither_loads_nor_queries(tmp_path: Path) -> None:
    program = "import sys, spark_omnigraph.graph.handle; print(*(n for n in sys.modules if 'spark_omnigraph' in n))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    rooms = ("engine", "lang.gq", "staging", "validate", "records", "graph.load.load", "graph.mutate", "graph.delete")
    heavy = [f"spark_omnigraph.{room}" for room in rooms]
    light = {"spark_omnigraph.records", "spark_omnigraph.records.mode", "spark_omnigraph.records.ulid"}
    found = sorted(n for n in done.stdout.split() if n.startswith(tuple(heavy)) and n not in light)
    assert [n for n in found if not n.startswith("spark_omnigraph.records.")] == []
    assert "spark_omnigraph.records.jsonl.decode" not in found
