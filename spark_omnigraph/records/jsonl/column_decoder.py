"""Rows of one type, thousands at a time, never more of them than `row_decoder` accepts.

What Arrow's reader lets pass and `row_decoder` might not, such as large numbers, odd dates, missing values and ids that
do not fit, makes a row *doubtful*; its text is then left to the row decoder.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import GIVEN, Catalog, EdgeType, EntityType, NodeType
from spark_omnigraph.records.arrow_schema import decoded_schema
from spark_omnigraph.records.columns import Bools, Reading, convert_present, one_array
from spark_omnigraph.records.jsonl.endpoints import end_ids
from spark_omnigraph.records.jsonl.parse import ParsedTexts, TextParser
from spark_omnigraph.records.keys import key_ids
from spark_omnigraph.records.mode import DecodeOptions, Nulls, UnknownFields
from spark_omnigraph.records.ulid import new_ulids

Int64s = npt.NDArray[np.int64]

_LONG_NUMBER = r"[:,\[]\s*-?[0-9](?:[0-9.]{16}|[0-9.]*[eE])"
"""A JSON number of more than 16 characters, or with an exponent; in a string it costs a closer look and no more."""


@dataclass(frozen=True, slots=True)
class DecodedColumns:
    """Rows in stored layout and the positions of their texts; texts that are missing are left to the row decoder."""

    table: pa.Table
    positions: Int64s
    named: Bools
    """Whether the id of a row is its own."""


class ColumnDecoder:
    """Reads texts (see `parse`) of one type."""

    def __init__(self, catalog: Catalog, entity: EntityType, options: DecodeOptions) -> None:
        self._catalog = catalog
        self._entity = entity
        self._patches = options.patches
        self._nulls = options.nulls
        self._schema = decoded_schema(entity, options.patches)
        self._parser = TextParser(catalog, entity, options.unknown_fields is UnknownFields.REFUSE)

    def read(self, texts: pa.LargeBinaryArray) -> DecodedColumns:
        """The rows of all texts that are surely right."""
        pieces = [self._rows(parsed, texts) for parsed in self._parser.parse(texts)]
        if len(pieces) == 1:
            return pieces[0]
        return DecodedColumns(
            pa.concat_tables([self._schema.empty_table(), *(piece.table for piece in pieces)]),
            np.concatenate([np.empty(0, dtype=np.int64), *(piece.positions for piece in pieces)]),
            np.concatenate([np.empty(0, dtype=bool), *(piece.named for piece in pieces)]),
        )

    def _rows(self, parsed: ParsedTexts, texts: pa.LargeBinaryArray) -> DecodedColumns:
        columns, doubtful = self._columns(parsed)
        if any(reading.wide for reading in parsed.layout.readings):
            doubtful |= _with_long_numbers(texts, parsed.positions)
        given = columns.pop("id", None)
        ids = self._key_ids(columns)
        if ids is not None:
            if given is not None:
                doubtful |= pc.not_equal(given, ids).fill_null(False).to_numpy(zero_copy_only=False)
            given = ids
        if given is not None:
            columns["id"] = given
        if self._patches:
            doubtful |= self._unsure_patches(given, texts, parsed.positions)
        positions = parsed.positions
        if doubtful.any():
            keep = pa.array(~doubtful)
            columns = {name: column.filter(keep) for name, column in columns.items()}
            positions = positions[~doubtful]
        columns["id"], named = completed_ids(columns.get("id"), len(positions))
        table = pa.Table.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)
        return DecodedColumns(table, positions, named)

    def _unsure_patches(self, given: pa.Array | None, texts: pa.LargeBinaryArray, positions: Int64s) -> Bools:
        """Patches without an id that is surely right, and those with a null, which looks like no member."""
        unsure = np.ones(len(positions), dtype=bool) if given is None else np.asarray(given.is_null())
        if self._nulls is Nulls.SET:
            asked = texts if len(positions) == len(texts) else texts.take(pa.array(positions))
            unsure = unsure | np.asarray(pc.match_substring(asked, "null"))
        return unsure

    def _columns(self, parsed: ParsedTexts) -> tuple[dict[str, pa.Array], Bools]:
        """Columns by name, `id` as records give it, and the doubtful rows."""
        data, columns, doubtful = (
            one_array(parsed.members.column("data")),
            {},
            np.zeros(len(parsed.members), dtype=bool),
        )
        values = dict(zip((field.name for field in data.type), data.flatten()))
        if parsed.layout.has_ids:
            columns["id"] = values["id"]
        if isinstance(self._entity, EdgeType):
            ends = (("from", "src", self._entity.from_type), ("to", "dst", self._entity.to_type))
            for (member, name, node), form in zip(ends, parsed.layout.ends):
                end = one_array(parsed.members.column(member))
                ids, unsure = end_ids(end, self._catalog.nodes[node], form)
                if self._patches:
                    unsure = unsure & np.asarray(end.is_valid())
                columns[name] = ids
                doubtful |= unsure
        for name in self._parser.guarded:
            doubtful |= parsed.members.column(name).is_valid().to_numpy()
        for reading in parsed.layout.readings:
            value = values[reading.prop.name]
            columns[reading.prop.name], unsure_rows = self._convert(reading, value)
            if self._patches:
                columns[GIVEN + reading.prop.name] = value.is_valid()
            if unsure_rows is not None:
                doubtful |= unsure_rows
            if not reading.prop.type.nullable and value.null_count:
                doubtful |= value.is_null().to_numpy(zero_copy_only=False)
        return columns, doubtful

    def _convert(self, reading: Reading, value: pa.Array) -> tuple[pa.Array, Bools | None]:
        if not self._patches:
            return reading.convert(value)
        return convert_present(reading.convert, value, self._schema.field(reading.prop.name).type)

    def _key_ids(self, columns: dict[str, pa.Array]) -> pa.Array | None:
        if not isinstance(self._entity, NodeType) or self._entity.key is None:
            return None
        return key_ids(self._entity, pa.table({name: columns[name] for name in self._entity.key}))


def _with_long_numbers(texts: pa.LargeBinaryArray, positions: Int64s) -> Bools:
    """Texts with a number whose float may be whole although the number is not: all others have up to 15 digits and no
    exponent, and such a number is the only one of its kind that has its float.
    """
    asked = texts if len(positions) == len(texts) else texts.take(pa.array(positions))
    found: Bools = pc.match_substring_regex(asked, _LONG_NUMBER).to_numpy(zero_copy_only=False)
    return found


def completed_ids(given: pa.Array | None, count: int) -> tuple[pa.Array, Bools]:
    """Ids of rows: the given ones, new ones for rows without; and which are given."""
    if given is None:
        return new_ulids(count), np.zeros(count, dtype=bool)
    named: Bools = given.is_valid().to_numpy(zero_copy_only=False)
    missing = given.null_count
    if not missing:
        return given, named
    fresh = new_ulids(missing)
    return fresh if missing == count else pc.replace_with_mask(given, given.is_null(), fresh), named
