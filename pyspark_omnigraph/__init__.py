"""What Spark finds at the first `format("omnigraph")`: the `DefaultSource` of a top-level module named `pyspark_…`."""

from spark_omnigraph.spark.source import OmnigraphDataSource as DefaultSource

__all__ = ["DefaultSource"]
