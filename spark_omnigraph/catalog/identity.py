"""Names to numbers: the FNV-1a hashes that the format uses for ids and directory names."""

from __future__ import annotations

from typing import Literal

from spark_omnigraph.errors import InternalError

Kind = Literal["interface", "node", "edge"]

_DIRECTORIES = {"node": "nodes", "edge": "edges"}


def fnv1a64_hex(name: str) -> str:
    """64-bit FNV-1a of the UTF-8 bytes as 16 lower-case hex digits.

    >>> fnv1a64_hex("Person")
    '40d76f1f51639ec0'
    """
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def fnv1a32(text: str) -> int:
    """32-bit FNV-1a of the UTF-8 bytes; 0 is no id, so it becomes 1."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value or 1


def type_id(kind: Kind, name: str) -> int:
    """Id of a type.

    >>> type_id("node", "Person")
    3227219152
    """
    return fnv1a32(f"{kind}:{name}")


def prop_id(kind: Kind, owner: str, name: str) -> int:
    """Id of a property of a type.

    >>> prop_id("node", "Person", "age")
    3446138241
    """
    return fnv1a32(f"{kind}:{owner}:{name}")


def table_path(table_key: str) -> str:
    """Directory of a table, relative to the graph root.

    >>> table_path("edge:Knows")
    'edges/602a25a3bd0b455b'
    """
    kind, _, name = table_key.partition(":")
    directory = _DIRECTORIES.get(kind)
    if directory is None or not name:
        raise InternalError(f"not a table key: {table_key!r}")
    return f"{directory}/{fnv1a64_hex(name)}"
