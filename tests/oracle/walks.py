"""Which nodes a traversal reaches, one node at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.oracle.values import Stored

Row = dict[str, Stored]


@dataclass
class Rows:
    """The rows of a graph: nodes by type and id, edges by type and id with `src` and `dst`."""

    nodes: dict[str, dict[str, Row]] = field(default_factory=dict)
    edges: dict[str, dict[str, Row]] = field(default_factory=dict)

    def neighbours(self, edge: str, node: str, way: str) -> set[str]:
        """Ids at the other ends of a node's edges, `out`, `in` or `both`."""
        found = set()
        for row in self.edges[edge].values():
            if way in ("out", "both") and row["src"] == node:
                found.add(row["dst"])
            if way in ("in", "both") and row["dst"] == node:
                found.add(row["src"])
        return found


def reached(rows: Rows, edge: str, start: str, way: str, low: int, high: int, chains: bool) -> set[str]:
    """Ids at a distance of `low` to `high` edges from a node. A loop at a node is one edge more to that node, and leads
    nowhere else. Edges between different types do not chain.
    """
    found: set[str] = set()
    seen, frontier = {start}, {start}
    for hop in range(1, (high if chains else min(high, 1)) + 1):
        further = set()
        for node in frontier:
            for other in rows.neighbours(edge, node, way):
                if chains and other == node:
                    if hop >= low:
                        found.add(other)
                elif not chains or other not in seen:
                    further.add(other)
                    if hop >= low:
                        found.add(other)
        seen |= further
        frontier = further
    return found
