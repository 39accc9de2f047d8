"""Pairs of ids that walks connect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StringType, StructField, StructType

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.lang.gq.choose import FEW_STARTS
from spark_omnigraph.lang.gq.needs import Needs
from spark_omnigraph.lang.gq.plan import Direction, Hops
from spark_omnigraph.progress.meter import begin
from spark_omnigraph.spark.query.frame import Frame, kept, same, union
from spark_omnigraph.spark.query.tables import ENDS, GraphTables

PHASE = "walk"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Ids at the two ends of walks, in the columns `near` and `far`; with an edge variable a row for each edge. `met`
    is the column, where there is one, of the number by which rows meet `near`; `once`, whether no two rows are equal.
    """

    data: DataFrame
    near: str
    far: str
    met: str | None = None
    once: bool = True
    edges: Mapping[tuple[str, str], str] = field(default_factory=dict)
    tables: Mapping[str, TableKey] = field(default_factory=dict)

    def beside(self, frame: Frame, data: DataFrame) -> Frame:
        """Rows of a frame that were joined with these pairs."""
        return frame.beside(Frame(data, self.edges, self.tables), data)

    def joined(self, frame: Frame, source: str) -> Frame:
        """Rows of a frame with the pairs that are near to the ids of a column, each combination once if pairs are."""
        return self.beside(frame, frame.data.join(self.data, same(source, self.near, self.met)))

    def told_apart(self, joined: Frame, frame: Frame) -> Frame:
        """The rows of `joined`, each combination of entities of `frame` with a far end once. Those of an entity stand
        in one partition already where they were shuffled to be joined.
        """
        return joined.of(joined.data.dropDuplicates([*([self.met] if self.met else []), *frame.ids(), self.far]))


def pairs_of(tables: GraphTables, hops: Hops, starts: DataFrame, needs: Needs, once: bool) -> Pairs:
    """The pairs of a walk. Those of a walk of several hops begin at `starts`, one column of different ids. Pairs of one
    hop are told apart if they have to come `once`; that is dear for whoever needs few of them.
    """
    edge = tables.catalog.edges[hops.edge_type]
    chains = edge.from_type == edge.to_type
    if not chains and hops.min_hops > 1:
        near, far = tables.names.fresh(), tables.names.fresh()
        return Pairs(tables.nothing(StructType([StructField(n, StringType()) for n in (near, far)])), near, far)
    found = _edges(tables, hops, needs)
    if hops.edge_variable is not None:
        return found
    if chains and hops.max_hops > 1:
        return _walked(tables, hops, starts, found)
    if not once:
        return found
    # By what rows meet them, so that no shuffle is between this and the join.
    return replace(found, data=found.data.repartition(F.col(str(found.met))).dropDuplicates(), once=True)


def _edges(tables: GraphTables, hops: Hops, needs: Needs) -> Pairs:
    """A row for each edge; where either way is walked two, but one for a loop."""
    key, variable = TableKey.edge(hops.edge_type), hops.edge_variable
    near, far, met = (tables.names.fresh() for _ in range(3))
    scanned: Frame | None = None
    if variable is None:
        rows, src, dst = tables.ends(key)
    else:
        scanned = tables.scan(variable, key, needs=needs | Needs(frozenset((variable, end) for end in ENDS)))
        rows, (src, dst) = scanned.data, (scanned.name(variable, end) for end in ENDS)
    kept_too = () if scanned is None else ("*",)

    def directed(data: DataFrame, begin: str, end: str) -> DataFrame:
        ends = F.col(begin).alias(near), F.col(end).alias(far)
        return data.select(*kept_too, *ends, F.xxhash64(begin).alias(met))

    along, against = directed(rows, src, dst), directed(rows, dst, src)
    data = along if hops.direction is Direction.OUT else against
    if hops.direction is Direction.BOTH:
        data = along.unionAll(directed(rows.filter(F.col(src) != F.col(dst)), dst, src))
    if scanned is None:
        return Pairs(data, near, far, met, once=False)
    return Pairs(data, near, far, met, True, scanned.columns, scanned.tables)


def _walked(tables: GraphTables, hops: Hops, starts: DataFrame, pairs: Pairs) -> Pairs:
    """Breadth-first from all starts at once, one job a hop: the frontier are pairs of a start and a node that were met
    first at the hop before. Each step is kept, or plans would double with each hop.
    """
    start, at, node = (tables.names.fresh() for _ in range(3))
    begin(tables.progress, PHASE, hops.max_hops)
    edges = kept(pairs.data)
    [only] = starts.columns
    frontier = kept(starts.select(F.col(only).alias(start), F.col(only).alias(node)))
    seen, count, found = frontier, frontier.count(), []
    for hop in range(1, hops.max_hops + 1):
        # Of what is kept Spark knows no number; a few rows need no shuffle of all edges.
        begun = F.broadcast(frontier) if count <= FEW_STARTS else frontier
        step = begun.join(edges, same(node, pairs.near, pairs.met)).select(
            start, F.col(node).alias(at), F.col(pairs.far).alias(node)
        )
        if hop == hops.min_hops:
            found.append(step.filter(F.col(node) == F.col(at)).select(start, node).distinct())
        new = step.filter(F.col(node) != F.col(at)).select(start, node).distinct()
        frontier = kept(new.join(seen, [start, node], "left_anti"))
        tables.progress(PHASE, hop, hops.max_hops)
        if hop >= hops.min_hops:
            found.append(frontier)
        count = frontier.count()
        if not count:
            break
        seen = seen.unionAll(frontier)
    nothing = tables.nothing(StructType([StructField(name, StringType()) for name in (start, node)]))
    return Pairs(union(found) if found else nothing, start, node)
