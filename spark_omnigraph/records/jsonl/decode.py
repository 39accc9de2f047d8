"""JSONL lines → Arrow tables per type, and the lines that are no records.

Bad lines are data, never exceptions. Lines go through `column_decoder` where that surely gives what `row_decoder` would
give; all others go through `row_decoder`, which also words every refusal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.bad_rows import MISTAKES, RAW_LIMIT, Mistake, Rule
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, EntityType
from spark_omnigraph.errors import InternalError
from spark_omnigraph.records.arrow_schema import decoded_catalog, decoded_schema
from spark_omnigraph.records.changes.ranks import RecordChanges
from spark_omnigraph.records.columns import python_column
from spark_omnigraph.records.json_line import BYTE_ORDER_MARK
from spark_omnigraph.records.jsonl.column_decoder import ColumnDecoder
from spark_omnigraph.records.jsonl.envelope import EnvelopeReader
from spark_omnigraph.records.jsonl.line_groups import LineGroup, LineSorter
from spark_omnigraph.records.jsonl.lines import TextLines
from spark_omnigraph.records.jsonl.parse import joined_texts
from spark_omnigraph.records.jsonl.row_decoder import DecodedRow, Refusal, RowDecoder
from spark_omnigraph.records.mode import DecodeOptions, Nulls, UnknownFields
from spark_omnigraph.records.ulid import new_ulids

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

COLUMNS_FROM = 12
"""Fewer lines of a type than this are read one by one: the column decoder's start costs more."""


@dataclass(frozen=True, slots=True)
class LineChunk:
    """Consecutive lines of an input range.

    `lines` are a list, or better TextLines. `offsets` are the bytes at which they start in the decompressed file,
    `first_line` is the place of the first line in the range.
    """

    lines: Sequence[bytes]
    offsets: Int64s
    first_line: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """A bad line: 0-based line in the range, byte offset in the file, and what is wrong with it.

    `record_type` is the type as the record names it; `is_edge` says which kind of type that is. `id` is the id that the
    record gives. `further` are the mistakes after the first. `values` are columns that could be read all the same, for
    other rules to be asked about them.
    """

    line: int
    offset: int
    record_type: str | None
    field: str | None
    rule: Rule
    message: str
    raw: str
    is_edge: bool = False
    id: str | None = None
    further: tuple[Mistake, ...] = ()
    values: Mapping[str, object] | None = None

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        return (Mistake(self.field, self.rule, self.message), *self.further)

    def add(self, more: Sequence[Mistake]) -> Rejected:
        """With further mistakes, as long as there is room."""
        return replace(self, further=(*self.further, *more)[: MISTAKES - 1])


@dataclass(frozen=True, slots=True)
class DecodedTable:
    """Rows of one type in input order, in stored layout, with the line and byte offset of each.

    `named` says which rows have their id from their record, a key included. In mode `changes` rows may be there to be
    deleted: they have an id, and perhaps no more.
    """

    table_key: TableKey
    table: pa.Table
    offsets: Int64s
    lines: Int64s
    named: Bools
    changes: RecordChanges | None = None

    def keep(self, rows: Bools) -> DecodedTable:
        """Only some of the rows."""
        return replace(
            self,
            table=self.table.filter(pa.array(rows)),
            offsets=self.offsets[rows],
            lines=self.lines[rows],
            named=self.named[rows],
            changes=None if self.changes is None else self.changes.take(rows),
        )


@dataclass(frozen=True, slots=True)
class DecodedChunk:
    """Tables in the order of their keys, bad lines in input order, and records per table key (`""`: type unknown)."""

    tables: tuple[DecodedTable, ...]
    rejected: tuple[Rejected, ...]
    read: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Rows:
    table: pa.Table
    lines: Int64s
    named: Bools


class RecordDecoder:
    """Decodes chunks of lines. Keeps readers per type, so make one and use it for a whole range.

    With `constants` messages name the member whose number is not finite; such lines are no JSON otherwise.
    """

    def __init__(
        self,
        catalog: Catalog,
        options: DecodeOptions,
        columns_from: int = COLUMNS_FROM,
        constants: bool = False,
    ) -> None:
        self._catalog = catalog = decoded_catalog(catalog, options.patches)
        self._options = options
        self._columns_from = columns_from
        self._sorter = LineSorter(catalog, options.unknown_fields is UnknownFields.IGNORE)
        self._envelopes = EnvelopeReader(catalog)
        self._row_decoder = RowDecoder(catalog, options, constants)
        self._readers: dict[str, ColumnDecoder] = {}
        self._deleters: dict[str, ColumnDecoder] = {}

    def decode(self, chunk: LineChunk, changes: RecordChanges | None = None) -> DecodedChunk:
        """Rows and bad lines of a chunk. Blank lines and lines that begin with `//` are neither. Of lines whose
        `changes` delete only the id is read.
        """
        if not len(chunk.lines):
            return DecodedChunk((), (), {})
        lines = TextLines.joined(_without_mark(chunk))
        if len(lines) != len(chunk.lines):
            raise InternalError("a line of the input holds a line break")
        order = self._sorter.sort(lines)
        deletes = np.zeros(len(lines), dtype=bool) if changes is None else changes.deletes
        groups = [*order.groups, *self._unusual_groups(lines, order.unusual)]
        rows: dict[TableKey, list[_Rows]] = defaultdict(list)
        left = np.zeros(len(lines), dtype=bool)
        for places in (order.doubtful, order.unusual, *(group.lines for group in order.groups)):
            left[places] = True
        for group in groups:
            parts = [(group, False)]
            if deletes.any():
                parts = [(group.among(~deletes), False), (group.among(deletes), True)]
            for part, deleting in parts:
                if len(part.lines) >= self._columns_from:
                    found = self._read_columns(part, deleting)
                    left[found.lines] = False
                    if len(found.lines):
                        rows[group.entity.table_key].append(found)
        refused = self._read_by_row(lines, np.flatnonzero(left), deletes, rows)
        tables = tuple(_table(chunk, key, rows[key], changes) for key in sorted(rows))
        read: Counter[str] = Counter({table.table_key: len(table.lines) for table in tables})
        read.update(refusal.table_key for _, refusal in refused)
        return DecodedChunk(tables, tuple(_rejected(chunk, lines, at, why) for at, why in refused), dict(read))

    def _read_columns(self, group: LineGroup, deletes: bool) -> _Rows:
        """The rows of a group that are surely right. Of such as delete the id: they need no more than a patch has, of
        which a null is no value.
        """
        entity = group.entity
        if not deletes:
            found = self._reader(entity).read(group.texts)
            return _Rows(found.table, group.lines[found.positions], found.named)
        if entity.table_key not in self._deleters:
            catalog = decoded_catalog(self._catalog, patches=True)
            options = replace(self._options, patches=True, nulls=Nulls.KEEP)
            self._deleters[entity.table_key] = ColumnDecoder(catalog, catalog.require(entity.table_key), options)
        found = self._deleters[entity.table_key].read(group.texts)
        schema = decoded_schema(entity, self._options.patches)
        columns = {field.name: pa.nulls(len(found.positions), field.type) for field in schema}
        columns["id"] = found.table.column("id")
        rows = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
        return _Rows(rows, group.lines[found.positions], found.named)

    def _reader(self, entity: EntityType) -> ColumnDecoder:
        if entity.table_key not in self._readers:
            self._readers[entity.table_key] = ColumnDecoder(self._catalog, entity, self._options)
        return self._readers[entity.table_key]

    def _unusual_groups(self, lines: Sequence[bytes], unusual: Int64s) -> list[LineGroup]:
        if len(unusual) < self._columns_from:
            return []
        found: dict[str, tuple[EntityType, list[int], list[bytes]]] = {}
        for at in unusual.tolist():
            record = self._envelopes.read(lines[at])
            if record is not None:
                entity, text = record
                _, places, texts = found.setdefault(entity.table_key, (entity, [], []))
                places.append(at)
                texts.append(text)
        return [
            LineGroup(entity, np.array(places, dtype=np.int64), joined_texts(texts))
            for entity, places, texts in found.values()
        ]

    def _read_by_row(
        self, lines: Sequence[bytes], left: Int64s, deletes: Bools, rows: dict[TableKey, list[_Rows]]
    ) -> list[tuple[int, Refusal]]:
        """Adds the rows of the lines that are left; returns those that are refused."""
        refused: list[tuple[int, Refusal]] = []
        found: dict[TableKey, list[tuple[int, DecodedRow]]] = defaultdict(list)
        for at in left.tolist():
            result = self._row_decoder.decode(lines[at], bool(deletes[at]))
            if isinstance(result, Refusal):
                refused.append((at, result))
            else:
                found[result.table_key].append((at, result))
        for key, pairs in found.items():
            entity = self._catalog.table(key)
            if entity is None:
                raise InternalError(f"a record of the unknown table '{key}' was decoded")
            rows[key].append(_rows_of(entity, pairs, self._options.patches))
        return refused


def partial_table(entity: EntityType, values: Sequence[Mapping[str, object]]) -> pa.Table:
    """Properties of records that are no rows, null where they could not be read."""
    columns = [python_column(p.type, [row.get(p.name) for row in values]) for p in entity.properties]
    return pa.table(columns, names=[p.name for p in entity.properties])


def raw_text(line: bytes) -> str:
    """A line as a report shows it: bounded, and with hexadecimal numbers for bytes that are no text."""
    return line[: 4 * RAW_LIMIT].decode("utf-8", "backslashreplace").rstrip("\r\n")[:RAW_LIMIT]


def _without_mark(chunk: LineChunk) -> Sequence[bytes]:
    if chunk.offsets[0] != 0 or not chunk.lines[0].startswith(BYTE_ORDER_MARK):
        return chunk.lines
    return [chunk.lines[0].removeprefix(BYTE_ORDER_MARK), *chunk.lines[1:]]


def _rows_of(entity: EntityType, pairs: Sequence[tuple[int, DecodedRow]], patches: bool) -> _Rows:
    schema = decoded_schema(entity, patches)
    types = {p.name: p.type for p in entity.properties}
    columns = []
    named = np.array([row.values.get("id") is not None for _, row in pairs], dtype=bool)
    for name in schema.names:
        kind, values = schema.field(name).type, [row.values.get(name) for _, row in pairs]
        if name == "id":
            fresh = iter(new_ulids(values.count(None)).to_pylist())
            values = [next(fresh) if value is None else value for value in values]
        columns.append(python_column(types[name], values).cast(kind) if name in types else pa.array(values, kind))
    lines = np.array([at for at, _ in pairs], dtype=np.int64)
    return _Rows(pa.Table.from_arrays(columns, schema=schema), lines, named)


def _table(
    chunk: LineChunk, table_key: TableKey, parts: Sequence[_Rows], changes: RecordChanges | None
) -> DecodedTable:
    """The parts of a table in input order."""
    table = pa.concat_tables([part.table for part in parts])
    lines, named = (np.concatenate([getattr(part, name) for part in parts]) for name in ("lines", "named"))
    if len(parts) > 1 or (np.diff(lines) < 0).any():
        order = np.argsort(lines, kind="stable")
        table, lines, named = table.take(pa.array(order)), lines[order], named[order]
    told = None if changes is None else changes.take(lines)
    return DecodedTable(table_key, table, chunk.offsets[lines], lines + chunk.first_line, named, told)


def _rejected(chunk: LineChunk, lines: Sequence[bytes], at: int, why: Refusal) -> Rejected:
    first, *further = why.mistakes
    given = why.values.get("id")
    return Rejected(
        line=chunk.first_line + at,
        offset=int(chunk.offsets[at]),
        record_type=why.record_type,
        field=first.field,
        rule=first.rule,
        message=first.message,
        raw=raw_text(lines[at]),
        is_edge=why.is_edge,
        id=given if isinstance(given, str) else None,
        further=tuple(further),
        values=why.values,
    )
