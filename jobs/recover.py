"""`spark-submit jobs/recover.py --graph URI`: the verb `recover` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["recover", *sys.argv[1:]]))
