"""`spark-submit jobs/sql.py --graph URI`: the verb `sql` of the program `spark-omnigraph`."""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["sql", *sys.argv[1:]]))
