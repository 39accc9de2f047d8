"""How stored rows that satisfy predicates are found: by an index, over columns in memory, or by a scan.

An index is quick for few rows and slow for many (Lance makes a list of every row that an index finds), so it is asked
only for values that a key has once, or of which a sample of the column shows few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_omnigraph.engine.columns import Columns
from spark_omnigraph.engine.compare import compare
from spark_omnigraph.engine.pushdown import Asked, Pushed, ask
from spark_omnigraph.engine.table import Table
from spark_omnigraph.lang.gq.plan import IDENTITY, Column, Comparator, Comparison, Constant, Predicate
from spark_omnigraph.predicates.sql import NO_ROW
from spark_omnigraph.storage.tables.reader import TableReader

_INDEXED = frozenset(
    {
        Comparator.EQUAL,
        Comparator.LESS,
        Comparator.LESS_OR_EQUAL,
        Comparator.GREATER,
        Comparator.GREATER_OR_EQUAL,
        Comparator.HAS_ITEM,
        Comparator.STARTS_WITH,
    }
)
_SCALAR_INDEXES = frozenset({"BTREE", "BITMAP"})


@dataclass(frozen=True, slots=True)
class AccessPath:
    """How rows are found: what Lance is asked, whether by its indexes, or whether columns are looked at in memory."""

    pushed: Pushed
    by_index: bool
    in_memory: bool


def access_path(table: Table, predicates: Sequence[Predicate]) -> AccessPath:
    """The path that costs least."""
    pushed, by_index = split(table, predicates)
    return AccessPath(pushed, by_index, not by_index and in_memory(table, predicates))


def split(table: Table, predicates: Sequence[Predicate]) -> tuple[Pushed, bool]:
    """What to ask Lance of a table, and whether by its indexes. The rest is asked of the rows that come back."""
    asked = [ask(predicate, table.names, table.text_key) for predicate in predicates]
    reader = table.reader
    chosen = [a for a in asked if a.where == NO_ROW or (reader is not None and _is_selective(table, reader, a))]
    if not chosen:
        return Pushed.of(asked), False
    found = Pushed.of(chosen)
    others = tuple(a.predicate for a in asked if a not in chosen)
    return Pushed(found.where, (*found.rest, *others)), True


def in_memory(table: Table, predicates: Sequence[Predicate]) -> bool:
    """Whether all columns of these comparisons are few enough bytes to be kept in memory."""
    names = {column.name for p in predicates if isinstance(p, Comparison) for column in _columns(p)}
    return table.kept is not None and table.kept.fits(names & table.names)


def _columns(comparison: Comparison) -> list[Column]:
    return [side for side in (comparison.left, comparison.right) if isinstance(side, Column)]


def _is_selective(table: Table, reader: TableReader, asked: Asked) -> bool:
    """Whether an index has few rows for a predicate."""
    predicate = asked.predicate
    if asked.where is None or not isinstance(predicate, Comparison) or predicate.comparator not in _INDEXED:
        return False
    [column] = _columns(predicate)
    name = IDENTITY if column.name == table.text_key else column.name
    if column.type.is_list or not _has_index(reader, name):
        return False
    share = table.costs.index_share
    if name == IDENTITY and _keys(predicate) * share <= max(reader.rows, share):
        return True
    return reader.rows > table.costs.key_rows and _expected(Columns(reader, table.costs), predicate, name) * share <= 1


def _keys(predicate: Comparison) -> int:
    """How many values of a column satisfy an equality; more than any table has for other comparisons."""
    if predicate.comparator is Comparator.EQUAL:
        return 1
    left = predicate.left
    if predicate.comparator is Comparator.HAS_ITEM and isinstance(left, Constant) and isinstance(left.value, tuple):
        return len(left.value)
    return 1 << 62


def _has_index(reader: TableReader, name: str) -> bool:
    return any(index.columns == (name,) and index.kind.upper() in _SCALAR_INDEXES for index in reader.indexes)


def _expected(columns: Columns, predicate: Comparison, name: str) -> float:
    """The share of rows that satisfy a comparison, by a sample."""
    values: pa.Array = columns.sample(name)
    return float(np.mean(compare(predicate, len(values), lambda _: values)))
