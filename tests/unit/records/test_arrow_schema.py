from __future__ import annotations

import pyarrow as pa
import pytest

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.records.arrow_schema import physical_schema, property_type
from tests.unit.records.builders import CATALOG, catalog


@pytest.mark.parametrize(
    ("ptype", "expected"),
    [
        (PropType(Scalar.STRING), pa.string()),
        (PropType(Scalar.STRING, enum_values=("a", "b")), pa.string()),
        (PropType(Scalar.BOOL), pa.bool_()),
        (PropType(Scalar.I32), pa.int32()),
        (PropType(Scalar.I64), pa.int64()),
        (PropType(Scalar.U32), pa.uint32()),
        (PropType(Scalar.U64), pa.uint64()),
        (PropType(Scalar.F32), pa.float32()),
        (PropType(Scalar.F64), pa.float64()),
        (PropType(Scalar.DATE), pa.date32()),
        (PropType(Scalar.DATETIME), pa.date64()),
        (PropType(Scalar.VECTOR, dimension=3), pa.list_(pa.field("item", pa.float32(), nullable=True), 3)),
        (PropType(Scalar.I64, is_list=True), pa.list_(pa.field("item", pa.int64(), nullable=True))),
        (PropType(Scalar.DATETIME, is_list=True), pa.list_(pa.field("item", pa.date64(), nullable=True))),
    ],
)
def test_types_are_those_of_the_format(ptype: PropType, expected: pa.DataType) -> None:
    assert property_type(ptype) == expected


def test_children_of_lists_and_vectors_are_called_item() -> None:
    vector = property_type(PropType(Scalar.VECTOR, dimension=2))
    assert (vector.value_field.name, vector.value_field.nullable, vector.list_size) == ("item", True, 2)
    assert property_type(PropType(Scalar.I32, is_list=True)).value_field.name == "item"


def test_a_blob_has_two_children_and_the_extension_name_on_its_field() -> None:
    field = physical_schema(CATALOG.nodes["Bolt"]).field("pic")
    assert field.metadata == {b"ARROW:extension:name": b"lance.blob.v2"}
    assert not field.nullable
    assert [(c.name, c.type, c.nullable) for c in field.type] == [
        ("data", pa.large_binary(), True),
        ("uri", pa.string(), True),
    ]


def test_nodes_have_the_id_first_and_properties_by_name() -> None:
    types = catalog("node Person { name: String @key  age: I32?  Zed: Bool? }".replace("Zed", "zed"))
    schema = physical_schema(types.nodes["Person"])
    assert schema.names == ["id", "age", "name", "zed"]
    assert [field.nullable for field in schema] == [False, True, False, True]
    assert schema.metadata is None
    assert all(field.metadata is None for field in schema)


def test_edges_have_id_src_and_dst_first() -> None:
    schema = physical_schema(CATALOG.edges["Tied"])
    assert schema.names == ["id", "src", "dst", "w"]
    assert [field.nullable for field in schema] == [False, False, False, True]


def test_properties_are_ordered_by_bytes() -> None:
    types = catalog("node T { b: I32?  a_: I32?  aB: I32?  a: I32? }")
    assert physical_schema(types.nodes["T"]).names == ["id", "a", "aB", "a_", "b"]
