"""Scores, and rows by them: distances, text searches, and the fusion of two rankings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.window import Window

from spark_omnigraph.lang.gq.plan import Bm25, Fuse, Nearest, Ranking, TextMatch
from spark_omnigraph.lang.gq.search_values import fusion_k
from spark_omnigraph.spark.query.frame import Frame, kept, renamed
from spark_omnigraph.spark.query.tables import GraphTables

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame


def scored(tables: GraphTables, rows: Frame, by: Ranking | TextMatch) -> tuple[Frame, str]:
    """Rows with a column that has the score of each, null where there is none, and the name of that column."""
    if isinstance(by, TextMatch):
        by = Bm25(by.column, by.query)
    if by in rows.scores:
        return rows, rows.scores[by]
    if isinstance(by, Fuse):
        return _with_fusion(tables, rows, by)
    assert isinstance(by, Bm25)  # distances come with the scans
    variable = by.column.variable
    hits, found, score = tables.hits(rows.tables[variable], by)
    joined = rows.data.join(hits, F.col(rows.name(variable)) == F.col(found), "left").drop(found)
    return replace(rows, data=joined, scores={**rows.scores, by: score}), score


@dataclass(frozen=True, slots=True)
class Ordered:
    """Rows, and by what they are ordered; by nothing where they are in no order."""

    rows: Frame
    order: Sequence[SparkColumn]


def ranked(tables: GraphTables, rows: Frame, by: Ranking, limit: int | None, ties: Sequence[SparkColumn]) -> Ordered:
    """Rows that have a score, best first, equal ones by `ties`; the first `limit` of them."""
    if isinstance(by, Fuse):
        return _fused(tables, rows, by, limit, ties)
    rows, score = scored(tables, rows, by)
    order = [_best(by, score), *ties]
    ordered = rows.data.filter(F.col(score).isNotNull()).orderBy(*order)
    return Ordered(rows.of(ordered if limit is None else ordered.limit(limit)), order)


def _best(by: Nearest | Bm25, score: str) -> SparkColumn:
    return F.col(score).asc() if isinstance(by, Nearest) else F.col(score).desc()


@dataclass(frozen=True, slots=True)
class _Arm:
    """An arm's ranking: a row for each id, its place, and a whole row of those that were ranked."""

    data: DataFrame
    id: str
    place: str
    row: str


def _arm(
    tables: GraphTables, rows: Frame, fuse: Fuse, by: Nearest | Bm25, limit: int | None, ties: Sequence[SparkColumn]
) -> _Arm:
    variable = fuse.primary.column.variable
    best = ranked(tables, rows, by, limit if isinstance(by, Nearest) else None, ties).rows
    score = best.scores[by]
    identity, number, first, place, row = (tables.names.fresh() for _ in range(5))
    numbered = best.data.withColumn(number, F.row_number().over(Window.orderBy(_best(by, score), *ties)))
    numbered = numbered.select(
        F.col(best.name(variable)).alias(identity), number, F.struct(*rows.data.columns).alias(row)
    )
    in_id = Window.partitionBy(identity).orderBy(number)
    firsts = numbered.withColumn(first, F.row_number().over(in_id)).filter(F.col(first) == 1)
    places = firsts.withColumn(place, F.row_number().over(Window.orderBy(number)) - 1)
    return _Arm(places.select(identity, place, row), identity, place, row)


def _fused(tables: GraphTables, rows: Frame, fuse: Fuse, limit: int | None, ties: Sequence[SparkColumn]) -> Ordered:
    """One row for each id of the primary arm's variable: the first of its arm's, else of the other's."""
    k = float(fusion_k(fuse))
    for by in (fuse.primary, fuse.secondary):
        rows, _ = scored(tables, rows, by)
    one = _arm(tables, rows, fuse, fuse.primary, limit, ties)
    two = _arm(tables, rows, fuse, fuse.secondary, limit, ties)
    both = one.data.join(two.data, F.col(one.id) == F.col(two.id), "full")
    score, row = tables.names.fresh(), tables.names.fresh()
    parts = [F.coalesce(F.lit(1.0) / (F.lit(k) + F.col(arm.place) + 1), F.lit(0.0)) for arm in (one, two)]
    both = both.select(
        (parts[0] + parts[1]).alias(score), one.place, two.place, F.coalesce(one.row, two.row).alias(row)
    )
    order = [F.col(score).desc(), F.col(one.place).asc_nulls_last(), F.col(two.place).asc_nulls_last()]
    best = both.orderBy(*order)
    if limit is not None:
        best = best.limit(limit)
    data = best.select(score, one.place, two.place, f"{row}.*")
    return Ordered(replace(rows, data=data, scores={**rows.scores, fuse: score}), order)


def _with_fusion(tables: GraphTables, rows: Frame, fuse: Fuse) -> tuple[Frame, str]:
    """Of rows that a fusion did not rank: what it would give them."""
    variable = fuse.primary.column.variable
    rows = rows.of(kept(rows.data))
    found = _fused(tables, rows, fuse, None, identities(rows)).rows
    identity, score = tables.names.fresh(), tables.names.fresh()
    scores = renamed(found.data, {found.name(variable): identity, found.scores[fuse]: score})
    joined = rows.data.join(scores, F.col(rows.name(variable)) == F.col(identity), "left").drop(identity)
    return replace(rows, data=joined, scores={**rows.scores, fuse: score}), score


def identities(rows: Frame) -> list[SparkColumn]:
    """The ids of all variables, in order of their names: what orders rows in the end."""
    return [F.col(name).asc_nulls_first() for name in rows.ids()]


def all_scored(tables: GraphTables, rows: Frame, searches: Iterable[Ranking | TextMatch]) -> Frame:
    """Rows with the scores of some searches."""
    for search in searches:
        rows, _ = scored(tables, rows, search)
    return rows
