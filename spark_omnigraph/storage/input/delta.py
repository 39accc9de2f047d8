"""Delta tables as input, without a JVM: one version of a table, as the package `deltalake` reads it.

A table is never read by listing its files. One without deletion vectors, v2 checkpoints and mapped columns is a dataset
of Arrow, whose files are the units of ranges. Any other is scanned by the Rust reader, whose order is not given: its
rows are read once and staged. That reader takes instants that Spark stored as INT96 for others where they lie outside
of 1677 to 2262, and says nothing (delta-kernel-rs, issue 2709), so such a table is refused unless its statistics prove
the range.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from spark_omnigraph.errors import BadRequestError, IoError, NotFoundError
from spark_omnigraph.storage.faults import said
from spark_omnigraph.storage.input.ranges import InputFile
from spark_omnigraph.storage.objects.files import open_object
from spark_omnigraph.storage.uri import DELTA, DELTA_EXTRA, locate, plain

if TYPE_CHECKING:
    from deltalake import DeltaTable

LOG = "_delta_log"
BY_SPARK = "read it with --executor spark in a session that has Delta"
_SCANNED = {"deletionVectors", "v2Checkpoint"}
"""Features of a table that a dataset of Arrow does not know, and a scan does."""
_READABLE = {
    *_SCANNED,
    "columnMapping",
    "timestampNtz",
    "vacuumProtocolCheck",
    "typeWidening",
    "typeWidening-preview",
    "variantType",
    "variantType-preview",
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "generatedColumns",
    "identityColumns",
    "rowTracking",
    "domainMetadata",
    "clustering",
    "icebergCompatV1",
    "icebergCompatV2",
    "allowColumnDefaults",
    "inCommitTimestamp",
}
_TOO_NEW = ("protocol", "table feature", "catalog version", "unsupported")
"""What the package says of a table that is newer than itself."""
_FIRST = datetime(1677, 9, 22, tzinfo=timezone.utc)
_LAST = datetime(2262, 4, 11, tzinfo=timezone.utc)
"""Between them nanoseconds fit into 64 bits."""


def is_delta(text: str) -> bool:
    """Whether a path is said to be a Delta table, or is a folder on this machine that is one."""
    if text.startswith(DELTA):
        return True
    path = plain(text)
    return "://" not in path and "\0" not in path and os.path.isdir(os.path.join(path, LOG))


def delta_table(uri: str, version: int | None, options: Mapping[str, str]) -> DeltaTable:
    """A table at a version, or at its newest. NotFoundError, or BadRequestError for one that cannot be read here."""
    place = plain(uri.removeprefix(DELTA))
    name = f"{DELTA}{place}"
    found = locate(place, options).options if place.startswith("s3://") else {}
    with reading_delta(name, version) as package:
        table: DeltaTable = package.DeltaTable(place, version=version, storage_options=dict(found) or None)
        features = set(table.protocol().reader_features or ())
    unknown = sorted(features - _READABLE)
    if unknown:
        raise BadRequestError(
            f"input '{name}' has the table feature '{unknown[0]}', which is not known here: {BY_SPARK}"
        )
    return table


def delta_input(uri: str, version: int | None, options: Mapping[str, str]) -> InputFile:
    """A table as an input, at the version that is its newest now where none is given: its name ends in it, as in
    `delta:/lake/films@v7`.
    """
    table = delta_table(uri, version, options)
    actions = pa.table(table.get_add_actions(flatten=True))
    size = sum(actions.column("size_bytes").to_pylist()) if actions.num_rows else 0
    place = plain(uri.removeprefix(DELTA)).rstrip("/")
    return InputFile(f"{DELTA}{place}@v{table.version()}", size, f"{table.metadata().id}@v{table.version()}")


def is_scanned(file: InputFile, options: Mapping[str, str]) -> bool:
    """Whether the rows of a table come in no order, so that they must be read once."""
    table = _table(file, options)
    # A dataset of Arrow looks for the names of columns in files that have others, and gives nulls.
    mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
    return mapped or bool(_SCANNED & set(table.protocol().reader_features or ()))


def delta_schema(file: InputFile, options: Mapping[str, str]) -> pa.Schema:
    """The columns of a table."""
    table = _table(file, options)
    with reading_delta(file.name):
        return pa.schema(table.schema().to_arrow())


def delta_sizes(file: InputFile, options: Mapping[str, str]) -> list[int]:
    """About how many bytes each unit of a table has that is no scan."""
    table = _table(file, options)
    with reading_delta(file.name):
        actions = pa.table(table.get_add_actions(flatten=True))
        sizes = dict(zip(actions.column("path").to_pylist(), actions.column("size_bytes").to_pylist(), strict=True))
        return [sizes.get(each.path, file.size // len(sizes)) for each in _units(table)[1]]


def delta_batches(file: InputFile, units: range, options: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Rows of units in order. IoError when a file is gone, as after VACUUM."""
    table = _table(file, options)
    with reading_delta(file.name):
        schema, fragments = _units(table)
        for unit in units:
            yield from fragments[unit].to_batches(schema=schema, use_threads=False)


def delta_scan(file: InputFile, options: Mapping[str, str]) -> pa.RecordBatchReader:
    """Rows of a table in any order. BadRequestError where an instant could come out as another one."""
    table = _table(file, options)
    _refuse_wrapped(file, table, options)
    with reading_delta(file.name):
        return guarded(file.name, pa.RecordBatchReader.from_stream(table.scan()))


def guarded(name: str, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The same rows; what goes wrong while they are read is IoError."""

    def batches() -> Iterator[pa.RecordBatch]:
        with reading_delta(name):
            try:
                yield from rows
            except pa.ArrowException as error:
                raise IoError(
                    f"storage: cannot read input '{name}', of which a file may be gone: {said(error)}"
                ) from error

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def _table(file: InputFile, options: Mapping[str, str]) -> DeltaTable:
    uri, _, version = file.name.rpartition("@v")
    return delta_table(uri, int(version), options)


def _units(table: DeltaTable) -> tuple[pa.Schema, list[ds.Fragment]]:
    # What Spark writes as INT96 does not fit into nanoseconds.
    dataset = table.to_pyarrow_dataset(parquet_read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))
    return dataset.schema, sorted(dataset.get_fragments(), key=lambda each: str(each.path))


def _refuse_wrapped(file: InputFile, table: DeltaTable, options: Mapping[str, str]) -> None:
    with reading_delta(file.name):
        where = wrapped_column(table, plain(file.name.removeprefix(DELTA)).rpartition("@v")[0], options)
    if where is not None:
        raise BadRequestError(
            f"input '{file.name}' has deletion vectors, v2 checkpoints or mapped columns, and {where} is stored as "
            "INT96: instants outside of 1677 to 2262 would be read wrongly, and nothing proves that there are none. "
            f"R{BY_SPARK[1:]}, or write the table anew with spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS"
        )


def wrapped_column(table: DeltaTable, place: str, options: Mapping[str, str]) -> str | None:
    """What the Rust reader may take for other instants, as in `column 'at'`: it is stored as INT96, and no statistics
    prove that its values lie where that is read rightly. None where all come out as they are.
    """
    schema = pa.schema(table.schema().to_arrow())
    instants = [field.name for field in schema if pa.types.is_timestamp(field.type) and field.type.tz is not None]
    nested = [field.name for field in schema if pa.types.is_nested(field.type) and "timestamp" in str(field.type)]
    actions = pa.table(table.get_add_actions(flatten=True))
    named = [name for name in instants if not _proves(actions, name)]
    if not (named or nested):
        return None
    # Paths are as the log spells them.
    parts = (path if "://" in path else f"{place}/{unquote(path)}" for path in actions["path"].to_pylist())
    if not any(has_int96(part, options) for part in parts):
        return None
    return f"column '{(named or nested)[0]}'"


def _proves(actions: pa.Table, name: str) -> bool:
    """Whether the bounds of every file that has values lie where INT96 is read rightly. The value of a partition stands
    in no file.
    """
    if f"partition.{name}" in actions.column_names:
        return True
    names = ("num_records", f"null_count.{name}", f"min.{name}", f"max.{name}")
    if not {*names} <= {*actions.column_names}:
        return False
    records, nulls, *ends = (actions.column(each) for each in names)
    has_values = pc.fill_null(pc.not_equal(records, nulls), True)
    bounds = [each.filter(has_values) for each in ends]
    values = [value for each in bounds for value in each.cast(pa.timestamp("us", "UTC"), safe=False).to_pylist()]
    return all(value is not None and _FIRST < value < _LAST for value in values)


def has_int96(uri: str, options: Mapping[str, str]) -> bool:
    """Whether a file of Parquet has instants as Spark stores them."""
    with open_part(uri, options) as stream:
        schema = pq.ParquetFile(stream).schema
    return any(schema.column(each).physical_type == "INT96" for each in range(len(schema)))


def open_part(uri: str, options: Mapping[str, str]) -> IO[bytes]:
    """A file of a table as a stream."""
    place = plain(uri)
    return open_object(place, None, options, buffered=True) if place.startswith("s3://") else open(place, "rb")


@contextmanager
def reading_delta(name: str, version: int | None = None) -> Iterator[Any]:
    """The package, with its errors as ours."""
    try:
        package = import_module("deltalake")
    except ImportError:
        raise BadRequestError(
            f"input '{name}' is a Delta table, and the package deltalake is not here: {DELTA_EXTRA}, or {BY_SPARK}"
        ) from None
    errors = import_module("deltalake.exceptions")
    try:
        yield package
    except errors.TableNotFoundError:
        raise NotFoundError(f"input '{name}' not found: there is no Delta table") from None
    except errors.DeltaProtocolError as error:
        raise BadRequestError(f"input '{name}' cannot be read here ({said(error)}): {BY_SPARK}") from error
    except FileNotFoundError as error:
        raise IoError(f"storage: input '{name}' has lost a file, as after VACUUM: {said(error)}") from error
    except (errors.DeltaError, OSError) as error:
        if any(word in str(error).lower() for word in _TOO_NEW):
            raise BadRequestError(f"input '{name}' cannot be read here ({said(error)}): {BY_SPARK}") from error
        if version is not None:
            raise NotFoundError(f"input '{name}' has no version {version} that can be read: {said(error)}") from error
        raise IoError(f"storage: cannot read input '{name}': {said(error)}") from error
