"""Neighbours by look-ups in the edge table: the way of small walks, which need no index of all edges in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from spark_omnigraph.engine.adjacency import EdgeTables, Steps
from spark_omnigraph.engine.columns import Columns
from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.engine.int_arrays import Numbers
from spark_omnigraph.lang.gq.plan import Direction
from spark_omnigraph.predicates.sql import is_text_of
from spark_omnigraph.storage.tables.reader import Positions, TableReader

_Found = tuple[list[str], list[str], Positions]
"""Id here, id there and position of edges."""


class Lookup:
    """Nodes have numbers in the order in which the walk meets their ids; sources and targets of edges between
    different types are numbered apart.
    """

    def __init__(self, tables: EdgeTables, direction: Direction, with_edges: bool, costs: Costs, most: int) -> None:
        self._edges = tables.edges
        self._direction = direction
        self._with_edges = with_edges
        self._costs = costs
        self._most = most
        self.sources = Numbering()
        self.targets = self.sources if tables.chains else Numbering()

    def of(self, nodes: Numbers) -> Steps | None:
        """Neighbours of different nodes; None when more than the limit are asked for."""
        if len(nodes) > self._most:
            return None
        ids = [self.sources.ids[node] for node in nodes.tolist()]
        here, there, edges = self._pairs(ids)
        if len(here) > self._costs.lookup_fan_out * self._most:
            return None
        place = {id_: number for number, id_ in enumerate(ids)}
        at = np.fromiter((place[id_] for id_ in here), dtype=np.int64, count=len(here))
        to = self.targets.numbers(there)
        if self._with_edges:
            order = np.lexsort((edges, to, at))
        else:
            order = np.unique(at * (len(self.targets.ids) + 1) + to, return_index=True)[1]
        counts = np.bincount(at[order], minlength=len(ids))
        return Steps(counts, to[order], edges[order] if self._with_edges else None)

    def _pairs(self, ids: Sequence[str]) -> tuple[list[str], list[str], Positions]:
        """Id here, id there and position of each edge that leads from one of these ids."""
        here: list[str] = []
        there: list[str] = []
        edges: list[Positions] = []
        for near, far in _ENDS[self._direction]:
            for found in self._found(ids, near, far):
                froms, tos, positions = self._once(near, *found)
                here += froms
                there += tos
                edges.append(positions)
        return here, there, np.concatenate(edges) if edges else np.empty(0, dtype=np.int64)

    def _once(self, near: str, froms: list[str], tos: list[str], positions: Positions) -> _Found:
        """Without loops of nodes to themselves, where these came with the other end already."""
        if near != "dst" or self._direction is not Direction.BOTH:
            return froms, tos, positions
        kept = [i for i, (a, b) in enumerate(zip(froms, tos, strict=True)) if a != b]
        return [froms[i] for i in kept], [tos[i] for i in kept], positions[kept]

    def _found(self, ids: Sequence[str], near: str, far: str) -> Iterator[_Found]:
        """As above, of the edges that have one of these ids at one end: by an index in memory, or in runs by Lance."""
        kept = Columns(self._edges, self._costs)
        known = kept.find(near, ids, [far])
        if known is not None:
            which, positions = known
            tos = kept.read(positions, [far])[far].to_pylist()
            yield [ids[number] for number in which.tolist()], tos, positions
            return
        for part in batches(ids, self._costs):
            one = len(part) == 1
            positions, table = self._edges.where(is_text_of(near, part), [far] if one else [near, far])
            tos = table.column(far).to_pylist()
            yield [part[0]] * len(tos) if one else table.column(near).to_pylist(), tos, positions


_ENDS = {
    Direction.OUT: (("src", "dst"),),
    Direction.IN: (("dst", "src"),),
    Direction.BOTH: (("src", "dst"), ("dst", "src")),
}


class Numbering:
    """Numbers for ids, in order of appearance."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._number: dict[str, int] = {}

    def numbers(self, ids: Iterable[str]) -> Numbers:
        """Numbers of ids, new ones for ids that have none."""
        found = []
        for id_ in ids:
            number = self._number.get(id_)
            if number is None:
                number = self._number[id_] = len(self.ids)
                self.ids.append(id_)
            found.append(number)
        return np.array(found, dtype=np.int64)


def positions_of(ids: Sequence[str], nodes: TableReader, costs: Costs) -> Positions:
    """Position of the node with each id (`int64[ids]`), -1 where there is none."""
    known = Columns(nodes, costs).find("id", ids) if ids else None
    if known is not None:
        found = np.full(len(ids), -1, dtype=np.int64)
        found[known[0]] = known[1]
        return found
    place: dict[str, int] = {}
    for part in batches(ids, costs):
        positions, table = nodes.where(is_text_of("id", part), ["id"])
        place.update(zip(table.column("id").to_pylist(), positions.tolist(), strict=True))
    return np.array([place.get(id_, -1) for id_ in ids], dtype=np.int64)


def batches(ids: Sequence[str], costs: Costs) -> Iterable[Sequence[str]]:
    """Runs of as many ids as one filter takes."""
    most = costs.filter_ids
    return (ids[start : start + most] for start in range(0, len(ids), most))
