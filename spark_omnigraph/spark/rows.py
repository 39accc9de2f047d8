"""Frames of Spark as the source of a load: their tasks stage, the caller checks and commits.

What a write through the data source does not give is the report, and several types out of one frame by a mapping.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_omnigraph.graph.load.frame import StagedPart, staged_part
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.spark.delta_session import delta_frame
from spark_omnigraph.spark.executor import SparkExecutor
from spark_omnigraph.spark.types import arrow_columns
from spark_omnigraph.staging.receipt import StageContext
from spark_omnigraph.staging.stage import stage_frame
from spark_omnigraph.storage.uri import DELTA


class FrameRows:
    """Rows of a frame. They have no order, so a repeated id is a bad row."""

    has_order = False

    def __init__(self, frame: DataFrame, name: str) -> None:
        self.frame, self.name = frame, name
        self.schema: pa.Schema = arrow_columns(frame.schema)
        self._executor = SparkExecutor(frame.sparkSession)

    @property
    def parallelism(self) -> int:
        return self._executor.parallelism

    def stage(self, context: StageContext, how: TableInput) -> list[StagedPart]:
        """Stages the rows of every partition in a task of its own."""
        return self._executor.map_frame(partial(_stage, context, how), self.frame)


def _stage(context: StageContext, how: TableInput, batches: Iterator[pa.RecordBatch], number: int) -> StagedPart:
    return staged_part(context, stage_frame(context, how, batches, number))


def delta_rows(spark: SparkSession, uri: str, version: int | None) -> FrameRows:
    """A Delta table, as the session reads it. NotFoundError, or BadRequestError where the session has no Delta."""
    place = uri.removeprefix(DELTA)
    frame = delta_frame(spark, f"input '{DELTA}{place}'", place, version)
    return FrameRows(frame, f"{DELTA}{place}" if version is None else f"{DELTA}{place}@v{version}")
