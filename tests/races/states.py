"""The graph of the stress test: its schema, what is loaded into it, and its rows as a state that can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

SCHEMA = """
node Part { code: String @key  tag: String }
node Bin { code: String @key  tag: String }
edge In: Part -> Bin { tag: String }
"""
KEYS = [f"k{n}" for n in range(8)]

Shown = str | tuple[str, str, str]
State = Mapping[tuple[str, str], Shown]
"""(type, id) → tag, and the ends of an edge."""


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


def first_rows() -> list[str]:
    return rows("first", KEYS)


def row_of(line: str) -> tuple[tuple[str, str], Shown]:
    record = json.loads(line)
    kind, data = record.get("type") or record["edge"], record["data"]
    value = (data["tag"], record["from"], record["to"]) if kind == "In" else data["tag"]
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
