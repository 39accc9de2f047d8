"""`spark-submit jobs/ingest.py --graph URI --input PATH…`: the verb `ingest` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["ingest", *sys.argv[1:]]))
