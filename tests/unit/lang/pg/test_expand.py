"""What nodes get from their interfaces."""

from __future__ import annotations

from spark_omnigraph.catalog.types import Index, Key
from spark_omnigraph.lang.pg import compile_schema

CODED = "interface Coded { code: String @key @note label: String? } "


def test_missing_properties_come_with_their_annotations() -> None:
    crate = compile_schema(CODED + "node Crate implements Coded { mass: F64? }").nodes["Crate"]
    assert [(p.name, p.type.display()) for p in crate.properties] == [
        ("code", "String"),
        ("label", "String?"),
        ("mass", "F64?"),
    ]
    assert [a.name for a in crate.properties[0].annotations] == ["key", "note"]
    assert crate.key == ("code",)
    assert crate.implements == ("Coded",)


def test_a_declared_property_keeps_its_own_annotations_alone() -> None:
    pallet = compile_schema(CODED + "node Pallet implements Coded { code: String bay: I32? }").nodes["Pallet"]
    assert pallet.key is None
    assert pallet.constraints == ()
    assert [p.annotations for p in pallet.properties if p.name == "code"] == [()]


def test_the_first_interface_wins() -> None:
    both = "interface I { x: String @key } interface J { x: String @index } "
    catalog = compile_schema(both + "node Ox implements I, J {} node Yak implements J, I {}")
    assert catalog.nodes["Ox"].constraints == (Key(("x",)),)
    assert catalog.nodes["Yak"].constraints == (Index(("x",)),)
    assert catalog.nodes["Yak"].implements == ("I", "J")


def test_interfaces_may_be_declared_after_their_nodes() -> None:
    assert compile_schema("node Crate implements Coded { } " + CODED).nodes["Crate"].key == ("code",)


def test_inherited_ids_are_those_of_the_node() -> None:
    catalog = compile_schema(CODED + "node A implements Coded { } node B { code: String label: String? }")
    of_a = {p.prop_id for p in catalog.nodes["A"].properties}
    of_interface = {p.prop_id for p in catalog.interfaces["Coded"].properties}
    assert of_a.isdisjoint(of_interface)


def test_interfaces_stay_in_the_catalog_without_a_table() -> None:
    catalog = compile_schema(CODED)
    assert [p.name for p in catalog.interfaces["Coded"].properties] == ["code", "label"]
    assert list(catalog.tables()) == []
