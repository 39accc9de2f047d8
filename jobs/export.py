"""`spark-submit jobs/export.py --graph URI --output PATH`: the verb `export` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["export", *sys.argv[1:]]))
