"""`spark-submit jobs/copy.py FROM TO`: the verb `copy` of the program `spark-omnigraph`."""

from __future__ import annotations

import os
import sys

# Python puts the folder of a script first, where this file would stand for the module `copy` of its own library.
_HERE = os.path.realpath(os.path.dirname(__file__))
sys.path[:] = [path for path in sys.path if os.path.realpath(path) != _HERE]

from spark_omnigraph.cli import main  # noqa: E402 - after the line above

if __name__ == "__main__":
    sys.exit(main(["copy", *sys.argv[1:]]))
