"""Rows of a query as lines of text, and as a Parquet file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

import pyarrow.parquet as pq

from spark_omnigraph.engine.result import Json, QueryResult, json_values
from spark_omnigraph.redaction import one_line
from spark_omnigraph.storage.objects.whole_file import whole_path

SHOWN_ROWS = 1000
"""Rows of a table for people; the other formats have all."""
_WIDEST = 60
_RUN = 10_000
_TO_QUOTE = re.compile(r'[",\r\n]')


def lines_of(result: QueryResult, form: str) -> Iterator[str]:
    """The rows as `table`, `json`, `jsonl` or `csv`, without line ends."""
    if form == "json":
        return iter([result.to_json()])
    if form == "jsonl":
        return (json.dumps(row, ensure_ascii=False) for row in result.rows())
    return _csv(result) if form == "csv" else _table(result)


def write_parquet(result: QueryResult, path: str, storage_options: Mapping[str, str] | None = None) -> None:
    """A Parquet file that appears when it is complete. BadRequestError for column names that repeat."""
    result.require_distinct_names()
    with whole_path(path, storage_options) as part:
        pq.write_table(result.table, part)


def _rows(result: QueryResult, most: int | None = None) -> Iterator[tuple[Json, ...]]:
    """Values of all columns, those with the same name too."""
    count = result.row_count if most is None else min(most, result.row_count)
    for start in range(0, count, _RUN):
        part = result.table.slice(start, min(_RUN, count - start))
        yield from zip(*(json_values(column) for column in part.columns))


def _csv(result: QueryResult) -> Iterator[str]:
    """A header and the rows: null as nothing, an empty text as `""`, lists as JSON."""
    yield _csv_line(result.column_names)
    for row in _rows(result):
        yield _csv_line([_cell(value) for value in row])


def _csv_line(cells: Sequence[str | None]) -> str:
    return ",".join("" if cell is None else _quoted(cell) for cell in cells)


def _quoted(cell: str) -> str:
    if cell and not _TO_QUOTE.search(cell):
        return cell
    doubled = cell.replace('"', '""')
    return f'"{doubled}"'


def _cell(value: Json) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _table(result: QueryResult) -> Iterator[str]:
    """Columns side by side, numbers to the right; a long text is cut."""
    rows = [tuple(_shown(value) for value in row) for row in _rows(result, SHOWN_ROWS)]
    names = [one_line(name) for name in result.column_names]
    widths = [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(names)]
    right = [c.type.scalar.is_numeric and not c.type.is_list for c in result.columns]
    yield "  ".join(name.ljust(width) for name, width in zip(names, widths)).rstrip()
    yield "  ".join("-" * width for width in widths)
    for row in rows:
        cells = zip(row, widths, right)
        yield "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width) for cell, width, is_right in cells
        ).rstrip()
    left = result.row_count - len(rows)
    if left:
        yield f"… and {left:,} rows more"


def _shown(value: Json) -> str:
    text = one_line(" ".join(("null" if value is None else _cell(value) or "").split()))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
