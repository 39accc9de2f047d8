"""Delta tables that follow a graph, written by a session's own Delta: its tasks read the rows.

All is SQL and frames, which Spark Connect has, too. A transaction that is recorded already is passed over by Delta, so
the history is looked at afterwards: it says whether what was written is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from spark_omnigraph.spark.delta_session import delta_errors, require_delta, spark_place
from spark_omnigraph.spark.errors import coded
from spark_omnigraph.spark.portable import TaskBody, carried
from spark_omnigraph.spark.session import under
from spark_omnigraph.spark.types import arrow_columns
from spark_omnigraph.storage.delta_record import APPLICATION, ShownState, TableCommit, decoded, shown
from spark_omnigraph.storage.delta_write import OPERATION, RECENT, Followed, Part, RowCounts, written_meanwhile
from spark_omnigraph.storage.uri import DELTA

_CHANGES = "omnigraph_changes"
PORTABLE = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""Settings of Parquet files. Else Spark stores instants as INT96, and a session may ask for dates of another calendar:
readers without a JVM may take both for others.
"""


class SparkTable:
    """A `FollowingTable` that a session writes, under settings that other writes of the same session must not have."""

    def __init__(self, spark: SparkSession, followed: Followed) -> None:
        self._spark, self._followed = spark, followed
        self._place = spark_place(followed.uri)
        self._name = f"'{DELTA}{self._place}'"
        self._seen, self._number = -1, 0

    def look(self) -> tuple[int | None, pa.Schema | None]:
        frame = require_delta(self._spark, self._name, self._place)
        if frame is None:
            return None, None
        recent = self._history(RECENT)
        found = shown(map(_commit, recent)) or shown(map(_commit, self._history()))
        self._seen = recent[0]["version"]
        self._number = self._seen + 1 if found is None else found.next_number
        return self._followed.told(found), arrow_columns(frame.schema)

    def can_merge(self) -> bool:
        return self._seen >= 0

    def replace(self, schema: pa.Schema, parts: Sequence[Part], version: int) -> RowCounts:
        mode = "overwrite" if self._seen >= 0 else "error"
        landed = self._save(self._frame(schema, parts), mode, version)
        return RowCounts(int((landed["operationMetrics"] or {}).get("numOutputRows", 0)))

    def merge(self, schema: pa.Schema, parts: Sequence[Part], version: int) -> RowCounts:
        state = self._followed.state(version, self._number)
        names = [_quoted(name) for name in schema.names if name != OPERATION]
        self._frame(schema, parts).createOrReplaceTempView(_CHANGES)
        statement = (
            f"MERGE INTO {self._table} t USING {_CHANGES} s ON t.id = s.id "
            f"WHEN MATCHED AND s.{_quoted(OPERATION)} = 'd' THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in names)} "
            f"WHEN NOT MATCHED AND s.{_quoted(OPERATION)} = 'u' THEN INSERT ({', '.join(names)}) "
            f"VALUES ({', '.join(f's.{name}' for name in names)})"
        )
        settings = {
            "spark.databricks.delta.write.txnAppId": APPLICATION,
            "spark.databricks.delta.write.txnVersion": str(state.number),
            "spark.databricks.delta.commitInfo.userMetadata": state.encoded(),
        }
        try:
            self._run(lambda: self._spark.sql(statement).collect(), settings)
        finally:
            self._spark.catalog.dropTempView(_CHANGES)
        metrics = self._landed(state)["operationMetrics"] or {}
        inserted, updated, deleted = (int(metrics.get(f"numTargetRows{n}", 0)) for n in _COUNTED)
        return RowCounts(inserted + updated, deleted)

    def note(self, version: int) -> None:
        with delta_errors(self._name):
            empty = self._spark.read.format("delta").load(self._place).limit(0)
        self._save(empty, "append", version)

    @property
    def _table(self) -> str:
        return f"delta.{_quoted(self._place)}"

    def _frame(self, schema: pa.Schema, parts: Sequence[Part]) -> DataFrame:
        """The rows of parts, each read by a task. The casts are for Connect: without, columns of text become `string
        collate UTF8_BINARY` in the table, which no reader but Spark knows.
        """
        many, columns = list(parts), from_arrow_schema(schema)
        rows = self._spark.range(0, len(many), 1, max(1, len(many))).mapInArrow(carried(_Reading(many)), columns)
        named = ((_quoted(field.name), field.dataType.simpleString()) for field in columns.fields)
        return rows.selectExpr(*(f"CAST({name} AS {kind}) AS {name}" for name, kind in named))

    def _save(self, frame: DataFrame, mode: str, version: int) -> Row:
        state = self._followed.state(version, self._number)
        options = {
            "txnAppId": APPLICATION,
            "txnVersion": str(state.number),
            "userMetadata": state.encoded(),
            **({"overwriteSchema": "true"} if mode == "overwrite" else {}),
        }
        self._run(lambda: frame.write.format("delta").mode(mode).options(**options).save(self._place), {})
        return self._landed(state)

    def _run(self, action: Callable[[], object], settings: dict[str, str]) -> None:
        """An action under settings that are undone behind it: a Connect session may be the caller's own."""
        with delta_errors(self._name), under(self._spark, {**PORTABLE, **settings}):
            action()

    def _landed(self, state: ShownState) -> Row:
        """The commit that an attempt has made."""
        for row in self._history():
            found = decoded(row["userMetadata"])
            if row["version"] > self._seen and found is not None and found.writer == state.writer:
                return row
        raise written_meanwhile(f"{DELTA}{self._place}")

    def _history(self, limit: int | None = None) -> list[Row]:
        """Commits of the table, the newest first."""
        bound = "" if limit is None else f" LIMIT {limit}"
        with delta_errors(self._name):
            found = self._spark.sql(f"DESCRIBE HISTORY {self._table}{bound}")
            rows = found.select("version", "operation", "userMetadata", "operationMetrics").collect()
        return sorted(rows, key=lambda row: -int(row["version"]))


_COUNTED = ("Inserted", "Updated", "Deleted")


def _commit(row: Row) -> TableCommit:
    return TableCommit(row["version"], row["operation"], row["userMetadata"])


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class _Reading(TaskBody):
    """The rows of the parts whose numbers come."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows, part by part."""
        with coded():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from self.parts[number].batches()


def release(own: SparkSession) -> None:
    """Ends a session beside the caller's. One of Connect that is left to the end of the process asks its server then,
    and waits ten minutes for one that has gone.
    """
    client = getattr(own, "client", None) if hasattr(own, "cloneSession") else None
    if client is not None:
        with suppress(Exception):  # the server ends it as well when nobody asks for a while
            client.release_session()
        client.close()


def own_session(spark: SparkSession) -> SparkSession:
    """A session beside the caller's with the same settings, so that ours are of no write of his, if there is a way."""
    clone = getattr(spark, "cloneSession", None)
    if clone is not None:
        return clone()  # type: ignore[no-any-return]  # of Connect, from Spark 4.1 on
    if not hasattr(spark, "newSession"):
        return spark
    own, known = spark.newSession(), spark.conf.getAll
    there = own.conf.getAll
    for key, value in known.items():
        if there.get(key) != value and own.conf.isModifiable(key):
            own.conf.set(key, value)
    return own
