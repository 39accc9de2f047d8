"""What the first bytes of a file say it is, when it is not JSON lines: another format, or records in another form."""

from __future__ import annotations

import re
from itertools import islice

HEAD = 4096
"""Bytes that `looks_like` wants to see."""

_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xff\x06\x00\x00sNaPpY", "snappy"),
    (b"PK\x03\x04", "zip"),
    (b"PAR1", "Parquet"),
    (b"PARE", "Parquet"),
    (b"ARROW1", "Arrow"),
    (b"ORC", "ORC"),
    (b"Obj\x01", "Avro"),
    (b"SQLite format 3\x00", "SQLite"),
    (b"%PDF-", "PDF"),
    (b"\xff\xfe\x00\x00", "UTF-32 text"),
    (b"\x00\x00\xfe\xff", "UTF-32 text"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)
_ARRAY, _PRETTY, _CSV = "a JSON array", "pretty-printed JSON", "CSV"
_WAYS = {
    "gzip": "add the ending .gz to its name",
    "UTF-16 text": "save it as UTF-8",
    "UTF-32 text": "save it as UTF-8",
    _ARRAY: "write each record on a line of its own, as `jq -c '.[]'` does",
    _PRETTY: "write each record on a line of its own, as `jq -c .` does",
    **dict.fromkeys((_CSV, "Parquet", "Arrow"), "give its format (--format), or a name with an ending that says it"),
}
_SEPARATORS = (",", ";", "\t")
_NAME = re.compile(r'\s*(?:"[^"]*"|[^\W\d][\w .-]*)\s*')


def looks_like(head: bytes) -> str | None:
    r"""Name of the format or form that begins so, None for what may be JSON lines.

    >>> looks_like(b"PAR1\x15\x04"), looks_like('{"a"'.encode("utf-16-le")), looks_like(b'{"type"')
    ('Parquet', 'UTF-16 text', None)
    >>> looks_like(b"name,year\nHeat,1995\n"), looks_like(b'[{"type"'), looks_like(b'{\n  "type"')
    ('CSV', 'a JSON array', 'pretty-printed JSON')
    """
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    # Without a mark: no text in UTF-8 has a zero byte.
    if 0 in head[:4]:
        return "UTF-32 text" if head[:4].count(0) == 3 else "UTF-16 text" if head[:4].count(0) == 2 else None
    return _form(head.decode(errors="replace").removeprefix("\ufeff"))


def _form(text: str) -> str | None:
    """How records stand in a text when it is not one a line. A single line that is bad is no form."""
    lines = (line.strip() for line in text.splitlines())
    first, second = (*islice(filter(None, lines), 2), "", "")[:2]
    if first.startswith("["):
        return _ARRAY if first[1:].lstrip()[:1] in ("", "{") else None
    if first.startswith("{"):
        return _PRETTY if first[-1] in "{[," and second.startswith('"') else None
    for separator in _SEPARATORS:
        names = first.split(separator)
        if len(names) > 1 and all(map(_NAME.fullmatch, names)) and second.count(separator) == len(names) - 1:
            return None if second.startswith("{") else _CSV
    return None


def way_out(name: str) -> str:
    """What to do about an input of a format that `looks_like` named."""
    return _WAYS.get(name, "give it as JSON lines, plain or as .gz")
