"""`spark-submit jobs/copy_graph.py FROM TO`: the verb `copy` of the program `spark-omnigraph`. A file `copy.py` here
would stand for Python's own module of that name, since Python looks beside a script first.
"""

from __future__ import annotations

import sys

from spark_omnigraph.cli import main

if __name__ == "__main__":
    sys.exit(main(["copy", *sys.argv[1:]]))
