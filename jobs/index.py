"""`spark-submit jobs/index.py --graph URI`: the verb `index` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["index", *sys.argv[1:]]))
