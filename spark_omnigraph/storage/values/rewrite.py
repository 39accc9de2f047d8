"""Some columns of a stored fragment, written anew beside the others: nothing else of its rows is read or written.

The new file has a value for every physical row, deleted ones included, in their order. It is written in one pass with
a few batches in memory. Lance's own `update_columns` joins, and holds the whole right side of it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset
from lance.fragment import DataFile, FragmentMetadata

from spark_omnigraph.errors import StorageError
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.layout import STORAGE_VERSION
from spark_omnigraph.storage.tables.staged import ColumnRewrite, StagedFile, TableTarget
from spark_omnigraph.storage.values.staged import write_values

if TYPE_CHECKING:
    from lance.lance.schema import LanceField

Offsets = npt.NDArray[np.int64]
"""int64[n]: places of rows in a fragment, deleted ones counted; ascending, distinct."""

BATCH_BYTES = 4 << 20
_BATCH_ROWS = 1 << 16
_GONE = -2
"""What a file has in the place of the id of a field that another file has now."""
_ADDRESS, _OFFSET = "_rowaddr", np.uint64(0xFFFFFFFF)
_NO_RUNS, _ARRAY_MOST = 12346, 4096
_MAJOR, _MINOR = (int(part) for part in STORAGE_VERSION.split("."))


@dataclass(frozen=True, slots=True)
class NewValues:
    """What some rows of a column get: `read(first, last)` are the values of `at[first:last]`."""

    at: Offsets
    read: Callable[[int, int], pa.Array]


def rewrite_columns(
    target: TableTarget, fragment_id: int, values: Mapping[str, NewValues], options: Mapping[str, str]
) -> ColumnRewrite:
    """Writes the columns with new values in some rows, and those that stand in the others. HEAD does not move."""
    dataset = target.open(options)
    with reading(f"rewrite columns of '{target.table_key}'"):
        fragment = dataset.get_fragment(fragment_id)
        if fragment is None:
            raise StorageError(f"storage: fragment {fragment_id} of {dataset.uri} is gone")
        ids = {field.name(): _leaf(field) for field in dataset.lance_schema.fields()}
        name = f"{uuid4().hex}.lance"
        uri = f"{target.uri}/data/{name}"
        schema = pa.schema([dataset.schema.field(column) for column in values])
        size = write_values(uri, schema, _new_batches(dataset, fragment, schema, values), options)
    fields = tuple(ids[column] for column in values)
    changed = np.zeros(fragment.physical_rows, dtype=bool)
    for value in values.values():
        changed[value.at] = True
    metadata = _with_file(
        fragment.metadata, DataFile(name, list(fields), list(range(len(fields))), _MAJOR, _MINOR, size)
    )
    file = StagedFile(json.dumps(metadata.to_json()), uri, fragment.physical_rows)
    return ColumnRewrite(file, fragment_id, fields, _roaring(np.flatnonzero(changed)))


def _leaf(field: LanceField) -> int:
    """The field whose id names the values of a column in a data file: of a list that of its items."""
    inner = field.children()
    return _leaf(inner[0]) if inner else int(field.id())


def _with_file(metadata: FragmentMetadata, new: DataFile) -> FragmentMetadata:
    """The fragment with a new file for some fields; files that have no field left go."""
    files = []
    for old in metadata.files:
        left = [_GONE if field in new.fields else field for field in old.fields]
        if any(field != _GONE for field in left):
            files.append(_changed_file(old, left))
    return replace(metadata, files=[*files, new])


def _changed_file(old: DataFile, fields: list[int]) -> DataFile:
    version = old.file_major_version, old.file_minor_version
    return DataFile(old.path, fields, old.column_indices, *version, old.file_size_bytes, old.base_id)


def _new_batches(
    dataset: LanceDataset, fragment: lance.LanceFragment, schema: pa.Schema, values: Mapping[str, NewValues]
) -> Iterator[pa.RecordBatch]:
    """All physical rows of the columns, the new values in their places."""
    width = sum(4 * kind.list_size if pa.types.is_fixed_size_list(kind) else 64 for kind in schema.types)
    rows = max(1, min(_BATCH_ROWS, BATCH_BYTES // width))
    scanner = dataset.scanner(
        columns=schema.names, fragments=[fragment], with_row_address=True, batch_size=rows, scan_in_order=True
    )
    first = 0
    for batch in _physical(scanner.to_batches(), schema, fragment.physical_rows, rows):
        columns = [_put(batch.column(name), values[name], first) for name in schema.names]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        first += batch.num_rows


def _physical(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, physical: int, rows: int
) -> Iterator[pa.RecordBatch]:
    """Rows that are alive with something in the place of each deleted one, which nobody will read."""
    at = 0
    for batch in batches:
        offsets = (np.asarray(batch.column(_ADDRESS)).astype(np.uint64) & _OFFSET).astype(np.int64)
        if not batch.num_rows:
            continue
        yield from _filler(schema, int(offsets[0]) - at, rows)
        at = int(offsets[0])
        # A deleted row gets the value of the one before it.
        places = np.searchsorted(offsets, np.arange(at, int(offsets[-1]) + 1), side="right") - 1
        for start in range(0, len(places), rows):
            yield batch.select(schema.names).take(pa.array(places[start : start + rows]))
        at = int(offsets[-1]) + 1
    yield from _filler(schema, physical - at, rows)


def _filler(schema: pa.Schema, count: int, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, count, rows):
        some = min(rows, count - start)
        yield pa.RecordBatch.from_arrays([_blank(kind, some) for kind in schema.types], schema=schema)


def _blank(kind: pa.DataType, count: int) -> pa.Array:
    """Values that also a column without nulls may have."""
    if pa.types.is_fixed_size_list(kind):
        zeros = pa.array(np.zeros(count * kind.list_size, np.float32), kind.value_type)
        return pa.FixedSizeListArray.from_arrays(zeros, type=kind)
    blank: object = [] if pa.types.is_list(kind) else False if pa.types.is_boolean(kind) else 0
    one = pa.array(["" if pa.types.is_string(kind) else blank], kind)
    return one.take(pa.array(np.zeros(count, np.int64)))


def _put(column: pa.Array, new: NewValues, first: int) -> pa.Array:
    """A run of a column that begins at an offset, with the new values that fall into it."""
    start, stop = (int(place) for place in np.searchsorted(new.at, (first, first + len(column))))
    if start == stop:
        return column
    if stop - start == len(column):
        return new.read(start, stop).cast(column.type)
    places = np.arange(len(column))
    places[new.at[start:stop] - first] = len(column) + np.arange(stop - start)
    return pa.concat_arrays([column, new.read(start, stop).cast(column.type)]).take(pa.array(places))


def _roaring(offsets: Offsets) -> bytes:
    """The portable form of a Roaring bitmap, without runs: what Lance takes for rows of a fragment."""
    keys, starts = np.unique(offsets >> 16, return_index=True)
    parts = np.split((offsets & 0xFFFF).astype("<u2"), starts[1:]) if len(keys) else []
    bodies = [part.tobytes() if len(part) <= _ARRAY_MOST else _bits(part) for part in parts]
    head = struct.pack("<II", _NO_RUNS, len(parts))
    head += b"".join(struct.pack("<HH", int(key), len(part) - 1) for key, part in zip(keys, parts, strict=True))
    ends = np.cumsum([len(head) + 4 * len(parts), *(len(body) for body in bodies)])[:-1]
    return head + ends.astype("<u4").tobytes() + b"".join(bodies)


def _bits(values: npt.NDArray[np.uint16]) -> bytes:
    """The 65,536 bits of one part of a Roaring bitmap."""
    bits = np.zeros(1 << 16, np.uint8)
    bits[values] = 1
    return np.packbits(bits, bitorder="little").tobytes()
