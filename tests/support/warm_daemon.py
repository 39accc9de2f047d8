"""PySpark's daemon of Python workers, with what their work needs imported before it forks them.

An error ends a worker, and the next one would take longer to import the library than to work. It forks before Lance has
done anything. Over Spark Connect the tests run with PySpark's own daemon.
"""

from __future__ import annotations

import warnings

from pyspark import daemon

from spark_omnigraph.spark.read import reader
from spark_omnigraph.spark.write import deleter, writer

__all__ = ["deleter", "reader", "writer"]

if __name__ == "__main__":
    warnings.filterwarnings("ignore", "lance is not fork-safe")
    daemon.manager()
