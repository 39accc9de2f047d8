"""The program `spark-omnigraph`, which the files in `jobs/` call too."""

from __future__ import annotations

from spark_omnigraph.cli.program import main, script

__all__ = ["main", "script"]
