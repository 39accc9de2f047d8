"""A stream that cannot be, as a reader that says why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from spark_omnigraph.errors import OmnigraphError
from spark_omnigraph.spark.errors import coded
from spark_omnigraph.spark.portable import Portable


class RefusedStream(Portable, DataSourceStreamReader):
    """Raises its error at the first question.

    Where `streamReader` itself raises, PySpark goes on to stop a reader that it does not have, and what the user sees
    ends with that failure of its own.
    """

    def __init__(self, error: OmnigraphError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        self._refuse()

    def latestOffset(self, *_: object) -> dict[str, int]:  # noqa: N802 - Spark's name; Spark 4.1 gives no arguments
        self._refuse()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        with coded():
            raise self._error
