"""`spark-submit jobs/embed.py --graph URI`: the verb `embed` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["embed", *sys.argv[1:]]))
