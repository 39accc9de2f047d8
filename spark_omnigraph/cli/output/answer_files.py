"""The rows of a query as files that tasks of Spark write, of any size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql.functions import count, lit
from pyspark.sql.types import StringType, StructField, StructType

from spark_omnigraph.answer import Rows
from spark_omnigraph.cli.output.result_text import lines_of
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.lang.gq.plan import ResultColumn
from spark_omnigraph.limits import Limits
from spark_omnigraph.records.arrow_schema import shown_type
from spark_omnigraph.spark.delta_tables import PORTABLE
from spark_omnigraph.spark.errors import coded
from spark_omnigraph.spark.portable import TaskBody, carried
from spark_omnigraph.spark.query.frame import kept
from spark_omnigraph.spark.session import under
from spark_omnigraph.storage.input.globs import is_packed
from spark_omnigraph.storage.objects.new_folder import NewFolder

_THERE = "PATH_ALREADY_EXISTS"
_LINES = StructType([StructField("value", StringType())])


def write_answer(
    frame: DataFrame, columns: tuple[ResultColumn, ...], folder: NewFolder, form: str, limits: Limits
) -> int:
    """Rows to the files of a new folder, in the order of their numbers where the rows have one; how many there are.
    BadRequestError where something is there already, LimitError for more rows than are allowed, of which none is
    written. Whoever calls this removes the folder where it fails.
    """
    path, seen = folder.path, Observation()
    # Spark would take `film.title` for a member of a column `film`.
    plain = frame.toDF(*(f"c{place}" for place in range(len(columns))))
    counted = _within(plain, limits).observe(seen, count(lit(1)).alias("rows"))
    if path.startswith("s3://"):
        path = f"s3a://{path.removeprefix('s3://')}"  # the name that Hadoop has for it
    lines = counted.mapInArrow(carried(_Lines(columns, form)), _LINES)
    packing = "gzip" if is_packed(path) else "none"
    folder.claim()
    try:
        if form == "parquet":
            with under(frame.sparkSession, PORTABLE):
                counted.toDF(*frame.columns).write.parquet(path)
        else:
            lines.write.text(path, compression=packing)
    except PySparkException as error:
        if error.getCondition() == _THERE:
            folder.give_up()
            raise BadRequestError(f"'{folder.path}' is there already: Spark writes a new folder of files") from error
        raise
    rows = int(seen.get["rows"])
    if not rows and form == "csv":
        # Where Spark knows that there are none, no task runs.
        names = frame.sparkSession.createDataFrame([(line,) for line in _names(columns)], _LINES)
        names.coalesce(1).write.mode("overwrite").text(path, compression=packing)
    return rows


def _within(frame: DataFrame, limits: Limits) -> DataFrame:
    """The same rows, made and counted before any is written where their number is bounded."""
    if limits.rows is None:
        return frame
    made = kept(frame.mapInArrow(carried(_AtMost(limits.rows + 1)), frame.schema))
    limits.check_rows(made.count())
    return made


def answer_columns(batch: pa.RecordBatch, columns: tuple[ResultColumn, ...]) -> list[pa.Array]:
    """Columns of a frame in the types in which the embedded engine has them; vectors stay lists."""
    return [
        array if column.type.is_vector else array.cast(shown_type(column.type))
        for array, column in zip(batch.columns, columns, strict=True)
    ]


class _AtMost(TaskBody):
    """The first rows of a partition: one more than all may be is enough to refuse them, and no task fails for it."""

    def __init__(self, most: int) -> None:
        self.most = most

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with coded():
            left = self.most
            for batch in batches:
                yield batch.slice(0, left)
                left -= min(batch.num_rows, left)
                if not left:
                    return


class _Lines(TaskBody):
    """Lines of text for the rows of a partition: the same that one process would write."""

    def __init__(self, columns: tuple[ResultColumn, ...], form: str) -> None:
        self.columns = columns
        self.form = form

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A file of CSV begins with the names of the columns; the first one is written even if it has no rows."""
        with coded():
            is_begun = False
            for batch in batches:
                arrays = answer_columns(batch, self.columns)
                rows = pa.RecordBatch.from_arrays(arrays, names=[column.name for column in self.columns])
                lines = list(lines_of(_Batch(rows), self.form))
                yield _lines(lines[1:] if is_begun and self.form == "csv" else lines)
                is_begun = True
            task = TaskContext.get()
            if not is_begun and self.form == "csv" and task is not None and not task.partitionId():
                yield _lines(_names(self.columns))


def _lines(lines: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(lines, pa.string())], names=_LINES.names)


def _names(columns: tuple[ResultColumn, ...]) -> list[str]:
    """The lines of CSV without rows."""
    arrays = [pa.array([], shown_type(column.type)) for column in columns]
    return list(lines_of(_Batch(pa.RecordBatch.from_arrays(arrays, names=[c.name for c in columns])), "csv"))


@dataclass(frozen=True, slots=True)
class _Batch(Rows):
    """Some rows of an answer."""

    batch: pa.RecordBatch

    @property
    def arrow_schema(self) -> pa.Schema:
        return self.batch.schema

    def to_arrow(self) -> pa.Table:
        return pa.Table.from_batches([self.batch])

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield self.batch
