"""`spark-submit jobs/consumer.py list --graph URI`: the verbs `consumer …` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["consumer", *sys.argv[1:]]))
