"""Where forks begin: Lance writes into each version of a fork the absolute place of the dataset that it comes from, so
a copy elsewhere must say another one. Only these places are changed; every other byte of a version file stays.

A version file ends in the version itself, a message of protocol buffers with its length before it, and in 16 bytes that
say where that is. Places are its field 18: number (1), name (2), whether it is a dataset (3) and path (4).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from spark_omnigraph.errors import StorageError

_FOOTER = struct.Struct("<QHH4s")
_LENGTH = struct.Struct("<I")
_MAGIC = b"LANC"
_BASES, _PATH = 18, 4
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def rebased(content: bytes, location: str, root: str) -> bytes:
    """A version file whose forks begin at the dataset `location` below another root. StorageError for one that is not
    of the known form, or begins outside of the dataset.
    """
    try:
        start, _, _, magic = _FOOTER.unpack(content[-_FOOTER.size :])
        (length,) = _LENGTH.unpack_from(content, start)
        body = content[start + _LENGTH.size : start + _LENGTH.size + length]
        if magic != _MAGIC or start + _LENGTH.size + length + _FOOTER.size != len(content):
            raise ValueError("it does not end as version files do")
        changed = b"".join(
            _field(_BASES, _moved(value, location, root)) if number == _BASES else raw
            for number, raw, value in _fields(body)
        )
    except (ValueError, IndexError, struct.error) as error:
        raise StorageError(f"storage: a version file of {location} cannot be copied: {error}") from error
    return content[:start] + _LENGTH.pack(len(changed)) + changed + content[-_FOOTER.size :]


def _moved(base: bytes, location: str, root: str) -> bytes:
    return b"".join(
        _field(_PATH, _place(value.decode(), location, root).encode()) if number == _PATH else raw
        for number, raw, value in _fields(base)
    )


def _place(path: str, location: str, root: str) -> str:
    _, found, below = f"{path.rstrip('/')}/".rpartition(f"/{location}/")
    if not found:
        raise ValueError(f"a fork begins at {path}, which is not below {location}")
    return f"{root}/{location}/{below}".rstrip("/")


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, bytes as they stand, and content (of texts and messages) of each field."""
    at = 0
    while at < len(message):
        begin = at
        key, at = _varint(message, at)
        value = b""
        if key & 7 == _VARINT:
            _, at = _varint(message, at)
        elif key & 7 == _BYTES:
            length, at = _varint(message, at)
            value = message[at : at + length]
            at += length
        elif key & 7 in (_FIXED64, _FIXED32):
            at += 8 if key & 7 == _FIXED64 else 4
        else:
            raise ValueError(f"a field of kind {key & 7}")
        if at > len(message):
            raise ValueError("a field is cut off")
        yield key >> 3, message[begin:at], value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _field(number: int, content: bytes) -> bytes:
    return _number(number << 3 | _BYTES) + _number(len(content)) + content


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
