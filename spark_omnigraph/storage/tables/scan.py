"""Scans of one pinned table: what travels to a task, and how a task reads it batch by batch."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from spark_omnigraph.errors import BadRequestError, DamagedError, StorageError, VersionExpiredError
from spark_omnigraph.manifest.snapshot import GraphMark
from spark_omnigraph.records.mode import REMOTE_SCHEMES
from spark_omnigraph.redaction import excerpt
from spark_omnigraph.storage.faults import reading, reason
from spark_omnigraph.storage.origin import require_origin
from spark_omnigraph.storage.tables.blobs import EXTERNAL, Descriptor, StoredBlobs, is_blob
from spark_omnigraph.storage.tables.handles import data_bytes

if TYPE_CHECKING:
    from lance.lance import _Session

BATCH_ROWS = 8192
BATCH_BYTES = 16 << 20
"""A batch ends at the first of the two limits, so that wide rows and vectors do not fill a worker's memory."""

PARTITION_BYTES = 64 << 20
PARTITION_ROWS = 1_500_000
"""What a partition holds at most, about: a task costs as much as reading some hundred thousand rows."""

TASK_ROWS = 100_000
"""Fewer rows are not worth a task of their own."""

BLOB_RUN_BYTES = 32 << 20
EXTERNAL_BLOB_BYTES = 4 << 20
"""What an external blob counts for: its descriptor does not know its size."""

LOST_COLUMN = (
    "another program changed the table, or put the schema files of another state there. Put the table's folder or the "
    "schema files back from a backup; or give up the values of a property that is in no key: schema apply with a "
    "schema without it makes both fit, and once more with it brings it back without values"
)
"""The way out for a table that lacks a column of its schema."""

UPDATED = "_row_last_updated_at_version"
"""Of a row, the version of the table that gave it its values; compaction leaves it alone."""
_ADDRESS = "_rowaddr"


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A dataset folder at one version. Picklable: tasks open it themselves and never see a newer version."""

    uri: str
    version: int
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    origin: GraphMark | None = None


@dataclass(frozen=True, slots=True)
class TableScan:
    """Which columns and rows of a pinned table are wanted; `where` is Lance SQL that `check_filter` accepted."""

    table: PinnedTable
    columns: tuple[str, ...]
    where: str | None = None
    limit: int | None = None
    fragments: tuple[int, ...] | None = None
    batch_rows: int = BATCH_ROWS


@dataclass(frozen=True, slots=True)
class FragmentSize:
    """One fragment: rows that are alive, and bytes of its data files (0 when the writer did not record them)."""

    id: int
    rows: int
    bytes: int


def column_names(table: PinnedTable) -> list[str]:
    """Columns that the pinned version stores."""
    return list(open_pinned(table).schema.names)


def refuse_lost(table_key: str, version: int, wanted: Iterable[str], stored: Collection[str]) -> None:
    """DamagedError for a table that lacks one of these columns at a version, with the way out."""
    lost = [name for name in wanted if name not in stored]
    if lost:
        named = ", ".join(f"'{name}'" for name in lost)
        what = f"'{table_key}' has no column {named} at version {version}, and the schema of the graph has"
        raise DamagedError(f"storage: {what}: {LOST_COLUMN}")


def column_ids(table: PinnedTable) -> dict[str, int]:
    """Columns with the ids that they have in files: that of a column which was made again is another one."""
    return {field.name(): field.id() for field in open_pinned(table).lance_schema.fields()}


def fragment_sizes(table: PinnedTable) -> list[FragmentSize]:
    """Sizes of all fragments in their order; read from the table's manifest, no data file is touched."""
    dataset = open_pinned(table)
    with reading(f"list fragments of {table.uri}"):
        return [_size(fragment) for fragment in dataset.get_fragments()]


def group_fragments(sizes: Sequence[FragmentSize], slots: int) -> list[tuple[int, ...]]:
    """Neighbouring fragments in groups of about the same size, no group much above a partition's; empty ones left out.

    There are at least as many groups as task `slots`, as far as the fragments go and a task has enough rows to do.
    """
    alive = [size for size in sizes if size.rows]
    loads = [max(size.rows / PARTITION_ROWS, size.bytes / PARTITION_BYTES) for size in alive]
    total = sum(loads)
    busy = min(slots, sum(size.rows for size in alive) // TASK_ROWS)
    count = max(math.ceil(total), busy, 1)
    groups: dict[int, list[int]] = {}
    before = 0.0
    for size, load in zip(alive, loads, strict=True):
        middle = before + load / 2
        groups.setdefault(int(middle / total * count), []).append(size.id)
        before += load
    return [tuple(ids) for ids in groups.values()]


def check_filter(table: PinnedTable, where: str) -> None:
    """Raises BadRequestError, with Lance's reason, for a predicate that cannot be planned on this table."""
    dataset = open_pinned(table)
    try:
        dataset.scanner(columns=dataset.schema.names[:1], filter=where).explain_plan()
    except (ValueError, OSError, RuntimeError) as error:
        raise BadRequestError(f"filter is not valid: {reason(error)}") from error


def count_rows(table: PinnedTable, where: str | None) -> int:
    """Rows of a pinned table that a predicate keeps."""
    dataset = open_pinned(table)
    with reading(f"count rows of {table.uri}"):
        return int(dataset.count_rows(filter=where))


def read_batches(scan: TableScan) -> Iterator[pa.RecordBatch]:
    """The wanted rows, columns in the asked order; blob columns arrive as their bytes (`large_binary`).

    A dataset is opened once. Memory is bounded by a few batches, whatever the table holds.
    """
    dataset = open_pinned(scan.table)
    blobs = [name for name in scan.columns if is_blob(dataset.schema.field(name))]
    with reading(f"read {scan.table.uri}"):
        scanner = dataset.scanner(
            columns=list(scan.columns),
            filter=scan.where,
            limit=scan.limit,
            fragments=None if scan.fragments is None else fragments_of(dataset, scan.fragments),
            batch_size=scan.batch_rows,
            batch_size_bytes=BATCH_BYTES,
            with_row_address=bool(blobs) or not scan.columns,
            blob_handling="blobs_descriptions" if blobs else None,
        )
        batches = scanner.to_reader()
    nulls = StoredBlobs(dataset)
    while (batch := _next(batches, scan.table.uri)) is not None:
        yield from replace_blobs(dataset, batch, scan.columns, nulls)


def replace_blobs(
    dataset: LanceDataset, batch: pa.RecordBatch, columns: tuple[str, ...], nulls: StoredBlobs
) -> Iterator[pa.RecordBatch]:
    """The columns of a batch with blobs as their bytes instead of descriptors; with any, it needs row addresses."""
    blobs = [name for name in columns if is_blob(dataset.schema.field(name))]
    if blobs:
        yield from _with_blobs(dataset, batch, columns, blobs, nulls)
    else:
        yield batch.select(list(columns)) if columns else batch


def _next(batches: pa.RecordBatchReader, uri: str) -> pa.RecordBatch | None:
    with reading(f"read {uri}"):
        return next(batches, None)


def open_pinned(table: PinnedTable, session: _Session | None = None) -> LanceDataset:
    """The dataset of a pinned table. VersionExpiredError says what is left when a clean-up removed the version,
    ConflictError that the graph was made anew since the table was pinned.
    """
    try:
        with reading(f"open {table.uri} at version {table.version}"):
            dataset = lance.dataset(
                table.uri, version=table.version, storage_options=dict(table.options) or None, session=session
            )
        require_origin(table.origin, dict(table.options))
        return dataset
    except StorageError as error:
        require_origin(table.origin, dict(table.options))
        stored = stored_versions(table)
        if table.version in stored or table.version > max(stored, default=0):
            raise
        raise VersionExpiredError(
            f"version {table.version} of {table.uri} is not stored any more: a clean-up removed it, or a change of the "
            f"schema that drops data for good; the oldest that is left is {min(stored)}"
        ) from error


def stored_versions(table: PinnedTable) -> frozenset[int]:
    """Versions of a table's line that are still there; empty when even the newest cannot be opened."""
    try:
        newest = lance.dataset(table.uri, storage_options=dict(table.options) or None)
        return frozenset(int(each["version"]) for each in newest.versions())
    except (OSError, ValueError, RuntimeError):
        return frozenset()


def fragments_of(dataset: LanceDataset, ids: tuple[int, ...]) -> list[lance.LanceFragment]:
    """Fragments by their ids, in this order."""
    by_id = {fragment.fragment_id: fragment for fragment in dataset.get_fragments()}
    return [by_id[i] for i in ids]


def _size(fragment: lance.LanceFragment) -> FragmentSize:
    rows = fragment.physical_rows - fragment.num_deletions
    return FragmentSize(fragment.fragment_id, rows, data_bytes(fragment))


def _with_blobs(
    dataset: LanceDataset, batch: pa.RecordBatch, columns: tuple[str, ...], blobs: list[str], nulls: StoredBlobs
) -> Iterator[pa.RecordBatch]:
    """Replaces descriptors by bytes, in runs of rows whose blobs fit a bounded amount of memory together."""
    addresses = batch.column(_ADDRESS)
    described = {name: batch.column(name).to_pylist() for name in blobs}
    for name in blobs:
        _refuse_local(dataset, name, described[name])
    places = addresses.to_pylist()
    start = 0
    for run in blob_runs(batch, blobs):
        stop = start + run.num_rows
        read = {}
        for name in blobs:
            pairs = zip(described[name][start:stop], places[start:stop], strict=True)
            wanted = [not nulls.is_null(name, descriptor, place) for descriptor, place in pairs]
            read[name] = _blob_bytes(dataset, name, addresses.slice(start, stop - start), wanted)
        yield pa.RecordBatch.from_arrays([read.get(n, run.column(n)) for n in columns], names=list(columns))
        start = stop


def blob_runs(batch: pa.RecordBatch, blobs: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Rows with descriptors of blobs, in runs whose blobs fit a bounded amount of memory together."""
    described = [batch.column(name).to_pylist() for name in blobs]
    sizes = [sum(map(_stored_bytes, row)) for row in zip(*described, strict=True)] if blobs else [0] * batch.num_rows
    for start, stop in _runs(sizes, BLOB_RUN_BYTES):
        yield batch.slice(start, stop - start)


def _refuse_local(dataset: LanceDataset, name: str, descriptors: Sequence[Descriptor | None]) -> None:
    """A reference to a file of this machine is none of a graph's data: whoever wrote it would choose what is read."""
    for each in descriptors:
        uri = str(each["blob_uri"]) if each is not None and each["kind"] == EXTERNAL else ""
        if uri and uri.partition(":")[0].lower() not in REMOTE_SCHEMES:
            raise BadRequestError(
                f"blob column '{name}' of {dataset.uri} refers to '{excerpt(uri)}', a file of this machine, which "
                "is not read: leave the column out (columns), take the reference from export, or load the bytes instead"
            )


def _blob_bytes(dataset: LanceDataset, name: str, addresses: pa.Array, wanted: list[bool]) -> pa.Array:
    chosen = addresses.filter(pa.array(wanted, pa.bool_()))
    found: dict[int, bytes | None] = {}
    if len(chosen):
        with reading(f"read blobs of column '{name}' of {dataset.uri}"):
            found = dict(dataset.read_blobs(name, addresses=chosen.to_pylist()))
    kept = zip(addresses.to_pylist(), wanted, strict=True)
    return pa.array([found[address] if want else None for address, want in kept], pa.large_binary())


def _stored_bytes(descriptor: dict[str, int] | None) -> int:
    if descriptor is None:
        return 0
    return EXTERNAL_BLOB_BYTES if descriptor["kind"] == EXTERNAL else descriptor["size"]


def _runs(sizes: list[int], limit: int) -> Iterator[tuple[int, int]]:
    """Cuts rows into runs [start, stop) whose sizes sum to at most `limit`, or that are one row."""
    start, total = 0, 0
    for row, size in enumerate(sizes):
        if row > start and total + size > limit:
            yield start, row
            start, total = row, 0
        total += size
    if start < len(sizes):
        yield start, len(sizes)


def newest_row(table: PinnedTable) -> int:
    """The version at which a row changed last, 0 for a table without rows; no data file is read."""
    dataset = open_pinned(table)
    with reading(f"read {table.uri}"):
        batches = dataset.scanner(columns=[UPDATED]).to_batches()
        return max((pc.max(batch.column(UPDATED)).as_py() for batch in batches if batch.num_rows), default=0)


def placed_rows(
    table: PinnedTable, columns: Sequence[str], where: str | None, batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Columns of the rows that a Lance filter keeps, with `_rowid` and `_rowaddr` (uint64), in stored order. So many
    rows are looked at at once: a filter reads what it is about, which may be wide.
    """
    dataset = open_pinned(table)
    with reading(f"read {table.uri}"):
        scanner = dataset.scanner(
            columns=list(columns), filter=where, with_row_id=True, with_row_address=True, batch_size=batch_rows
        )
        yield from scanner.to_batches()
