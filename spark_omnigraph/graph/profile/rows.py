"""Rows of files as batches of future types: tables by their names, JSON lines by their envelopes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath

import pyarrow as pa

from spark_omnigraph.bad_rows import RAW_LIMIT
from spark_omnigraph.errors import InputError
from spark_omnigraph.records.frames.layouts import plain_batch
from spark_omnigraph.records.json_line import InvalidJsonError, parse_line
from spark_omnigraph.records.legible import legible_batch, why_illegible
from spark_omnigraph.records.mode import InputFormat
from spark_omnigraph.redaction import excerpt, one_line
from spark_omnigraph.storage.input.delta import delta_scan, is_scanned
from spark_omnigraph.storage.input.ranges import InputFile, InputRange, read_lines
from spark_omnigraph.storage.input.table_rows import TableRows, rows_of
from spark_omnigraph.storage.input.tables import bounds, read_table
from spark_omnigraph.storage.uri import DELTA

_RANGE = 64 << 20
_LINES = 20_000
_PART = re.compile(r"(?i)^part[-_]?\d|^\d+$")
_NUMBER = re.compile(r"[-_.]?\d+$")
_WORDS = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one future type: node or edge by its envelope, or a table by the name of its file."""

    name: str
    source: str
    rows: pa.RecordBatch
    spelled: bool = False
    mixed: tuple[str, ...] = ()
    is_edge: bool = False
    left_out: int = 0
    """Rows that no load takes whatever the schema: of too few or too many fields, or no UTF-8."""
    first: str = ""
    """Of them the first: its line and what is wrong."""


def batches(file: InputFile, options: Mapping[str, str]) -> Iterator[Batch]:
    """The rows of a file in order. InputError for a line that is no object; files that cannot be read as elsewhere."""
    if file.table is None:
        yield from _of_lines(file, options)
        return
    is_delta = file.table.format is InputFormat.DELTA
    name = type_name(file.name.removeprefix(DELTA).rpartition("@v")[0] if is_delta else file.name)
    if is_delta and is_scanned(file, options):
        for part in rows_of(plain_batch(rows) for rows in delta_scan(file, options)):
            yield _of_table(Batch(name, file.name, part.batch), part, 1)
        return
    first, spelled = 1, file.table.format is InputFormat.CSV
    for start, end in pairwise(bounds(file, _RANGE, options)):
        count = 0
        for part in read_table(InputRange(0, file, start, end), options):
            yield _of_table(Batch(name, file.name, part.batch, spelled), part, first)
            count += part.count
        first += count


def type_name(path: str) -> str:
    """`raw/film_people-0001.parquet` is of `FilmPeople`; parts are called after their folder.

    >>> type_name("raw/film_people-0001.parquet"), type_name("s3://b/films/part-0.csv.gz"), type_name("7.csv")
    ('FilmPeople', 'Films', 'Rows')
    """
    place = PurePosixPath(path)
    stem = place.name.split(".")[0]
    if _PART.search(stem):
        stem = place.parent.name
    words = [word for word in _WORDS.split(_NUMBER.sub("", stem)) if word]
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if name[:1].isalpha() else f"Rows{name}"


def _of_table(batch: Batch, part: TableRows, first: int) -> Batch:
    """The rows of a part whose first row is the `first` of the file, without those that no load takes."""
    found = legible_batch(part.batch)
    bad = found.bad_rows
    why = [(row.line, row.message) for row in part.broken[:1]]
    if bad.any():
        at = int(bad.argmax())
        names = found.columns_of(at)
        why.append((int(part.lines[at]), why_illegible(names, found.batch.slice(at, 1).column(names[0]))))
        batch = replace(batch, rows=found.batch.filter(pa.array(~bad)))
    if not why:
        return batch
    line, message = min(why)
    left_out = len(part.broken) + int(bad.sum())
    return replace(batch, left_out=left_out, first=f"line {first + line}: {one_line(message)}")


def _of_lines(file: InputFile, options: Mapping[str, str]) -> Iterator[Batch]:
    found: dict[tuple[str, bool], list[Mapping[str, object]]] = {}
    number = 0
    for chunk in read_lines(InputRange(0, file, 0, file.size), dict(options)):
        for line in chunk.lines:
            number += 1
            if not line.strip():
                continue
            name, is_edge, row = _record(line, file, number)
            rows = found.setdefault((name, is_edge), [])
            rows.append(row)
            if len(rows) >= _LINES:
                yield _batch(name, is_edge, file, found.pop((name, is_edge)))
    for (name, is_edge), rows in found.items():
        yield _batch(name, is_edge, file, rows)


def _record(line: bytes, file: InputFile, number: int) -> tuple[str, bool, Mapping[str, object]]:
    try:
        record = parse_line(line)
    except InvalidJsonError as error:
        shown = excerpt(line[:RAW_LIMIT].decode(errors="replace"))
        raise InputError(f"{file.name}:{number} is no JSON object: {error}: {shown}") from None
    data = record.get("data")
    if isinstance(data, Mapping) and isinstance(name := record.get("type"), str):
        return name, False, data
    if isinstance(name := record.get("edge"), str) and {"from", "to"} <= record.keys():
        ends = {"from": record["from"], "to": record["to"]}
        return name, True, {**ends, **(data if isinstance(data, Mapping) else {})}
    return type_name(file.name), False, record


def _batch(name: str, is_edge: bool, file: InputFile, rows: Sequence[Mapping[str, object]]) -> Batch:
    columns, mixed = {}, []
    for column in dict.fromkeys(key for row in rows for key in row):
        values = [row.get(column) for row in rows]
        try:
            columns[column] = pa.array(_numbers(values))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            mixed.append(column)
    batch = pa.RecordBatch.from_pydict(columns) if columns else pa.record_batch([pa.nulls(len(rows))], names=[""])
    return Batch(name, file.name, batch, False, tuple(mixed), is_edge)


def _numbers(values: list[object]) -> list[object]:
    """Whole numbers as floats where one is a fraction: Arrow takes no column of both."""
    if not any(isinstance(value, float) for value in values):
        return values
    return [float(value) if isinstance(value, int) and not isinstance(value, bool) else value for value in values]
