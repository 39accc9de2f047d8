"""Rows of frames as the embedded engine has them."""

from __future__ import annotations

from pyspark.sql import DataFrame

from spark_omnigraph.answer import Json, json_values
from spark_omnigraph.cli.output.answer_files import answer_columns
from spark_omnigraph.lang.gq.plan import ResultColumn
from spark_omnigraph.spark.errors import typed_errors


def json_rows(frame: DataFrame, columns: tuple[ResultColumn, ...]) -> list[dict[str, Json]]:
    """The rows of the answer to a query, as `QueryResult.to_pylist` has them."""
    with typed_errors():
        found = frame.toArrow()
    values = [json_values(column) for column in answer_columns(found, columns)]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*values, strict=True)]
