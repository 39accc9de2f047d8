"""Streams of changes, which Spark has from 4.2 on; what needs them is skipped on an older one."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from spark_omnigraph.spark.read.feed import plan_feed

if TYPE_CHECKING:
    from spark_omnigraph.spark.read.feed_stream import FeedStream

HAS_STREAMS = find_spec("pyspark.sql.streaming.datasource") is not None
_WHY = "streams of changes need Spark 4.2"
needs_streams = pytest.mark.skipif(not HAS_STREAMS, reason=_WHY)


def feed_stream(options: Mapping[str, str]) -> FeedStream:
    """The stream that these options of the data source plan."""
    if not HAS_STREAMS:
        pytest.skip(_WHY)
    from spark_omnigraph.spark.read.feed_stream import FeedStream  # noqa: PLC0415 - Spark 4.1 has no such thing

    return FeedStream(plan_feed(options))
