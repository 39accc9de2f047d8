"""The Spark data source `omnigraph`.

Spark imports this in processes of its own, also where it only asks for the names of sources: what reads and writes
need is imported when one is planned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from spark_omnigraph.spark.read.refused_stream import RefusedStream

if TYPE_CHECKING:
    from spark_omnigraph.spark.read.feed import FeedPlan
    from spark_omnigraph.spark.read.plan import ReadPlan


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
            from spark_omnigraph.spark.read.feed import FeedPlan, FeedReader  # noqa: PLC0415 - slow, see above
            from spark_omnigraph.spark.read.reader import GraphReader  # noqa: PLC0415 - slow, see above

            plan = self._plan or self._planned()
            if isinstance(plan, FeedPlan):
                return FeedReader(plan.for_schema(schema))
            return GraphReader(plan.for_schema(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The change feed as a stream, of one type or of all. One that cannot be is refused when it starts."""
        with coded():
            from spark_omnigraph.spark.read.feed import plan_feed  # noqa: PLC0415 - slow, see above
        try:
            from spark_omnigraph.spark.read.feed_stream import FeedStream  # noqa: PLC0415 - Spark 4.1 has no such thing
        except ImportError:
            why = f"streams of changes need Spark 4.2, this is {pyspark.__version__}: read batches"
            return RefusedStream(BadRequestError(why))
        try:
            return FeedStream(plan_feed(self.options).for_schema(schema))
        except OmnigraphError as error:
            return RefusedStream(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Writer for a frame; options and columns are checked here, before its tasks run."""
        with coded():
            from spark_omnigraph.spark.write.writer import plan_write  # noqa: PLC0415 - slow, see above

            return plan_write(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802 - Spark's name
        """Writer of a stream: one commit for each micro-batch, each of them once."""
        with coded():
            from spark_omnigraph.spark.write.writer import plan_stream_write  # noqa: PLC0415 - slow, see above

            return plan_stream_write(self.options, schema, overwrite)

    def _planned(self) -> ReadPlan | FeedPlan:
        from spark_omnigraph.spark.read.feed import is_feed, plan_feed_frame  # noqa: PLC0415 - slow, as above
        from spark_omnigraph.spark.read.plan import plan_read  # noqa: PLC0415 - slow, see above

        return plan_feed_frame(self.options) if is_feed(self.options) else plan_read(self.options)
