"""The operators that make the columns of an answer, and its order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import DecimalType, DoubleType

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import InternalError
from spark_omnigraph.lang.gq.explain import explain
from spark_omnigraph.lang.gq.needs import Needs, needs_of
from spark_omnigraph.lang.gq.plan import (
    Aggregate,
    Aggregated,
    AggregateFunction,
    Bm25,
    Column,
    Constant,
    Expression,
    Fuse,
    Limit,
    Nearest,
    Operator,
    Output,
    Plan,
    Project,
    Rank,
    Scan,
    Score,
    Sort,
    SortKey,
    SortResult,
    TextMatch,
)
from spark_omnigraph.limits import Limits, Watch
from spark_omnigraph.spark.query.frame import Frame, kept, literal, shown
from spark_omnigraph.spark.query.pattern import Matching, PatternFrames
from spark_omnigraph.spark.query.search import Ordered, all_scored, identities, ranked, scored
from spark_omnigraph.spark.query.tables import GraphTables

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame


def plan_frame(plan: Plan, tables: GraphTables) -> DataFrame:
    """The rows of a plan whose parameters are bound, of the plan's names and the types that Spark shows. Walks of
    several hops run while it is made.
    """
    data, names = _Result(tables, PatternFrames(tables)).columns(plan.root)
    return data.select(*(shown(F.col(name), c.type).alias(c.name) for name, c in zip(names, plan.columns, strict=True)))


def measured_plan(plan: Plan, tables: GraphTables, watch: Watch, limits: Limits) -> str:
    """The text of a plan that has run, with the rows of each operator and the time that it took by itself. What ranks,
    orders and groups is done with the operator at the top. LimitError where the rows are more than they may be.
    """
    measuring = replace(tables, watch=watch)
    watch.measured(plan.root, lambda: kept(plan_frame(plan, measuring)), lambda data: data.count())
    limits.check_rows(watch.found[id(plan.root)].rows)
    return explain(plan, watch.note) + f"{watch.seconds * 1000:,.1f} ms\n"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What whoever stands above asks of rows: columns and distances, and searches whose scores are those of a row,
    whatever rows there are besides.
    """

    needs: Needs
    searches: Sequence[Bm25 | Nearest | TextMatch] = ()


@dataclass(frozen=True, slots=True)
class _Result:
    tables: GraphTables
    pattern: PatternFrames

    def columns(self, root: Operator) -> tuple[DataFrame, list[str]]:
        """Rows, and the names of the columns of the answer among theirs."""
        if isinstance(root, Limit):
            data, names = self.columns(root.input)
            return data.limit(root.count), names
        if isinstance(root, SortResult):
            data, names = self.columns(root.input)
            keys = [_key(F.col(names[key.place]), key.descending) for key in root.keys]
            rest = set(range(len(names))) - {key.place for key in root.keys}
            return data.orderBy(*keys, *(_key(F.col(names[place])) for place in sorted(rest))), names
        if isinstance(root, Aggregate):
            return self._aggregated(root)
        if isinstance(root, Project):
            return self._projected(root)
        raise InternalError(f"a plan cannot begin with {type(root).__name__}")

    def _projected(self, root: Project) -> tuple[DataFrame, list[str]]:
        values = [column.value for column in root.columns]
        searches = [value.of for value in values if isinstance(value, Score)]
        found = self._rows(root.input, _Asked(needs_of(values), [s for s in searches if not isinstance(s, Fuse)]))
        rows = all_scored(self.tables, found.rows, searches)
        if rows is not found.rows and found.order:
            # A fusion is asked of the rows that are left, and joined to them.
            rows = rows.of(rows.data.orderBy(*found.order))
        names = [self.tables.names.fresh() for _ in values]
        made = [self._value(rows, value).alias(name) for value, name in zip(values, names, strict=True)]
        return rows.data.select(*made), names

    def _value(self, rows: Frame, expression: Expression) -> SparkColumn:
        if isinstance(expression, Column):
            return rows.column(expression)
        if isinstance(expression, Constant):
            return literal(expression)
        if isinstance(expression, Score):
            _, name = scored(self.tables, rows, expression.of)
            return F.col(name)
        raise InternalError(f"parameter '{expression.name}' is not bound to a value")

    def _rows(self, operator: Operator, asked: _Asked) -> Ordered:
        if isinstance(operator, Limit):
            below = self._rows(operator.input, asked)
            return replace(below, rows=below.rows.of(below.rows.data.limit(operator.count)))
        if isinstance(operator, Sort):
            rows = self._scored(operator.input, asked, operator.keys)
            order = [*self._keys(rows, operator.keys), *identities(rows)]
            return Ordered(rows.of(rows.data.orderBy(*order)), order)
        if isinstance(operator, Rank):
            return self._ranked(operator, asked)
        return Ordered(self._matched(operator, asked), [])

    def _matched(self, operator: Operator, asked: _Asked) -> Frame:
        if not isinstance(operator, Matching):
            raise InternalError(f"{type(operator).__name__} yields no rows of variables")
        return all_scored(self.tables, self.pattern.rows(operator, asked.needs), asked.searches)

    def _scored(self, operator: Operator, asked: _Asked, keys: Sequence[SortKey]) -> Frame:
        """Rows of a pattern, with what they are to be ordered by."""
        rows = self._matched(operator, replace(asked, needs=asked.needs | needs_of([key.by for key in keys])))
        return all_scored(self.tables, rows, [key.by.of for key in keys if isinstance(key.by, Score)])

    def _ranked(self, operator: Rank, asked: _Asked) -> Ordered:
        asked = replace(asked, needs=asked.needs | needs_of([operator.by]))
        below = operator.input
        if isinstance(below, Scan) and isinstance(operator.by, Nearest) and not asked.searches:
            # Each task hands over its best.
            needs = asked.needs | needs_of([key.by for key in operator.ties])
            key = TableKey.node(below.node_type)
            rows = self.tables.scan(below.variable, key, below.predicates, needs, operator.limit)
            rows = all_scored(self.tables, rows, [key.by.of for key in operator.ties if isinstance(key.by, Score)])
        else:
            rows = self._scored(below, asked, operator.ties)
        ties = [*self._keys(rows, operator.ties), *identities(rows)]
        return ranked(self.tables, rows, operator.by, operator.limit, ties)

    def _keys(self, rows: Frame, keys: Iterable[SortKey]) -> list[SparkColumn]:
        return [_key(self._value(rows, key.by), key.descending) for key in keys]

    def _aggregated(self, root: Aggregate) -> tuple[DataFrame, list[str]]:
        values = [c.value if isinstance(c, Output) else c.argument for c in root.columns]
        rows = self._matched(root.input, _Asked(needs_of(values)))
        names = [self.tables.names.fresh() for _ in values]
        made = [self._value(rows, value).alias(name) for value, name in zip(values, names, strict=True)]
        data = rows.data.select(*made)
        paired = list(zip(root.columns, names, strict=True))
        keys = [name for column, name in paired if isinstance(column, Output)]
        found = {name: self.tables.names.fresh() for column, name in paired if isinstance(column, Aggregated)}
        summaries = [_summary(c, name).alias(found[name]) for c, name in paired if isinstance(c, Aggregated)]
        grouped = data.groupBy(*keys).agg(*summaries) if keys else data.agg(*summaries)
        return grouped, [found.get(name, name) for name in names]


def _summary(column: Aggregated, name: str) -> SparkColumn:
    """Integers are added as decimals, which is exact, and rounded once."""
    values = F.col(name)
    if column.function is AggregateFunction.COUNT:
        return F.count(values)
    if column.function is AggregateFunction.MIN:
        return F.min(values)
    if column.function is AggregateFunction.MAX:
        return F.max(values)
    exact = column.argument.type.scalar.is_integer
    added = F.sum(values.cast(DecimalType(20, 0) if exact else DoubleType())).cast(DoubleType())
    return added if column.function is AggregateFunction.SUM else added / F.nullif(F.count(values), F.lit(0))


def _key(column: SparkColumn, descending: bool = False) -> SparkColumn:
    return column.desc_nulls_last() if descending else column.asc_nulls_first()
