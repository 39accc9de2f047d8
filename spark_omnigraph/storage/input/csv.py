"""CSV as tables of texts: the quoting of RFC 4180, a header, and no guess at what a value is."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from spark_omnigraph.bad_rows import RAW_LIMIT
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.storage.faults import reading, said
from spark_omnigraph.storage.input.foreign import HEAD, looks_like
from spark_omnigraph.storage.input.ranges import BLOCK, InputFile, InputRange, open_unpacked, read_lines
from spark_omnigraph.storage.input.table_rows import BrokenRow, TableRows

_END = "\x03end of input\x03"
"""The last record that the parser is given: it is missing when a quote before it does not close."""
_STRADDLES = "straddles two block boundaries"
_TOO_LONG = (
    f"has a row of more than {BLOCK >> 20} MiB, as where a quote is not closed: close it, or give so long values as "
    "Parquet or JSON lines"
)
_PROPOSED = "write it with commas, of which alone a schema is proposed"
_LONGEST_HEADER = 4 << 20
_OTHERS = (";", "\t", "|")
"""What separates fields in files that only say `.csv`."""
_TAB = (".tsv", ".tab", ".tsv.gz", ".tab.gz")


def csv_names(file: InputFile, how: TableInput, options: Mapping[str, str]) -> list[str]:
    """The names in the header. BadRequestError for a file that has none, or is no CSV."""
    with reading(f"read {file.name}"), open_unpacked(file, dict(options)) as stream:
        head = stream.read(HEAD)
        found = looks_like(head)
        if found not in (None, "CSV"):
            raise BadRequestError(f"input '{file.name}' looks like {found}, not like CSV")
        stream.seek(0)
        text = io.TextIOWrapper(io.BytesIO(stream.read(_LONGEST_HEADER)), "utf-8-sig", "surrogateescape", "")
        try:
            names = next(csv.reader(text, delimiter=_delimiter(file, how)), [])
            "".join(names).encode()
        except (UnicodeEncodeError, csv.Error) as error:
            raise BadRequestError(f"the header of input '{file.name}' is no line of CSV in UTF-8: {error}") from None
    if not any(names):
        raise BadRequestError(f"input '{file.name}' has no header: its first line must name the columns")
    other = next((each for each in _OTHERS if len(names) == 1 and each in names[0]), None)
    if other is not None and how.delimiter is None:
        way = "give the file the ending .tsv, or the load" if other == "\t" else f"{_PROPOSED}, or give the load"
        told = f"{other!r} and no {_delimiter(file, how)!r}: {way} a mapping with 'delimiter'"
        raise BadRequestError(f"the header of input '{file.name}' has {told}")
    return names


def csv_batches(range_: InputRange, how: TableInput, options: Mapping[str, str]) -> Iterator[TableRows]:
    """The rows of a range. Without `single_line` it is the whole file, and values may span lines."""
    file = range_.file
    reader = _Reader(file, how, csv_names(file, how, options))
    if not how.single_line:
        with reading(f"read {file.name}"), open_unpacked(file, dict(options)) as stream:
            yield from reader.rows(stream, skip_header=True)
        return
    for chunk in read_lines(range_, dict(options)):
        text = b"\n".join(chunk.lines)
        rows = 0
        for part in reader.rows(io.BytesIO(text), skip_header=chunk.offsets[0] == 0):
            rows += part.count
            yield part
        if rows != len(chunk.lines):
            raise BadRequestError(f"a value in '{file.name}' spans lines: load it without --csv-single-line")


class _Reader:
    def __init__(self, file: InputFile, how: TableInput, names: list[str]) -> None:
        self._file = file
        self._names = names
        self._types = dict.fromkeys(names, pa.string())
        self._nulls = list(how.nulls)
        self._delimiter = _delimiter(file, how)
        self._broken: list[tuple[int, str, int]] = []

    def rows(self, stream: BinaryIO | io.BytesIO, skip_header: bool) -> Iterator[TableRows]:
        """Rows with their places among the records of the stream; the header is one."""
        self._broken = []
        tail = f"{_END}{self._delimiter * (len(self._names) - 1)}\n".encode()
        place, held = 0, None
        try:
            for batch in self._open(_Followed(stream, tail)):
                if held is not None and batch.num_rows:
                    rows = self._placed(held, place, skip_header)
                    place += rows.count
                    yield rows
                held = batch if batch.num_rows else held
        except pa.ArrowInvalid as error:
            why = _TOO_LONG if _STRADDLES in str(error) else f"is no CSV that can be read: {said(error)}"
            raise BadRequestError(f"input '{self._file.name}' {why}") from error
        if held is None or held.column(0)[-1].as_py() != _END:
            raise BadRequestError(
                f"input '{self._file.name}' ends within a quoted value: a quote is not closed, or the file is cut off"
            )
        rows = self._placed(held, place, skip_header)
        ended = rows.lines < place + rows.count - 1
        yield replace(rows, batch=rows.batch.filter(pa.array(ended)), lines=rows.lines[ended], count=rows.count - 1)

    def _open(self, stream: _Followed) -> Iterator[pa.RecordBatch]:
        return iter(
            pacsv.open_csv(
                stream,
                read_options=pacsv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=self._names),
                parse_options=pacsv.ParseOptions(
                    delimiter=self._delimiter,
                    newlines_in_values=True,
                    ignore_empty_lines=False,
                    invalid_row_handler=self._note,
                ),
                convert_options=pacsv.ConvertOptions(
                    check_utf8=False,
                    column_types=self._types,
                    null_values=self._nulls,
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        )

    def _note(self, row: pacsv.InvalidRow) -> str:
        self._broken.append((row.number - 1, row.text, row.actual_columns))
        return "skip"

    def _placed(self, batch: pa.RecordBatch, place: int, skip_header: bool) -> TableRows:
        """The rows of a batch that have a value, with their places: broken rows stand between them."""
        count = batch.num_rows
        mine = list(takewhile(lambda row: row[1][0] < place + count + row[0], enumerate(self._broken)))
        self._broken = self._broken[len(mine) :]
        count += len(mine)
        places = np.delete(np.arange(place, place + count), [at - place for _, (at, _, _) in mine])
        given = np.zeros(batch.num_rows, dtype=bool)
        for column in batch.columns:
            given |= np.asarray(column.is_valid())
        if skip_header:
            given &= places != 0
        expected = len(self._names)
        broken = tuple(
            BrokenRow(at, text[:RAW_LIMIT], f"the row has {_fields(found)}, the header {expected}")
            for _, (at, text, found) in mine
        )
        kept = batch if given.all() else batch.filter(pa.array(given))
        return TableRows(kept, places[given], count, broken)


class _Followed(io.RawIOBase):
    """A stream with a line after its last one."""

    def __init__(self, stream: BinaryIO | io.BytesIO, tail: bytes) -> None:
        super().__init__()
        self._stream = stream
        self._tail: bytes = tail
        self._last = b"\n"

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        found = self._stream.read(size)
        if found:
            self._last = found[-1:]
            return found
        tail = self._tail if self._last == b"\n" or not self._tail else b"\n" + self._tail
        self._tail = b""
        return tail


def _delimiter(file: InputFile, how: TableInput) -> str:
    if how.delimiter is not None:
        return how.delimiter
    return "\t" if file.name.lower().endswith(_TAB) else ","


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"
