"""Expand and Connect: walks from the values of a variable, by one of two ways that reach the same nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import EdgeType
from spark_omnigraph.engine.adjacency import EdgeTables
from spark_omnigraph.engine.bindings import Bindings, BoundVariable, Entities
from spark_omnigraph.engine.costs import Costs, Strategy
from spark_omnigraph.engine.int_arrays import Numbers, in_sorted, is_range, numbered, ranges, upto
from spark_omnigraph.engine.lookup import Lookup, positions_of
from spark_omnigraph.engine.select import satisfied, select
from spark_omnigraph.engine.source import EngineSource
from spark_omnigraph.engine.table import Table
from spark_omnigraph.engine.walk import Reached, walk
from spark_omnigraph.errors import InternalError
from spark_omnigraph.lang.gq.plan import Connect, Direction, Expand, Hops


@dataclass(frozen=True, slots=True)
class _Pairs:
    """A start (its place among the starts) and the position of a stored node reached from it, ascending by both; and
    the position of the edge between. All are `int64[pairs]`.
    """

    starts: Numbers
    nodes: Numbers
    edges: Numbers | None
    ids: Sequence[str] | None = None
    """Ids of the different nodes, where they came with the pairs."""

    def at(self, chosen: Numbers) -> _Pairs:
        """Some of the pairs."""
        return _Pairs(self.starts[chosen], self.nodes[chosen], None if self.edges is None else self.edges[chosen])

    def edges_at(self, chosen: Numbers | None) -> Numbers | None:
        """The edges of some pairs, or of all."""
        return self.edges if self.edges is None or chosen is None else self.edges[chosen]


def expand(operator: Expand, rows: Bindings, source: EngineSource) -> Bindings:
    """Each row once for every node that its walk reaches and that satisfies the predicates."""
    used, of_row = _starts(rows.variables[operator.source])
    pairs = _walked(operator.hops, rows.variables[operator.source], used, source)
    table = source.table(TableKey.node(operator.target_type))
    pairs, target = _reached(operator, table, pairs)
    counted = np.bincount(pairs.starts, minlength=len(used))
    counts = counted[of_row]
    source.costs.check_size(int(counts.sum()), f"the walk from ${operator.source} to ${operator.target}")
    chosen: Numbers | None = None
    if is_range(of_row, len(used)):
        found = rows.take(pairs.starts)
    else:
        # The pairs of a start stand together, and each of its rows takes them all.
        chosen = ranges((np.cumsum(counted) - counted)[of_row], counts)
        found = rows.take(np.repeat(upto(rows.count), counts))
    found = found.with_variable(
        operator.target, target if chosen is None else BoundVariable(target.entities, target.at(chosen))
    )
    return _with_edges(operator.hops, found, pairs.edges_at(chosen), source)


def connect(operator: Connect, rows: Bindings, source: EngineSource) -> Bindings:
    """Rows whose two variables a walk connects; with an edge variable, once for each edge.

    A pair of a start and a node is one number, `start * width + node`; those of the walk ascend, so that a binary
    search finds the one that a row needs, or the run of its edges.
    """
    used, of_row = _starts(rows.variables[operator.source])
    pairs = _walked(operator.hops, rows.variables[operator.source], used, source)
    targets = rows.variables[operator.target].positions()
    width = int(max(targets.max(initial=0), pairs.nodes.max(initial=0))) + 1
    wanted, keys = of_row * width + targets, pairs.starts * width + pairs.nodes
    if pairs.edges is None:
        return rows.keep(in_sorted(wanted, keys))
    begins = np.searchsorted(keys, wanted, side="left")
    counts = np.searchsorted(keys, wanted, side="right") - begins
    chosen = ranges(begins, counts)
    return _with_edges(operator.hops, rows.take(np.repeat(upto(rows.count), counts)), pairs.edges_at(chosen), source)


def _starts(variable: BoundVariable) -> tuple[Numbers, Numbers]:
    """Different entities that rows name, and which of them each row names."""
    return numbered(variable.index, len(variable.entities.positions))


def _reached(operator: Expand, table: Table, pairs: _Pairs) -> tuple[_Pairs, BoundVariable]:
    """Pairs whose node satisfies the predicates, and the node of each: few nodes are asked one by one."""
    if table.are_many(len(pairs.nodes)):
        mark = np.zeros(table.stored, dtype=bool)
        mark[pairs.nodes] = True
        if table.are_many(int(np.count_nonzero(mark))):
            return _among_all(operator, table, pairs)
    positions, index = numbered(pairs.nodes, table.stored)
    nodes = Entities(table, positions, pairs.ids)
    if operator.predicates and len(positions):
        good = satisfied(table, positions, operator.predicates)
        kept = np.flatnonzero(good[index])
        number = np.cumsum(good) - 1
        pairs, nodes, index = pairs.at(kept), nodes.take(np.flatnonzero(good)), number[index[kept]]
    return pairs, BoundVariable(nodes, index)


def _among_all(operator: Expand, table: Table, pairs: _Pairs) -> tuple[_Pairs, BoundVariable]:
    if operator.predicates:
        good = np.zeros(table.stored, dtype=bool)
        good[select(table, operator.predicates)] = True
        pairs = pairs.at(np.flatnonzero(good[pairs.nodes]))
    return pairs, BoundVariable(Entities(table, table.every()), pairs.nodes)


def _with_edges(hops: Hops, rows: Bindings, edges: Numbers | None, source: EngineSource) -> Bindings:
    if hops.edge_variable is None or edges is None:
        return rows
    table = source.table(TableKey.edge(hops.edge_type))
    positions, index = numbered(edges, table.stored)
    return rows.with_variable(hops.edge_variable, BoundVariable(Entities(table, positions), index))


def _walked(hops: Hops, starts: BoundVariable, used: Numbers, source: EngineSource) -> _Pairs:
    edge = source.edge(hops.edge_type)
    nothing = np.empty(0, dtype=np.int64)
    tables = _tables(edge, source)
    if tables is None or not len(used):
        return _Pairs(nothing, nothing, nothing if hops.edge_variable is not None else None)
    costs, entities = source.costs, starts.entities
    forced = costs.walks is Strategy.LOOKUP
    if forced or (costs.walks is Strategy.BY_COST and _is_small(hops, tables, len(used), costs)):
        most = tables.edges.rows + tables.sources.rows if forced else costs.lookup_nodes
        lookup = Lookup(tables, hops.direction, hops.edge_variable is not None, costs, most)
        found = _by_lookup(hops, entities.take(used), tables, lookup, costs)
        if found is not None:
            return found
    reached = _by_index(hops, entities.positions[used], tables, costs)
    ends = tables.targets if hops.direction is Direction.OUT else tables.sources
    return _stored(reached, reached.nodes, reached.nodes < ends.rows)


def _by_index(hops: Hops, starts: Numbers, tables: EdgeTables, costs: Costs) -> Reached:
    """A walk by an index of all edges. A step from all nodes is kept where it takes no more than a column may: it is
    the same each time, and the memory for it would be asked of the system and given back each time.
    """
    with_edges = hops.edge_variable is not None
    near = tables.targets if hops.direction is Direction.IN else tables.sources
    key = (*tables.key, hops.direction, with_edges)
    memory, is_step = tables.edges.memory, with_edges or hops.max_hops == 1
    from_all = is_step and is_range(starts, near.rows)
    reached = memory.get(Reached, key) if from_all else None
    if reached is not None:
        return reached
    reached = walk(hops, starts, tables.compressed(hops.direction, with_edges), tables.chains, costs)
    if reached is None:
        raise InternalError("an index of all edges does not give up")
    size = sum(array.nbytes for array in reached.arrays)
    if from_all and size <= memory.budget // costs.column_share:
        for array in reached.arrays:
            array.flags.writeable = False
        memory.put(Reached, key, reached, size)
    return reached


def _is_small(hops: Hops, tables: EdgeTables, starts: int, costs: Costs) -> bool:
    if starts > costs.lookup_nodes or starts * costs.lookup_share > tables.edges.rows:
        return False
    return not tables.is_compressed(hops.direction, hops.edge_variable is not None) and not tables.pays(costs)


def _by_lookup(hops: Hops, starts: Entities, tables: EdgeTables, lookup: Lookup, costs: Costs) -> _Pairs | None:
    """A walk among ids. `lookup` numbers them as it meets them, `places` (`int64[ids met at the end]`) turns these
    numbers into positions of stored nodes, -1 for none; then pairs are put in the order of positions, in which a walk
    over an index of all edges gives them. None when the walk grows too large.
    """
    numbers = lookup.sources.numbers(starts.ids)
    reached = walk(hops, numbers, lookup, tables.chains, costs)
    if reached is None:
        return None
    ends = tables.sources if hops.direction is Direction.IN else tables.targets
    known, at = numbered(reached.nodes, len(lookup.targets.ids))
    ids = [lookup.targets.ids[number] for number in known.tolist()]
    places = positions_of(ids, ends, costs)
    positions = places[at]
    found = _stored(reached, positions, positions >= 0)
    keys = (found.nodes, found.starts) if found.edges is None else (found.edges, found.nodes, found.starts)
    order = np.lexsort(keys)
    edges = None if found.edges is None else found.edges[order]
    by_position = [ids[n] for n in np.argsort(places).tolist() if places[n] >= 0]
    return _Pairs(found.starts[order], found.nodes[order], edges, by_position)


def _stored(reached: Reached, positions: Numbers, good: np.ndarray) -> _Pairs:
    """Pairs whose node is stored."""
    if good.all():
        return _Pairs(reached.starts, positions, reached.edges)
    edges = None if reached.edges is None else reached.edges[good]
    return _Pairs(reached.starts[good], positions[good], edges)


def _tables(edge: EdgeType, source: EngineSource) -> EdgeTables | None:
    """Readers of the edge type and of the types of its ends; None when one has no rows in this snapshot."""
    edges = source.table(edge.table_key)
    sources, targets = source.table(TableKey.node(edge.from_type)), source.table(TableKey.node(edge.to_type))
    if edges.reader is None or sources.reader is None or targets.reader is None:
        return None
    return EdgeTables(edges.reader, sources.reader, targets.reader)
