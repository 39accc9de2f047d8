"""`spark-submit jobs/query.py --graph URI`: the verb `query` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["query", *sys.argv[1:]]))
