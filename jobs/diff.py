"""`spark-submit jobs/diff.py A B --graph URI`: the verb `diff` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["diff", *sys.argv[1:]]))
