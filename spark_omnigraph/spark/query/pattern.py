"""Operators that match a pattern, as DataFrames: each yields a frame of its variables."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import InternalError
from spark_omnigraph.lang.gq.needs import Needs, first_scan, named_in, needs_of, predicates_of, walks_far
from spark_omnigraph.lang.gq.plan import (
    AntiJoin,
    Comparison,
    Connect,
    Cross,
    Expand,
    Filter,
    Operator,
    OuterRows,
    Predicate,
    Scan,
)
from spark_omnigraph.spark.query.comparisons import comparison_column
from spark_omnigraph.spark.query.frame import Frame, kept, renamed, same
from spark_omnigraph.spark.query.tables import GraphTables
from spark_omnigraph.spark.query.walks import pairs_of

Matching = Scan | OuterRows | Cross | Expand | Connect | Filter | AntiJoin


@dataclass(frozen=True, slots=True)
class PatternFrames:
    """Makes the frames of operators; `needs` are what whoever stands above asks of the rows."""

    tables: GraphTables

    def rows(self, operator: Matching, needs: Needs, outer: Frame | None = None, once: bool = True) -> Frame:
        """The rows of an operator; `outer` are those that `OuterRows` stands for. Where rows only have to be there they
        need not come `once`: the last walk may give one for each of parallel edges, unless they are counted.
        """
        told_apart = once or self.tables.watch is not None
        return self.tables.measured(operator, lambda: self._rows(operator, needs, outer, told_apart))

    def _rows(self, operator: Matching, needs: Needs, outer: Frame | None, once: bool) -> Frame:
        if isinstance(operator, Scan):
            return self.tables.scan(operator.variable, TableKey.node(operator.node_type), operator.predicates, needs)
        if isinstance(operator, OuterRows):
            if outer is None:
                raise InternalError("outer rows outside an anti-join")
            return outer
        if isinstance(operator, Cross):
            left, right = self.rows(_m(operator.left), needs, outer), self.rows(_m(operator.right), needs, outer)
            return left.beside(right, left.data.crossJoin(right.data))
        if isinstance(operator, Expand):
            return self._expanded(operator, needs, outer, once)
        if isinstance(operator, Connect):
            return self._connected(operator, needs, outer)
        if isinstance(operator, Filter):
            rows = self.rows(_m(operator.input), needs | needs_of(operator.predicates), outer, once)
            return self._filtered(rows, operator.predicates)
        if isinstance(operator, AntiJoin):
            return self._without(operator, needs, outer)
        raise InternalError(f"{type(operator).__name__} yields no rows of a pattern")

    def _filtered(self, rows: Frame, predicates: tuple[Predicate, ...]) -> Frame:
        for predicate in predicates:
            if isinstance(predicate, Comparison):
                rows = rows.of(rows.data.filter(comparison_column(predicate, rows)))
            else:
                rows = self.tables.matching(rows, predicate)
        return rows

    def _expanded(self, operator: Expand, needs: Needs, outer: Frame | None, once: bool) -> Frame:
        rows = self.rows(_m(operator.input), needs, outer)
        source = rows.name(operator.source)
        # From a share of the nodes few edges are met, which are cheaper to tell apart than all.
        pairs = pairs_of(self.tables, operator.hops, _starts(rows, source), needs, once and not _is_share(operator))
        found = pairs.joined(rows, source)
        if once and not pairs.once:
            found = pairs.told_apart(found, rows)
        key = TableKey.node(operator.target_type)
        # Also of a target that nobody refers to: an edge may lead to a node that is not stored.
        target = self.tables.scan(operator.target, key, operator.predicates, needs)
        return found.beside(target, found.data.join(target.data, same(pairs.far, target.name(operator.target))))

    def _connected(self, operator: Connect, needs: Needs, outer: Frame | None) -> Frame:
        rows = self.rows(_m(operator.input), needs, outer)
        source, target = rows.name(operator.source), rows.name(operator.target)
        pairs = pairs_of(self.tables, operator.hops, _starts(rows, source), needs, once=False)
        both = same(source, pairs.near, pairs.met) & same(target, pairs.far)
        if operator.hops.edge_variable is None:
            return rows.of(rows.data.join(pairs.data, both, "left_semi"))
        return pairs.beside(rows, rows.data.join(pairs.data, both))

    def _without(self, operator: AntiJoin, needs: Needs, outer: Frame | None) -> Frame:
        """Whether a row survives depends on the entities that the inner block names alone, and an entity is its id. So
        blocks in a row are all asked of the rows before the first of them: what comes of one anti-join never stands in
        a plan twice, or plans would double with each. Inside of blocks rows are made for that.
        """
        blocks, below = [operator.inner], operator.input
        while isinstance(below, AntiJoin):
            blocks.append(below.inner)
            below = below.input
        inside = needs_of(p for block in blocks for p in predicates_of(block))
        rows = self.rows(_m(below), needs | inside, outer)
        if walks_far(below) or outer is not None:
            rows = rows.of(kept(rows.data))
        left = rows
        for block in reversed(blocks):
            left = left.of(self._left_of(left, rows, block))
        return left

    def _left_of(self, left: Frame, rows: Frame, block: Operator) -> DataFrame:
        """The rows on the left for which a block has none."""
        named = named_in(block) & set(rows.tables)
        if not named:
            raise InternalError("a negated block names nothing of the rows that it is about")
        asked = rows.only(named, needs_of(predicates_of(block)).columns)
        inner = self.rows(_m(block), Needs(), asked, once=False)
        ids = {rows.name(variable): self.tables.names.fresh() for variable in sorted(named)}
        keys = renamed(inner.data, ids)
        met = [same(mine, theirs) for mine, theirs in ids.items()]
        equal = met[0]
        for each in met[1:]:
            equal = equal & each
        return left.data.join(keys, equal, "left_anti")


def _starts(rows: Frame, source: str) -> DataFrame:
    return rows.data.select(source).distinct()


def _is_share(walk: Expand) -> bool:
    """Whether a walk may begin at a part of the nodes of a type alone."""
    return first_scan(walk.input) is None or bool(predicates_of(walk.input))


def _m(operator: object) -> Matching:
    """An operator below one of a pattern, which is of a pattern too."""
    if not isinstance(operator, Matching):
        raise InternalError(f"{type(operator).__name__} yields no rows of a pattern")
    return operator
