"""`spark-submit jobs/profile.py PATH…`: the verb `profile` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["profile", *sys.argv[1:]]))
