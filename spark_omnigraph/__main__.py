"""`python -m spark_omnigraph VERB …`: the program `spark-omnigraph`."""

from __future__ import annotations

from spark_omnigraph.cli import script

if __name__ == "__main__":
    script()
