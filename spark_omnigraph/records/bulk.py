"""Rows of one type, thousands at a time: the JSON reader of pyarrow, kept from accepting more than `exact` does.

A *text* here is one JSON object `{"data": …}`, for edges with `from` and `to`, that begins with `{` and ends with `}`
or white space after it. Then several texts in a row can only be read as several rows: an unfinished text would be
followed by `{`, which the grammar does not allow after `}`, so equal numbers of texts and rows mean one row a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pj

from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType, NodeType
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.records.columns import Bools
from spark_omnigraph.records.endpoints import end_ids, end_type
from spark_omnigraph.records.envelope import EnvelopeReader
from spark_omnigraph.records.keys import key_ids
from spark_omnigraph.records.mode import UnknownFields
from spark_omnigraph.records.plan import SAMPLE, ReadPlan, plan_reading
from spark_omnigraph.records.screen import Screen
from spark_omnigraph.records.ulid import new_ulids

Int64s = npt.NDArray[np.int64]

_LEAF = 32
"""Texts that still fail together in a group this small are left to the exact reader."""


@dataclass(frozen=True, slots=True)
class BulkRows:
    """Rows in stored layout and the positions of their texts; texts that are missing must be read exactly."""

    table: pa.Table
    positions: Int64s
    explicit_ids: bool


@dataclass(frozen=True, slots=True)
class _Columns:
    """Converted columns by name; `id` holds the ids that records give. `doubtful` rows are not to be used."""

    columns: dict[str, pa.Array]
    doubtful: Bools


class BulkReader:
    """Reads texts of one type."""

    def __init__(self, catalog: Catalog, entity: EntityType, unknown_fields: UnknownFields) -> None:
        self._catalog = catalog
        self._entity = entity
        self._refuse_unknown = unknown_fields is UnknownFields.REFUSE
        self._schema = physical_schema(entity)
        self._envelopes = EnvelopeReader(catalog)
        self._options: dict[ReadPlan, pj.ParseOptions] = {}
        self._screens: dict[ReadPlan, Screen] = {}

    def read(self, texts: pa.LargeBinaryArray) -> BulkRows:
        """The rows of all texts that are surely right."""
        positions = np.arange(len(texts), dtype=np.int64)
        plan = plan_reading(self._catalog, self._entity, texts.slice(0, SAMPLE).to_pylist())
        if plan.extra and self._refuse_unknown:
            texts, positions = self._stripped(texts)
        found = [self._kept(self._convert(rows, plan), at) for rows, at in self._pieces(texts, positions, plan)]
        table = pa.concat_tables([self._schema.empty_table(), *(piece.table for piece in found)])
        return BulkRows(
            table,
            np.concatenate([positions[:0], *(piece.positions for piece in found)]),
            any(piece.explicit_ids for piece in found),
        )

    def _stripped(self, texts: pa.LargeBinaryArray) -> tuple[pa.LargeBinaryArray, Int64s]:
        is_edge = isinstance(self._entity, EdgeType)
        stripped = [self._envelopes.strip(text, is_edge) for text in texts.to_pylist()]
        kept = [at for at, text in enumerate(stripped) if text is not None]
        joined = [text + b"\n" for text in stripped if text is not None]
        return pa.array(joined, pa.large_binary()), np.array(kept, dtype=np.int64)

    def _pieces(
        self, texts: pa.LargeBinaryArray, positions: Int64s, plan: ReadPlan
    ) -> Iterator[tuple[pa.Table, Int64s]]:
        """Parsed texts with their positions. Texts that spoil the others are left out: screened, then halved off."""
        if not len(texts):
            return
        rows = self._parse(texts, plan)
        if rows is None:
            good = self._screen(plan).passing(texts.to_pylist())
            texts, positions = texts.take(pa.array(good, pa.int64())), positions[good]
            waiting = [(texts, positions)]
        else:
            waiting = []
            yield rows, positions
        while waiting:
            texts, positions = waiting.pop()
            if not len(texts):
                continue
            rows = self._parse(texts, plan)
            if rows is not None:
                yield rows, positions
            elif len(texts) > _LEAF:
                half = len(texts) // 2
                waiting += [
                    (_copy(texts.slice(half)), positions[half:]),
                    (_copy(texts.slice(0, half)), positions[:half]),
                ]

    def _parse(self, texts: pa.LargeBinaryArray, plan: ReadPlan) -> pa.Table | None:
        data = texts.buffers()[2]
        read = pj.ReadOptions(use_threads=False, block_size=data.size + 1)
        try:
            rows = pj.read_json(pa.BufferReader(data), read_options=read, parse_options=self._parse_options(plan))
        except pa.ArrowInvalid:
            return None
        return rows if rows.num_rows == len(texts) else None

    def _parse_options(self, plan: ReadPlan) -> pj.ParseOptions:
        if plan not in self._options:
            data = [pa.field("id", pa.string())]
            data += [pa.field(reading.prop.name, reading.json_type()) for reading in plan.readings]
            fields = [pa.field("data", pa.struct(data))]
            if isinstance(self._entity, EdgeType):
                nodes = self._catalog.nodes
                fields.append(pa.field("from", end_type(nodes[self._entity.from_type], plan.ends[0])))
                fields.append(pa.field("to", end_type(nodes[self._entity.to_type], plan.ends[1])))
            if not self._refuse_unknown:
                # Members that are ignored go unseen; a second type must not.
                fields += [pa.field("type", pa.string()), pa.field("edge", pa.string())]
            behavior = "error" if self._refuse_unknown else "ignore"
            self._options[plan] = pj.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior=behavior)
        return self._options[plan]

    def _screen(self, plan: ReadPlan) -> Screen:
        if plan not in self._screens:
            self._screens[plan] = Screen(self._entity, plan, self._refuse_unknown)
        return self._screens[plan]

    def _convert(self, rows: pa.Table, plan: ReadPlan) -> _Columns:
        members = {name: _whole(rows.column(name)) for name in rows.column_names}
        given, *values = members["data"].flatten()
        columns: dict[str, pa.Array] = {"id": given}
        doubtful = np.zeros(rows.num_rows, dtype=bool)
        for name in ("type", "edge"):
            if name in members and members[name].null_count < rows.num_rows:
                doubtful |= members[name].is_valid().to_numpy(zero_copy_only=False)
        if isinstance(self._entity, EdgeType):
            for name, column, form, node in zip(
                ("from", "to"), ("src", "dst"), plan.ends, (self._entity.from_type, self._entity.to_type)
            ):
                columns[column], unsure = end_ids(members[name], self._catalog.nodes[node], form)
                doubtful |= unsure
        for reading, value in zip(plan.readings, values):
            columns[reading.prop.name], unsure_rows = reading.convert(value)
            if unsure_rows is not None:
                doubtful |= unsure_rows
            if not reading.prop.type.nullable and value.null_count:
                doubtful |= value.is_null().to_numpy(zero_copy_only=False)
        return _Columns(columns, doubtful)

    def _kept(self, found: _Columns, positions: Int64s) -> BulkRows:
        """The rows without doubt, with their ids."""
        columns, doubtful = found.columns, found.doubtful
        given = columns["id"]
        keyed = isinstance(self._entity, NodeType) and self._entity.key is not None
        if isinstance(self._entity, NodeType) and keyed:
            columns["id"] = key_ids(self._entity, pa.table({name: columns[name] for name in self._entity.key or ()}))
            if given.null_count < len(given):
                differs = pc.not_equal(given, columns["id"]).fill_null(False)
                doubtful |= differs.to_numpy(zero_copy_only=False)
        if doubtful.any():
            keep = pa.array(~doubtful)
            columns = {name: column.filter(keep) for name, column in columns.items()}
            positions = positions[~doubtful]
        explicit = keyed
        if not keyed:
            given = columns["id"]
            explicit = given.null_count < len(given)
            new = new_ulids(given.null_count)
            columns["id"] = pc.replace_with_mask(given, given.is_null(), new) if explicit else new
        table = pa.Table.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)
        return BulkRows(table, positions, explicit and len(positions) > 0)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _copy(texts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """The same texts with their bytes alone in a buffer."""
    return texts.take(pa.array(np.arange(len(texts))))
