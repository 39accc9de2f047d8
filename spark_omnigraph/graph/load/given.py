"""Tables that a caller has in memory → a reader of Arrow: of Arrow, pandas, polars, batches, rows as dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.storage.faults import reason

_EXACT = 2**53
"""From here on not every integer is a float."""


def table_reader(source: Any) -> pa.RecordBatchReader | None:
    """The rows of a table; None for what is none. BadRequestError for one that Arrow does not take."""
    package = type(source).__module__.partition(".")[0]
    if package == "polars" and hasattr(source, "collect"):
        source = source.collect()
    if package == "pandas":
        source = _of_pandas(source)
    try:
        if hasattr(source, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(source)
        if hasattr(source, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(source)]).to_reader()
        if hasattr(source, "__dataframe__"):
            return pa.interchange.from_dataframe(source).to_reader()
    except (pa.ArrowException, TypeError, ValueError, RuntimeError) as error:
        # What Arrow has no word for is one of the last kind, as is what other libraries have not built.
        raise BadRequestError(f"a {type(source).__name__} is no table of Arrow: {error}") from error
    return None


def joined_batches(first: pa.RecordBatch | pa.Table, rest: Iterator[object]) -> pa.RecordBatchReader:
    """Batches, or tables, as one. While it is read: BadRequestError for one whose columns are others than those of the
    first.
    """
    return pa.RecordBatchReader.from_batches(first.schema, _checked(first, rest))


def read_batches(reader: pa.RecordBatchReader, name: str) -> Iterator[pa.RecordBatch]:
    """What a reader gives. What its source raises is passed on; what only Arrow knows of it is a BadRequestError."""
    try:
        yield from reader
    except pa.ArrowException as error:
        raise BadRequestError(f"input '{name}' broke off while it was read: {reason(error)[:300]}") from error


def reader_of_rows(rows: Sequence[object]) -> pa.RecordBatchReader:
    """Dictionaries as a table. BadRequestError when a column has no one type."""
    try:
        return pa.Table.from_pylist(list(rows)).to_reader()
    except (pa.ArrowException, AttributeError, TypeError, ValueError, OverflowError) as error:
        raise BadRequestError(f"the rows have no columns of one type each: {error}") from error


def _checked(first: pa.RecordBatch | pa.Table, rest: Iterator[object]) -> Iterator[pa.RecordBatch]:
    yield from _batches(first)
    for place, each in enumerate(rest, 1):
        if not isinstance(each, (pa.RecordBatch, pa.Table)):
            raise BadRequestError(f"item {place} of the input is a {type(each).__name__}, and the first is a batch")
        # Arrow takes the columns of another schema by their place, whatever they are.
        if (each.schema.names, each.schema.types) != (first.schema.names, first.schema.types):
            raise BadRequestError(
                f"item {place} of the input has other columns than the first: {_shown(each.schema)}; the first has "
                f"{_shown(first.schema)}"
            )
        yield from _batches(each)


def _batches(given: pa.RecordBatch | pa.Table) -> Iterable[pa.RecordBatch]:
    return given.to_batches() if isinstance(given, pa.Table) else [given]


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)


def _of_pandas(frame: Any) -> pa.Table:
    """Columns without the index. Pandas has no integers beside missing values: floats that are whole are integers, and
    of a column without any value nothing is known.
    """
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
        raise BadRequestError(f"a {type(frame).__name__} of pandas is no table of Arrow: {error}") from error
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if pa.types.is_floating(column.type) and column.null_count == len(column):
            table = table.set_column(place, name, pa.nulls(len(column)))
        elif pa.types.is_floating(column.type) and column.null_count and _are_whole(column):
            table = table.set_column(place, name, column.cast(pa.int64()))
    return table


def _are_whole(column: pa.ChunkedArray) -> bool:
    """Whether floats are surely the integers that they were: none is so large that it may have been another one."""
    values = np.asarray(column.drop_null())
    is_negative_zero = (values == 0) & np.signbit(values)
    return bool(((np.abs(values) < _EXACT) & (values == np.trunc(values)) & ~is_negative_zero).all())
