"""Rows of one table that satisfy predicates: what Lance can decide first, the rest in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from spark_omnigraph.engine.access_path import access_path
from spark_omnigraph.engine.compare import Mask, compare
from spark_omnigraph.engine.search import matching, text_mask
from spark_omnigraph.engine.table import Table
from spark_omnigraph.lang.gq.plan import IDENTITY, Column, Comparator, Comparison, Constant, Predicate, TextMatch
from spark_omnigraph.predicates.sql import NO_ROW
from spark_omnigraph.storage.tables.reader import Positions


def select(table: Table, predicates: Iterable[Predicate]) -> Positions:
    """Positions of the rows that satisfy every predicate, ascending."""
    wanted = tuple(predicates)
    reader = table.reader
    if reader is None:
        return table.every()
    found = _by_key(table, wanted)
    if found is not None:
        return found
    path = access_path(table, wanted)
    if path.pushed.where == NO_ROW:
        return np.empty(0, dtype=np.int64)
    if not path.in_memory:
        found = table.every() if path.pushed.where is None else reader.find(path.pushed.where, path.by_index)
        return _keep(table, found, path.pushed.rest)
    comparisons = [p for p in wanted if isinstance(p, Comparison)]
    searches = [p for p in wanted if isinstance(p, TextMatch)]
    # Of many rows few match a search.
    found = matching(table, searches.pop(0)) if searches else table.every()
    for comparison in comparisons:
        found = _keep(table, found, [comparison])
    return _keep(table, found, searches)


def _keep(table: Table, positions: Positions, predicates: Sequence[Predicate]) -> Positions:
    return positions[satisfied(table, positions, predicates)] if predicates else positions


def known_ids(table: Table, predicates: Iterable[Predicate], count: int) -> Sequence[str] | None:
    """The ids of the rows that satisfy predicates, where one of these names the only id there can be."""
    for predicate in predicates:
        key = _key(table, predicate)
        if key is not None:
            return [key] * count
    return None


def _by_key(table: Table, predicates: Sequence[Predicate]) -> Positions | None:
    """What `select` gives, where a predicate names the only id there can be and the ids have an index in memory."""
    for number, predicate in enumerate(predicates):
        key = _key(table, predicate)
        if key is not None and table.kept is not None:
            known = table.kept.find(IDENTITY, [key])
            others = (*predicates[:number], *predicates[number + 1 :])
            return None if known is None else _keep(table, known[1], others)
    return None


def _key(table: Table, predicate: Predicate) -> str | None:
    """The only id that satisfies a predicate."""
    if not isinstance(predicate, Comparison) or predicate.comparator is not Comparator.EQUAL:
        return None
    sides = predicate.left, predicate.right
    names = [side.name for side in sides if isinstance(side, Column)]
    values = [side.value for side in sides if isinstance(side, Constant) and isinstance(side.value, str)]
    return values[0] if values and names and names[0] in (IDENTITY, table.text_key) else None


def satisfied(table: Table, positions: Positions, predicates: Iterable[Predicate]) -> Mask:
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
