"""Rows of one table that satisfy predicates: what Lance can decide first, the rest in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from spark_omnigraph.engine import access
from spark_omnigraph.engine.compare import compare
from spark_omnigraph.engine.pushdown import NONE
from spark_omnigraph.engine.search import matching, text_mask
from spark_omnigraph.engine.source import EngineSource
from spark_omnigraph.engine.table import Table
from spark_omnigraph.lang.gq.plan import IDENTITY, Column, Comparator, Comparison, Constant, Predicate, TextMatch
from spark_omnigraph.storage.table_reader import Positions


def select(table: Table, predicates: Iterable[Predicate]) -> Positions:
    """Positions of the rows that satisfy every predicate, ascending."""
    wanted = tuple(predicates)
    found = _stored(table, wanted)
    late = table.pending_positions()
    return np.concatenate([found, late[satisfied(table, late, wanted)]]) if len(late) else found


def _stored(table: Table, wanted: tuple[Predicate, ...]) -> Positions:
    if table.reader is None:
        return np.empty(0, dtype=np.int64)
    way = access.way(table, wanted)
    if way.pushed.where == NONE:
        return np.empty(0, dtype=np.int64)
    if not way.in_memory:
        found = table.find(way.pushed.where, way.by_index)
        kept: Positions = found[satisfied(table, found, way.pushed.rest)]
        return kept
    comparisons = [p for p in wanted if isinstance(p, Comparison)]
    searches = [p for p in wanted if isinstance(p, TextMatch)]
    # Of many rows few match a search.
    found = matching(table, searches.pop(0)) if searches else np.arange(table.stored, dtype=np.int64)
    for comparison in comparisons:
        found = found[satisfied(table, found, [comparison])]
    return table.shown(found[satisfied(table, found, searches)])


def known_ids(table: Table, predicates: Iterable[Predicate], count: int) -> pa.Array | None:
    """The ids of the rows that satisfy predicates, where one of these names the only id there can be."""
    for predicate in predicates:
        if not isinstance(predicate, Comparison) or predicate.comparator is not Comparator.EQUAL:
            continue
        sides = predicate.left, predicate.right
        names = [side.name for side in sides if isinstance(side, Column)]
        values = [side.value for side in sides if isinstance(side, Constant) and isinstance(side.value, str)]
        if values and names and names[0] in (IDENTITY, table.text_key):
            return pa.array(values * count, pa.string())
    return None


def select_rows(
    source: EngineSource, table_key: str, predicates: Iterable[Predicate], columns: Iterable[str] | None = None
) -> pa.Table:
    """Rows of `node:T` or `edge:E` that satisfy every predicate, pending ones last; all columns by default."""
    table = source.table(table_key)
    entity = source.entity(table_key)
    names = list(columns) if columns is not None else ["id", *_ends(table_key), *(p.name for p in entity.properties)]
    positions = select(table, predicates)
    return pa.Table.from_arrays(table.columns(positions, names), names=names)


def _ends(table_key: str) -> list[str]:
    return ["src", "dst"] if table_key.startswith("edge:") else []


def satisfied(table: Table, positions: Positions, predicates: Iterable[Predicate]) -> np.ndarray:
    """Which of these rows satisfy every predicate."""
    mask = np.ones(len(positions), dtype=bool)
    read: dict[str, pa.Array] = {}

    def values(column: Column) -> pa.Array:
        if column.name not in read:
            [read[column.name]] = table.columns(positions, [column.name])
        return read[column.name]

    for predicate in predicates:
        if not len(positions):
            break
        mask &= holds(predicate, len(positions), values, lambda _: (table, positions))
    return mask


def holds(
    predicate: Predicate,
    count: int,
    values: Callable[[Column], pa.Array],
    place: Callable[[Column], tuple[Table, Positions]],
) -> np.ndarray:
    """For which of `count` rows a predicate is true; `place` says which rows of which table a column's values are."""
    if isinstance(predicate, Comparison):
        return compare(predicate, count, values)
    table, positions = place(predicate.column)
    return text_mask(table, predicate, positions)
