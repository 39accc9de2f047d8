"""Texts of one type → JSON members as columns, with the columnar JSON reader of pyarrow.

A *text* is one JSON object `{"data": …}`, for edges with `from` and `to`, that begins with `{` and ends with `}`, white
space aside. Therefore several texts in a row can only be read as several rows: what would follow an unfinished one is
`{`, which the grammar does not allow after `}`; so equal numbers of texts and rows mean one row a text. That the first
byte is `{` matters beyond that: a `null` there makes the reader of pyarrow 26 crash.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import json as pj

from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType
from spark_omnigraph.records.jsonl.column_prefilter import ColumnPrefilter
from spark_omnigraph.records.jsonl.endpoints import end_type
from spark_omnigraph.records.jsonl.envelope import EnvelopeReader, misplaceable
from spark_omnigraph.records.jsonl.record_layout import SAMPLE_BYTES, SAMPLE_ROWS, RecordLayout, guess_layout

Int64s = npt.NDArray[np.int64]

_BLOCK = 2048
"""Texts that are read together where the input has bad lines: a few of those then cost their neighbours a second look,
not all others."""
_MANY = 0.5
"""Share of blocks with bad lines from which on all lines of the next chunk are filtered before they are read."""
_LEAF = 32
"""Texts that still fail together in a group this small are left to the row decoder."""


@dataclass(frozen=True, slots=True)
class ParsedTexts:
    """Members by name, `data` as a struct, and the positions of the texts they come from."""

    layout: RecordLayout
    members: pa.Table
    positions: Int64s


@dataclass(frozen=True, slots=True)
class _PlacedTexts:
    texts: pa.LargeBinaryArray
    positions: Int64s

    def pick(self, places: Int64s) -> _PlacedTexts:
        return _PlacedTexts(self.texts.take(pa.array(places, pa.int64())), self.positions[places])


class TextParser:
    """Parses texts of one type. What it returns may still hold values that need a closer look: see `column_decoder`.

    `guarded` names members that are asked for only to see whether they stand beside `data`, where they would be lost.
    """

    def __init__(self, catalog: Catalog, entity: EntityType, refuse_unknown: bool) -> None:
        self._catalog = catalog
        self._entity = entity
        self._refuse_unknown = refuse_unknown
        self._envelopes = EnvelopeReader(catalog)
        self.guarded = () if refuse_unknown else misplaceable(entity)
        self._options: dict[RecordLayout, pj.ParseOptions] = {}
        self._prefilters: dict[RecordLayout, ColumnPrefilter] = {}
        self._spoiled_blocks = 0.0

    def parse(self, texts: pa.LargeBinaryArray) -> Iterator[ParsedTexts]:
        """All texts that the reader accepts, usually at once; texts that make it fail are missing."""
        layout = guess_layout(self._catalog, self._entity, _sample(texts))
        whole = _PlacedTexts(texts, np.arange(len(texts), dtype=np.int64))
        if layout.extra and self._refuse_unknown:
            whole = self._stripped(whole)
        # Where unknown members are ignored, an id that is not asked for would go unseen. A struct needs a member.
        guess = replace(layout, has_ids=layout.has_ids or not self._refuse_unknown or not layout.readings)
        found = None if self._spoiled_blocks else self._read(whole, guess)
        if found is not None:
            yield found
        elif self._spoiled_blocks < _MANY:
            yield from self._read_in_blocks(whole, guess)
        elif len(texts):
            passing = self._passing(whole, guess)
            self._spoiled_blocks = 1 - (len(passing.positions) / len(texts)) ** _BLOCK
            yield from self._read_in_halves(passing, guess)

    def _stripped(self, given: _PlacedTexts) -> _PlacedTexts:
        is_edge = isinstance(self._entity, EdgeType)
        texts = [self._envelopes.strip(text, is_edge) for text in given.texts.to_pylist()]
        kept = [at for at, text in enumerate(texts) if text is not None]
        return _PlacedTexts(joined_texts([text for text in texts if text is not None]), given.positions[kept])

    def _read_in_blocks(self, given: _PlacedTexts, layout: RecordLayout) -> Iterator[ParsedTexts]:
        """Reads block by block; blocks that fail are filtered first."""
        good: list[ParsedTexts] = []
        spoiled: list[Int64s] = []
        for start in range(0, len(given.positions), _BLOCK):
            places = np.arange(start, min(start + _BLOCK, len(given.positions)))
            found = self._read(given.pick(places), layout)
            if found is None:
                spoiled.append(places)
            else:
                good.append(found)
        if good:
            members = pa.concat_tables([found.members for found in good])
            yield ParsedTexts(layout, members, np.concatenate([found.positions for found in good]))
        if spoiled:
            yield from self._read_in_halves(self._passing(given.pick(np.concatenate(spoiled)), layout), layout)
        self._spoiled_blocks = len(spoiled) / max(1, len(spoiled) + len(good))

    def _passing(self, given: _PlacedTexts, layout: RecordLayout) -> _PlacedTexts:
        """The texts that pass the prefilter."""
        good = self._prefilter(replace(layout, has_ids=True)).passing(given.texts.to_pylist())
        return given.pick(np.array(good, dtype=np.int64))

    def _read_in_halves(self, given: _PlacedTexts, layout: RecordLayout) -> Iterator[ParsedTexts]:
        """Reads what is sound, and halves what is not until a few texts are left out."""
        waiting = [given]
        while waiting:
            part = waiting.pop()
            found = self._read(part, replace(layout, has_ids=True))
            size = len(part.positions)
            if found is not None:
                yield found
            elif size > _LEAF:
                places = np.arange(size)
                waiting += [part.pick(places[size // 2 :]), part.pick(places[: size // 2])]

    def _read(self, given: _PlacedTexts, layout: RecordLayout) -> ParsedTexts | None:
        """None when the reader fails."""
        if not len(given.texts):
            return None
        data = given.texts.buffers()[2]
        read = pj.ReadOptions(use_threads=False, block_size=data.size + 1)
        try:
            members = pj.read_json(pa.BufferReader(data), read_options=read, parse_options=self._parse_options(layout))
        except pa.ArrowInvalid:
            return None
        return ParsedTexts(layout, members, given.positions) if len(members) == len(given.texts) else None

    def _parse_options(self, layout: RecordLayout) -> pj.ParseOptions:
        if layout not in self._options:
            data = [pa.field(reading.prop.name, reading.json_type()) for reading in layout.readings]
            if layout.has_ids:
                data.append(pa.field("id", pa.string()))
            fields = [pa.field("data", pa.struct(data))]
            if isinstance(self._entity, EdgeType):
                nodes = self._catalog.nodes
                fields.append(pa.field("from", end_type(nodes[self._entity.from_type], layout.ends[0])))
                fields.append(pa.field("to", end_type(nodes[self._entity.to_type], layout.ends[1])))
            fields += [pa.field(name, pa.string()) for name in self.guarded]
            behavior = "error" if self._refuse_unknown else "ignore"
            schema = pa.schema(fields)
            self._options[layout] = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=behavior)
        return self._options[layout]

    def _prefilter(self, layout: RecordLayout) -> ColumnPrefilter:
        if layout not in self._prefilters:
            self._prefilters[layout] = ColumnPrefilter(self._entity, layout, self._refuse_unknown)
        return self._prefilters[layout]


def _sample(texts: pa.LargeBinaryArray) -> list[bytes]:
    sample: list[bytes] = []
    for text in texts.slice(0, SAMPLE_ROWS):
        if sample and sum(map(len, sample)) > SAMPLE_BYTES:
            break
        sample.append(text.as_py())
    return sample


def joined_texts(texts: list[bytes]) -> pa.LargeBinaryArray:
    """Texts that were made one by one, as the parser wants them."""
    return pa.array([text + b"\n" for text in texts], pa.large_binary())
