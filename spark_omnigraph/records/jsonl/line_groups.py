"""Lines of a chunk sorted by how they begin, without looking at them one by one.

Writers of JSONL repeat themselves: most lines begin with one of a few texts such as `{"type":"Person",`. All lines that
share such a beginning are found by comparing eight bytes at a time, in all lines at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.catalog.types import Catalog, EntityType
from spark_omnigraph.records.json_line import BYTE_ORDER_MARK, MAX_DEPTH
from spark_omnigraph.records.jsonl.lines import TextLines

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_Bytes = npt.NDArray[np.uint8]

_BEGINNING = re.compile(rb'\{[ \t]*"(type|edge)"[ \t]*:[ \t]*"(\w{1,200})"[ \t]*,')
_CAPITALIZED = re.compile(rb'"(?=[a-z]*[A-Z])(?i:type|edge|from|to|data)"')
_MISSES = 64
"""Lines without a usable beginning after which no more are tried."""
_STRIDE = 7919


@dataclass(frozen=True, slots=True)
class LineGroup:
    """Lines of one type whose texts (see `column_decoder`) could be cut out of the chunk, in order."""

    entity: EntityType
    lines: Int64s
    texts: pa.LargeBinaryArray

    def among(self, lines: Bools) -> LineGroup:
        """Only some lines of the chunk."""
        kept = lines[self.lines]
        return LineGroup(self.entity, self.lines[kept], self.texts.filter(pa.array(kept)))


@dataclass(frozen=True, slots=True)
class SortedLines:
    """All lines of a chunk that hold a record: in groups, unusual, or only for the row decoder. The rest is blank."""

    groups: tuple[LineGroup, ...]
    unusual: Int64s
    doubtful: Int64s


class LineSorter:
    """Sorts lines by type."""

    def __init__(self, catalog: Catalog, ignore_unknown: bool) -> None:
        self._catalog = catalog
        self._ignore_unknown = ignore_unknown

    def sort(self, lines: TextLines) -> SortedLines:
        """Sorts the lines of a chunk."""
        chunk = _Chunk(lines)
        doubtful = chunk.undecodable()
        if self._ignore_unknown:
            doubtful |= chunk.risky_to_skip()
        whole = chunk.whole_objects()
        if self._ignore_unknown:
            whole &= ~(chunk.name_types_twice() | chunk.misspell_members())
        members, left = self._members(chunk, lines, np.flatnonzero(whole & ~doubtful))
        unusual = np.concatenate([left, chunk.records_among(np.flatnonzero(~whole & ~doubtful))])
        return SortedLines(chunk.groups(members), np.sort(unusual), chunk.records_among(np.flatnonzero(doubtful)))

    def _members(
        self, chunk: _Chunk, lines: TextLines, candidates: Int64s
    ) -> tuple[list[tuple[EntityType, Int64s, int]], Int64s]:
        """Types with their lines and the length of the beginning these share, and the lines that have none."""
        members: list[tuple[EntityType, Int64s, int]] = []
        strange: list[Int64s] = []
        while len(candidates) and len(strange) < _MISSES:
            # After a miss the next line to look at is far away: damaged lines may stand together.
            at = len(strange) * _STRIDE % len(candidates)
            found = _BEGINNING.match(lines[candidates[at]])
            entity = None if found is None else self._entity(found[1], found[2].decode())
            if found is None or entity is None:
                strange.append(candidates[at : at + 1])
                candidates = np.delete(candidates, at)
            else:
                same = chunk.that_begin(candidates, found[0])
                members.append((entity, candidates[same], len(found[0])))
                candidates = candidates[~same]
        return members, np.concatenate([*strange, candidates])

    def _entity(self, kind: bytes, name: str) -> EntityType | None:
        return self._catalog.nodes.get(name) if kind == b"type" else self._catalog.edge_by_word(name)


class _Chunk:
    """The bytes of a chunk and where its lines stand."""

    def __init__(self, lines: TextLines) -> None:
        self._lines = lines
        self._text = lines.text
        self._bytes: _Bytes = np.frombuffer(self._text, dtype=np.uint8)
        self._words = np.ndarray(max(0, len(self._text) - 7), dtype="<u8", buffer=self._text, strides=(1,))
        self._starts, self._ends = lines.starts, lines.ends()

    def undecodable(self) -> Bools:
        """Lines that are not UTF-8."""
        bad = np.zeros(len(self._lines), dtype=bool)
        if not self._text.isascii() and not _is_utf8(self._text):
            bad[:] = [not _is_utf8(line) for line in self._lines]
        return bad

    def risky_to_skip(self) -> Bools:
        """Lines where an ignored member may hold what the column decoder lets pass: constants, deep nesting."""
        constants = b"NaN" in self._text or b"Inf" in self._text
        risky = np.zeros(len(self._lines), dtype=bool)
        for at in np.flatnonzero((self._ends - self._starts > MAX_DEPTH) | constants).tolist():
            line = self._lines[at]
            risky[at] = b"NaN" in line or b"Inf" in line or line.count(b"[") + line.count(b"{") > MAX_DEPTH
        return risky

    def name_types_twice(self) -> Bools:
        """Lines that may have a second `type` or `edge`, which would be ignored like any other member."""
        return np.array(
            [line.count(b'"type"') + line.count(b'"edge"') > 1 or b"\\u" in line for line in self._lines], dtype=bool
        )

    def misspell_members(self) -> Bools:
        """Lines that may have a member such as `Data`, which the column decoder would ignore like any other member."""
        odd = np.zeros(len(self._lines), dtype=bool)
        places = [found.start() for found in _CAPITALIZED.finditer(self._text)]
        odd[np.searchsorted(self._starts, places, side="right") - 1] = True
        return odd

    def whole_objects(self) -> Bools:
        """Lines that begin with `{` and end with `}`, a carriage return aside."""
        whole: Bools = self._ends - self._starts >= 2
        lines = np.flatnonzero(whole)
        last = self._ends[lines] - 1
        last -= self._bytes[last] == ord("\r")
        whole[lines] = (self._bytes[self._starts[lines]] == ord("{")) & (self._bytes[last] == ord("}"))
        return whole

    def that_begin(self, lines: Int64s, text: bytes) -> Bools:
        """Which of the lines begin with a text of at least eight bytes."""
        starts = self._starts[lines]
        left = np.flatnonzero(self._ends[lines] - starts >= len(text))
        # The last word first: it holds the end of the name, where types differ.
        for place in (len(text) - 8, *range(0, len(text) - 8, 8)):
            wanted = np.frombuffer(text[place : place + 8], dtype="<u8")[0]
            left = left[self._words[starts[left] + place] == wanted]
        same = np.zeros(len(lines), dtype=bool)
        same[left] = True
        return same

    def records_among(self, lines: Int64s) -> Int64s:
        """Lines that are neither blank nor comments."""
        kept = []
        for at in lines.tolist():
            text = self._lines[at].removeprefix(BYTE_ORDER_MARK).strip()
            if text and not text.startswith(b"//"):
                kept.append(at)
        return np.array(kept, dtype=np.int64)

    def groups(self, members: Sequence[tuple[EntityType, Int64s, int]]) -> tuple[LineGroup, ...]:
        """Texts of each group: the lines without their beginnings, the comma of the beginning replaced by `{`."""
        skipped = np.zeros(len(self._lines), dtype=np.int64)
        for _, lines, length in members:
            skipped[lines] = length - 1
        # Texts and what lies between them, in turns: so their bytes need no copy before they are picked.
        offsets = np.empty(2 * len(self._lines) + 1, dtype=np.int64)
        offsets[:-1:2] = self._starts + skipped
        offsets[1::2] = np.append(self._starts[1:], len(self._text))
        offsets[-1] = len(self._text)
        pieces = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), 2 * len(self._lines), [None, pa.py_buffer(offsets), pa.py_buffer(self._text)]
        )
        return tuple(
            LineGroup(entity, lines, _opened(pieces.take(pa.array(2 * lines)))) for entity, lines, _ in members
        )


def _opened(texts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """The texts with `{` as their first byte. They must have been picked just now: they are changed in place."""
    _, offsets, data = texts.buffers()
    first = np.frombuffer(offsets, dtype=np.int64)[: len(texts)]
    np.asarray(memoryview(data))[first] = ord("{")
    return texts


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
