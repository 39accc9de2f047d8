"""The data source under the oldest Spark that is allowed."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import pyspark.sql.streaming.datasource as bounded
del bounded.SupportsTriggerAvailableNow  # came with 4.2
from spark_omnigraph.spark.source import OmnigraphDataSource
source = OmnigraphDataSource({"path": "/nowhere", "table": "changes"})
try:
    source.streamReader(None)
except Exception as error:
    print(error)
"""


def test_without_bounded_streams_only_the_stream_of_changes_is_refused() -> None:
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True)
    assert "OMNIGRAPH_BAD_REQUEST: streams of changes need Spark 4.2, this is" in found.stdout
