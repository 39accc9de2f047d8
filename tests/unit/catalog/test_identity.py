"""Hashes of names. The numbers are published test vectors of the format."""

from __future__ import annotations

import pytest

from spark_omnigraph.catalog.identity import fnv1a32, fnv1a64_hex, prop_id, table_path, type_id
from spark_omnigraph.errors import InternalError


@pytest.mark.parametrize(
    ("name", "digits"),
    [
        ("Person", "40d76f1f51639ec0"),
        ("Company", "7cb4e55c59663b1c"),
        ("Knows", "602a25a3bd0b455b"),
        ("WorksAt", "844eefbe5068b644"),
        ("", "cbf29ce484222325"),
    ],
)
def test_64_bit_hash(name: str, digits: str) -> None:
    assert fnv1a64_hex(name) == digits


def test_64_bit_hash_keeps_leading_zeros() -> None:
    name = next(f"T{n}" for n in range(1000) if fnv1a64_hex(f"T{n}").startswith("0"))
    assert len(fnv1a64_hex(name)) == 16


def test_ids_of_types_and_properties() -> None:
    assert type_id("node", "Person") == 3227219152
    assert prop_id("node", "Person", "name") == 1466009789
    assert prop_id("node", "Person", "age") == 3446138241
    assert type_id("edge", "Knows") == 2041814322
    assert prop_id("edge", "Knows", "since") == 2596498354


def test_kinds_have_ids_of_their_own() -> None:
    assert len({type_id("node", "A"), type_id("edge", "A"), type_id("interface", "A")}) == 3


def test_no_id_is_zero() -> None:
    """The plain hash of this text is 0."""
    assert fnv1a32("NihO_f") == 1


def test_names_are_hashed_as_utf_8() -> None:
    assert fnv1a32("é") == fnv1a32_of_bytes(b"\xc3\xa9")


def fnv1a32_of_bytes(data: bytes) -> int:
    value = 2166136261
    for byte in data:
        value = (value ^ byte) * 16777619 % 2**32
    return value


def test_table_paths_have_no_slash_at_the_ends() -> None:
    assert table_path("node:Person") == "nodes/40d76f1f51639ec0"
    assert table_path("edge:Knows") == "edges/602a25a3bd0b455b"


def test_node_and_edge_of_one_name_differ_in_the_parent_only() -> None:
    assert table_path("node:Bond").split("/")[1] == table_path("edge:Bond").split("/")[1]


@pytest.mark.parametrize("key", ["Person", "node:", "interface:Named", ""])
def test_what_is_no_table_has_no_path(key: str) -> None:
    with pytest.raises(InternalError, match="not a table key"):
        table_path(key)
