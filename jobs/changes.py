"""`spark-submit jobs/changes.py --graph URI --input PATH…`: the verb `changes` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["changes", *sys.argv[1:]]))
