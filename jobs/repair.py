"""`spark-submit jobs/repair.py --graph URI`: the verb `repair` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["repair", *sys.argv[1:]]))
