"""Columns of a table changed as a whole: others, in another order, under other names, of other types.

Lance knows a column by the number of its field and not by its name. So columns that are renamed, dropped, moved or
added without values are a change of the table's schema alone, and no file is written. A column that gets values is a
file beside those of each fragment, one for all fragments of a length where all rows get one value; a column of another
type is a new one with the former one's values. One that gets just what another column has, in the same type, is read
where that one lies: each fragment names the file once more, for the new number, until one of the two is written anew.
Rows keep their ids; they count as updated where columns get values. What has to leave the files, or to lie in another
folder, is copied fragment by fragment.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata, LanceFragment, RowIdSequence, write_fragments
from lance.schema import LanceSchema

from spark_omnigraph.errors import InternalError, StorageError
from spark_omnigraph.records.arrow_schema import BLOB, BLOB_METADATA
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.layout import STORAGE_VERSION
from spark_omnigraph.storage.messages.members import Member, encoded, members, signed
from spark_omnigraph.storage.tables.blobs import StoredBlobs, is_blob
from spark_omnigraph.storage.tables.handles import data_bytes, with_fields
from spark_omnigraph.storage.tables.staged import StagedFile, TableTarget, write_file

if TYPE_CHECKING:
    from lance.lance.schema import LanceField

_NAME, _ID, _PARENT, _NULLABLE = 2, 3, 4, 6
"""Members of the message by which Lance hands a field of a schema from process to process."""
_TOP = -1
_ADDRESS, _ROW = "_rowaddr", "_rowid"
_BATCH_ROWS = 8192
_BATCH_BYTES = 16 << 20
_LARGE_ROWS = 1 << 17
"""Of a batch that is filled from columns, where rows are as small as that: each batch costs as much as many rows."""
_EMPTY_ROWS = 1 << 16
"""Of which no column is read: rows of a batch that is filled with one value."""


@dataclass(frozen=True, slots=True)
class LaidColumn:
    """One column as it is to be. It is the stored column `source`, under whatever name, or a new one.

    A new one takes its values from the first of the stored columns `origins` that has one, cast, else `value`, or all
    of them, as they are stored, from the column that it `shares`; with none of these it has no values.
    """

    field: pa.Field
    source: str | None = None
    origins: tuple[str, ...] = ()
    value: pa.Scalar | None = None
    shares: str | None = None

    @property
    def is_written(self) -> bool:
        """Whether files are written for it."""
        return self.source is None and (bool(self.origins) or self.value is not None)

    @property
    def is_filled(self) -> bool:
        """Whether it gets values."""
        return self.is_written or self.shares is not None

    def changes_null(self, stored: pa.Schema) -> bool:
        """Whether it is a stored column that may be null and could not, or the other way round."""
        return self.source is not None and stored.field(self.source).nullable != self.field.nullable

    def rewritten(self) -> LaidColumn:
        """A new column with the same values."""
        return LaidColumn(self.field, None, () if self.source is None else (self.source,))

    def shared(self, stored: pa.Schema) -> LaidColumn:
        """The same without files of its own, where all its values are those of one stored column. Blobs lie beside
        their file, which knows them by its own column.
        """
        if self.source is not None or self.value is not None or len(self.origins) != 1:
            return self
        origin = stored.field(self.origins[0])
        alike = origin.type == self.field.type and origin.metadata == self.field.metadata != BLOB_METADATA
        return LaidColumn(self.field, shares=origin.name) if alike else self

    def fill(self, rows: pa.RecordBatch) -> pa.Array:
        """Its values for rows that have the columns `origins`."""
        parts = [rows.column(name) for name in self.origins]
        if self.value is not None:
            parts.append(pa.repeat(self.value, rows.num_rows))
        cast = [part if part.type == self.field.type else part.cast(self.field.type) for part in parts]
        filled = cast[0]
        for other in cast[1:]:
            filled = pc.if_else(filled.is_valid(), filled, other) if filled.null_count else filled
        return filled


@dataclass(frozen=True, slots=True)
class Layout:
    """All columns of a table as they are to be, in their order."""

    columns: tuple[LaidColumn, ...]

    @property
    def schema(self) -> pa.Schema:
        """What is stored then."""
        return pa.schema([column.field for column in self.columns])

    @property
    def filled(self) -> tuple[LaidColumn, ...]:
        """Columns that get values, in order."""
        return tuple(column for column in self.columns if column.is_filled)

    @property
    def stored(self) -> tuple[str, ...]:
        """Stored columns that it keeps or takes values from, each once."""
        wanted = ((*column.origins, *([] if column.source is None else [column.source])) for column in self.columns)
        return tuple(dict.fromkeys(name for each in wanted for name in each))

    @property
    def written(self) -> tuple[LaidColumn, ...]:
        """Those of them for which files are written."""
        return tuple(column for column in self.columns if column.is_written)

    @property
    def is_one_value(self) -> bool:
        """Whether each written column has one value in all rows: then its file is one for all fragments of a length."""
        return bool(self.written) and not any(column.origins for column in self.written)

    def beside_files(self, stored: pa.Schema) -> Layout:
        """The same for a table with these columns; where some get values, so does each column whose values may be null
        from now on, or may not: what it has. Files are written only for what is not stored as it is.
        """
        if not self.filled:
            return self
        filled = (each.rewritten() if each.changes_null(stored) else each for each in self.columns)
        return Layout(tuple(each.shared(stored) for each in filled))

    def needs_rows(self, stored: pa.Schema) -> bool:
        """Whether a blob would have to be written beside its row, which nobody can: then all rows are written anew."""
        blobs = (each for each in self.columns if each.source is not None and each.field.metadata == BLOB_METADATA)
        return bool(self.filled) and any(each.changes_null(stored) for each in blobs)


@dataclass(frozen=True)
class TableSource:
    """A pinned table whose fragments are read one by one; a process that reads several opens it once. Picklable."""

    target: TableTarget
    options: dict[str, str]

    @cached_property
    def dataset(self) -> LanceDataset:
        return self.target.open(self.options)

    def __reduce__(self) -> tuple[type[TableSource], tuple[TableTarget, dict[str, str]]]:
        return TableSource, (self.target, self.options)


def fragment_ids(source: TableSource) -> list[int]:
    """Fragments of a pinned table: what there is a piece of work for."""
    with reading(f"list fragments of {source.target.uri}"):
        return [fragment.fragment_id for fragment in source.dataset.get_fragments()]


def parts_to_write(source: TableSource, layout: Layout) -> list[int]:
    """Fragments for which columns of a layout are written: all, none, or one for each length."""
    if not layout.is_one_value:
        return fragment_ids(source) if layout.written else []
    with reading(f"list fragments of {source.target.uri}"):
        return list({each.physical_rows: each.fragment_id for each in source.dataset.get_fragments()}.values())


def stage_columns(source: TableSource, fragment_id: int, layout: Layout) -> StagedFile:
    """Writes the written columns of one fragment into a file beside it, masked rows too; HEAD does not move. The file
    names the whole fragment as it is then.
    """
    dataset, target, written = source.dataset, source.target, layout.written
    (fragment,) = _fragment(dataset, fragment_id)
    new = LanceSchema.from_pyarrow(pa.schema([column.field for column in written])).fields()
    first = int(dataset.max_field_id) + 1
    numbers = [first + _numbers([field])[-1] for field in new]  # of a list that of its items
    uri, schema = f"{target.uri}/data/{uuid4().hex}.lance", pa.schema([c.field.with_nullable(True) for c in written])
    with reading(f"write columns of '{target.table_key}'"):
        file = write_file(uri, schema, _filled(dataset, fragment, written, schema), numbers, source.options)
    named = dataclasses.replace(fragment.metadata, files=[*fragment.metadata.files, file])
    return StagedFile(json.dumps(named.to_json()), uri, fragment.physical_rows)


def _filled(
    dataset: LanceDataset, fragment: LanceFragment, columns: Sequence[LaidColumn], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """What columns get in all rows of a fragment, masked ones too. For one value in all rows none is read."""

    def fill(rows: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([column.fill(rows) for column in columns], schema=schema)

    origins = list(dict.fromkeys(name for column in columns for name in column.origins))
    physical = fragment.physical_rows
    if origins:
        size = max(1, data_bytes(fragment) // max(1, physical))  # of a row of all columns, about
        rows = max(_BATCH_ROWS, min(_LARGE_ROWS, _BATCH_BYTES // size))
        every = dataset.scanner(
            origins, batch_size=rows, fragments=[fragment], with_row_id=True, include_deleted_rows=True
        )
        yield from map(fill, every.to_reader())
    else:
        size = max(1, fill(_bare(1)).nbytes)
        rows = max(1, min(_EMPTY_ROWS, _BATCH_BYTES // size, physical))
        batch = fill(_bare(rows))
        yield from (batch.slice(0, physical - start) for start in range(0, physical, rows))


def _bare(rows: int) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(rows)], ["~"])


def _fragment(dataset: LanceDataset, fragment_id: int) -> list[LanceFragment]:
    found = dataset.get_fragment(fragment_id)
    if found is None:
        raise StorageError(f"storage: fragment {fragment_id} of {dataset.uri} is gone")
    return [found]


def stage_copy(source: TableSource, fragment_id: int, layout: Layout, target: TableTarget) -> StagedFile | None:
    """Writes the rows of one fragment anew, by a layout, into the folder of a table; None when it has none left. Rows
    keep their ids where it is the same table: another one would give some of them out again.
    """
    dataset, key = source.dataset, source.target.table_key
    with reading(f"read rows of '{key}'"):
        parts = _fragment(dataset, fragment_id)
        ids = dataset.scanner(columns=[], fragments=parts, with_row_id=True).to_table().column(_ROW)
    if not len(ids):
        return None
    rows = pa.RecordBatchReader.from_batches(layout.schema, _laid_out(dataset, fragment_id, layout))
    with reading(f"copy rows of '{key}'"):
        fragments = write_fragments(
            rows,
            target.uri,
            schema=layout.schema,
            mode="overwrite",  # fields are numbered anew, as a replacement of all rows does
            max_rows_per_file=len(ids),
            data_storage_version=STORAGE_VERSION,
            enable_stable_row_ids=True,
            storage_options=source.options or None,
            allow_external_blob_outside_bases=True,
        )
    if len(fragments) != 1:
        raise InternalError(f"copying a fragment of '{key}' wrote {len(fragments)} instead of one")
    (fragment,) = fragments
    if source.target.uri == target.uri:
        kept = RowIdSequence(ids.combine_chunks()).to_inline_metadata()
        fragment = dataclasses.replace(fragment, row_id_meta=kept)
    return StagedFile.of(target.uri, fragment)


def _laid_out(dataset: LanceDataset, fragment_id: int, layout: Layout) -> Iterator[pa.RecordBatch]:
    """Rows of a fragment by a layout, blobs as they can be written again; a few batches are in memory."""
    blobs = StoredBlobs(dataset)
    with reading(f"read rows of {dataset.uri}"):
        batches = dataset.scanner(
            columns=list(layout.stored),
            fragments=_fragment(dataset, fragment_id),
            batch_size=_BATCH_ROWS,
            batch_size_bytes=_BATCH_BYTES,
            with_row_id=True,
            with_row_address=True,
            blob_handling="blobs_descriptions",
        ).to_reader()
    for batch in batches:
        places = batch.column(_ROW).to_pylist(), batch.column(_ADDRESS).to_pylist()
        arrays = []
        for column in layout.columns:
            if column.source is None:
                arrays.append(column.fill(batch) if column.is_filled else pa.nulls(len(batch), column.field.type))
            elif is_blob(dataset.schema.field(column.source)):
                arrays.append(
                    pa.array(blobs.take(column.source, batch.column(column.source).to_pylist(), places), BLOB)
                )
            else:
                arrays.append(batch.column(column.source))
        yield pa.RecordBatch.from_arrays(arrays, schema=layout.schema)


def relay(dataset: LanceDataset, layout: Layout, files: Sequence[StagedFile]) -> LanceOperation.BaseOperation:
    """The operation that gives an opened table another layout, with the files of its written columns.

    Where no column gets values it changes the schema alone; else it lists every fragment, and so conflicts with
    whatever changes rows. Lance refuses one of those that changes besides whether another column may be null.
    """
    present = dataset.get_fragments()
    if not present:
        return LanceOperation.Overwrite(layout.schema, [])
    if not layout.filled:
        return LanceOperation.Project(_lance_schema(dataset, layout))
    staged = _with_written(present, layout, [FragmentMetadata.from_json(file.fragment) for file in files])
    if len(staged) != len(present):
        raise InternalError(f"columns of {dataset.uri} were written for other fragments than it has")
    schema = _lance_schema(dataset, layout)
    numbers, shared = frozenset(_numbers(schema.fields())), _shared(dataset, layout, schema)
    return LanceOperation.Merge([_without_strays(_sharing(f, shared), numbers) for f in staged], schema)


def _with_written(
    present: Sequence[LanceFragment], layout: Layout, staged: Sequence[FragmentMetadata]
) -> list[FragmentMetadata]:
    """Fragments with the files that were written for them."""
    if not layout.written:
        return [fragment.metadata for fragment in present]
    if not layout.is_one_value:
        named = {fragment.id: fragment for fragment in staged}
        return [named[f.fragment_id] for f in present if f.fragment_id in named]
    of_length = {fragment.physical_rows: fragment.files[-1] for fragment in staged}
    return [
        dataclasses.replace(f.metadata, files=[*f.metadata.files, of_length[f.physical_rows]])
        for f in present
        if f.physical_rows in of_length
    ]


def _shared(dataset: LanceDataset, layout: Layout, schema: LanceSchema) -> list[dict[int, int]]:
    """For each column that shares what another one has: its numbers by those of the other one."""
    old, new = ({field.name(): field for field in each.fields()} for each in (dataset.lance_schema, schema))
    pairs = ((old[c.shares], new[c.field.name]) for c in layout.columns if c.shares is not None)
    return [dict(zip(_numbers([one]), _numbers([other]), strict=True)) for one, other in pairs]


def _sharing(fragment: FragmentMetadata, shared: Sequence[dict[int, int]]) -> FragmentMetadata:
    """A fragment that names the files of shared columns once more, each column by itself: Lance reads no column of a
    file twice for one entry. A fragment may be without some, since it was there before they were.
    """
    files = list(fragment.files)
    for numbers in shared:
        for file in fragment.files:
            places = [(numbers[f], at) for f, at in zip(file.fields, file.column_indices, strict=True) if f in numbers]
            if places:
                files.append(with_fields(file, *map(list, zip(*places, strict=True))))
    return dataclasses.replace(fragment, files=files)


def _without_strays(fragment: FragmentMetadata, numbers: frozenset[int]) -> FragmentMetadata:
    """A fragment without the files that have no column any more, as of one that had got values: Lance takes such a
    file for damaged.
    """
    return dataclasses.replace(fragment, files=[file for file in fragment.files if not numbers.isdisjoint(file.fields)])


def _numbers(fields: Sequence[LanceField]) -> list[int]:
    """Numbers of fields, each followed by those of its children."""
    return [number for field in fields for number in (field.id(), *_numbers(field.children()))]


class _Field:
    """A field of a Lance schema: its message, and those of its children, parents first."""

    def __init__(self, messages: Sequence[bytes]) -> None:
        self._messages = [{each.number: each.value for each in members(message)} for message in messages]

    def named(self, field: pa.Field) -> _Field:
        """The same field under the name and with the nullability of another one."""
        self._messages[0] |= {_NAME: field.name.encode(), _NULLABLE: int(field.nullable)}
        return self

    def moved(self, by: int) -> _Field:
        """The same field with other numbers, as long as there was none."""
        for message in self._messages:
            message[_ID] = int(message.get(_ID, 0)) + by
            parent = signed(int(message.get(_PARENT, 0)))
            message[_PARENT] = parent if parent == _TOP else parent + by
        return self

    def encoded(self) -> list[bytes]:
        return [encoded(Member(number, value) for number, value in each.items()) for each in self._messages]


def _lance_schema(dataset: LanceDataset, layout: Layout) -> LanceSchema:
    """The columns of a layout with the numbers that the table's files know them by. New ones have numbers that no
    column of the table ever had; written ones come first, since that is how their files number them.
    """
    make, metadata, stored = _unpacked(dataset.lance_schema)
    empty = [column for column in layout.columns if column.source is None and not column.is_filled]
    shared = [column for column in layout.columns if column.shares is not None]
    new = [column.field for column in (*layout.written, *shared, *empty)]
    first = int(dataset.max_field_id) + 1
    added = {name: field.moved(first) for name, field in _unpacked(LanceSchema.from_pyarrow(pa.schema(new)))[2].items()}
    found = [
        (added[column.field.name] if column.source is None else stored[column.source]).named(column.field)
        for column in layout.columns
    ]
    return make(metadata, *(message for field in found for message in field.encoded()))


def _unpacked(schema: LanceSchema) -> tuple[Callable[..., LanceSchema], object, dict[str, _Field]]:
    """What a schema is made of when it travels to another process: what makes it, its metadata, its fields by name."""
    make, (metadata, *messages) = cast("tuple[Callable[..., LanceSchema], tuple[Any, ...]]", schema.__reduce__())
    return make, metadata, _fields(messages)


def _fields(messages: Sequence[bytes]) -> dict[str, _Field]:
    """Fields of a schema by name; one message a field, children after their parents."""
    groups: list[list[bytes]] = []
    for message in messages:
        found = {each.number: each.value for each in members(message)}
        if signed(int(found.get(_PARENT, 0))) == _TOP:
            groups.append([])
        groups[-1].append(message)
    return {_name(group[0]): _Field(group) for group in groups}


def _name(message: bytes) -> str:
    return next(bytes(each.value).decode() for each in members(message) if each.number == _NAME)
