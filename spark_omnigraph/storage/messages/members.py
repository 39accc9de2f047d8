"""Lance's protobuf messages, as far as they are read and changed here: their top-level members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WORD = 1 << 64


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a message by its number: an integer as it is stored (unsigned), or bytes."""

    number: int
    value: int | bytes


def members(message: bytes) -> Iterator[Member]:
    """Top-level members of a message, in order. IndexError or ValueError when it is not one."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind, length = key & 7, 0
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield Member(key >> 3, value)
            continue
        if kind == _BYTES:
            length, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if at + length > len(message):
            raise ValueError("cut off")
        yield Member(key >> 3, message[at : at + length])
        at += length


def encoded(found: Iterable[Member]) -> bytes:
    """A message of integers and bytes."""
    parts = []
    for each in found:
        if isinstance(each.value, int):
            parts += [_number(each.number << 3 | _VARINT), _number(each.value)]
        else:
            parts += [_number(each.number << 3 | _BYTES), _number(len(each.value)), each.value]
    return b"".join(parts)


def signed(value: int) -> int:
    """A stored integer as the signed one that it stands for."""
    return value - _WORD if value >= _WORD // 2 else value


def _number(value: int) -> bytes:
    value, found = value % _WORD, bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
