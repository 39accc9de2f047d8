"""Frames of Spark as the source of a load: their tasks stage, the caller checks and commits.

What a write through the data source does not give is the report, and several types out of one frame by a mapping.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_omnigraph.errors import BadRequestError, NotFoundError
from spark_omnigraph.graph.load.frame import StagedPart, staged_part
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.spark.errors import task_failure
from spark_omnigraph.spark.executor import SparkExecutor
from spark_omnigraph.spark.types import arrow_columns
from spark_omnigraph.staging.receipt import StageContext
from spark_omnigraph.staging.stage import stage_frame
from spark_omnigraph.storage.uri import DELTA, DELTA_EXTRA

_ABSENT = ("DATA_SOURCE_NOT_FOUND", "ClassNotFoundException")
_NO_TABLE = ("DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_TABLE_NOT_FOUND", "PATH_NOT_FOUND")
_NO_VERSION = ("DELTA_VERSION_NOT_FOUND", "VersionNotFoundException", "Cannot time travel")


class FrameRows:
    """Rows of a frame. They have no order, so a repeated id is a bad row."""

    has_order = False

    def __init__(self, frame: DataFrame, name: str) -> None:
        self.frame, self.name = frame, name
        self.schema: pa.Schema = arrow_columns(frame.schema)

    def stage(self, context: StageContext, how: TableInput) -> list[StagedPart]:
        """Stages the rows of every partition in a task of its own."""
        return SparkExecutor(self.frame.sparkSession).map_frame(partial(_stage, context, how), self.frame)


def _stage(context: StageContext, how: TableInput, batches: Iterator[pa.RecordBatch], number: int) -> StagedPart:
    return staged_part(context, stage_frame(context, how, batches, number))


def delta_rows(spark: SparkSession, uri: str, version: int | None) -> FrameRows:
    """A Delta table, as the session reads it. NotFoundError, or BadRequestError where the session has no Delta."""
    place = uri.removeprefix(DELTA)
    reader = spark.read.format("delta")
    try:
        frame = (reader if version is None else reader.option("versionAsOf", version)).load(place)
        return FrameRows(frame, f"{DELTA}{place}" if version is None else f"{DELTA}{place}@v{version}")
    except PySparkException as error:
        raise refused(error, f"{DELTA}{place}", version) from error


def refused(error: PySparkException, name: str, version: int | None) -> Exception:
    """An error of Delta as ours: NotFoundError, BadRequestError, or that of a task."""
    text = str(error)
    if any(sign in text for sign in _ABSENT):
        return BadRequestError(
            f"input '{name}' is a Delta table, and this session has no Delta: start it with the jars of Delta "
            "(--packages io.delta:delta-spark_4.2_2.13:4.4.0, or --jars) and "
            "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension, or use --executor local with "
            f"{DELTA_EXTRA}"
        )
    if any(sign in text for sign in _NO_TABLE):
        return NotFoundError(f"input '{name}' not found: there is no Delta table")
    if version is not None and any(sign in text for sign in _NO_VERSION):
        return NotFoundError(f"input '{name}' has no version {version} that can be read")
    return task_failure(error)
