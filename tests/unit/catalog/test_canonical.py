"""The one order of everything in a schema."""

from __future__ import annotations

from spark_omnigraph.catalog.canonical import canonical_edge, canonical_interface, canonical_node, stored_bounds
from spark_omnigraph.catalog.types import (
    Annotation,
    Cardinality,
    Check,
    Constraint,
    EdgeType,
    Index,
    InterfaceType,
    Key,
    NodeType,
    Property,
    PropType,
    Range,
    Scalar,
    Unique,
)

STRING = PropType(Scalar.STRING)


def prop(name: str, ptype: PropType = STRING, *annotations: Annotation) -> Property:
    return Property(name, 1, ptype, annotations)


def constraints(*given: Constraint) -> tuple[Constraint, ...]:
    return canonical_node(NodeType("N", 1, (), given)).constraints


def test_properties_are_in_byte_order_of_their_names() -> None:
    given = (prop("b"), prop("a"), prop("_z"), prop("aB"), prop("a1"))
    ordered = ["_z", "a", "a1", "aB", "b"]
    assert [p.name for p in canonical_node(NodeType("N", 1, given)).properties] == ordered
    assert [p.name for p in canonical_interface(InterfaceType("I", 1, given)).properties] == ordered
    edge = EdgeType("E", 1, "N", "N", Cardinality(), given)
    assert [p.name for p in canonical_edge(edge).properties] == ordered


def test_annotations_without_a_value_come_first() -> None:
    given = (Annotation("z", "b"), Annotation("z"), Annotation("z", ""), Annotation("a", "q"), Annotation("z", "a"))
    expected = [("a", "q"), ("z", None), ("z", ""), ("z", "a"), ("z", "b")]
    node = canonical_node(NodeType("N", 1, (prop("p", STRING, *given),), annotations=given))
    assert [(a.name, a.value) for a in node.annotations] == expected
    assert [(a.name, a.value) for a in node.properties[0].annotations] == expected


def test_keyword_arguments_are_sorted() -> None:
    node = canonical_node(NodeType("N", 1, (), annotations=(Annotation("a", "v", (("z", "1"), ("b", "2"))),)))
    assert node.annotations[0].kwargs == (("b", "2"), ("z", "1"))


def test_interfaces_of_a_node_are_sorted_once_each() -> None:
    assert canonical_node(NodeType("N", 1, (), implements=("J", "I", "J"))).implements == ("I", "J")


def test_enum_values_are_sorted_once_each() -> None:
    ptype = PropType(Scalar.STRING, enum_values=("b", "B", "a-1", "9", "a", "b"))
    node = canonical_node(NodeType("N", 1, (prop("p", ptype),)))
    assert node.properties[0].type.enum_values == ("9", "B", "a", "a-1", "b")


def test_columns_are_sorted_and_repeated_constraints_stay() -> None:
    assert constraints(Unique(("b", "a")), Unique(("a", "b"))) == (Unique(("a", "b")), Unique(("a", "b")))


def test_kinds_stand_in_alphabetical_order() -> None:
    check, index, key = Check("p", "x"), Index(("p",)), Key(("p",))
    bounds, unique = Range("p", 0, 1), Unique(("p",))
    assert constraints(unique, bounds, key, index, check) == (check, index, key, bounds, unique)


def test_bounds_are_sorted_as_text() -> None:
    """`Float` before `Integer`, and 10 before 9."""
    nine, ten, negative = Range("p", 9, None), Range("p", 10, None), Range("p", -1, None)
    tenth, both = Range("p", 0.1, 1), Range("p", 0, 1)
    assert constraints(nine, ten, both, negative, tenth) == (tenth, negative, both, ten, nine)


def test_a_lone_maximum_is_recorded_as_a_minimum() -> None:
    assert stored_bounds(Range("p", None, 5)) == (5, None)
    assert stored_bounds(Range("p", 1, None)) == (1, None)
    assert stored_bounds(Range("p", 1, 5)) == (1, 5)


def test_a_lone_maximum_is_sorted_as_it_is_recorded() -> None:
    below, above = Range("p", None, 5), Range("p", 4, None)
    assert constraints(below, above) == (above, below)
