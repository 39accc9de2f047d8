"""A schema as it is drawn: types with their properties, keys, ends, numbers of edges and of rows; and as Mermaid."""

from __future__ import annotations

import re
from dataclasses import dataclass

DRAWN_TYPES = 40
"""Node types of one picture; edge types may be half as many again."""
DRAWN_PROPERTIES = 12
"""Properties of one type in a picture."""
_WORD = re.compile(r"[^A-Za-z0-9_]+")
_SPOKEN = re.compile(r"[^\w .,:;=*+/()?'@|-]+")
"""What has no meaning in a quoted text of Mermaid, turned round."""


@dataclass(frozen=True, slots=True)
class DrawnProperty:
    """One line of a box. `mark` is `key`, `unique`, or nothing."""

    name: str
    type: str
    mark: str = ""


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node type; `rows` None is not known."""

    name: str
    properties: tuple[DrawnProperty, ...] = ()
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """An edge type with its ends; `cardinality` are edges per source."""

    name: str
    source: str
    target: str
    cardinality: str
    properties: tuple[DrawnProperty, ...] = ()
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class SchemaPicture:
    """All types of a schema, in the order of their names."""

    nodes: tuple[DrawnNode, ...] = ()
    edges: tuple[DrawnEdge, ...] = ()

    def within_bounds(self) -> tuple[SchemaPicture, str]:
        """As many types as a picture holds, those with the most edges first; and a sentence about what is left out."""
        if len(self.nodes) <= DRAWN_TYPES and len(self.edges) <= DRAWN_TYPES * 3 // 2:
            return self, ""
        degree = {node.name: 0 for node in self.nodes}
        for edge in self.edges:
            for end in (edge.source, edge.target):
                degree[end] = degree.get(end, 0) + 1
        kept = set(sorted(degree, key=lambda name: (-degree[name], name))[:DRAWN_TYPES])
        nodes = tuple(node for node in self.nodes if node.name in kept)
        edges = tuple(edge for edge in self.edges if {edge.source, edge.target} <= kept)[: DRAWN_TYPES * 3 // 2]
        left = (len(self.nodes) - len(nodes), len(self.edges) - len(edges))
        return SchemaPicture(nodes, edges), f"{left[0]:,} node types and {left[1]:,} edge types are not drawn"


def mermaid(picture: SchemaPicture) -> str:
    """The whole schema as an entity relationship diagram of Mermaid, which GitHub and many notebooks draw."""
    lines = ["erDiagram"]
    for node in picture.nodes:
        counted = "" if node.rows is None else f" ({node.rows:,})"
        lines.append(f'    {_word(node.name)}["{_spoken(node.name)}{counted}"] {{')
        lines += [f"        {_attribute(prop)}" for prop in node.properties]
        lines.append("    }")
    lines += [f"    {_relationship(edge)}" for edge in picture.edges]
    return "\n".join(lines) + "\n"


def _attribute(prop: DrawnProperty) -> str:
    """`String name PK "unique"`: the type without what Mermaid's types cannot hold, which stands in the comment."""
    bare = _word(prop.type.strip("[]?").partition("(")[0]) or "value"
    spelled = f"{bare}[]" if prop.type.startswith("[") else bare
    mark = {"key": " PK", "unique": " UK"}.get(prop.mark, "")
    told = prop.type.replace("[", "list of ").replace("]", "")
    comment = f' "{_spoken(told)}"' if prop.type != spelled else ""
    return f"{spelled} {_word(prop.name)}{mark}{comment}"


def _relationship(edge: DrawnEdge) -> str:
    least, _, most = edge.cardinality.partition("..")
    head = ("o" if least == "0" else "|") + ("|" if most == "1" else "{")
    said = [f"{edge.name} {edge.cardinality}"]
    said += [] if edge.rows is None else [f"{edge.rows:,} edges"]
    said += [f"{prop.name} {prop.type}" for prop in edge.properties]
    return f'{_word(edge.source)} }}o--{head} {_word(edge.target)} : "{_spoken("; ".join(said))}"'


def _word(text: str) -> str:
    return _WORD.sub("_", text)


def _spoken(text: str) -> str:
    return _SPOKEN.sub("_", text)[:200]
