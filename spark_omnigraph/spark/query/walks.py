"""Pairs of ids that walks connect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StringType, StructField, StructType

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.lang.gq.needs import Needs
from spark_omnigraph.lang.gq.plan import Direction, Hops
from spark_omnigraph.progress.meter import begin
from spark_omnigraph.spark.query.frame import Frame, kept, same, union
from spark_omnigraph.spark.query.tables import GraphTables

PHASE = "walk"
_SRC, _DST = "src", "dst"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Ids at the two ends of walks, in the columns `near` and `far`; with an edge variable a row for each edge."""

    data: DataFrame
    near: str
    far: str
    edges: Mapping[tuple[str, str], str] = field(default_factory=dict)
    tables: Mapping[str, TableKey] = field(default_factory=dict)

    def beside(self, frame: Frame, data: DataFrame) -> Frame:
        """Rows of a frame that were joined with these pairs."""
        return frame.beside(Frame(data, self.edges, self.tables), data)


def pairs_of(tables: GraphTables, hops: Hops, starts: DataFrame, needs: Needs, once: bool) -> Pairs:
    """The pairs of a walk. Those of a walk of several hops begin at `starts`, one column of different ids. A pair of
    one hop comes `once`, or for each edge where it only has to be there: edges are dear to tell apart.
    """
    edge = tables.catalog.edges[hops.edge_type]
    chains = edge.from_type == edge.to_type
    if not chains and hops.min_hops > 1:
        near, far = tables.names.fresh(), tables.names.fresh()
        return Pairs(tables.nothing(StructType([StructField(n, StringType()) for n in (near, far)])), near, far)
    found = _edges(tables, hops, needs)
    walks_on = chains and hops.max_hops > 1
    if hops.edge_variable is not None or not (once or walks_on):
        return found
    distinct = replace(found, data=found.data.dropDuplicates())
    return _walked(tables, hops, starts, distinct) if walks_on else distinct


def _edges(tables: GraphTables, hops: Hops, needs: Needs) -> Pairs:
    """A row for each edge; where either way is walked two, but one for a loop."""
    variable = hops.edge_variable or ""
    key = TableKey.edge(hops.edge_type)
    scanned = tables.scan(variable, key, needs=needs | Needs(frozenset({(variable, _SRC), (variable, _DST)})))
    near, far = tables.names.fresh(), tables.names.fresh()
    src, dst = scanned.name(variable, _SRC), scanned.name(variable, _DST)

    def directed(data: DataFrame, begin: str, end: str) -> DataFrame:
        return data.select("*", F.col(begin).alias(near), F.col(end).alias(far))

    along, against = directed(scanned.data, src, dst), directed(scanned.data, dst, src)
    data = along if hops.direction is Direction.OUT else against
    if hops.direction is Direction.BOTH:
        data = along.unionAll(directed(scanned.data.filter(F.col(src) != F.col(dst)), dst, src))
    if hops.edge_variable is None:
        return Pairs(data.select(near, far), near, far)
    return Pairs(data, near, far, scanned.columns, scanned.tables)


def _walked(tables: GraphTables, hops: Hops, starts: DataFrame, pairs: Pairs) -> Pairs:
    """Breadth-first from all starts at once, one job a hop: the frontier are pairs of a start and a node that were met
    first at the hop before. Each step is kept, or plans would double with each hop.
    """
    start, at, node = (tables.names.fresh() for _ in range(3))
    begin(tables.progress, PHASE, hops.max_hops)
    edges = kept(pairs.data)
    [only] = starts.columns
    frontier = kept(starts.select(F.col(only).alias(start), F.col(only).alias(node)))
    seen, found = frontier, []
    for hop in range(1, hops.max_hops + 1):
        step = frontier.join(edges, same(node, pairs.near)).select(
            start, F.col(node).alias(at), F.col(pairs.far).alias(node)
        )
        if hop == hops.min_hops:
            found.append(step.filter(F.col(node) == F.col(at)).select(start, node).distinct())
        new = step.filter(F.col(node) != F.col(at)).select(start, node).distinct()
        frontier = kept(new.join(seen, [start, node], "left_anti"))
        tables.progress(PHASE, hop, hops.max_hops)
        if hop >= hops.min_hops:
            found.append(frontier)
        if frontier.isEmpty():
            break
        seen = seen.unionAll(frontier)
    nothing = tables.nothing(StructType([StructField(name, StringType()) for name in (start, node)]))
    return Pairs(union(found) if found else nothing, start, node)
