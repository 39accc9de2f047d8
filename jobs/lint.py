"""`spark-submit jobs/lint.py FILE`: the verb `lint` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["lint", *sys.argv[1:]]))
