"""`spark-submit jobs/describe.py --graph URI`: the verb `describe` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["describe", *sys.argv[1:]]))
