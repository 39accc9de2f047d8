"""`spark-submit jobs/schema.py plan FILE --graph URI`: the verbs `schema …` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["schema", *sys.argv[1:]]))
