"""`spark-submit jobs/mutate.py --graph URI`: the verb `mutate` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["mutate", *sys.argv[1:]]))
