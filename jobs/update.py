"""`spark-submit jobs/update.py --graph URI --input PATH…`: the verb `update` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["update", *sys.argv[1:]]))
