"""Names to numbers: the FNV-1a hashes that the format uses for ids and directory names."""

from __future__ import annotations

from typing import Literal

from spark_omnigraph.errors import InternalError

Kind = Literal["interface", "node", "edge"]

LANCE_COLUMNS = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
"""Columns that Lance makes up, in lower case: no new property is called like one."""
_DIRECTORIES = {"node": "nodes", "edge": "edges"}


class TableKey(str):
    """Key of the table of a node or edge type. It prints, sorts, compares and is stored as its text; text that users
    give becomes one in `Catalog.require`, text that is stored where it is read.

    >>> key = TableKey("node:Person")
    >>> key.kind, key.type_name, key.spelled, key == TableKey.node("Person") == "node:Person"
    ('node', 'Person', "node type 'Person'", True)
    """

    __slots__ = ()

    @classmethod
    def node(cls, type_name: str) -> TableKey:
        return cls(f"node:{type_name}")

    @classmethod
    def edge(cls, type_name: str) -> TableKey:
        return cls(f"edge:{type_name}")

    @property
    def kind(self) -> str:
        return self.partition(":")[0]

    @property
    def type_name(self) -> str:
        return self.partition(":")[2]

    @property
    def spelled(self) -> str:
        """The type as messages name it."""
        return f"{self.kind} type '{self.type_name}'"


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


def is_table_path(path: str) -> bool:
    """Whether a directory has the form of one that `table_path` gives."""
    kind, _, name = path.partition("/")
    return kind in _DIRECTORIES.values() and len(name) == 16 and set(name) <= set("0123456789abcdef")


def table_path(table_key: TableKey) -> str:
    """Directory of a table, relative to the graph root.

    >>> table_path(TableKey.edge("Knows"))
    'edges/602a25a3bd0b455b'
    """
    directory = _DIRECTORIES.get(table_key.kind)
    if directory is None or not table_key.type_name:
        raise InternalError(f"not a table key: {table_key!r}")
    return f"{directory}/{fnv1a64_hex(table_key.type_name)}"
