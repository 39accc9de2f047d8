"""`spark-submit jobs/sync.py --graph URI --from delta:URI…`: the verb `sync` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["sync", *sys.argv[1:]]))
