"""The data source under the oldest Spark that is allowed, and streams that cannot be."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StringType, StructField, StructType

from spark_omnigraph.spark.errors import CodedError
from spark_omnigraph.spark.source import OmnigraphDataSource
from tests.support.feed_streams import needs_streams

PROGRAM = """
try:
    import pyspark.sql.streaming.datasource as bounded
    del bounded.SupportsTriggerAvailableNow  # came with 4.2
except ImportError:
    pass
from spark_omnigraph.spark.source import OmnigraphDataSource
from tests.support.feed_streams import needs_streams
source = OmnigraphDataSource({"path": "/nowhere", "table": "changes"})
try:
    source.streamReader(None).initialOffset()
except Exception as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"node": "Lamp"}, "only the change feed can be read as a stream: add .option('table', 'changes')"),
        ({"table": "changes", "endingVersion": "3"}, "option 'endingVersion' does not go with a stream"),
        ({"table": "changes", "nodes": "Lamp"}, "unknown option 'nodes'; did you mean 'node'?"),
    ],
)
@needs_streams
def test_a_stream_that_cannot_be_says_so_at_every_first_question(options: dict[str, str], text: str) -> None:
    reader = OmnigraphDataSource({"path": "/nowhere", **options}).streamReader(
        StructType([StructField("table", StringType(), False)])
    )
    found = pickle.loads(cloudpickle.dumps(reader))
    questions = (
        found.initialOffset,
        lambda: found.latestOffset({"version": 1}, None),
        found.latestOffset,
        lambda: found.partitions({"version": 1}, {"version": 2}),
        lambda: found.read(InputPartition(None)),
    )
    for ask in questions:
        with pytest.raises(CodedError) as caught:
            ask()
        assert str(caught.value).startswith(f"OMNIGRAPH_BAD_REQUEST: {text}")
    found.stop()


def test_without_bounded_streams_only_the_stream_of_changes_is_refused() -> None:
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True)
    assert "OMNIGRAPH_BAD_REQUEST: streams of changes need Spark 4.2, this is" in found.stdout


def test_whoever_asks_for_names_of_sources_waits_for_nothing_slow() -> None:
    program = "import sys, pyspark_omnigraph; print([n for n in ('lance', 'pandas', 'obstore') if n in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert found.stdout == "[]\n"
