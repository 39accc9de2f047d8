"""What a query returns: as an Arrow table or stream, for pandas and polars, as Python values, and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from spark_omnigraph.draw.card import GRID_COLUMNS, GRID_ROWS, Card, Grid, grid
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.lang.gq.plan import ResultColumn

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Json = str | int | float | bool | None | list["Json"]

_RUN = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class QueryResult(Displayed):
    """Rows of a read query; column names may repeat. `branch` and `manifest_version` say which state was read.

    Iteration yields dictionaries, as `to_pylist`. Whatever takes Arrow streams takes a result: `pyarrow.table(result)`,
    `polars.DataFrame(result)`, a DuckDB query that names its variable.
    """

    name: str
    columns: tuple[ResultColumn, ...]
    table: pa.Table
    branch: str
    manifest_version: int

    @property
    def row_count(self) -> int:
        return int(self.table.num_rows)

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    def to_arrow(self) -> pa.Table:
        """The rows with the types in which they are stored, a DateTime as `timestamp[ms, UTC]`."""
        return self.table

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas frame: a DateTime is `datetime64[ms, UTC]`, which holds all years; a Date an object.

        BadRequestError when pandas is not installed.
        """
        _require("pandas")
        return self.table.to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars frame: a DateTime is `Datetime("ms", "UTC")`.

        BadRequestError when polars is not installed, or when column names repeat, which polars refuses.
        """
        polars = _require("polars")
        self.require_distinct_names()
        return polars.from_arrow(self.table)

    def require_distinct_names(self) -> None:
        """BadRequestError for column names that repeat."""
        names = self.column_names
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise BadRequestError(f"two columns are called '{repeated[0]}': give one another name with `as`")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow stream, by the PyCapsule protocol; types as in `to_arrow`."""
        return self.table.__arrow_c_stream__(requested_schema)

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
        for start in range(0, self.row_count, _RUN):
            part = self.table.slice(start, _RUN)
            columns = [json_values(column) for column in part.columns]
            for values in zip(*columns):
                yield dict(zip(names, values))

    def to_json(self) -> str:
        """`query_name`, `target`, `row_count`, `columns` and `rows` as one JSON object."""
        body = {
            "query_name": self.name,
            "target": {"branch": self.branch, "manifest_version": self.manifest_version},
            "row_count": self.row_count,
            "columns": self.column_names,
            "rows": self.to_pylist(),
        }
        return json.dumps(body, ensure_ascii=False)

    def __len__(self) -> int:
        return self.row_count

    def _card(self) -> Card:
        rows = f"{self.row_count:,} row{'' if self.row_count == 1 else 's'}"
        return Card(
            "QueryResult",
            f"{self.name}, {rows} of {', '.join(self.column_names)}",
            {"branch": self.branch, "manifest version": self.manifest_version},
            (table_grid(self.table, self.column_names),),
        )


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


def json_values(column: pa.ChunkedArray | pa.Array) -> list[Json]:
    """Values of a column as JSON has them."""
    of = column.type
    if pa.types.is_date(of) or pa.types.is_timestamp(of):
        return _dates(column)
    if pa.types.is_list(of) or pa.types.is_fixed_size_list(of):
        return _lists(column)
    values: list[Json] = column.to_pylist()
    return [_float(v) for v in values] if pa.types.is_floating(of) else values


def _lists(column: pa.ChunkedArray | pa.Array) -> list[Json]:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):
        return [value for chunk in whole.chunks for value in _lists(chunk)]
    found: list[Json] = []
    for row in whole:
        found.append(json_values(row.values) if row.is_valid else None)
    return found


def _dates(column: pa.ChunkedArray | pa.Array) -> list[Json]:
    """`YYYY-MM-DD`, and `YYYY-MM-DDTHH:MM:SS.mmmZ`; years of any number of digits."""
    if not len(column):
        return []
    days = pa.types.is_date32(column.type)
    whole = np.asarray(column.cast(pa.int32() if days else pa.int64()).fill_null(0)).astype(np.int64)
    written = np.datetime_as_string(whole.view("datetime64[D]" if days else "datetime64[ms]"))
    end = "" if days else "Z"
    valid = column.is_valid().to_pylist()
    return [f"{text}{end}" if known else None for text, known in zip(written.tolist(), valid)]


def _float(value: Json) -> Json:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
