"""`spark-submit jobs/cleanup.py --graph URI`: the verb `cleanup` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["cleanup", *sys.argv[1:]]))
