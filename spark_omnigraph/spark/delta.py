"""A Delta table that a graph follows, as the Delta of a Spark session reads it; over Spark Connect too.

Which table it is and its newest version come from SQL, since nothing else of Delta is there on a client of Connect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as sf

from spark_omnigraph.errors import FeedLostError, OmnigraphError
from spark_omnigraph.graph.load.frame import StagedPart
from spark_omnigraph.graph.sync.source import FollowedRows, changes_name, place_of
from spark_omnigraph.records.changes.ranks import CHANGE_TYPE
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.spark.delta_session import delta_errors
from spark_omnigraph.spark.rows import FrameRows, delta_rows
from spark_omnigraph.staging.receipt import StageContext
from spark_omnigraph.storage.faults import said
from spark_omnigraph.storage.input.delta_feed import FEED, WAY, DeltaState
from spark_omnigraph.storage.uri import DELTA

_LOST = re.compile(
    r"DELTA_(MISSING_CHANGE_DATA|CHANGE_DATA_|CHANGE_TABLE_FEED|INVALID_CDC_RANGE|BLOCK_COLUMN_MAPPING_AND_CDC|"
    r"CDC_NOT_ALLOWED|VERSION_|LOG_FILE_NOT_FOUND|TRUNCATED_TRANSACTION_LOG|STATE_RECOVER|FILE_NOT_FOUND)"
    r"|FILE_NOT_EXIST|FileNotFoundException|does not exist"
)
"""What Delta says when changes are not there, not kept, or are those of other columns."""
_MOVING = ("RENAME COLUMN", "DROP COLUMNS", "REPLACE COLUMNS")
_SPARE = 1000
"""Versions that may be made while the history is asked for."""


def delta_source(spark: SparkSession, uri: str) -> SparkDelta:
    """A Delta table for `Graph.sync`, read by the session's own Delta in its tasks."""
    return SparkDelta(place_of(uri), spark)


@dataclass(frozen=True, slots=True)
class SparkDelta:
    """A table that a session reads."""

    place: str
    spark: SparkSession

    def newest(self) -> DeltaState:
        rows = delta_rows(self.spark, self.place, None)  # which says what is missing
        with self.reading():
            version = int(self.spark.sql(f"DESCRIBE HISTORY {self._name} LIMIT 1").collect()[0]["version"])
            told = self.spark.sql(f"DESCRIBE DETAIL {self._name}").collect()[0]
            rows = delta_rows(self.spark, self.place, version)
            fields = rows.frame.schema.jsonValue()["fields"]
        types = {field["name"]: json.dumps(field["type"], sort_keys=True) for field in fields}
        return DeltaState(str(told["id"]), version, rows.schema, types, told["properties"].get(FEED) == "true")

    def rows(self, version: int) -> FrameRows:
        return delta_rows(self.spark, self.place, version)

    def changes(self, first: int, last: int) -> _Feed:
        moved = self._moved(first, last)
        if moved is not None:
            raise FeedLostError(f"'{DELTA}{self.place}' has other columns since its version {moved}: {WAY}")
        reader = self.spark.read.format("delta").option("readChangeFeed", "true")
        with self.reading(f"the changes of '{DELTA}{self.place}' from version {first} on cannot be read"):
            frame = reader.option("startingVersion", first).option("endingVersion", last).load(self.place)
            former = sf.col(CHANGE_TYPE) == "update_preimage"
            frame = frame.withColumn(CHANGE_TYPE, sf.when(former, "delete").otherwise(sf.col(CHANGE_TYPE)))
            return _Feed(FrameRows(frame, changes_name(self.place, first, last)), self)

    def _moved(self, first: int, last: int) -> int | None:
        """A version since which a name is that of another column: of rows that did not change the feed says nothing."""
        told: list[Row] = []
        for most in (f" LIMIT {last - first + _SPARE}", ""):
            with self.reading():
                history = self.spark.sql(f"DESCRIBE HISTORY {self._name}{most}")
                told = history.select("version", "operation").collect()
            if told and told[-1]["version"] <= first:
                break
        found = (row["version"] for row in told if first <= row["version"] <= last and row["operation"] in _MOVING)
        return min(found, default=None)

    @property
    def _name(self) -> str:
        return f"delta.`{self.place.replace('`', '``')}`"

    @contextmanager
    def reading(self, lost: str | None = None) -> Iterator[None]:
        """Errors as ours; FeedLostError for changes that are not there, where these are read."""
        try:
            with delta_errors(f"input '{DELTA}{self.place}'"):
                yield
        except OmnigraphError as error:
            told = error.__cause__ or error  # of a task the cause says which file
            if lost is not None and _LOST.search(f"{error} {told}"):
                raise FeedLostError(f"{lost}: {WAY} ({said(told)})") from error
            raise


@dataclass(frozen=True, slots=True)
class _Feed(FollowedRows):
    """Changes, of which a file may turn out to be gone when they are read."""

    source: SparkDelta

    def stage(self, context: StageContext, how: TableInput) -> list[StagedPart]:
        """As `FrameRows.stage`."""
        with self.source.reading(f"the changes '{self.name}' cannot be read any more, as after VACUUM"):
            return self.rows.stage(context, how)
