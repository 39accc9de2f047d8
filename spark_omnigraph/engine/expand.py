"""Expand and Connect: walks from the values of a variable, by one of two ways that reach the same nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_omnigraph.catalog.types import EdgeType
from spark_omnigraph.engine.adjacency import CACHE, EdgeTables
from spark_omnigraph.engine.bindings import Bound, Entities, Rows, check_size
from spark_omnigraph.engine.columns import FEW
from spark_omnigraph.engine.int_arrays import Numbers, in_sorted, is_range, numbered, ranges, upto
from spark_omnigraph.engine.lookup import Lookup, positions_of
from spark_omnigraph.engine.select import satisfied, select
from spark_omnigraph.engine.source import EngineSource
from spark_omnigraph.engine.table import Table
from spark_omnigraph.engine.walk import Reached, walk
from spark_omnigraph.errors import InternalError
from spark_omnigraph.lang.gq.plan import IDENTITY, Connect, Direction, Expand, Hops
from spark_omnigraph.words import TextEnum

SMALL = 512
"""Nodes from which a walk by look-ups may go on; each look-up of a batch costs some milliseconds."""
FEW_EDGES = 64
"""A look-up is chosen for at most one node in so many edges: reading all edges is cheaper otherwise."""


class Strategy(TextEnum):
    """How walks find neighbours: an index of all edges in memory, look-ups in the edge table, or what costs less."""

    BY_COST = "by cost"
    ADJACENCY = "adjacency"
    LOOKUP = "lookup"


@dataclass(frozen=True, slots=True)
class _Pairs:
    """A start and the position of a stored node reached from it, ascending by both; and the edges' positions."""

    starts: Numbers
    nodes: Numbers
    edges: Numbers | None
    ids: pa.Array | None = None
    """Ids of the different nodes, where they came with the pairs."""

    def at(self, chosen: Numbers) -> _Pairs:
        """Some of the pairs."""
        return _Pairs(self.starts[chosen], self.nodes[chosen], None if self.edges is None else self.edges[chosen])

    def edges_at(self, chosen: Numbers | None) -> Numbers | None:
        """The edges of some pairs, or of all."""
        return self.edges if self.edges is None or chosen is None else self.edges[chosen]


def expand(operator: Expand, rows: Rows, source: EngineSource, strategy: Strategy) -> Rows:
    """Each row once for every node that its walk reaches and that satisfies the predicates."""
    used, of_row = _starts(rows.bound[operator.source])
    pairs = _walked(operator.hops, rows.bound[operator.source], used, source, strategy)
    table = source.table(f"node:{operator.target_type}")
    pairs, target = _reached(operator, table, pairs)
    found, chosen = _repeated(operator, rows, of_row, pairs, len(used))
    found = found.with_variable(
        operator.target, target if chosen is None else Bound(target.entities, target.at(chosen))
    )
    return _with_edges(operator.hops, found, pairs.edges_at(chosen), source)


def _repeated(operator: Expand, rows: Rows, of_row: Numbers, pairs: _Pairs, starts: int) -> tuple[Rows, Numbers | None]:
    """Each row once for every pair of its start, and which pairs these are; None: all, in their order."""
    counted = np.bincount(pairs.starts, minlength=starts)
    counts = counted[of_row]
    check_size(int(counts.sum()), f"the walk from ${operator.source} to ${operator.target}")
    if is_range(of_row, starts):
        return rows.take(pairs.starts), None
    begins = np.cumsum(counted) - counted
    return rows.take(np.repeat(upto(rows.count), counts)), ranges(begins[of_row], counts)


def connect(operator: Connect, rows: Rows, source: EngineSource, strategy: Strategy) -> Rows:
    """Rows whose two variables a walk connects; with an edge variable, once for each edge."""
    used, of_row = _starts(rows.bound[operator.source])
    pairs = _walked(operator.hops, rows.bound[operator.source], used, source, strategy)
    targets = rows.bound[operator.target].positions()
    width = int(max(targets.max(initial=0), pairs.nodes.max(initial=0))) + 1
    wanted, keys = of_row * width + targets, pairs.starts * width + pairs.nodes
    if pairs.edges is None:
        return rows.keep(in_sorted(wanted, keys))
    begins = np.searchsorted(keys, wanted, side="left")
    counts = np.searchsorted(keys, wanted, side="right") - begins
    chosen = ranges(begins, counts)
    return _with_edges(operator.hops, rows.take(np.repeat(upto(rows.count), counts)), pairs.edges_at(chosen), source)


def _starts(bound: Bound) -> tuple[Numbers, Numbers]:
    """Different entities that rows name, and which of them each row names."""
    return numbered(bound.index, len(bound.entities.positions))


def _reached(operator: Expand, table: Table, pairs: _Pairs) -> tuple[_Pairs, Bound]:
    """Pairs whose node satisfies the predicates, and the node of each: few nodes are asked one by one."""
    if len(pairs.nodes) * FEW >= table.stored:
        mark = np.zeros(table.stored, dtype=bool)
        mark[pairs.nodes] = True
        if np.count_nonzero(mark) * FEW >= table.stored:
            return _among_all(operator, table, pairs)
    positions, index = numbered(pairs.nodes, table.stored)
    nodes = Entities(table, positions, {} if pairs.ids is None else {IDENTITY: pairs.ids})
    if operator.predicates and len(positions):
        good = satisfied(table, positions, operator.predicates)
        kept = np.flatnonzero(good[index])
        number = np.cumsum(good) - 1
        pairs, nodes, index = pairs.at(kept), nodes.take(np.flatnonzero(good)), number[index[kept]]
    return pairs, Bound(nodes, index)


def _among_all(operator: Expand, table: Table, pairs: _Pairs) -> tuple[_Pairs, Bound]:
    if operator.predicates:
        good = np.zeros(table.stored, dtype=bool)
        good[select(table, operator.predicates)] = True
        pairs = pairs.at(np.flatnonzero(good[pairs.nodes]))
    return pairs, Bound(Entities(table, table.every()), pairs.nodes)


def _with_edges(hops: Hops, rows: Rows, edges: Numbers | None, source: EngineSource) -> Rows:
    if hops.edge_variable is None or edges is None:
        return rows
    table = source.table(f"edge:{hops.edge_type}")
    positions, index = numbered(edges, table.stored)
    return rows.with_variable(hops.edge_variable, Bound(Entities(table, positions), index))


def _walked(hops: Hops, bound: Bound, used: Numbers, source: EngineSource, strategy: Strategy) -> _Pairs:
    edge = source.edge(hops.edge_type)
    nothing = np.empty(0, dtype=np.int64)
    tables = _tables(edge, source)
    if tables is None or not len(used):
        return _Pairs(nothing, nothing, nothing if hops.edge_variable is not None else None)
    entities = bound.entities
    if strategy is Strategy.LOOKUP or (strategy is Strategy.BY_COST and _is_small(hops, tables, len(used))):
        most = tables.edges.rows + tables.sources.rows if strategy is Strategy.LOOKUP else SMALL
        found = _by_lookup(hops, entities, used, tables, most)
        if found is not None:
            return found
    chains = tables.sources is tables.targets
    compressed = tables.compressed(hops.direction, hops.edge_variable is not None, CACHE)
    reached = walk(hops, entities.positions[used], compressed, chains)
    if reached is None:
        raise InternalError("an index of all edges does not give up")
    ends = tables.targets if hops.direction is Direction.OUT else tables.sources
    return _stored(reached, reached.nodes, reached.nodes < ends.rows)


def _is_small(hops: Hops, tables: EdgeTables, starts: int) -> bool:
    if starts > SMALL or starts * FEW_EDGES > tables.edges.rows:
        return False
    return not tables.is_compressed(hops.direction, hops.edge_variable is not None, CACHE) and not tables.pays(CACHE)


def _by_lookup(hops: Hops, entities: Entities, used: Numbers, tables: EdgeTables, most: int) -> _Pairs | None:
    chains = tables.sources is tables.targets
    lookup = Lookup(tables.edges, hops.direction, hops.edge_variable is not None, chains, most)
    chosen = entities.take(used)
    starts = lookup.sources.numbers(chosen.column(IDENTITY).to_pylist())
    reached = walk(hops, starts, lookup, chains)
    if reached is None:
        return None
    ends = tables.sources if hops.direction is Direction.IN else tables.targets
    known, at = np.unique(reached.nodes, return_inverse=True)
    ids = [lookup.targets.ids[number] for number in known.tolist()]
    places = positions_of(ids, ends)
    positions = places[at]
    found = _stored(reached, positions, positions >= 0)
    # Numbers of a look-up are in the order in which ids were met.
    keys = (found.nodes, found.starts) if found.edges is None else (found.edges, found.nodes, found.starts)
    order = np.lexsort(keys)
    edges = None if found.edges is None else found.edges[order]
    by_position = [ids[n] for n in np.argsort(places).tolist() if places[n] >= 0]
    return _Pairs(found.starts[order], found.nodes[order], edges, pa.array(by_position, pa.string()))


def _stored(reached: Reached, positions: Numbers, good: np.ndarray) -> _Pairs:
    """Pairs whose node is stored."""
    if good.all():
        return _Pairs(reached.starts, positions, reached.edges)
    edges = None if reached.edges is None else reached.edges[good]
    return _Pairs(reached.starts[good], positions[good], edges)


def _tables(edge: EdgeType, source: EngineSource) -> EdgeTables | None:
    """Readers of the edge type and of the types of its ends; None when one has no rows in this snapshot."""
    edges = source.table(edge.table_key)
    sources, targets = source.table(f"node:{edge.from_type}"), source.table(f"node:{edge.to_type}")
    if edges.reader is None or sources.reader is None or targets.reader is None:
        return None
    return EdgeTables(edges.reader, sources.reader, targets.reader)
