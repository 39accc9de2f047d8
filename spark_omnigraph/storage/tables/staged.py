"""Staging data files of a table, and removing staged files that nothing can refer to."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.file import LanceFileWriter
from lance.fragment import DataFile, FragmentMetadata, RowIdSequence, write_fragments

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import ConflictError, DamagedError, InternalError, StorageError
from spark_omnigraph.storage.faults import reading, reason
from spark_omnigraph.storage.layout import STORAGE_VERSION
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.tables.scan import LOST_COLUMN, PinnedTable, open_pinned, refuse_lost

_MAJOR, _MINOR = (int(part) for part in STORAGE_VERSION.split("."))
_OTHER_COLUMNS = "Append with different schema"


@dataclass(frozen=True, slots=True)
class TableTarget:
    """Where an executor stages rows of one table: its physical dataset, pinned. Picklable.

    `beside` names columns that checks read back and that stand behind a blob, where Lance cannot read a file that no
    dataset names yet: their values travel with the staged file.
    """

    table_key: TableKey
    uri: str
    version: int
    row_count: int
    beside: tuple[str, ...] = ()

    def open(self, options: Mapping[str, str]) -> lance.LanceDataset:
        """The dataset. VersionExpiredError when the version was removed since it was pinned."""
        return open_pinned(PinnedTable(self.uri, self.version, options))


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A fragment that nothing refers to yet: its Lance metadata (JSON), the URI of the data file, its row count, and
    the columns that travel beside it (Arrow IPC).
    """

    fragment: str
    uri: str
    rows: int
    beside: bytes | None = None

    @classmethod
    def of(cls, table_uri: str, fragment: FragmentMetadata, beside: bytes | None = None) -> StagedFile:
        """The one data file of a fragment that Lance has just written into a table's folder."""
        (file,) = fragment.files
        return cls(json.dumps(fragment.to_json()), f"{table_uri}/data/{file.path}", fragment.physical_rows, beside)

    def read_beside(self) -> pa.Table:
        """The columns that travel beside the file, rows in file order."""
        return pa.table({}) if self.beside is None else pa.ipc.open_stream(self.beside).read_all()


@dataclass(frozen=True, slots=True)
class ColumnRewrite:
    """A fragment that has some columns in a new file, which nothing refers to yet.

    `file.fragment` is its metadata with that file; `fields` are the columns' ids, and `changed` the rows that got a new
    value (offsets as a Roaring bitmap), of which alone Lance is to say that they changed.
    """

    file: StagedFile
    fragment_id: int
    fields: tuple[int, ...]
    changed: bytes


@contextmanager
def _columns_kept(target: TableTarget, columns: Sequence[str], options: Mapping[str, str]) -> Iterator[None]:
    """Says of rows that Lance refuses beside those of a table whether it has changed since it was pinned."""
    try:
        yield
    except (OSError, ValueError) as error:
        if _OTHER_COLUMNS not in str(error):
            raise
        key, pinned = target.table_key, target.open(options)
        if int(pinned.latest_version) == target.version:
            refuse_lost(key, target.version, columns, pinned.schema.names)
            what = f"'{key}' has other columns at version {target.version} than the schema of the graph"
            raise DamagedError(f"storage: {what} ({reason(error)}): {LOST_COLUMN}") from error
        raise ConflictError(
            f"the schema of '{key}' changed while rows of it were written; nothing has changed, run it again"
        ) from error


def stage_rows(
    target: TableTarget, rows: pa.Table, row_ids: npt.NDArray[np.uint64] | None, options: Mapping[str, str]
) -> StagedFile:
    """Writes one fragment. `row_ids` are the stable row ids that the leading rows keep (they replace stored rows).
    ConflictError where the table has other columns by now: Lance compares with its newest version.
    """
    of_table = _columns_kept(target, rows.schema.names, options)
    with reading(f"stage rows of '{target.table_key}'"), of_table:
        fragments = write_fragments(
            rows,
            target.uri,
            schema=rows.schema,
            mode="append",
            max_rows_per_file=max(rows.num_rows, 1),
            data_storage_version=STORAGE_VERSION,
            enable_stable_row_ids=True,
            storage_options=dict(options) or None,
            allow_external_blob_outside_bases=True,
        )
    if len(fragments) != 1 or len(fragments[0].files) != 1:
        raise InternalError(f"staging '{target.table_key}' wrote {len(fragments)} fragments instead of one")
    fragment = fragments[0]
    if row_ids is not None and len(row_ids):
        kept = RowIdSequence(pa.array(row_ids, pa.uint64())).to_inline_metadata()
        fragment = dataclasses.replace(fragment, row_id_meta=kept)
    beside = packed(rows.select(list(target.beside))) if target.beside else None
    return StagedFile.of(target.uri, fragment, beside)


def write_file(
    uri: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], fields: Sequence[int], options: Mapping[str, str]
) -> DataFile:
    """Writes a data file of some columns, which have these field ids; nothing names it yet."""
    with LanceFileWriter(uri, schema, version=STORAGE_VERSION, storage_options=dict(options) or None) as writer:
        for batch in batches:
            writer.write_batch(batch)
    name, size = uri.rpartition("/")[2], int(writer.size_bytes or 0)
    return DataFile(name, list(fields), list(range(len(fields))), _MAJOR, _MINOR, size)


def packed(rows: pa.Table) -> bytes:
    """Rows as compressed Arrow IPC, small enough to travel."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def discard(objects: Objects, files: Iterable[StagedFile]) -> None:
    """Removes staged files, blobs included, that nothing can name. What the store does not let go is clean-up's."""
    with suppress(StorageError):
        for file in files:
            path = file.uri.removeprefix(objects.location.root).strip("/")
            objects.delete(path)
            objects.purge(path.removesuffix(".lance"))
