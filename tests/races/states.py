"""The graph of the stress test: its schema, what is loaded into it, and its rows as a state that can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.mock import MockEmbedder

SCHEMA = """
node Part { code: String @key  tag: String  vec: Vector(2)? @embed("tag") }
node Bin { code: String @key  tag: String  vec: Vector(2)? @embed("tag") }
edge In: Part -> Bin { tag: String }
"""
SCHEMAS: tuple[tuple[str, Mapping[str, object]], ...] = (
    (SCHEMA, {}),
    (SCHEMA.replace("Part {", "Part { size: I32?", 1), {"Part.size": 3}),
    (SCHEMA.replace("Part {", "Part { size: I64?", 1), {}),
    (SCHEMA.replace("-> Bin {", "-> Bin { weight: F64?"), {}),
)
"""Others that keep all rows, with values for those that stand: columns come, get wider, and go."""
KEYS = [f"k{n}" for n in range(8)]

Shown = str | tuple[str, str, str]
State = Mapping[tuple[str, str], Shown]
"""(type, id) → tag, and the vector of a node that has one (`node`), or the ends of an edge."""


def node(tag: str, vector: object = None) -> str:
    """A node of a state. No tag has a blank."""
    return tag if vector is None else f"{tag} {json.dumps(vector)}"


def tagged(value: str, tag: str) -> str:
    """The same node with another tag, and the vector that it had."""
    return " ".join([tag, *value.split(" ", 1)[1:]])


def embedded(value: str, anew: bool) -> str:
    """The same node with the vector of its tag, where it has none or is to get it `anew`."""
    tag, _, vector = value.partition(" ")
    if vector and not anew:
        return value
    return node(tag, MockEmbedder().embed([tag], dimension=2, role=Role.DOCUMENT).vectors[0].tolist())


def rows(tag: str, keys: Iterable[str]) -> list[str]:
    """For each key one node of either type and one edge, all with the tag."""
    lines = []
    for key in keys:
        lines.append({"type": "Part", "data": {"code": key, "tag": tag}})
        lines.append({"type": "Bin", "data": {"code": key, "tag": tag}})
        lines.append({"edge": "In", "from": key, "to": key, "data": {"id": f"in-{key}", "tag": tag}})
    return [json.dumps(line) for line in lines]


def parts(tag: str, keys: Iterable[str]) -> list[str]:
    """Nodes of one type alone."""
    return [json.dumps({"type": "Part", "data": {"code": key, "tag": tag}}) for key in keys]


def patches(tag: str, keys: Iterable[str]) -> list[str]:
    """For each key the tag of what `rows` makes, edges by their ids alone."""
    nodes = [{"type": kind, "data": {"code": key, "tag": tag}} for key in keys for kind in ("Part", "Bin")]
    links = [{"edge": "In", "data": {"id": f"in-{key}", "tag": tag}} for key in keys]
    return [json.dumps(line) for line in (*nodes, *links)]


def edges(tag: str, pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Edges alone: their ends must be there when the load is published, and stay there."""
    return [
        json.dumps({"edge": "In", "from": a, "to": b, "data": {"id": f"{tag}-{a}-{b}", "tag": tag}}) for a, b in pairs
    ]


def changes(tag: str, written: Iterable[str], deleted: str) -> list[str]:
    """What `rows` gives is written, and a part deleted, with its edges."""
    gone = {"op": "d", "type": "Part", "data": {"code": deleted}}
    return [json.dumps({"op": "u", **json.loads(line)}) for line in rows(tag, written)] + [json.dumps(gone)]


def first_rows() -> list[str]:
    return rows("first", KEYS)


def row_of(line: str) -> tuple[tuple[str, str], Shown]:
    record = json.loads(line)
    kind, data = record.get("type") or record["edge"], record["data"]
    value = (data["tag"], record["from"], record["to"]) if kind == "In" else node(data["tag"], data.get("vec"))
    return (kind, data.get("id") or data["code"]), value


def ends_of(value: Shown) -> list[tuple[str, str]]:
    """The nodes at which an edge ends; none for a node."""
    return [] if isinstance(value, str) else [("Part", value[1]), ("Bin", value[2])]


def shown(lines: Iterable[str]) -> dict[tuple[str, str], Shown]:
    """Rows as a state; an id that occurs twice, or an edge without its ends, fails."""
    found: dict[tuple[str, str], Shown] = {}
    for line in lines:
        key, value = row_of(line)
        assert key not in found, f"{key} is there twice"
        found[key] = value
    ends = [end for value in found.values() for end in ends_of(value)]
    dangling = [end for end in ends if end not in found]
    assert dangling == [], f"edges end nowhere: {dangling}"
    return found
