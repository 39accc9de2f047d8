"""`spark-submit jobs/init.py --graph URI --schema FILE`: the verb `init` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["init", *sys.argv[1:]]))
