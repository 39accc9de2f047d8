"""What PySpark's daemon prints when nobody takes the last rows, and what it still prints."""

from __future__ import annotations

import subprocess
import sys

import pytest

DAEMON = """
import sys, traceback, types

def worker(error):
    raise error

def run(error):
    raise error

if sys.argv[1] == "daemon":
    __spec__ = types.SimpleNamespace(name="pyspark.daemon")
import spark_omnigraph.spark.early_end as early_end
early_end.expect_early_ends()
where, error = {"worker": worker, "run": run}, {"pipe": BrokenPipeError("gone"), "value": ValueError("mine")}
try:
    where[sys.argv[2]](error[sys.argv[3]])
except BaseException:
    traceback.print_exc()
"""


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ("daemon worker pipe", ""),
        ("daemon run pipe", "BrokenPipeError: gone"),
        ("daemon worker value", "ValueError: mine"),
        ("other worker pipe", "BrokenPipeError: gone"),
    ],
)
def test_the_daemon_prints_all_but_a_last_write_that_nobody_takes(words: str, printed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DAEMON, *words.split()], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.splitlines()[-1:] == ([printed] if printed else [])
