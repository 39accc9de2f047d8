"""Rank: rows by the score of a search, best first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.engine.access_path import access_path
from spark_omnigraph.engine.bindings import Bindings, scanned
from spark_omnigraph.engine.order import SortColumn, ordered
from spark_omnigraph.engine.search import distances, hits_of, query_vector, text_scores
from spark_omnigraph.engine.select import satisfied, select
from spark_omnigraph.engine.source import EngineSource
from spark_omnigraph.engine.table import Table
from spark_omnigraph.lang.gq.plan import (
    IDENTITY,
    Bm25,
    Fuse,
    Nearest,
    Predicate,
    Rank,
    Ranking,
    Scan,
    TextMatch,
)
from spark_omnigraph.lang.gq.search_values import fusion_k, text_of
from spark_omnigraph.storage.tables.reader import Positions, TableReader
from spark_omnigraph.storage.tables.search import Restricted, Scores, best_text_rows, nearest_rows

_DOUBT = 1e-4
"""A part of a distance that single precision may be off by."""


def rank(operator: Rank, rows: Bindings, ties: list[SortColumn]) -> Bindings:
    """Rows with a score, best first, equal ones by `ties`; the first `limit` of them."""
    if isinstance(operator.by, Fuse):
        chosen, fused = _fused(operator.by, operator.limit, rows, ties)
        return rows.take(chosen).with_scores(operator.by, fused)
    return rows.take(_best_first(operator.by, scores(operator.by, rows), ties, operator.limit))


def scores(by: Ranking | TextMatch, rows: Bindings) -> Scores:
    """A score a row, NaN where there is none. A fusion that the rows were not ranked by ranks these rows."""
    if by in rows.scored:
        return rows.scored[by]
    if isinstance(by, Fuse):
        return _fusion_scores(by, rows)
    found = rows.variables[by.column.variable]
    entities = found.entities
    if isinstance(by, Nearest):
        query = query_vector(by.column, by.query)
        if query is None:
            return np.full(rows.count, np.nan)
        return distances(entities.column(by.column.name), query)[found.index]
    return text_scores(entities.table, by, entities.positions)[found.index]


def _fusion_scores(fuse: Fuse, rows: Bindings) -> Scores:
    chosen, fused = _fused(fuse, None, rows, by_identity(rows))
    of_row = rows.variables[fuse.primary.column.variable].positions()
    score = dict(zip(of_row[chosen].tolist(), fused.tolist(), strict=True))
    return np.array([score.get(node, np.nan) for node in of_row.tolist()], dtype=np.float64)


def _best_first(by: Nearest | Bm25, found: Scores, ties: list[SortColumn], limit: int | None) -> np.ndarray:
    """Numbers of the rows that have a score, in order, the first `limit` of them."""
    scored = np.flatnonzero(~np.isnan(found))
    best = SortColumn.of(pa.array(found[scored]), isinstance(by, Bm25))
    rest = [SortColumn(_among(key, scored), key.descending) for key in ties]
    return scored[ordered([best, *rest], len(scored), limit)]


def _among(key: SortColumn, chosen: np.ndarray) -> Callable[[Positions | None], pa.Array]:
    return lambda at: key.values(chosen if at is None else chosen[at])


def _fused(fuse: Fuse, limit: int | None, rows: Bindings, ties: list[SortColumn]) -> tuple[np.ndarray, Scores]:
    """The rows of a fusion, best first, and their scores: one row for each id of the primary arm's variable."""
    k = fusion_k(fuse)
    variable = fuse.primary.column.variable
    of_row = rows.variables[variable].positions()
    first: dict[int, int] = {}
    score: dict[int, float] = {}
    for arm in (fuse.primary, fuse.secondary):
        order = _best_first(arm, scores(arm, rows), ties, limit if isinstance(arm, Nearest) else None)
        ids, places = np.unique(of_row[order], return_index=True)
        for place, at in enumerate(np.argsort(places)):
            node = int(ids[at])
            first.setdefault(node, int(order[places[at]]))
            score[node] = score.get(node, 0.0) + 1.0 / (k + place + 1)
    # A dictionary keeps the order in which the arms listed the ids, and the sort is stable.
    best = sorted(score, key=lambda node: -score[node])[:limit]
    return np.array([first[node] for node in best], dtype=np.int64), np.array([score[node] for node in best])


def ranked_scan(operator: Rank, source: EngineSource) -> Bindings | None:
    """Candidates for the best rows of a large table: what its filters leave where that is little, otherwise found by
    Lance. None when this is no ranking of one scan, or when they cannot be proven to hold the wanted rows.
    """
    by, scan, limit = operator.by, operator.input, operator.limit
    if isinstance(by, Fuse) or not isinstance(scan, Scan) or not limit:
        return None
    table = source.table(TableKey.node(scan.node_type))
    reader = table.reader
    if reader is None or reader.rows < source.costs.scored_rows:
        return None
    chosen = access_path(table, scan.predicates)
    if isinstance(by, Nearest) and scan.predicates and (chosen.by_index or chosen.in_memory):
        positions = select(table, scan.predicates)
        if len(positions) * source.costs.many_share <= reader.rows:
            return scanned(scan.variable, table, positions)
    pushed = chosen.pushed
    candidates = _Candidates(scan.variable, table, reader, pushed.where, chosen.by_index, limit)
    told = not pushed.rest and by.column.name in table.names
    if isinstance(by, Nearest):
        return candidates.nearest(by) if told else None
    found = candidates.matching(by) if told else None
    return found if found is not None else candidates.all_matching(by, scan.predicates)


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Rows of one table among which the first `limit` are wanted."""

    variable: str
    table: Table
    reader: TableReader
    where: str | None
    by_index: bool
    limit: int

    def nearest(self, by: Nearest) -> Bindings | None:
        query = query_vector(by.column, by.query)
        if query is None:
            return None
        positions, bound = nearest_rows(
            self.reader, by.column.name, query, self.limit + self.table.costs.spare, self.restricted
        )
        rows = scanned(self.variable, self.table, np.sort(positions))
        if np.isinf(bound):
            return rows
        exact = np.sort(scores(by, rows))
        # Lance adds in single precision; a wanted row may only be missing when it lies as far away as the last one.
        return rows if exact[self.limit - 1] < bound * (1 - _DOUBT) else None

    def matching(self, by: Bm25) -> Bindings | None:
        text = text_of(by.query)
        if text is None:
            return None
        wanted = self.limit + self.table.costs.spare_texts
        found = best_text_rows(self.reader, by.column.name, text, wanted, self.restricted)
        if found is None:
            return None
        best = np.sort(found.scores)[::-1]
        if len(best) == wanted and best[self.limit - 1] <= best[-1]:
            return None
        return scanned(self.variable, self.table, found.positions).with_scores(by, found.scores)

    def all_matching(self, by: Bm25, predicates: Sequence[Predicate]) -> Bindings:
        """Every row that the search finds and that satisfies the predicates."""
        found = hits_of(self.table, by)
        rows = scanned(self.variable, self.table, found.positions).with_scores(by, found.scores)
        return rows.keep(satisfied(self.table, found.positions, predicates))

    @property
    def restricted(self) -> Restricted:
        return Restricted(self.where, self.by_index)


def by_identity(rows: Bindings) -> list[SortColumn]:
    """The ids of all variables, in order of their names."""
    return [column_key(rows, name, IDENTITY) for name in sorted(rows.variables)]


def column_key(rows: Bindings, variable: str, name: str, descending: bool = False) -> SortColumn:
    """A sort key that is a column, read for the rows that it is asked for."""
    return SortColumn(lambda at: (rows if at is None else rows.take(at).narrowed()).column(variable, name), descending)
