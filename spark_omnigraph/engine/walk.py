"""Breadth-first walks from many nodes at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spark_omnigraph.engine.adjacency import Neighbours
from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.engine.int_arrays import Numbers, distinct, in_sorted, numbered, ranges, upto
from spark_omnigraph.lang.gq.plan import Hops


@dataclass(frozen=True, slots=True)
class Reached:
    """Pairs of a start (by its place in the list of starts) and the number of a node that a walk reaches from it, in
    order of starts; `edges` are the positions of the edges where the walk names them. All are `int64[pairs]`.
    """

    starts: Numbers
    nodes: Numbers
    edges: Numbers | None = None

    @property
    def arrays(self) -> list[Numbers]:
        """Those that there are."""
        return [self.starts, self.nodes, *(() if self.edges is None else (self.edges,))]


def walk(hops: Hops, starts: Numbers, neighbours: Neighbours, chains: bool, costs: Costs) -> Reached | None:
    """All nodes that walks from these different starts reach. None when `neighbours` gives up.

    `chains`: sources and targets of the edges are numbered together, so that a walk can go on.
    """
    nothing = np.empty(0, dtype=np.int64)
    if not len(starts) or (not chains and hops.min_hops > 1):
        return Reached(nothing, nothing, nothing if hops.edge_variable is not None else None)
    if hops.edge_variable is None and chains and hops.max_hops > 1:
        return _chain(hops, starts, neighbours, costs)
    first = neighbours.of(starts)
    return None if first is None else Reached(np.repeat(upto(len(starts)), first.counts), first.nodes, first.edges)


def _chain(hops: Hops, starts: Numbers, neighbours: Neighbours, costs: Costs) -> Reached | None:
    """A walk of several hops, from all starts at once: each hop is one step from the frontier, the pairs of a start and
    a node that were met first at the hop before; what was `seen` at any hop is no frontier again. The loop of a node to
    itself reaches it at the hop that leaves it, which counts once: at the first hop in bounds at which it is left.
    """
    seen = frontier = _PairSet.of(np.arange(len(starts)), starts)
    found: list[_PairSet] = []
    for hop in range(1, hops.max_hops + 1):
        step = frontier.step(neighbours, costs)
        if step is None:
            return None
        loops, others = step
        if hop >= hops.min_hops and (hop == 1 or hop - 1 < hops.min_hops):
            found.append(loops)
        frontier = others.without(seen)
        if not len(frontier.keys):
            break
        if hop >= hops.min_hops:
            found.append(frontier)
        seen = seen.with_all(frontier)
    keys = distinct(np.concatenate([pairs.keys for pairs in found])) if found else np.empty(0, dtype=np.int64)
    return Reached(keys // _WIDTH, keys % _WIDTH)


_WIDTH = np.int64(1) << np.int64(32)


@dataclass(frozen=True, slots=True)
class _PairSet:
    """Different pairs of a start and a node, ascending: `keys` (`int64[pairs]`) are `start * _WIDTH + node`, so that
    sets are sorted arrays, and what is in one and not in another takes a binary search.
    """

    keys: Numbers

    @classmethod
    def of(cls, starts: Numbers, nodes: Numbers) -> _PairSet:
        return cls(distinct(starts * _WIDTH + nodes))

    def step(self, neighbours: Neighbours, costs: Costs) -> tuple[_PairSet, _PairSet] | None:
        """Pairs one step further: those by a node's loop to itself, and the others."""
        starts, nodes = self.keys // _WIDTH, self.keys % _WIDTH
        different, at = numbered(nodes, int(nodes.max(initial=0)) + 1)
        steps = neighbours.of(different)
        if steps is None:
            return None
        begins = np.cumsum(steps.counts) - steps.counts
        counts = steps.counts[at]
        costs.check_size(int(counts.sum()), "a walk")
        reached = steps.nodes[ranges(begins[at], counts)]
        loops = reached == np.repeat(nodes, counts)
        who = np.repeat(starts, counts)
        return _PairSet.of(who[loops], reached[loops]), _PairSet.of(who[~loops], reached[~loops])

    def without(self, others: _PairSet) -> _PairSet:
        return _PairSet(self.keys[~in_sorted(self.keys, others.keys)])

    def with_all(self, others: _PairSet) -> _PairSet:
        return _PairSet(np.sort(np.concatenate([self.keys, others.keys]), kind="stable"))
