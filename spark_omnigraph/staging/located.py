"""Where rows stand in their input, packed: about forty bytes a row and its compressed text, however many there are."""

from __future__ import annotations

import pickle
import zlib
from array import array
from dataclasses import dataclass

import numpy as np

from spark_omnigraph.staging.receipt import Int64s

TEXTS = 4096
"""Texts that are packed, and unpacked, together."""


@dataclass(frozen=True, slots=True, eq=False)
class LocatedRows:
    """Rows of one table in one range by ascending ordinal: 0-based lines in the range, byte offsets in the file,
    texts.
    """

    ordinals: Int64s
    lines: Int64s
    offsets: Int64s
    packed: tuple[bytes, ...]

    def texts(self, run: int) -> list[str]:
        """Texts of the rows from `run * TEXTS` on, at most TEXTS of them."""
        unpacked: list[str] = pickle.loads(zlib.decompress(self.packed[run]))
        return unpacked


class LocatedRowsBuilder:
    """Takes rows in the order of their ordinals."""

    def __init__(self) -> None:
        self._ordinals, self._lines, self._offsets = array("q"), array("q"), array("q")
        self._texts: list[str] = []
        self._packed: list[bytes] = []

    def add(self, ordinal: int, line: int, offset: int, text: str) -> None:
        """Adds one row."""
        self._ordinals.append(ordinal)
        self._lines.append(line)
        self._offsets.append(offset)
        self._texts.append(text)
        if len(self._texts) == TEXTS:
            self._pack()

    def built(self) -> LocatedRows:
        """All rows added."""
        if self._texts:
            self._pack()
        return LocatedRows(
            _numbers(self._ordinals), _numbers(self._lines), _numbers(self._offsets), tuple(self._packed)
        )

    def _pack(self) -> None:
        self._packed.append(zlib.compress(pickle.dumps(self._texts), 1))
        self._texts = []


def _numbers(values: array[int]) -> Int64s:
    return np.array(values, dtype=np.int64)
