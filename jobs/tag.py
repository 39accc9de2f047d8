"""`spark-submit jobs/tag.py create NAME --graph URI`: the verbs `tag …` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["tag", *sys.argv[1:]]))
