"""`spark-submit jobs/restore.py --graph URI`: the verb `restore` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["restore", *sys.argv[1:]]))
