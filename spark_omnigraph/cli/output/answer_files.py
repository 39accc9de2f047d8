"""The rows of a query as files that tasks of Spark write, of any size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql.functions import count, lit
from pyspark.sql.types import StringType, StructField, StructType

from spark_omnigraph.answer import Rows
from spark_omnigraph.cli.output.result_text import lines_of
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.lang.gq.plan import ResultColumn
from spark_omnigraph.records.arrow_schema import shown_type
from spark_omnigraph.spark.errors import coded, task_failure
from spark_omnigraph.spark.portable import TaskBody, carried
from spark_omnigraph.storage.input.globs import is_packed

_THERE = "PATH_ALREADY_EXISTS"
_LINES = StructType([StructField("value", StringType())])


def write_answer(frame: DataFrame, columns: tuple[ResultColumn, ...], path: str, form: str) -> int:
    """Rows to the files of a new folder, in the order of their numbers where the rows have one; how many there are.
    BadRequestError where something is there already.
    """
    seen = Observation()
    counted = frame.observe(seen, count(lit(1)).alias("rows"))
    if path.startswith("s3://"):
        path = f"s3a://{path.removeprefix('s3://')}"  # the name that Hadoop has for it
    try:
        if form == "parquet":
            counted.write.parquet(path)
        else:
            lines = carried(_Lines(columns, form))
            packing = "gzip" if is_packed(path) else "none"
            # Spark would take `film.title` for a member of a column `film`.
            plain = counted.toDF(*(f"c{place}" for place in range(len(columns))))
            plain.mapInArrow(lines, _LINES).write.text(path, compression=packing)
    except PySparkException as error:
        if error.getCondition() == _THERE:
            raise BadRequestError(f"'{path}' is there already: Spark writes a new folder of files") from error
        raise task_failure(error) from error
    return int(seen.get["rows"])


def answer_columns(batch: pa.RecordBatch, columns: tuple[ResultColumn, ...]) -> list[pa.Array]:
    """Columns of a frame in the types in which the embedded engine has them; vectors stay lists."""
    return [
        array if column.type.is_vector else array.cast(shown_type(column.type))
        for array, column in zip(batch.columns, columns, strict=True)
    ]


class _Lines(TaskBody):
    """Lines of text for the rows of a partition: the same that one process would write."""

    def __init__(self, columns: tuple[ResultColumn, ...], form: str) -> None:
        self.columns = columns
        self.form = form

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A file of CSV begins with the names of the columns."""
        with coded():
            for number, batch in enumerate(batches):
                arrays = answer_columns(batch, self.columns)
                rows = pa.RecordBatch.from_arrays(arrays, names=[column.name for column in self.columns])
                lines = list(lines_of(_Batch(rows), self.form))
                yield pa.RecordBatch.from_arrays(
                    [pa.array(lines[1:] if number and self.form == "csv" else lines, pa.string())], names=_LINES.names
                )


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
