"""`spark-submit jobs/convert.py --graph URI`: the verb `convert` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["convert", *sys.argv[1:]]))
