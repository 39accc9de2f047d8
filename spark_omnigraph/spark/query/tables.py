"""The tables of one snapshot as frames whose rows are made by tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import DataType, DoubleType, StringType, StructField, StructType

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, EntityType, PropType, Scalar
from spark_omnigraph.engine.pushdown import Pushed, ask
from spark_omnigraph.engine.table import Table
from spark_omnigraph.lang.gq.needs import Needs, is_lookup
from spark_omnigraph.lang.gq.plan import (
    IDENTITY,
    Bm25,
    Comparison,
    Cross,
    Nearest,
    Operator,
    OuterRows,
    Predicate,
    Ranking,
    TextMatch,
)
from spark_omnigraph.limits import Watch
from spark_omnigraph.predicates.sql import NO_ROW
from spark_omnigraph.progress.meter import Progress, unheard
from spark_omnigraph.spark.portable import carried
from spark_omnigraph.spark.query.frame import Frame, Names, inside_type, kept
from spark_omnigraph.spark.query.tasks import HitsTask, NumberedTasks, ScanTask, Task
from spark_omnigraph.storage.tables.reader import ReadCache
from spark_omnigraph.storage.tables.scan import PinnedTable, column_names, fragment_sizes, group_fragments
from spark_omnigraph.storage.tables.search import is_spread

COLUMN_BYTES = 24
"""What Spark is told that a value takes; it need not be right, but grow with the table."""
UNKNOWN_BYTES = 64 << 20
"""What rows of unknown number are said to take at most: more than what Spark broadcasts by default."""
_MOST_BYTES = 1 << 30
"""More than that no table is said to take: Spark broadcasts none that is larger, and counts as far."""

NOTHING = Needs()
ENDS = ("src", "dst")

Run = Callable[[Task, int, int], DataFrame]
"""Makes the frame of a task of so many parts, whose rows take about so many bytes."""


def run_tasks(spark: SparkSession) -> Run:
    """Frames whose rows are made by tasks of Spark."""

    def run(task: Task, parts: int, size: int) -> DataFrame:
        return sized(spark, parts, size).mapInArrow(carried(NumberedTasks(task)), task.frame)

    return run


def sized(spark: SparkSession, parts: int, size: int) -> DataFrame:
    """The numbers from 0, one a task, in a frame of which Spark thinks that it has so many bytes. It takes the rows of
    `mapInArrow` for as many as those that go in, and would broadcast whatever comes out of a few numbers.
    """
    each = max(1, min(size, _MOST_BYTES) // 8 // parts)
    numbers = spark.range(0, parts * each, 1, parts)
    if each == 1:
        return numbers
    return numbers.filter(F.col("id") % each == 0).select(F.expr(f"id div {each}").alias("id"))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is wanted of one table."""

    key: TableKey
    entity: EntityType
    comparisons: tuple[Comparison, ...]
    columns: tuple[str, ...]
    distances: tuple[Nearest, ...]
    best: int | None
    schema: StructType


@dataclass(slots=True)
class GraphTables:
    """Tables of a snapshot: `pinned` of those that have rows, and their numbers of rows."""

    spark: SparkSession
    catalog: Catalog
    pinned: Mapping[str, PinnedTable]
    stored: Mapping[str, int]
    slots: int
    run: Run
    names: Names = field(default_factory=Names)
    progress: Progress = unheard
    watch: Watch | None = None
    """Measures operators, each by itself."""
    _columns: dict[str, frozenset[str]] = field(default_factory=dict)

    def scan(
        self,
        variable: str,
        key: TableKey,
        predicates: Iterable[Predicate] = (),
        needs: Needs = NOTHING,
        best: int | None = None,
    ) -> Frame:
        """The rows of a type that satisfy comparisons and text searches: ids, and what is needed of the variable."""
        asked = tuple(predicates)
        searches = [p for p in asked if isinstance(p, TextMatch)]
        entity = self.catalog.require(key)
        wanted, distances = needs.of(variable)
        fields = {name: (self.names.fresh(), inside_type(_type(entity, name))) for name in (IDENTITY, *wanted)}
        scores: dict[Ranking, str] = {each: self.names.fresh() for each in distances}
        if searches or len(scores) != 1:
            best = None
        scan = _Wanted(
            key,
            entity,
            tuple(p for p in asked if isinstance(p, Comparison)),
            tuple(fields),
            tuple(distances),
            best,
            _schema([*fields.values(), *((name, DoubleType()) for name in scores.values())]),
        )
        named = {(variable, column): name for column, (name, _) in fields.items()}
        frame = Frame(self._rows(scan), named, {variable: key}, scores)
        for search in searches:
            frame = self.matching(frame, search)
        return frame

    def ends(self, key: TableKey) -> tuple[DataFrame, str, str]:
        """The ends of the edges of a type, without ids, and what the two columns are called."""
        src, dst = self.names.fresh(), self.names.fresh()
        schema = _schema([(src, StringType()), (dst, StringType())])
        wanted = _Wanted(key, self.catalog.require(key), (), ENDS, (), None, schema)
        return self._rows(wanted), src, dst

    def hits(self, key: TableKey, search: Bm25 | TextMatch) -> tuple[DataFrame, str, str]:
        """Ids and scores of the rows that a search finds, and what the two columns are called."""
        found, score = self.names.fresh(), self.names.fresh()
        schema = _schema([(found, StringType()), (score, DoubleType())])
        table = self.pinned.get(key)
        if table is None or not self.stored[key] or search.column.name not in self._names(key, table):
            return self.nothing(schema), found, score
        spread = is_spread(ReadCache().open(table), search.column.name)
        groups = self._groups(table) if spread else (None,)
        task = HitsTask(table, self.catalog.require(key), search, groups, schema)
        return self.run(task, len(groups), self.stored[key] * COLUMN_BYTES * 2), found, score

    def matching(self, frame: Frame, search: TextMatch) -> Frame:
        """Rows whose variable a text search finds."""
        variable = search.column.variable
        hits, found, _ = self.hits(frame.tables[variable], search)
        return frame.of(frame.data.join(hits, F.col(frame.name(variable)) == F.col(found), "left_semi"))

    def measured(self, operator: Operator, make: Callable[[], Frame]) -> Frame:
        """The rows of an operator of a pattern, made at once where operators are measured. Pairs are never made: what
        filters them is above.
        """
        if self.watch is None or isinstance(operator, Cross | OuterRows):
            return make()

        def made() -> Frame:
            rows = make()
            return rows.of(kept(rows.data))

        return self.watch.measured(operator, made, lambda rows: rows.data.count())

    def nothing(self, schema: StructType) -> DataFrame:
        """No rows."""
        return self.spark.range(0).select(*(F.lit(None).cast(f.dataType).alias(f.name) for f in schema.fields))

    def _rows(self, scan: _Wanted) -> DataFrame:
        table = self.pinned.get(scan.key)
        if table is None:
            return self.nothing(scan.schema)
        stored = self._names(scan.key, table)
        text_key = Table(scan.entity, None).text_key
        pushed = Pushed.of(ask(predicate, stored, text_key) for predicate in scan.comparisons)
        lookup = is_lookup(scan.entity, scan.comparisons)
        groups = (None,) if lookup else self._groups(table)
        if pushed.where == NO_ROW or not groups:
            return self.nothing(scan.schema)
        rows = 1 if lookup else self.stored[scan.key]
        task = ScanTask(
            table, scan.entity, stored, scan.columns, pushed, scan.distances, scan.best, groups, scan.schema
        )
        return self.run(task, len(groups), rows * COLUMN_BYTES * len(scan.schema))

    def _groups(self, table: PinnedTable) -> tuple[tuple[int, ...] | None, ...]:
        return tuple(group_fragments(fragment_sizes(table), self.slots))

    def _names(self, key: TableKey, table: PinnedTable) -> frozenset[str]:
        if key not in self._columns:
            self._columns[key] = frozenset(column_names(table))
        return self._columns[key]


def _schema(fields: Iterable[tuple[str, DataType]]) -> StructType:
    return StructType([StructField(name, of) for name, of in fields])


def _type(entity: EntityType, column: str) -> PropType:
    """The type of a column; ids and ends are texts."""
    found = entity.property(column)
    return PropType(Scalar.STRING) if found is None else found.type
