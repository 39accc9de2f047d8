"""The Spark data source `omnigraph`."""

from __future__ import annotations

import pyspark
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from spark_omnigraph.errors import BadRequestError, OmnigraphError
from spark_omnigraph.spark.errors import coded
from spark_omnigraph.spark.portable import Portable
from spark_omnigraph.spark.read.feed import FeedPlan, FeedReader, is_feed, plan_feed, plan_feed_frame
from spark_omnigraph.spark.read.plan import ReadPlan, plan_read
from spark_omnigraph.spark.read.reader import GraphReader
from spark_omnigraph.spark.read.refused_stream import RefusedStream

try:
    from spark_omnigraph.spark.read.feed_stream import FeedStream
except ImportError:  # Spark 4.1: batches and writes work there all the same
    FeedStream = None  # type: ignore[assignment, misc]  # there is no class to stand in


class OmnigraphDataSource(Portable, DataSource):
    """Nodes, edges and the log of a graph as DataFrames; a `load()` is one snapshot, however often it is used.

    Filters are options and never pushed by Spark, which mixes up the pushed filters of two scans of one `load()`.
    """

    _plan: ReadPlan | FeedPlan | None = None

    @classmethod
    def name(cls) -> str:
        """Short name for `format(…)`."""
        return "omnigraph"

    def schema(self) -> StructType:
        """Schema of the frame. The plan stays with the instance, which Spark pickles: this pins the snapshot."""
        with coded():
            self._plan = self._planned()
        return self._plan.frame

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reader for the frame's schema, or for one that the user gave and that Spark asked nobody about."""
        with coded():
            plan = self._plan or self._planned()
            if isinstance(plan, FeedPlan):
                return FeedReader(plan.for_schema(schema))
            return GraphReader(plan.for_schema(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The change feed as a stream, of one type or of all. One that cannot be is refused when it starts."""
        try:
            if FeedStream is None:
                raise BadRequestError(f"streams of changes need Spark 4.2, this is {pyspark.__version__}: read batches")
            return FeedStream(plan_feed(self.options).for_schema(schema))
        except OmnigraphError as error:
            return RefusedStream(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Writer for a frame; options and columns are checked here, before its tasks run."""
        from spark_omnigraph.spark.write.writer import plan_write  # noqa: PLC0415 - a third of the imports; reads need none

        with coded():
            return plan_write(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802 - Spark's name
        """Writer of a stream: one commit for each micro-batch, each of them once."""
        from spark_omnigraph.spark.write.writer import plan_stream_write  # noqa: PLC0415 - slow too, as above

        with coded():
            return plan_stream_write(self.options, schema, overwrite)

    def _planned(self) -> ReadPlan | FeedPlan:
        return plan_feed_frame(self.options) if is_feed(self.options) else plan_read(self.options)
