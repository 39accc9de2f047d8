"""Rows of a frame → the chunks that decoding makes of lines: same tables, same rules, same messages.

A frame holds rows of one type with a column for each property, or records of any types: `type`, `edge`, `from`, `to`
and `data` as JSON text. The line of a row is its place in its partition.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.bad_rows import RAW_LIMIT, Rule
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import END_MEMBERS, GIVEN, Catalog, EdgeType, EntityType, NodeType, Property
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.records.arrow_schema import decoded_catalog, decoded_schema, patch_schema, physical_schema
from spark_omnigraph.records.changes.ranks import RecordChanges
from spark_omnigraph.records.columns import Bools, convert_present
from spark_omnigraph.records.frames.columns import Converted, columns_taken, convert, is_text, takes
from spark_omnigraph.records.frames.ends import end_texts
from spark_omnigraph.records.json_line import InvalidJsonError, parse_line
from spark_omnigraph.records.jsonl.column_decoder import completed_ids
from spark_omnigraph.records.jsonl.decode import DecodedChunk, DecodedTable, LineChunk, RecordDecoder, Rejected
from spark_omnigraph.records.jsonl.endpoints import end_ids
from spark_omnigraph.records.jsonl.envelope import ENVELOPE
from spark_omnigraph.records.jsonl.record_layout import EndForm
from spark_omnigraph.records.keys import key_columns, key_ids
from spark_omnigraph.records.legible import LegibleBatch, legible_batch, why_illegible
from spark_omnigraph.records.mode import DecodeOptions, Nulls
from spark_omnigraph.records.record_text import record_text
from spark_omnigraph.words import nearest

_DATA = ENVELOPE.index("data")
_AS_ROWS = DecodeOptions()
_NAMED = 10
"""Columns that a message lists."""
_NAME_THE_TYPE = "for rows of one type name it as node or edge (--node, --edge), for others give a mapping (--mapping)"

Decoded = tuple[DecodedChunk, Callable[[int], str]]


@dataclass(frozen=True, slots=True)
class FramePlan:
    """How a frame is read: `table_key` of its type, None for records; `sources` gives the frame's column of each
    stored one. Picklable.
    """

    table_key: TableKey | None
    sources: tuple[tuple[str, str], ...] = ()


def plan_frame(
    catalog: Catalog, table_key: TableKey | None, columns: pa.Schema, decode: DecodeOptions = _AS_ROWS
) -> FramePlan:
    """Checks the columns of a frame. BadRequestError names a column that is unknown, missing or of another type. With
    `coerce` columns of texts pass for properties of any type; a frame of `changes` may have no more than ids.
    """
    catalog = decoded_catalog(catalog, decode.patches)
    repeated = [name for name, count in Counter(columns.names).items() if count > 1]
    if repeated:
        raise BadRequestError(f"column '{repeated[0]}' is there twice")
    if table_key is None:
        _check_envelope(columns)
        return FramePlan(None)
    entity = catalog.table(table_key)
    if entity is None:
        known = catalog.nodes if table_key.kind == "node" else catalog.edges
        raise BadRequestError(f"the graph has no {table_key.spelled}{nearest(table_key.type_name, known)}")
    if decode.patches:
        _check_names_rows(entity, columns.names)
    return FramePlan(table_key, tuple(_sources(catalog, entity, columns, decode)))


def _check_names_rows(entity: EntityType, columns: Sequence[str]) -> None:
    key = entity.key or ("id",)
    lost = next((name for name in key if name not in columns), None)
    if lost is not None and ("id" not in columns or not set(key).isdisjoint(columns)):
        told = f"column '{lost}' is missing: a patch of '{entity.name}' names its row by {', '.join(key)}"
        raise BadRequestError(told if lost == "id" else f"{told}, or by id alone")


def _check_envelope(columns: pa.Schema) -> None:
    for field in columns:
        if field.name not in ENVELOPE:
            raise BadRequestError(
                f"a table of records has no column '{field.name}'{nearest(field.name, ENVELOPE)} (it has "
                f"{', '.join(ENVELOPE)}); {_NAME_THE_TYPE}"
            )
        if not (is_text(field.type) or pa.types.is_null(field.type)):
            raise BadRequestError(f"column '{field.name}' of a table of records must be string, not {field.type}")
    if "type" not in columns.names and "edge" not in columns.names:
        raise BadRequestError(f"a table of records needs a column 'type' or 'edge'; {_NAME_THE_TYPE}")


def _sources(catalog: Catalog, entity: EntityType, columns: pa.Schema, decode: DecodeOptions) -> list[tuple[str, str]]:
    left = dict(zip(columns.names, columns.types, strict=True))
    telling = {*identity_columns(entity, decode.edge_id), *END_MEMBERS.values()}
    only_ids = decode.changes and telling.issuperset(columns.names)
    sources = []
    for name in physical_schema(entity).names:
        prop = entity.property(name) if name not in entity.identity else None
        source = _source_of(entity, name, left)
        if source is None:
            if not (only_ids or decode.patches):
                _check_absent(entity, name, prop, left)
            if name in (decode.edge_id or ()) and isinstance(entity, EdgeType):
                raise BadRequestError(f"column '{name}' is missing: ids of '{entity.name}' are to follow from it")
            continue
        found = left.pop(source)
        fits = takes(prop, found, decode.coerce) if prop is not None else _takes_id(catalog, entity, name, found)
        if not fits:
            wanted, taken = (_shown(prop), columns_taken(prop)) if prop is not None else ("string", "string")
            raise BadRequestError(
                f"column '{source}' is {found}, which '{entity.name}.{name}' ({wanted}) does not take; it takes {taken}"
            )
        sources.append((name, source))
    for name in left:
        near = nearest(name, physical_schema(entity).names)
        way = near or "; leave it out, or name it under 'ignore' in a mapping"
        raise BadRequestError(f"'{entity.name}' has no column '{name}'{way}")
    return sources


def _source_of(entity: EntityType, name: str, columns: dict[str, pa.DataType]) -> str | None:
    other = END_MEMBERS.get(name) if isinstance(entity, EdgeType) else None
    if other is not None and entity.property(other) is None and other in columns:
        if name in columns:
            raise BadRequestError(f"columns '{name}' and '{other}' of '{entity.name}' mean the same; give one of them")
        return other
    return name if name in columns else None


def _check_absent(entity: EntityType, name: str, prop: Property | None, left: Iterable[str]) -> None:
    if name == "id" or (prop is not None and prop.type.nullable):
        return
    strange = sorted(set(left).difference(physical_schema(entity).names))
    others = f" (columns that are no property: {', '.join(strange[:_NAMED])})" if strange else ""
    raise BadRequestError(
        f"column '{name}' is missing: '{entity.name}' must have it{nearest(name, strange)}{others}; rename "
        "a column, by 'columns' of a mapping too, or add one"
    )


def _takes_id(catalog: Catalog, entity: EntityType, name: str, found: pa.DataType) -> bool:
    if is_text(found) or (pa.types.is_null(found) and name == "id"):
        return True
    if name == "id" or not isinstance(entity, EdgeType) or not pa.types.is_integer(found):
        return False
    key = key_columns(catalog.nodes[entity.from_type if name == "src" else entity.to_type])
    return len(key) == 1 and key[0][1].is_integer


def _shown(prop: Property) -> str:
    if prop.type.is_vector:
        return f"Vector({prop.type.dimension})"
    return f"[{prop.type.scalar}]" if prop.type.is_list else str(prop.type.scalar)


class FrameDecoder:
    """Decodes the batches of a partition in order."""

    def __init__(self, catalog: Catalog, options: DecodeOptions, plan: FramePlan) -> None:
        self._catalog = catalog = decoded_catalog(catalog, options.patches)
        self._options = options
        self._records = RecordDecoder(catalog, options)
        self._spelt = RecordDecoder(catalog, options, constants=True)
        entity = catalog.table(plan.table_key) if plan.table_key is not None else None
        self._entity: EntityType | None = entity
        self._plan = plan

    def decode(self, batch: pa.RecordBatch, first: int, changes: RecordChanges | None = None) -> Decoded:
        """What the rows are, the first of which is line `first`, and a function that gives the text of a line. Of rows
        whose `changes` delete only the id is read.
        """
        if self._entity is not None:
            batch = batch.select([source for _, source in self._plan.sources])
        found = legible_batch(batch)
        bad = found.bad_rows
        if not bad.any():
            return self._decode_legible(found.batch, first, changes)
        kept = None if changes is None else changes.take(~bad)
        decoded, text = self._decode_legible(found.batch.filter(pa.array(~bad)), 0, kept)
        return self._with_illegible(decoded, found, bad, first), _placed(text, bad, first)

    def _decode_legible(self, batch: pa.RecordBatch, first: int, changes: RecordChanges | None) -> Decoded:
        if self._entity is None:
            return self._decode_records(batch, first, changes)
        renamed = batch.rename_columns([name for name, _ in self._plan.sources])
        return self._decode_rows(self._entity, renamed, first, changes)

    def _with_illegible(self, decoded: DecodedChunk, found: LegibleBatch, bad: Bools, first: int) -> DecodedChunk:
        """What was decoded of the other rows, at their places, and the rows whose text is none as bad ones."""
        places = np.flatnonzero(~bad) + first
        tables = tuple(replace(t, lines=places[t.lines]) for t in decoded.tables)
        moved = [replace(r, line=int(places[r.line])) for r in decoded.rejected]
        illegible = [self._illegible(found, int(row), first) for row in np.flatnonzero(bad)]
        rejected = sorted([*moved, *illegible], key=lambda r: r.line)
        read = Counter(decoded.read)
        read[self._entity.table_key if self._entity is not None else ""] += len(illegible)
        return DecodedChunk(tables, tuple(rejected), dict(read))

    def _illegible(self, found: LegibleBatch, row: int, first: int) -> Rejected:
        names, one = found.columns_of(row), found.batch.slice(row, 1)
        kind: str | None
        if self._entity is not None:
            stored = {source: name for name, source in self._plan.sources}
            raw = record_text(self._entity, one.take([0]).rename_columns([name for name, _ in self._plan.sources]))[0]
            kind, is_edge = self._entity.name, isinstance(self._entity, EdgeType)
            field = END_MEMBERS.get(stored[names[0]], stored[names[0]])
        else:
            raw = json.dumps({name: _texts(one, name)[0] for name in one.schema.names}, ensure_ascii=False)[:RAW_LIMIT]
            node, edge = _texts(one, "type")[0], _texts(one, "edge")[0]
            kind, is_edge, field = node if node is not None else edge, node is None and edge is not None, names[0]
        message = why_illegible(names, one.column(names[0]))
        return Rejected(first + row, 0, kind, field, Rule.INVALID_TEXT, message, raw, is_edge)

    def _decode_records(self, batch: pa.RecordBatch, first: int, changes: RecordChanges | None) -> Decoded:
        lines = [_envelope(*row) for row in zip(*(_texts(batch, name) for name in ENVELOPE), strict=True)]
        chunk = self._records.decode(_chunk(lines, first), changes)
        broken = {r.line: fault for r in chunk.rejected if (fault := _fault(batch, r.line - first)) is not None}
        told = tuple(replace(r, message=broken.get(r.line, r.message)) for r in chunk.rejected)
        return replace(chunk, rejected=told), lambda line: (
            _record_text(batch, line - first) if line in broken else lines[line - first].decode()
        )[:RAW_LIMIT]

    def _decode_rows(
        self, entity: EntityType, rows: pa.RecordBatch, first: int, changes: RecordChanges | None
    ) -> Decoded:
        columns, doubtful, unsure_ids = self._columns(entity, rows)
        unknown = self._complete_ids(entity, columns, unsure_ids)
        columns["id"], named = completed_ids(columns.get("id"), rows.num_rows)
        schema = decoded_schema(entity, self._options.patches)
        missing = {n: pa.nulls(rows.num_rows, schema.field(n).type) for n in schema.names if n not in columns}
        if self._options.patches or (isinstance(entity, NodeType) and entity.key is not None):
            doubtful |= unknown
        if changes is not None:
            doubtful |= any(not schema.field(name).nullable for name in missing)
            doubtful = np.where(changes.deletes, unknown, doubtful)
        table = pa.Table.from_arrays([(columns | missing)[name] for name in schema.names], schema=schema)
        lines = np.arange(first, first + rows.num_rows, dtype=np.int64)
        whole = DecodedTable(entity.table_key, table, np.zeros_like(lines), lines, named, changes)
        if not doubtful.any():
            whole = replace(whole, table=self._marked(entity, table))
            chunk = DecodedChunk((whole,), (), {entity.table_key: len(lines)})
        else:
            chunk = self._with_doubtful(entity, rows, doubtful, whole, first)
        return chunk, lambda line: record_text(entity, rows.slice(line - first, 1))[0]

    def _marked(self, entity: EntityType, rows: pa.Table) -> pa.Table:
        """The rows with what they have of their properties, if they are patches: those that have a column, but for
        nulls that are to mean nothing.
        """
        if not self._options.patches:
            return rows
        there = {name for name, _ in self._plan.sources}
        for prop in entity.properties:
            given = pa.repeat(pa.scalar(prop.name in there), rows.num_rows)
            if prop.name in there and self._options.nulls is Nulls.KEEP:
                given = rows.column(prop.name).is_valid()
            rows = rows.set_column(rows.schema.get_field_index(GIVEN + prop.name), GIVEN + prop.name, given)
        return rows

    def _columns(self, entity: EntityType, rows: pa.RecordBatch) -> tuple[dict[str, pa.Array], Bools, Bools]:
        """Stored columns by name, `id` as it is given, the doubtful rows, and those of them that are so in a column
        that the id follows from.
        """
        columns: dict[str, pa.Array] = {}
        doubtful, unsure_ids = np.zeros(rows.num_rows, dtype=bool), np.zeros(rows.num_rows, dtype=bool)
        telling = identity_columns(entity, self._options.edge_id)
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            prop = entity.property(name) if name not in entity.identity else None
            if prop is not None:
                columns[name], unsure = self._convert(entity, prop, column)
                if not prop.type.nullable and column.null_count:
                    doubtful |= np.asarray(column.is_null())
            elif name in END_MEMBERS and isinstance(entity, EdgeType):
                node = self._catalog.nodes[entity.from_type if name == "src" else entity.to_type]
                spelt = end_texts(node, [column]) if self._options.coerce and len(key_columns(node)) == 1 else column
                columns[name], unsure = end_ids(spelt, node, EndForm.TEXT)
                if self._options.patches:  # they may lack their ends
                    unsure = unsure & np.asarray(column.is_valid())
            else:
                columns[name], unsure = column.cast(pa.string()), None
            if unsure is not None:
                doubtful |= unsure
                unsure_ids |= unsure & (name in telling)
        return columns, doubtful, unsure_ids

    def _complete_ids(self, entity: EntityType, columns: dict[str, pa.Array], unsure: Bools) -> Bools:
        """Puts in ids that follow from the key; the rows whose id is not known for sure, or contradicts the key."""
        given = columns.get("id")
        if isinstance(entity, NodeType) and entity.key is not None and columns.keys() >= set(entity.key):
            columns["id"] = ids = key_ids(entity, pa.table({name: columns[name] for name in entity.key}))
            unknown: Bools = unsure | np.asarray(ids.is_null())
            return (
                unknown if given is None else unknown | np.array(pc.not_equal(given, ids).fill_null(False), dtype=bool)
            )
        if given is None or (self._options.edge_id is not None and isinstance(entity, EdgeType)):
            return np.ones(len(unsure), dtype=bool)
        lacking: Bools = unsure | np.asarray(given.is_null())
        return lacking

    def _convert(self, entity: EntityType, prop: Property, column: pa.Array) -> Converted:
        if not self._options.patches:
            return convert(prop, column)
        return convert_present(partial(convert, prop), column, patch_schema(entity).field(prop.name).type)

    def _with_doubtful(
        self, entity: EntityType, rows: pa.RecordBatch, doubtful: Bools, whole: DecodedTable, first: int
    ) -> DecodedChunk:
        """Doubtful rows as the records they stand for, read by the decoder of lines; then all rows in order."""
        places = np.flatnonzero(doubtful) + first
        changes = None if whole.changes is None else whole.changes.take(doubtful)
        texts = self._spell(entity, rows.filter(pa.array(doubtful)), changes)
        found = self._spelt.decode(_chunk([text.encode() for text in texts]), changes)
        rejected = tuple(replace(r, line=int(places[r.line])) for r in found.rejected)
        tables = [whole.keep(~doubtful), *(replace(t, lines=places[t.lines]) for t in found.tables)]
        lines, named = (np.concatenate([getattr(t, name) for t in tables]) for name in ("lines", "named"))
        order = np.argsort(lines, kind="stable")
        lines = lines[order]
        merged = pa.concat_tables([t.table for t in tables]).take(pa.array(order))
        told = None if whole.changes is None else whole.changes.take(lines - first)
        merged = self._marked(entity, merged)
        table = DecodedTable(entity.table_key, merged, np.zeros_like(lines), lines, named[order], told)
        return DecodedChunk((table,), rejected, {entity.table_key: rows.num_rows})

    def _spell(self, entity: EntityType, rows: pa.RecordBatch, changes: RecordChanges | None) -> list[str]:
        """Records of rows; those that delete have only what their id follows from."""
        if changes is None:
            return record_text(entity, rows, None)
        texts = np.empty(rows.num_rows, dtype=object)
        telling = [name for name in rows.schema.names if name in identity_columns(entity, self._options.edge_id)]
        for part, mask in ((rows, ~changes.deletes), (rows.select(telling), changes.deletes)):
            texts[mask] = record_text(entity, part.filter(pa.array(mask)), None)
        return list(texts)


def identity_columns(entity: EntityType, edge_id: Sequence[str] | None) -> frozenset[str]:
    """Columns that the id of a row is, or follows from."""
    if isinstance(entity, NodeType):
        return frozenset(("id", *(entity.key or ())))
    return frozenset(("id",) if edge_id is None else ("id", "src", "dst", *edge_id))


def _placed(text: Callable[[int], str], bad: Bools, first: int) -> Callable[[int], str]:
    """The function that gives the text of a line, told the place of a row among all instead of that among good ones."""
    among_good = np.cumsum(~bad) - 1
    return lambda line: text(int(among_good[line - first]))


def _chunk(lines: Sequence[bytes], first: int = 0) -> LineChunk:
    return LineChunk(lines, np.zeros(len(lines), dtype=np.int64), first)


def _texts(batch: pa.RecordBatch, name: str) -> list[str | None]:
    place = batch.schema.get_field_index(name)
    return [None] * batch.num_rows if place < 0 else batch.column(place).to_pylist()


def _head(row: Sequence[str | None]) -> dict[str, object]:
    return {name: value for name, value in zip(ENVELOPE, row, strict=False) if value is not None and name != "data"}


def _envelope(*row: str | None) -> bytes:
    """The JSON line of a record. `data` must be one JSON value by itself, else the line is made to be none."""
    head, data = _head(row), row[_DATA]
    if data is None:
        return msgspec.json.encode(head)
    if _why_no_json(data) is not None:
        # Text that is no value could otherwise close the object and add members of its own.
        return json.dumps({**head, "data": data}, ensure_ascii=False).encode()[:-1]
    text = data.replace("\r", " ").replace("\n", " ").encode()
    return msgspec.json.encode({**head, "data": msgspec.Raw(text)})


def _why_no_json(data: str) -> str | None:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeError) as error:
        return str(error)
    return None


def _fault(batch: pa.RecordBatch, row: int) -> str | None:
    """What is wrong with the `data` of a row when it is no JSON; None when it is some."""
    data = _texts(batch.slice(row, 1), "data")[0]
    if data is None or (why := _why_no_json(data)) is None:
        return None
    try:
        parse_line(data.encode())
    except (InvalidJsonError, UnicodeError) as error:
        why = str(error)
    return f"invalid JSON in 'data': {why}"


def _record_text(batch: pa.RecordBatch, row: int) -> str:
    """A row whose `data` is no JSON, as the record that it was to be."""
    texts = [_texts(batch.slice(row, 1), name)[0] for name in ENVELOPE]
    head = json.dumps(_head(texts), ensure_ascii=False)
    return f'{head[:-1]}, "data": {texts[_DATA]}}}'
