"""New ids for rows that bring none: ULIDs, many at a time."""

from __future__ import annotations

import os
import time

import numpy as np
import pyarrow as pa

_ALPHABET = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TAILS = np.frombuffer(b"".join(bytes([a, b]) for a in _ALPHABET for b in _ALPHABET), dtype=np.uint8).reshape(1024, 2)
"""The last two characters of ids that differ in their lowest ten bits."""
_LENGTH = 26
_LOW_BITS = 40


def new_ulids(count: int) -> pa.Array:
    """`count` distinct ULIDs in ascending order, as a string array.

    The ids of one call share their millisecond and the upper half of their 80 random bits; the lower half counts up
    from a random start. Ascending ids keep input order, and 1,024 of them at a time differ in two characters only.
    """
    high = int.from_bytes(os.urandom(5), "big")
    # One bit less than fits: counting up never overflows.
    start = int.from_bytes(os.urandom(5), "big") >> 1
    shared = _encode((time.time_ns() // 1_000_000) & ((1 << 48) - 1), 10) + _encode(high, 8)
    text = np.empty((count, _LENGTH), dtype=np.uint8)
    done = 0
    while done < count:
        value = start + done
        first = value & 1023
        run = min(1024 - first, count - done)
        head = shared + _encode(value >> 10, (_LOW_BITS - 10) // 5)
        text[done : done + run, : len(head)] = np.frombuffer(head, dtype=np.uint8)
        text[done : done + run, len(head) :] = _TAILS[first : first + run]
        done += run
    offsets = np.arange(0, _LENGTH * (count + 1), _LENGTH, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))


def _encode(value: int, length: int) -> bytes:
    return bytes(_ALPHABET[(value >> (5 * place)) & 31] for place in reversed(range(length)))


def new_ulid() -> str:
    """One ULID."""
    return str(new_ulids(1)[0])
