"""Tables as input: Parquet by row groups, Arrow by batches, CSV by file or by ranges of lines, Delta by its files.

Rows are numbered from 1, those of CSV with the header as the first, so that a row has the number of its line where no
value spans several lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.records.mode import InputFormat
from spark_omnigraph.storage.faults import reading, said
from spark_omnigraph.storage.input.csv import csv_batches, csv_names
from spark_omnigraph.storage.input.delta import delta_batches, delta_schema, delta_sizes
from spark_omnigraph.storage.input.ranges import InputFile, InputRange, byte_bounds, open_raw
from spark_omnigraph.storage.input.table_rows import TableRows, rows_of

BATCH_ROWS = 1 << 16
_IPC_MAGIC = b"ARROW1"
_NULL_IN_FIXED_LISTS = "Expected all lists to be of size"
_OLD_ARROW = "; pyarrow before 26 reads no null among lists of one size: upgrade it, or write them as lists of any size"


def table_columns(file: InputFile, options: Mapping[str, str]) -> pa.Schema:
    """The columns of a table file, from its footer or header alone."""
    how = _how(file)
    if how.format is InputFormat.CSV:
        return pa.schema([(name, pa.string()) for name in csv_names(file, how, options)])
    if how.format is InputFormat.DELTA:
        return delta_schema(file, options)
    with _opened(file, options) as found:
        return found.schema_arrow if isinstance(found, pq.ParquetFile) else found.schema


def bounds(file: InputFile, size: int, options: Mapping[str, str]) -> list[int]:
    """Where the ranges of a file begin and end, each of about so many bytes: in bytes, of Parquet in row groups, of
    Arrow in batches, of Delta in files.
    """
    if file.table is None or (file.table.format is InputFormat.CSV and file.table.single_line):
        return byte_bounds(file, size)
    if file.table.format is InputFormat.CSV:
        return [0, file.size]
    if file.table.format is InputFormat.DELTA:
        return _grouped(delta_sizes(file, options), size)
    with _opened(file, options) as found:
        if isinstance(found, pq.ParquetFile):
            meta = found.metadata
            return _grouped([meta.row_group(i).total_byte_size for i in range(meta.num_row_groups)], size)
        if isinstance(found, ipc.RecordBatchFileReader):
            count = found.num_record_batches
            return _grouped([file.size // max(1, count)] * count, size)
    return [0, 1]


def read_table(range_: InputRange, options: Mapping[str, str]) -> Iterator[TableRows]:
    """The rows of a range in order. Raises IoError when the file changed since it was listed, BadRequestError when it
    is none of its format.
    """
    file, how = range_.file, _how(range_.file)
    if how.format is InputFormat.CSV:
        yield from csv_batches(range_, how, options)
        return
    if how.format is InputFormat.DELTA:
        yield from rows_of(delta_batches(file, range(range_.start, range_.end), options))
        return
    with _opened(file, options) as found:
        yield from rows_of(_batches(found, range(range_.start, range_.end)))


def _batches(
    found: pq.ParquetFile | ipc.RecordBatchFileReader | ipc.RecordBatchStreamReader, units: range
) -> Iterator[pa.RecordBatch]:
    if isinstance(found, pq.ParquetFile):
        if units:
            yield from found.iter_batches(BATCH_ROWS, list(units), use_threads=False)
    elif isinstance(found, ipc.RecordBatchFileReader):
        for unit in units:
            yield found.get_batch(unit)
    else:
        yield from found


def _grouped(sizes: Sequence[int], size: int) -> list[int]:
    """Bounds of runs of neighbours that have about so many bytes together, at least one each."""
    found, begun = [0], 0
    for unit, total in enumerate(accumulate(sizes), 1):
        if total - begun >= size:
            found.append(unit)
            begun = total
    if found[-1] != len(sizes) or not sizes:
        found.append(len(sizes))
    return found


def _how(file: InputFile) -> TableInput:
    assert file.table is not None
    return file.table


@contextmanager
def _opened(
    file: InputFile, options: Mapping[str, str]
) -> Iterator[pq.ParquetFile | ipc.RecordBatchFileReader | ipc.RecordBatchStreamReader]:
    kind = "Parquet" if _how(file).format is InputFormat.PARQUET else "Arrow"
    with reading(f"read {file.name}"), open_raw(file, dict(options), buffered=True) as stream:
        try:
            if kind == "Parquet":
                # What Spark writes as INT96 does not fit into nanoseconds.
                yield pq.ParquetFile(stream, coerce_int96_timestamp_unit="us")
                return
            is_file = stream.read(len(_IPC_MAGIC)) == _IPC_MAGIC
            stream.seek(0)
            yield ipc.open_file(stream) if is_file else ipc.open_stream(stream)
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the store; what Arrow finds damaged has no number
            hint = _OLD_ARROW if _NULL_IN_FIXED_LISTS in str(error) else ""
            raise BadRequestError(
                f"input '{file.name}' is no {kind} file that can be read: {said(error)}{hint}"
            ) from error
