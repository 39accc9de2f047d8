"""Runs a bound plan on one snapshot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import PropType
from spark_omnigraph.engine.aggregate import aggregate
from spark_omnigraph.engine.bindings import TAG, Bindings, scanned
from spark_omnigraph.engine.compare import constant_array
from spark_omnigraph.engine.expand import connect, expand
from spark_omnigraph.engine.join import all_pairs, filtered, filtered_pairs
from spark_omnigraph.engine.order import SortColumn, ordered
from spark_omnigraph.engine.rank import by_identity, column_key, rank, ranked_scan, scores
from spark_omnigraph.engine.select import known_ids, select
from spark_omnigraph.engine.source import EngineSource
from spark_omnigraph.errors import InternalError
from spark_omnigraph.lang.gq.needs import leading_scan
from spark_omnigraph.lang.gq.plan import (
    Aggregate,
    AntiJoin,
    Column,
    Connect,
    Constant,
    Cross,
    Expand,
    Expression,
    Filter,
    Limit,
    Operator,
    OuterRows,
    Plan,
    Project,
    Rank,
    Scan,
    Score,
    Sort,
    SortKey,
    SortResult,
)
from spark_omnigraph.limits import Watch
from spark_omnigraph.records.arrow_schema import shown_type


def run_plan(plan: Plan, source: EngineSource, watch: Watch | None = None) -> pa.Table:
    """The rows of a plan whose parameters are bound. Columns have the plan's names, which may repeat, and the
    types in which values leave (`shown_type`). A `watch` measures the operators.
    """
    leading = leading_scan(plan.root) if source.share is not None else None
    if source.share is not None and leading is None:
        raise InternalError(f"the plan of '{plan.query}' cannot be run in shares")
    columns = _Run(source, watch, leading).result(plan.root)
    arrays = [_as_shown(array, c.type) for array, c in zip(columns, plan.columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=[c.name for c in plan.columns])


def _as_shown(column: pa.Array, of: PropType) -> pa.Array:
    shown = shown_type(of)
    return column if column.type == shown else column.cast(shown)


@dataclass(slots=True)
class _Run:
    source: EngineSource
    watch: Watch | None = None
    leading: Scan | None = None
    """The scan of which only a share is looked at."""

    def result(self, root: Operator) -> list[pa.Array]:
        """Columns of the answer."""
        if self.watch is None:
            return self.columns(root)
        return self.watch.measured(root, lambda: self.columns(root), lambda found: len(found[0]) if found else 0)

    def columns(self, root: Operator) -> list[pa.Array]:
        if isinstance(root, Limit):
            return [column.slice(0, root.count) for column in self.result(root.input)]
        if isinstance(root, SortResult):
            return _sorted_result(root, self.result(root.input))
        if isinstance(root, Aggregate):
            return aggregate(root, self.rows(root.input, None))
        if isinstance(root, Project):
            return self.project(root)
        raise InternalError(f"a plan cannot begin with {type(root).__name__}")

    def project(self, operator: Project) -> list[pa.Array]:
        rows = self.rows(operator.input, None).narrowed()
        values = [column.value for column in operator.columns]
        rows.load((value.variable, value.name) for value in values if isinstance(value, Column))
        return [self.value(value, rows) for value in values]

    def value(self, expression: Expression, rows: Bindings) -> pa.Array:
        if isinstance(expression, Column):
            return rows.column(expression.variable, expression.name)
        if isinstance(expression, Constant):
            return constant_array(expression.value, expression.type, rows.count)
        if isinstance(expression, Score):
            found = scores(expression.of, rows)
            return pa.array(found, pa.float64(), mask=np.isnan(found))
        raise InternalError(f"parameter '{expression.name}' is not bound to a value")

    def rows(self, operator: Operator, outer: Bindings | None) -> Bindings:
        """The rows of an operator; `outer` are those that `OuterRows` stands for."""
        if self.watch is None:
            return self.bindings(operator, outer)
        return self.watch.measured(operator, lambda: self.bindings(operator, outer), lambda found: found.count)

    def bindings(self, operator: Operator, outer: Bindings | None) -> Bindings:
        if isinstance(operator, Scan):
            return self.scanned(operator)
        if isinstance(operator, OuterRows):
            if outer is None:
                raise InternalError("outer rows outside an anti-join")
            return outer
        if isinstance(operator, Cross):
            return all_pairs(self.rows(operator.left, outer), self.rows(operator.right, outer), self.source.costs)
        if isinstance(operator, Expand):
            return expand(operator, self.rows(operator.input, outer), self.source)
        if isinstance(operator, Connect):
            return connect(operator, self.rows(operator.input, outer), self.source)
        if isinstance(operator, Filter):
            return self.filtered(operator, outer)
        if isinstance(operator, AntiJoin):
            return self.without(operator, outer)
        return self.ordered_rows(operator, outer)

    def scanned(self, operator: Scan) -> Bindings:
        table = self.source.table(TableKey.node(operator.node_type))
        positions = select(table, operator.predicates)
        if operator is self.leading and self.source.share is not None:
            start, stop = self.source.share
            positions = positions[(positions >= start) & (positions < stop)]
        return scanned(operator.variable, table, positions, known_ids(table, operator.predicates, len(positions)))

    def filtered(self, operator: Filter, outer: Bindings | None) -> Bindings:
        pairs = operator.input
        if isinstance(pairs, Cross):
            left, right = self.rows(pairs.left, outer), self.rows(pairs.right, outer)
            return filtered_pairs(left, right, operator.predicates, self.source.costs)
        return filtered(self.rows(pairs, outer), operator.predicates)

    def ordered_rows(self, operator: Operator, outer: Bindings | None) -> Bindings:
        if isinstance(operator, Sort):
            return self.sorted_rows(operator, outer, None)
        if isinstance(operator, Limit):
            if isinstance(operator.input, Sort):
                return self.sorted_rows(operator.input, outer, operator.count)
            rows = self.rows(operator.input, outer)
            return rows.take(np.arange(min(operator.count, rows.count)))
        if isinstance(operator, Rank):
            found = ranked_scan(operator, self.source)
            rows = found if found is not None else self.rows(operator.input, outer)
            return rank(operator, rows, self.sort_keys(operator.ties, rows))
        raise InternalError(f"{type(operator).__name__} yields no rows of variables")

    def sorted_rows(self, operator: Sort, outer: Bindings | None, limit: int | None) -> Bindings:
        rows = self.rows(operator.input, outer)
        return rows.take(ordered(self.sort_keys(operator.keys, rows), rows.count, limit))

    def sort_keys(self, keys: tuple[SortKey, ...], rows: Bindings) -> list[SortColumn]:
        """The keys, then the ids of all variables in order of their names."""
        return [*(self.sort_key(key, rows) for key in keys), *by_identity(rows)]

    def sort_key(self, key: SortKey, rows: Bindings) -> SortColumn:
        if isinstance(key.by, Column):
            return column_key(rows, key.by.variable, key.by.name, key.descending)
        return SortColumn.of(self.value(key.by, rows), key.descending)

    def without(self, operator: AntiJoin, outer: Bindings | None) -> Bindings:
        rows = self.rows(operator.input, outer)
        if not rows.count:
            return rows
        tag = f"{TAG}{len(rows.tags)}"
        inner = self.rows(operator.inner, rows.with_tag(tag, np.arange(rows.count)))
        kept = np.ones(rows.count, dtype=bool)
        if tag in inner.tags:
            kept[inner.tags[tag]] = False
        elif inner.count:
            kept[:] = False
        return rows.keep(kept)


def _sorted_result(operator: SortResult, columns: list[pa.Array]) -> list[pa.Array]:
    places = [key.place for key in operator.keys]
    rest = [place for place in range(len(columns)) if place not in places]
    keys = [SortColumn.of(columns[k.place], k.descending) for k in operator.keys] + [
        SortColumn.of(columns[p]) for p in rest
    ]
    order = pa.array(ordered(keys, len(columns[0]) if columns else 0))
    return [column.take(order) for column in columns]
