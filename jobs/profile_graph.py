"""`spark-submit jobs/profile_graph.py PATH…`: the verb `profile` of the program `spark-omnigraph`. A file `profile.py`
here would hide Python's own.
"""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["profile", *sys.argv[1:]]))
