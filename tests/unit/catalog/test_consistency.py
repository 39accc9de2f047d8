"""Types that contradict each other. The colliding names were searched for: their hashes really are equal."""

from __future__ import annotations

from spark_omnigraph.catalog.consistency import Contradiction, contradictions
from spark_omnigraph.catalog.identity import Kind, prop_id, type_id
from spark_omnigraph.catalog.types import (
    Cardinality,
    EdgeType,
    InterfaceType,
    NodeType,
    Property,
    PropType,
    Scalar,
)


def props(kind: Kind, owner: str, *names: str) -> tuple[Property, ...]:
    return tuple(Property(name, prop_id(kind, owner, name), PropType(Scalar.STRING)) for name in names)


def node(name: str, *names: str) -> NodeType:
    return NodeType(name, type_id("node", name), props("node", name, *names))


def edge(name: str, start: str = "A", end: str = "A", *names: str) -> EdgeType:
    return EdgeType(name, type_id("edge", name), start, end, Cardinality(), props("edge", name, *names))


def interface(name: str, *names: str) -> InterfaceType:
    return InterfaceType(name, type_id("interface", name), props("interface", name, *names))


def found(
    interfaces: tuple[InterfaceType, ...] = (), nodes: tuple[NodeType, ...] = (), edges: tuple[EdgeType, ...] = ()
) -> list[Contradiction]:
    return list(contradictions(interfaces, nodes, edges))


def test_a_sound_schema_has_none() -> None:
    """One name may belong to a node, an edge and an interface, and two types may have properties of one name."""
    assert found((interface("A", "x"),), (node("A", "x"), node("B", "x")), (edge("A", "A", "B", "x"),)) == []


def test_two_types_of_one_name() -> None:
    assert found(nodes=(node("A"), node("A"))) == [Contradiction("duplicate node type: A", "node", "A")]
    assert found((interface("I"), interface("I"))) == [Contradiction("duplicate interface: I", "interface", "I")]
    twice = found(nodes=(node("A"),), edges=(edge("E"), edge("E")))
    assert twice == [Contradiction("duplicate edge type: E", "edge", "E")]


def test_two_names_with_one_type_id() -> None:
    text = "type id collision: 'Bcxqzr' and 'Afgkba' both hash to 3722003685"
    assert found(nodes=(node("Bcxqzr"), node("Afgkba"))) == [Contradiction(text, "node", "Afgkba")]


def test_two_names_with_one_property_id() -> None:
    text = "property id collision on Rug: 'ahrcei' and 'bjzyba' both hash to 2583323233"
    assert found(nodes=(node("Rug", "ahrcei", "bjzyba"),)) == [Contradiction(text, "node", "Rug", "bjzyba")]


def test_a_property_declared_twice() -> None:
    number = prop_id("edge", "E", "w")
    text = f"property id collision on E: 'w' and 'w' both hash to {number}"
    assert found(nodes=(node("A"),), edges=(edge("E", "A", "A", "w", "w"),)) == [Contradiction(text, "edge", "E", "w")]


def test_unknown_endpoints() -> None:
    assert [c.message for c in found(edges=(edge("E", "A", "B"),))] == [
        "edge E references unknown source type: A",
        "edge E references unknown target type: B",
    ]


def test_an_interface_is_no_endpoint() -> None:
    messages = [c.message for c in found((interface("I"),), (node("A"),), (edge("E", "A", "I"),))]
    assert messages == ["edge E references unknown target type: I"]


def test_edge_names_that_differ_in_case_alone() -> None:
    text = "edge name collision after case folding: 'Lieson' conflicts with 'LiesOn'"
    expected = [Contradiction(text, "edge", "Lieson")]
    assert found(nodes=(node("A"),), edges=(edge("Lieson"), edge("LiesOn"))) == expected
    assert found(nodes=(node("A"),), edges=(edge("LiesOn"), edge("Lieson"))) == expected
    assert found(nodes=(node("AB"), node("Ab"), node("A"))) == []
