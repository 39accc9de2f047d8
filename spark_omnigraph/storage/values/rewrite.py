"""Some columns of a stored fragment, written anew beside the others: nothing else of its rows is read or written.

The new file has a value for every physical row, deleted ones included, in their order. It is written in one pass with
a few batches in memory. Lance's own `update_columns` joins, and holds the whole right side of it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
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
from spark_omnigraph.storage.tables.handles import with_fields
from spark_omnigraph.storage.tables.staged import ColumnRewrite, StagedFile, TableTarget, write_file

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
        uri = f"{target.uri}/data/{uuid4().hex}.lance"
        schema = pa.schema([dataset.schema.field(column) for column in values])
        fields = tuple(ids[column] for column in values)
        file = write_file(uri, schema, _new_batches(dataset, fragment, schema, values), fields, options)
    changed = reduce(np.union1d, [value.at for value in values.values()])
    metadata = _with_file(fragment.metadata, file)
    staged = StagedFile(json.dumps(metadata.to_json()), uri, fragment.physical_rows)
    return ColumnRewrite(staged, fragment_id, fields, _roaring(changed))


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
            files.append(with_fields(old, left, old.column_indices))
    return replace(metadata, files=[*files, new])


def _new_batches(
    dataset: LanceDataset, fragment: lance.LanceFragment, schema: pa.Schema, values: Mapping[str, NewValues]
) -> Iterator[pa.RecordBatch]:
    """All physical rows of the columns, the new values in their places."""
    width = sum(4 * kind.list_size if pa.types.is_fixed_size_list(kind) else 64 for kind in schema.types)
    rows, physical = max(1, min(_BATCH_ROWS, BATCH_BYTES // width)), fragment.physical_rows
    is_whole = all(len(value.at) == physical for value in values.values())
    kept = _KeptRows(fragment, np.empty(0, np.int64) if is_whole else _alive(dataset, fragment))
    for first in range(0, physical, rows):
        last = min(first + rows, physical)
        columns = [_column(schema.field(name), values[name], kept, first, last) for name in schema.names]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _alive(dataset: LanceDataset, fragment: lance.LanceFragment) -> Offsets:
    """Places of the rows that are not deleted."""
    scanner = dataset.scanner(columns=[], fragments=[fragment], with_row_address=True, scan_in_order=True)
    addresses = np.asarray(scanner.to_table().column(_ADDRESS)).astype(np.uint64)
    return (addresses & _OFFSET).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _KeptRows:
    """Stored values of a fragment, by place; `alive` are the places that have one."""

    fragment: lance.LanceFragment
    alive: Offsets

    def among(self, first: int, last: int, new: Offsets) -> Offsets:
        """Places from `first` to `last` that keep what they have."""
        start, stop = np.searchsorted(self.alive, (first, last))
        return np.setdiff1d(self.alive[start:stop], new, assume_unique=True)

    def read(self, name: str, at: Offsets) -> pa.Array:
        """Values of a column. Lance counts the rows that are alive."""
        found = self.fragment.take(np.searchsorted(self.alive, at).tolist(), columns=[name])
        return found.column(name).combine_chunks()


def _column(field: pa.Field, new: NewValues, kept: _KeptRows, first: int, last: int) -> pa.Array:
    """A run of a column: new values, those that rows keep, and for deleted rows something that nobody will read."""
    start, stop = (int(place) for place in np.searchsorted(new.at, (first, last)))
    given = new.read(start, stop).cast(field.type)
    if stop - start == last - first:
        return given
    at = kept.among(first, last, new.at[start:stop])
    parts = [given, *([kept.read(field.name, at)] if len(at) else []), _blank(field.type)]
    places = np.full(last - first, len(given) + len(at))
    places[new.at[start:stop] - first] = np.arange(len(given))
    places[at - first] = len(given) + np.arange(len(at))
    return pa.concat_arrays(parts).take(pa.array(places))


def _blank(kind: pa.DataType) -> pa.Array:
    """A value that also a column without nulls may have."""
    if pa.types.is_fixed_size_list(kind):
        zeros = pa.array(np.zeros(kind.list_size, np.float32), kind.value_type)
        return pa.FixedSizeListArray.from_arrays(zeros, type=kind)
    blank: object = [] if pa.types.is_list(kind) else False if pa.types.is_boolean(kind) else 0
    return pa.array(["" if pa.types.is_string(kind) else blank], kind)


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
