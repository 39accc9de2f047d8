"""What no two types of one schema may do to each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from spark_omnigraph.catalog.identity import Kind
from spark_omnigraph.catalog.types import EdgeType, InterfaceType, NodeType, Property


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Why a schema cannot be, and the declaration at fault: its kind and name, and the property or type named in it."""

    message: str
    kind: Kind
    name: str
    part: str | None = None


def contradictions(
    interfaces: Sequence[InterfaceType], nodes: Sequence[NodeType], edges: Sequence[EdgeType]
) -> Iterator[Contradiction]:
    """Contradictions between the types of a schema: ids, endpoints, names of edges."""
    yield from _type_ids(interfaces, nodes, edges)
    yield from _endpoints(nodes, edges)
    yield from _edge_names(edges)


def _type_ids(
    interfaces: Iterable[InterfaceType], nodes: Iterable[NodeType], edges: Iterable[EdgeType]
) -> Iterator[Contradiction]:
    kinds: tuple[tuple[Kind, str, Iterable[InterfaceType | NodeType | EdgeType]], ...] = (
        ("interface", "interface", interfaces),
        ("node", "node type", nodes),
        ("edge", "edge type", edges),
    )
    seen: dict[int, tuple[Kind, str]] = {}
    for kind, words, types in kinds:
        for entry in types:
            yield from _prop_ids(kind, entry.name, entry.properties)
            earlier = seen.setdefault(entry.type_id, (kind, entry.name))
            if earlier != (kind, entry.name):
                text = f"type id collision: '{earlier[1]}' and '{entry.name}' both hash to {entry.type_id}"
                yield Contradiction(text, kind, entry.name)
        yield from _repeated(kind, words, [entry.name for entry in types])


def _repeated(kind: Kind, words: str, names: Iterable[str]) -> Iterator[Contradiction]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield Contradiction(f"duplicate {words}: {name}", kind, name)
        seen.add(name)


def _prop_ids(kind: Kind, owner: str, properties: Iterable[Property]) -> Iterator[Contradiction]:
    seen: dict[int, str] = {}
    for prop in properties:
        earlier = seen.get(prop.prop_id)
        if earlier is not None:
            text = f"property id collision on {owner}: '{earlier}' and '{prop.name}' both hash to {prop.prop_id}"
            yield Contradiction(text, kind, owner, prop.name)
        seen[prop.prop_id] = prop.name


def _endpoints(nodes: Iterable[NodeType], edges: Iterable[EdgeType]) -> Iterator[Contradiction]:
    known = {node.name for node in nodes}
    for edge in edges:
        for end, name in (("source", edge.from_type), ("target", edge.to_type)):
            if name not in known:
                text = f"edge {edge.name} references unknown {end} type: {name}"
                yield Contradiction(text, "edge", edge.name, name)


def _edge_names(edges: Iterable[EdgeType]) -> Iterator[Contradiction]:
    seen: dict[str, str] = {}
    for name in sorted(edge.name for edge in edges):
        earlier = seen.setdefault(name.lower(), name)
        if earlier != name:
            text = f"edge name collision after case folding: '{name}' conflicts with '{earlier}'"
            yield Contradiction(text, "edge", name)
