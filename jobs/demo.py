"""`spark-submit jobs/demo.py`: the verb `demo` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
