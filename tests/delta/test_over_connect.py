"""In a process of its own: a client of Spark Connect and a classic session cannot share one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import run

import pytest
from pyspark.sql import SparkSession


@pytest.mark.timeout(600)
def test_over_connect(spark: SparkSession, tmp_path: Path) -> None:
    """Where the jars are missing this is skipped as the others are, by the session."""
    ended = run(
        [sys.executable, "-m", "tests.delta.over_connect", str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=540,
    )
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-4000:]
    assert json.loads(ended.stdout.splitlines()[-1]) == {
        "outcomes": ["snapshot", "changes", "same", "full"],
        "titles": ["b", "c"],
        "lost": "feed_lost",
    }
