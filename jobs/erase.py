"""`spark-submit jobs/erase.py --graph URI`: the verb `erase` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["erase", *sys.argv[1:]]))
