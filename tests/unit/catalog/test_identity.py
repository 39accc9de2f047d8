"""Hashes of names. The numbers are published test vectors of the format."""

from __future__ import annotations

import json
import pickle

import pyarrow as pa
import pytest

from spark_omnigraph.catalog.identity import TableKey, fnv1a32, fnv1a64_hex, prop_id, table_path, type_id
from spark_omnigraph.errors import InternalError
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.validate.probes import endpoint_probes


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
    assert table_path(TableKey.node("Person")) == "nodes/40d76f1f51639ec0"
    assert table_path(TableKey.edge("Knows")) == "edges/602a25a3bd0b455b"


def test_node_and_edge_of_one_name_differ_in_the_parent_only() -> None:
    assert table_path(TableKey.node("Bond")).split("/")[1] == table_path(TableKey.edge("Bond")).split("/")[1]


@pytest.mark.parametrize("key", ["Person", "node:", "interface:Named", ""])
def test_what_is_no_table_has_no_path(key: str) -> None:
    with pytest.raises(InternalError, match="not a table key"):
        table_path(TableKey(key))


def test_a_table_key_is_its_text_and_knows_its_parts() -> None:
    key = TableKey.node("Film")
    assert (key.kind, key.type_name, key.spelled, str(key), f"{key}") == (
        "node", "Film", "node type 'Film'", "node:Film", "node:Film"
    )  # laid out as a table  # fmt: skip
    by_key: dict[str, int] = {key: 3}
    assert by_key["node:Film"] == {"node:Film": 3}[TableKey("node:Film")] == 3
    keys = [TableKey.node("Film"), TableKey.edge("In"), TableKey.node("Actor")]
    assert sorted(keys) == ["edge:In", "node:Actor", "node:Film"]
    assert json.dumps({key: [key]}) == '{"node:Film": ["node:Film"]}'
    assert pa.array(keys, pa.string()).to_pylist() == keys
    assert (TableKey("Film").kind, TableKey("Film").type_name, TableKey().kind) == ("Film", "", "")


def test_a_table_key_travels_as_one() -> None:
    again = pickle.loads(pickle.dumps(TableKey.edge("In")))
    assert (type(again), again, again.type_name) == (TableKey, "edge:In", "In")
    assert len(pickle.dumps([TableKey.node(f"T{n}") for n in range(1000)])) < 25_000


def test_types_and_probes_give_table_keys() -> None:
    catalog = compile_schema("node Film { name: String @key }\nedge Next: Film -> Film")
    probes = endpoint_probes(catalog.edges["Next"])
    keys = [*(entity.table_key for entity in catalog.tables()), *(probe.node_key for probe in probes)]
    assert [(type(key), key.kind) for key in keys] == [(TableKey, k) for k in ("node", "edge", "node", "node")]
