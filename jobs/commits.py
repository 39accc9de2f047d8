"""`spark-submit jobs/commits.py --graph URI`: the verb `commits` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["commits", *sys.argv[1:]]))
