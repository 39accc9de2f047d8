"""Rows of an answer: as an Arrow table or stream, for pandas and polars, as Python values, and as JSON."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from spark_omnigraph.draw.card import GRID_COLUMNS, GRID_ROWS, Grid, grid
from spark_omnigraph.errors import BadRequestError, is_panic
from spark_omnigraph.redaction import excerpt

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


class Rows(ABC):
    """An answer as an Arrow table or stream, for pandas and polars, and as Python values; column names may repeat.
    `branch` and `manifest_version` say which state was read.

    Iteration yields dictionaries, as `to_pylist`. Whatever takes Arrow streams takes a result: `pyarrow.table(result)`,
    `polars.DataFrame(result)`, a DuckDB query that names its variable.
    """

    __slots__ = ()

    branch: str
    manifest_version: int

    @property
    @abstractmethod
    def arrow_schema(self) -> pa.Schema:
        """Names and Arrow types of the columns."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """All rows."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, a run at a time."""

    @property
    def column_names(self) -> list[str]:
        return list(self.arrow_schema.names)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas frame: a DateTime is `datetime64[ms, UTC]`, which holds all years; a Date an object.

        BadRequestError when pandas is not installed, or has no form for a value: a year above 9999, a time zone that
        nobody knows.
        """
        _require("pandas")
        rows = self.to_arrow()
        with _converting("pandas"):
            return rows.to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars frame: a DateTime is `Datetime("ms", "UTC")`.

        BadRequestError when polars is not installed, or when column names repeat, which polars refuses, or it has no
        form for a value.
        """
        polars = _require("polars")
        self.require_distinct_names()
        rows = self.to_arrow()
        with _converting("polars"):
            frame: pl.DataFrame = polars.from_arrow(rows)
        return frame

    def require_distinct_names(self) -> None:
        """BadRequestError when two columns have one name."""
        names = self.column_names
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise BadRequestError(f"two columns are called '{repeated[0]}': give one another name with `as`")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow stream, by the PyCapsule protocol; types as in `to_arrow`."""
        reader = pa.RecordBatchReader.from_batches(self.arrow_schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Json]]:
        return self.rows()

    def to_pylist(self) -> list[dict[str, Json]]:
        """The rows as JSON values: 64-bit integers exact, dates and times as text, NaN and infinities as text.

        Of columns with the same name the last one stays.
        """
        return list(self.rows())

    def rows(self) -> Iterator[dict[str, Json]]:
        """Like `to_pylist`, a run of rows at a time."""
        names = self.column_names
        return (dict(zip(names, values)) for values in self.values())

    def values(self) -> Iterator[tuple[Json, ...]]:
        """Values of all columns, those with the same name too, a row at a time."""
        for batch in self.batches():
            yield from zip(*map(json_values, batch.columns)) if batch.num_columns else [()] * batch.num_rows


def table_grid(table: pa.Table, names: Sequence[str]) -> Grid:
    """The first rows and columns of a table, to be shown."""
    first = table.slice(0, GRID_ROWS)
    columns = [json_values(column) for column in first.columns[:GRID_COLUMNS]]
    blank = [[None] * first.num_rows] * (first.num_columns - len(columns))
    return grid("", names, zip(*columns, *blank), table.num_rows)


def _require(package: str) -> ModuleType:
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise BadRequestError(f"to_{package}() needs the package '{package}': install it, or use to_arrow()") from error


@contextmanager
def _converting(package: str) -> Iterator[None]:
    """Says of a value that a package has no form for that there are other forms; polars panics, and so may others."""
    try:
        yield
    except MemoryError:
        raise
    except BaseException as error:
        if not (isinstance(error, Exception) or is_panic(error)):
            raise
        reason = excerpt(str(error).partition("\n")[0])
        raise BadRequestError(
            f"{package} has no form for a value ({reason}): use to_arrow(), or to_pylist()"
        ) from error


def json_values(column: pa.ChunkedArray | pa.Array) -> list[Json]:
    """Values of a column as JSON has them; what JSON has no form for is a text. BadRequestError for one of those types
    of SQL that Python has for smaller values alone: a duration of ages, a map of such.
    """
    of = column.type
    if pa.types.is_date(of) or pa.types.is_timestamp(of):
        return _dates(column)
    if pa.types.is_list(of) or pa.types.is_fixed_size_list(of) or pa.types.is_large_list(of):
        return _lists(column)
    if pa.types.is_struct(of):
        return _structs(column)
    try:
        values: list[Json] = column.to_pylist()
    except (OverflowError, ValueError, LookupError, pa.ArrowException) as error:
        raise BadRequestError(
            f"there is no text for a value of the type {of} ({excerpt(str(error))}): cast it, or use to_arrow()"
        ) from error
    if pa.types.is_floating(of):
        return [_float(v) for v in values]
    return values if _is_json(of) else [_text(v) for v in values]


def _is_json(of: pa.DataType) -> bool:
    return bool(pa.types.is_integer(of) or pa.types.is_boolean(of) or pa.types.is_null(of) or _is_string(of))


def _is_string(of: pa.DataType) -> bool:
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of))


def _text(value: object) -> Json:
    """Decimals, times of a day and durations as they print, bytes in base64, and what is put together of them."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, (list, tuple)):
        return [_text(item) for item in value]
    return _float(value) if isinstance(value, float) else str(value)


def _structs(column: pa.ChunkedArray | pa.Array) -> list[Json]:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    names = [field.name for field in whole.type]
    members = [json_values(child) for child in whole.flatten()]
    rows: Iterator[tuple[Json, ...]] = zip(*members) if members else iter([()] * len(whole))
    return [dict(zip(names, row)) if valid else None for row, valid in zip(rows, whole.is_valid().to_pylist())]


def _lists(column: pa.ChunkedArray | pa.Array) -> list[Json]:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):
        return [value for chunk in whole.chunks for value in _lists(chunk)]
    found: list[Json] = []
    for row in whole:
        found.append(json_values(row.values) if row.is_valid else None)
    return found


def _dates(column: pa.ChunkedArray | pa.Array) -> list[Json]:
    """`YYYY-MM-DD`, and `YYYY-MM-DDTHH:MM:SS.mmmZ` with as many digits as the type has; years of any number of digits.
    A timestamp without a zone has no `Z`.
    """
    if not len(column):
        return []
    of = column.type
    days = pa.types.is_date32(of)
    unit = "D" if days else of.unit if pa.types.is_timestamp(of) else "ms"
    whole = np.asarray(column.cast(pa.int32() if days else pa.int64()).fill_null(0)).astype(np.int64)
    written = np.datetime_as_string(whole.view(f"datetime64[{unit}]"))
    end = "" if days or (pa.types.is_timestamp(of) and of.tz is None) else "Z"
    valid = column.is_valid().to_pylist()
    return [f"{text}{end}" if known else None for text, known in zip(written.tolist(), valid)]


def _float(value: Json) -> Json:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
