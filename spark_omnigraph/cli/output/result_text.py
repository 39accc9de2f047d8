"""Rows of a query as lines of text, and as a Parquet file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq

from spark_omnigraph.answer import Json, Rows
from spark_omnigraph.engine.result import QueryResult
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.redaction import distinct, one_line
from spark_omnigraph.storage.objects.whole_file import whole_path

SHOWN_ROWS = 1000
"""Rows of a table for people; the other formats have all."""
_WIDEST = 60
_GROUP_ROWS, _GROUP_BYTES = 1 << 17, 64 << 20
_TO_QUOTE = re.compile(r'[",\r\n]')


def lines_of(result: Rows, form: str) -> Iterator[str]:
    """The rows as `table`, `json`, `jsonl` or `csv`, without line ends."""
    if form == "json":
        return iter([result.to_json()]) if isinstance(result, QueryResult) else _json(result)
    if form == "jsonl":
        return (json.dumps(row, ensure_ascii=False) for row in result.rows())
    if form == "csv":
        return _csv(result)
    return _plans(result) if result.column_names == ["plan_type", "plan"] else _table(result)


def write_parquet(result: Rows, path: str, storage_options: Mapping[str, str] | None = None) -> None:
    """A Parquet file that appears when it is complete. BadRequestError for column names that repeat, and for a type
    that Parquet does not have.
    """
    result.require_distinct_names()
    with whole_path(path, storage_options) as part:
        try:
            with pq.ParquetWriter(part, result.arrow_schema) as file:
                for table in _row_groups(result):
                    file.write_table(table)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
            raise BadRequestError(f"Parquet does not hold such values ({error}): cast them, or use jsonl") from error


def _row_groups(result: Rows) -> Iterator[pa.Table]:
    """The rows in tables that are worth a row group each."""
    parts: list[pa.RecordBatch] = []
    for batch in result.batches():
        parts.append(batch)
        if sum(part.num_rows for part in parts) >= _GROUP_ROWS or sum(part.nbytes for part in parts) >= _GROUP_BYTES:
            yield pa.Table.from_batches(parts)
            parts = []
    if parts:
        yield pa.Table.from_batches(parts)


def _json(result: Rows) -> Iterator[str]:
    """One JSON object over many lines, a row on each: what is not known before the last row comes after it."""
    head = {
        "target": {"branch": result.branch, "manifest_version": result.manifest_version},
        "columns": result.column_names,
    }
    yield f'{json.dumps(head, ensure_ascii=False)[:-1]}, "rows": ['
    count = 0
    for row in result.rows():
        yield ("," if count else "") + json.dumps(row, ensure_ascii=False)
        count += 1
    yield f'], "row_count": {count}}}'


def _csv(result: Rows) -> Iterator[str]:
    """A header and the rows: null as nothing, an empty text as `""`, lists as JSON."""
    yield _csv_line(result.column_names)
    for row in result.values():
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


def _plans(result: Rows) -> Iterator[str]:
    """What EXPLAIN gives: plans, of many lines each, whole."""
    for kind, plan in result.values():
        yield one_line(str(kind))
        yield from (one_line(line) for line in str(plan).splitlines())


def _table(result: Rows) -> Iterator[str]:
    """Columns side by side, numbers to the right; a long text is cut, and one that could be taken for another
    is in quotes. No more rows are read than are shown.
    """
    values = result.values()
    rows = [tuple(_shown(value) for value in row) for row in islice(values, SHOWN_ROWS)]
    more = next(values, None) is not None
    names = [one_line(name) for name in result.column_names]
    widths = [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(names)]
    right = [_is_number(of) for of in result.arrow_schema.types]
    yield "  ".join(name.ljust(width) for name, width in zip(names, widths)).rstrip()
    yield "  ".join("-" * width for width in widths)
    for row in rows:
        cells = zip(row, widths, right)
        yield "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width) for cell, width, is_right in cells
        ).rstrip()
    if more:
        left = f"{result.row_count - len(rows):,} rows more" if isinstance(result, QueryResult) else "more rows"
        yield f"… and {left}"


def _is_number(of: pa.DataType) -> bool:
    return bool(pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_decimal(of))


def _shown(value: Json) -> str:
    text = distinct(value) if isinstance(value, str) else one_line(_cell(value) or "null")
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
