"""Neighbours by look-ups in the edge table: the way of small walks, which need no index of all edges in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from spark_omnigraph.engine.adjacency import EdgeTables, Steps
from spark_omnigraph.engine.columns import Columns
from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.engine.int_arrays import Numbers, distinct
from spark_omnigraph.lang.gq.plan import Direction
from spark_omnigraph.predicates.sql import is_text_of
from spark_omnigraph.storage.tables.reader import Positions, TableReader

_Found = tuple[Numbers, list[str], Positions]
"""Which of the ids that are asked for, id there, and position of edges."""


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
        at, there, edges = self._pairs(ids)
        if len(there) > self._costs.lookup_fan_out * self._most:
            return None
        to = self.targets.numbers(there)
        if self._with_edges:
            order = np.lexsort((edges, to, at))
            return Steps(np.bincount(at, minlength=len(ids)), to[order], edges[order])
        width = len(self.targets.ids) + 1
        pairs = distinct(at * width + to)
        return Steps(np.bincount(pairs // width, minlength=len(ids)), pairs % width)

    def _pairs(self, ids: Sequence[str]) -> _Found:
        """The edges that lead from one of these ids."""
        found = [
            self._once(ids, near, *part) for near, far in _ENDS[self._direction] for part in self._found(ids, near, far)
        ]
        if len(found) == 1:
            return found[0]
        nothing = np.empty(0, dtype=np.int64)
        at = np.concatenate([nothing, *(which for which, _, _ in found)])
        edges = np.concatenate([nothing, *(positions for _, _, positions in found)])
        return at, [to for _, tos, _ in found for to in tos], edges

    def _once(self, ids: Sequence[str], near: str, at: Numbers, tos: list[str], positions: Positions) -> _Found:
        """Without loops of nodes to themselves, where these came with the other end already."""
        if near != "dst" or self._direction is not Direction.BOTH:
            return at, tos, positions
        kept = [i for i, (number, to) in enumerate(zip(at.tolist(), tos, strict=True)) if ids[number] != to]
        return at[kept], [tos[i] for i in kept], positions[kept]

    def _found(self, ids: Sequence[str], near: str, far: str) -> Iterator[_Found]:
        """Edges that have one of these ids at one end: by an index in memory, or in runs by Lance."""
        kept = Columns(self._edges, self._costs)
        known = kept.find(near, ids, [far])
        if known is not None:
            which, positions = known
            yield which, kept.read(positions, [far])[far].to_pylist(), positions
            return
        place = {id_: number for number, id_ in enumerate(ids)}
        for part in batches(ids, self._costs):
            one = len(part) == 1
            positions, table = self._edges.where(is_text_of(near, part), [far] if one else [near, far])
            froms: list[str] = [*part] * len(positions) if one else table.column(near).to_pylist()
            yield np.array([place[id_] for id_ in froms], np.int64), table.column(far).to_pylist(), positions


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
