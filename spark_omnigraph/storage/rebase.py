"""Where forks begin: Lance writes into each version of a fork the absolute place of the dataset that it comes from, so
a copy elsewhere must say another one. Only these places are changed; every other byte of a version file stays.

A version file ends in the version itself, a message of protocol buffers with its length before it, and in 16 bytes that
say where that is. Places are its field 18: number (1), name (2), whether it is a dataset (3) and path (4). Files that
lie at one of them say its number.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from spark_omnigraph.errors import StorageError

_FOOTER = struct.Struct("<QHH4s")
_LENGTH = struct.Struct("<I")
_MAGIC = b"LANC"
_BASES, _PATH = 18, 4
_FRAGMENTS, _INDEXES_AT, _BRANCH = 2, 6, 20
"""Fields of a version: its fragments, the place of its indexes in the file, the Lance branch."""
_DATA_FILE, _DELETION_FILE, _OUTSIDE, _FILE_BASE = 2, 3, (6, 8, 10, 11), 7
"""Fields of a fragment: its files, what would lie in files of other kinds; and, in those of a file, its base."""
_INDEX_BASE, _UNREAD = 9, 15
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def rebased(content: bytes, location: str, root: str) -> bytes:
    """A version file whose forks begin at the dataset `location` below another root. StorageError for one that is not
    of the known form, or begins outside of the dataset.
    """
    with _known_form(location):
        start, body = _body(content)
        changed = b"".join(
            _field(_BASES, _moved(value, location, root)) if number == _BASES else raw
            for number, raw, value in _fields(body)
        )
        return _with_body(content, start, changed)


def alone(content: bytes, location: str) -> tuple[bytes, frozenset[str]]:
    """A version file of a fork as one of a dataset by itself, where all its files lie in its own folders; and what it
    names: files of `data` and `_deletions`, and folders of `_indices`. StorageError as above.
    """
    names: set[str] = set()
    with _known_form(location):
        start, body = _body(content)
        kept = [(number, raw, value) for number, raw, value in _fields(body) if number not in (_BASES, _BRANCH)]
        changed = b"".join(
            _field(number, _fragment(value, names)) if number == _FRAGMENTS else raw for number, raw, value in kept
        )
        places = [_varint(raw, 1)[0] for number, raw, _ in kept if number == _INDEXES_AT]
        indexes = _indexes(content, places[0], names) if places else content
        return _with_body(indexes, start, changed), frozenset(names)


@contextmanager
def _known_form(location: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, IndexError, struct.error) as error:
        raise StorageError(f"storage: a version file of {location} cannot be copied: {error}") from error


def _body(content: bytes) -> tuple[int, bytes]:
    """The version itself, and where it begins."""
    start, _, _, magic = _FOOTER.unpack(content[-_FOOTER.size :])
    (length,) = _LENGTH.unpack_from(content, start)
    if magic != _MAGIC or start + _LENGTH.size + length + _FOOTER.size != len(content):
        raise ValueError("it does not end as version files do")
    return start, content[start + _LENGTH.size : start + _LENGTH.size + length]


def _with_body(content: bytes, start: int, body: bytes) -> bytes:
    return content[:start] + _LENGTH.pack(len(body)) + body + content[-_FOOTER.size :]


def _fragment(fragment: bytes, names: set[str]) -> bytes:
    """A fragment whose files are the dataset's own."""
    fields, parts = list(_fields(fragment)), []
    fragment_id = next((_varint(raw, 1)[0] for number, raw, _ in fields if number == 1), 0)
    for number, raw, value in fields:
        if number in _OUTSIDE:
            raise ValueError("rows that are told in a file of their own")
        if number == _DATA_FILE:
            names.add("data/" + next(v.decode() for n, _, v in _fields(value) if n == 1))
        if number == _DELETION_FILE:
            told = {n: _varint(r, 1)[0] for n, r, _ in _fields(value)}
            ending = "bin" if told.get(1, 0) else "arrow"
            names.add(f"_deletions/{fragment_id}-{told.get(2, 0)}-{told.get(3, 0)}.{ending}")
        is_file = number in (_DATA_FILE, _DELETION_FILE)
        own = b"".join(r for n, r, _ in _fields(value) if n != _FILE_BASE) if is_file else b""
        parts.append(_field(number, own) if is_file else raw)
    return b"".join(parts)


def _indexes(content: bytes, at: int, names: set[str]) -> bytes:
    """The same with indexes that are the dataset's own. Their place in the file is told elsewhere, so no byte may come
    or go: the number of their base gets the name of a field that nobody reads.
    """
    (length,) = _LENGTH.unpack_from(content, at)
    begin, changed = at + _LENGTH.size, bytearray()
    for number, raw, value in _fields(content[begin : begin + length]):
        if number != 1:
            raise ValueError(f"a list of indexes with a field {number}")
        inner = list(_fields(value))
        uid = next(v for n, _, v in inner if n == 1)
        names.add(f"_indices/{uuid.UUID(bytes=next(v for n, _, v in _fields(uid) if n == 1))}")
        parts = (bytes([_UNREAD << 3]) + r[1:] if n == _INDEX_BASE else r for n, r, _ in inner)
        changed += raw[: len(raw) - len(value)] + b"".join(parts)
    return content[:begin] + bytes(changed) + content[begin + length :]


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
