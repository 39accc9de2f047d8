"""Exact look-up of strings among many: one hash table for all columns that ask for the same keys.

Arrow's `is_in` builds its table anew for every call and costs half a second a million; endpoints of edges ask four
times for the same ids. Here 64-bit hashes find one candidate for each value, and comparing the strings proves it;
where a comparison fails (two keys of one hash), Arrow decides. So the answer never rests on a hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Positions = npt.NDArray[np.int64]
_Hashes = npt.NDArray[np.uint64]

_WORD = 8
_LONG = 256
"""Bytes; longer strings are hashed one by one."""
_FIRST, _NEXT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_SHIFT, _ALL = np.uint64(32), 2**64 - 1
_LEVELS = 24
_BUCKET_BITS = 16
_FEW_TEXTS, _FEW_ROWS = 16, 1_024
"""Texts that are looked for one by one, and rows of a bucket that are looked at so."""
_NO_HASHES = np.empty(0, dtype=np.uint64)


class KeyIndex:
    """Positions of strings in an array of keys without nulls; of repeated keys, one."""

    def __init__(self, keys: pa.Array) -> None:
        self._keys = keys
        self._hashes = hash_strings(keys)
        self._levels: list[tuple[np.uint64, npt.NDArray[np.int32]]] = []
        self._fill(np.arange(len(keys), dtype=np.int32))

    def __len__(self) -> int:
        return len(self._keys)

    def _fill(self, places: npt.NDArray[np.int32]) -> None:
        """Tables of one key a slot; keys that lose their slot to one of another hash go to the next table."""
        while len(places) and len(self._levels) < _LEVELS:
            bits = max(4, int(2 * len(places) - 1).bit_length())
            shift = np.uint64(64 - bits)
            hashes = self._at_level(self._hashes[places], len(self._levels))
            slots = (hashes >> shift).astype(np.int64)
            table = np.full(1 << bits, -1, dtype=np.int32)
            table[slots] = places
            self._levels.append((shift, table))
            winners = table[slots]
            lost = (winners != places) & (self._hashes[winners] != self._hashes[places])
            places = places[lost]

    @staticmethod
    def _at_level(hashes: _Hashes, level: int) -> _Hashes:
        return hashes * np.uint64(2 * level + 1) if level else hashes

    def find(self, values: pa.Array) -> Positions:
        """Position of each value among the keys, -1 where it is none."""
        found = self._candidates(hash_strings(values))
        hit = np.flatnonzero(found >= 0)
        if not len(hit):
            return found
        at = pa.array(hit)
        wanted = values if len(hit) == len(values) else values.take(at)
        same = np.asarray(pc.equal(self._keys.take(pa.array(found[hit])), wanted))
        if not same.all():
            doubtful = hit[~same]
            exact = pc.index_in(values.take(pa.array(doubtful)), value_set=self._keys)
            found[doubtful] = np.asarray(exact.fill_null(-1))
        return found

    def contains(self, values: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Whether each value is one of the keys."""
        if isinstance(values, pa.ChunkedArray):
            parts = [self.find(chunk) >= 0 for chunk in values.chunks]
            return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)
        return self.find(values) >= 0

    def _candidates(self, hashes: _Hashes) -> Positions:
        """Per hash the position of a key that has it, or -1."""
        found = np.full(len(hashes), -1, dtype=np.int64)
        open_rows: Positions | None = None
        for level, (shift, table) in enumerate(self._levels):
            wanted = hashes if open_rows is None else hashes[open_rows]
            places = table[(self._at_level(wanted, level) >> shift).astype(np.int64)]
            # A slot of -1 reads the last key; its hash decides like any other.
            hit = (self._hashes[places] == wanted) & (places >= 0)
            if open_rows is None:
                found[hit] = places[hit]
                open_rows = np.flatnonzero(~hit)
            else:
                found[open_rows[hit]] = places[hit]
                open_rows = open_rows[~hit]
            if not len(open_rows):
                break
        return found


class TextIndex:
    """Rows of a column without nulls by their text, which may repeat, for who asks for few: 12 bytes a row, made in a
    fraction of the time that looking up as many takes.

    Rows stand in buckets by the first bits of their hash (`starts`: where each begins), ascending in each. As above,
    hashes find candidates, and comparing the texts proves them.
    """

    def __init__(self, values: pa.Array) -> None:
        hashes = hash_strings(values)
        self._shift = np.uint64(64 - min(_BUCKET_BITS, max(1, len(hashes).bit_length())))
        buckets = self._buckets(hashes)
        order = np.argsort(buckets, kind="stable")  # by counting, since buckets are numbers of 16 bits
        self._rows = order.astype(np.int32)
        self._hashes = hashes[order]
        self._starts = np.zeros((1 << (64 - int(self._shift))) + 1, dtype=np.int64)
        np.cumsum(np.bincount(buckets, minlength=len(self._starts) - 1), out=self._starts[1:])

    def _buckets(self, hashes: _Hashes) -> npt.NDArray[np.uint16]:
        return (hashes >> self._shift).astype(np.uint16)

    @property
    def bytes(self) -> int:
        return self._rows.nbytes + self._hashes.nbytes + self._starts.nbytes

    def find(self, texts: Sequence[str], values: Callable[[Positions], pa.Array]) -> tuple[Positions, Positions]:
        """Each row that has one of these different texts: which text, and the row; ascending by both. `values` gives
        the column's values of rows.
        """
        few = self._few(texts) if len(texts) <= _FEW_TEXTS else None
        if few is None:
            return self._many(pa.array(texts, pa.string()), values)
        which, rows = few
        same = [texts[number] == text for number, text in zip(which, values(rows).to_pylist(), strict=True)]
        found = np.array(which, dtype=np.int64)
        return (found, rows) if all(same) else (found[same], rows[same])

    def _few(self, texts: Sequence[str]) -> tuple[list[int], Positions] | None:
        """Candidates, found one after the other in Python: a step of numpy costs more than such a text. None where a
        bucket is large.
        """
        which, rows = list[int](), list[int]()
        for number, text in enumerate(texts):
            wanted = hash_text(text)
            bucket = wanted >> int(self._shift)
            begin, end = self._starts[bucket : bucket + 2].tolist()
            if end - begin > _FEW_ROWS:
                return None
            for place, found in enumerate(self._hashes[begin:end].tolist(), begin):
                if found == wanted:
                    which.append(number)
                    rows.append(int(self._rows[place]))
        return which, np.array(rows, dtype=np.int64)

    def _many(self, texts: pa.Array, values: Callable[[Positions], pa.Array]) -> tuple[Positions, Positions]:
        hashes = hash_strings(texts)
        buckets = self._buckets(hashes).astype(np.int64)
        begins, ends = self._starts[buckets], self._starts[buckets + 1]
        counts = ends - begins
        which = np.repeat(np.arange(len(hashes)), counts)
        places = np.arange(len(which)) + np.repeat(begins - (np.cumsum(counts) - counts), counts)
        kept = self._hashes[places] == hashes[which]
        which, rows = which[kept], self._rows[places[kept]].astype(np.int64)
        same = np.asarray(pc.equal(values(rows), texts.take(pa.array(which))), dtype=bool)
        return (which, rows) if same.all() else (which[same], rows[same])


def all_distinct(values: pa.ChunkedArray) -> bool:
    """Whether no string (none is null) is there twice, in less memory than Arrow's `unique` takes."""
    hashes = np.concatenate([_NO_HASHES, *(hash_strings(chunk) for chunk in values.chunks)])
    hashes.sort()
    # Equal strings have equal hashes; equal hashes are hardly ever of different strings, which Arrow decides.
    return not (hashes[1:] == hashes[:-1]).any() or len(values.unique()) == len(values)


def hash_strings(values: pa.Array) -> _Hashes:
    """A 64-bit hash of each string; nulls hash like the empty string.

    Short strings are mixed together, eight bytes of each at a time, so one long string would have its steps run for
    itself: strings of more than 256 bytes are hashed one by one. So the cost is that of the bytes, however spread.
    """
    count = len(values)
    if not count:
        return np.empty(0, dtype=np.uint64)
    _, offset_buffer, data_buffer = values.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[values.offset : values.offset + count + 1]
    starts, lengths = offsets[:-1], np.diff(offsets)
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer is not None else np.empty(0, dtype=np.uint8)
    first, last = int(offsets[0]), int(offsets[-1])
    padded = np.zeros((last - first) // _WORD + 2, dtype=np.uint64)
    padded.view(np.uint8)[: last - first] = data[first:last]
    places = starts.astype(np.int64) - first
    hashes = lengths.astype(np.uint64) * _FIRST
    long = np.flatnonzero(lengths > _LONG)
    for row in long.tolist():
        content = padded.view(np.uint8)[places[row] : places[row] + lengths[row]].tobytes()
        hashes[row] ^= np.uint64(_hash_long(content))
    if len(long):
        lengths[long] = 0
    words = np.lib.stride_tricks.as_strided(padded, shape=(last - first + 1,), strides=(1,))
    _mix(hashes, words, places, lengths)
    return hashes * _FIRST


def hash_text(text: str) -> int:
    """The same of one string."""
    content = text.encode()
    found = len(content) * int(_FIRST) & _ALL
    if len(content) > _LONG:
        found ^= _hash_long(content)
        content = b""
    for begin in range(0, len(content), _WORD):
        word = content[begin : begin + _WORD]
        mixed = (found ^ int.from_bytes(word, "little") << 8 * (_WORD - len(word))) * int(_NEXT) & _ALL
        found = mixed ^ mixed >> int(_SHIFT)
    return found * int(_FIRST) & _ALL


def _hash_long(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=_WORD).digest(), "little")


def _mix(hashes: _Hashes, words: _Hashes, places: Positions, lengths: npt.NDArray[np.int32]) -> None:
    """Adds the words of each string to its hash, in steps that only the strings take part in which are long enough."""
    shortest = int(lengths.min())
    rows = np.arange(len(lengths))
    for done in range(0, int(lengths.max()), _WORD):
        if done < shortest:
            taking: slice | npt.NDArray[np.int64] = slice(None)
        else:
            rows = rows[lengths[rows] > done]
            taking = rows
        left = np.minimum(lengths[taking] - done, _WORD).astype(np.uint64)
        word = words[places[taking] + done] << ((np.uint64(_WORD) - left) * np.uint64(8))
        mixed = (hashes[taking] ^ word) * _NEXT
        hashes[taking] = mixed ^ (mixed >> _SHIFT)
