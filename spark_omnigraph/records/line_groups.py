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
from spark_omnigraph.errors import InternalError
from spark_omnigraph.records.json_line import MAX_DEPTH

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_Bytes = npt.NDArray[np.uint8]

_BEGINNING = re.compile(rb'\{[ \t]*"(type|edge)"[ \t]*:[ \t]*"(\w{1,200})"[ \t]*,')
_PADDING = 256
"""Bytes behind the last line, so that words of eight bytes can be read anywhere in a beginning."""
_MISSES = 16
"""Lines without a usable beginning after which no more are tried."""


@dataclass(frozen=True, slots=True)
class LineGroup:
    """Lines of one type whose texts (see `bulk`) could be cut out of the chunk, in order."""

    entity: EntityType
    lines: Int64s
    texts: pa.LargeBinaryArray


@dataclass(frozen=True, slots=True)
class SortedLines:
    """All lines of a chunk that hold a record: in groups, unusual, or only for the exact reader. The rest is blank."""

    groups: tuple[LineGroup, ...]
    unusual: Int64s
    doubtful: Int64s


class LineSorter:
    """Sorts lines by type."""

    def __init__(self, catalog: Catalog, ignore_unknown: bool) -> None:
        self._catalog = catalog
        self._ignore_unknown = ignore_unknown
        self._most_beginnings = 64 + 4 * sum(1 for _ in catalog.tables())

    def sort(self, lines: Sequence[bytes]) -> SortedLines:
        """Sorts the lines of a chunk. Lines hold no line break."""
        chunk = _Chunk(lines)
        doubtful = chunk.undecodable()
        if self._ignore_unknown:
            doubtful |= chunk.risky_to_skip()
        whole = chunk.whole_objects()
        candidates = np.flatnonzero(whole & ~doubtful)
        members: list[tuple[EntityType, Int64s, int]] = []
        strange: list[Int64s] = []
        misses = 0
        for _ in range(self._most_beginnings):
            if not len(candidates) or misses > _MISSES:
                break
            found = _BEGINNING.match(lines[candidates[0]])
            if found is None:
                strange.append(candidates[:1])
                candidates = candidates[1:]
                misses += 1
                continue
            same = chunk.that_begin(candidates, found[0])
            entity = self._entity(found[1], found[2].decode())
            if entity is None:
                doubtful[candidates[same]] = True
            else:
                members.append((entity, candidates[same], len(found[0])))
            candidates = candidates[~same]
        unusual = np.concatenate([*strange, candidates, chunk.records_among(np.flatnonzero(~whole & ~doubtful))])
        return SortedLines(chunk.groups(members), np.sort(unusual), chunk.records_among(np.flatnonzero(doubtful)))

    def _entity(self, kind: bytes, name: str) -> EntityType | None:
        return self._catalog.nodes.get(name) if kind == b"type" else self._catalog.edge_by_word(name)


class _Chunk:
    """The bytes of a chunk and where its lines stand."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        joined = b"\n".join(lines)
        self._lines = lines
        self._is_ascii = joined.isascii()
        self._joined = joined
        self._buffer = bytearray(joined)
        self._buffer += b"\n" + bytes(_PADDING)
        self._bytes: _Bytes = np.frombuffer(self._buffer, dtype=np.uint8)
        self._words = np.ndarray(len(self._buffer) - 7, dtype="<u8", buffer=self._buffer, strides=(1,))
        self._ends = np.flatnonzero(self._bytes[: len(joined) + 1] == ord("\n"))
        if len(self._ends) != len(lines):
            raise InternalError("a line of the input holds a line break")
        self._starts = np.concatenate([[0], self._ends[:-1] + 1])

    def undecodable(self) -> Bools:
        """Lines that are not UTF-8."""
        bad = np.zeros(len(self._lines), dtype=bool)
        if not self._is_ascii and not _is_utf8(self._joined):
            bad[:] = [not _is_utf8(line) for line in self._lines]
        return bad

    def risky_to_skip(self) -> Bools:
        """Lines where an ignored member may hold what the bulk reader lets pass: constants, deep nesting."""
        constants = b"NaN" in self._joined or b"Inf" in self._joined
        risky = np.zeros(len(self._lines), dtype=bool)
        for at in np.flatnonzero((self._ends - self._starts > MAX_DEPTH) | constants).tolist():
            line = self._lines[at]
            risky[at] = b"NaN" in line or b"Inf" in line or line.count(b"[") + line.count(b"{") > MAX_DEPTH
        return risky

    def whole_objects(self) -> Bools:
        """Lines that begin with `{` and end with `}`, a carriage return aside."""
        last = self._ends - 1
        last = last - (self._bytes[last] == ord("\r"))
        whole: Bools = (self._bytes[self._starts] == ord("{")) & (self._bytes[last] == ord("}"))
        # The last byte of an empty line is that of the line before.
        whole &= last > self._starts
        return whole

    def that_begin(self, lines: Int64s, text: bytes) -> Bools:
        """Which of the lines begin with a text of at least eight bytes."""
        starts = self._starts[lines]
        left = np.arange(len(lines))
        # The last word first: it holds the end of the name, where types differ.
        for place in (len(text) - 8, *range(0, len(text) - 8, 8)):
            wanted = np.frombuffer(text[place : place + 8], dtype="<u8")[0]
            left = left[self._words[starts[left] + place] == wanted]
        same = np.zeros(len(lines), dtype=bool)
        same[left] = self._ends[lines[left]] - starts[left] >= len(text)
        return same

    def records_among(self, lines: Int64s) -> Int64s:
        """Lines that are neither blank nor comments."""
        kept = []
        for at in lines.tolist():
            text = self._lines[at].strip()
            if text and not text.startswith(b"//"):
                kept.append(at)
        return np.array(kept, dtype=np.int64)

    def groups(self, members: Sequence[tuple[EntityType, Int64s, int]]) -> tuple[LineGroup, ...]:
        """Texts of each group: the lines without their beginnings, the comma of the beginning replaced by `{`."""
        skipped = np.zeros(len(self._lines), dtype=np.int64)
        for _, lines, length in members:
            skipped[lines] = length - 1
            self._bytes[self._starts[lines] + (length - 1)] = ord("{")
        # Texts and what lies between them, in turns: so their bytes need no copy before they are picked.
        offsets = np.empty(2 * len(self._lines) + 1, dtype=np.int64)
        offsets[:-1:2] = self._starts + skipped
        offsets[1::2] = self._ends + 1
        offsets[-1] = self._ends[-1] + 1
        pieces = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), 2 * len(self._lines), [None, pa.py_buffer(offsets), pa.py_buffer(self._buffer)]
        )
        return tuple(LineGroup(entity, lines, pieces.take(pa.array(2 * lines))) for entity, lines, _ in members)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
