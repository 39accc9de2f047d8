"""What a mutation is going to write, kept in memory until all its statements ran: the last version of each row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import EntityType
from spark_omnigraph.graph.mutate.condition import mask
from spark_omnigraph.graph.mutate.row_maker import Row, as_table
from spark_omnigraph.predicates.condition import Condition
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.storage.tables.staged import TableTarget
from spark_omnigraph.write.staged_table import Rows


class PendingRows:
    """Rows for one table by id; a later version of a row takes the place of an earlier one.

    `given_ids` is set once a row may have the id of a stored one. `inserted` are the ids of rows that statements made,
    `updated` the properties that statements set in other rows.
    """

    def __init__(self, entity: EntityType) -> None:
        self.entity = entity
        self.schema = physical_schema(entity)
        self.given_ids = False
        self.inserted: set[str] = set()
        self.updated: set[str] = set()
        self._fresh: dict[str, Row] = {}
        self._makers: list[tuple[str, pa.Array | pa.ChunkedArray]] = []
        self._rows = self.schema.empty_table()

    def put(self, row: Row, given_id: bool, place: str) -> None:
        """Adds one whole row, which the statement at this place made."""
        row_id = str(row["id"])
        self._fresh.pop(row_id, None)
        self._fresh[row_id] = row
        self.inserted.add(row_id)
        self.given_ids |= given_id
        self._makers.append((place, pa.array([row_id], pa.string())))

    def put_rows(self, rows: pa.Table, changed: Iterable[str], place: str) -> None:
        """Adds rows that are stored, or were added before, in a new version with these properties changed."""
        self._makers.append((place, rows.column("id")))
        self.updated.update(changed)
        self._rows = pa.concat_tables([_without(self.table(), rows.column("id")), rows]).combine_chunks()
        self.given_ids = True

    def table(self) -> pa.Table:
        """All rows, in stored layout."""
        if self._fresh:
            new = as_table(self.entity, self.schema, list(self._fresh.values()))
            self._rows = pa.concat_tables([_without(self._rows, new.column("id")), new]).combine_chunks()
            self._fresh = {}
        return self._rows

    def place_of(self, row: int) -> str:
        """Place of the statement that made a row of `table()` what it is."""
        row_id = self.table().column("id")[row]
        makers: Iterable[str] = (place for place, ids in reversed(self._makers) if pc.index(ids, row_id).as_py() >= 0)
        return next(iter(makers))

    def matching(self, condition: Condition) -> pa.Table:
        """The rows that meet a condition."""
        rows = self.table()
        return rows.filter(mask(condition, rows)) if rows.num_rows else rows

    def hidden(self, rows: pa.Table) -> pa.Table:
        """Stored rows without those of which a newer version is here."""
        return _without(rows, self.table().column("id"))


def _without(rows: pa.Table, ids: pa.ChunkedArray) -> pa.Table:
    if not rows.num_rows or not len(ids):
        return rows
    return rows.filter(pc.invert(pc.is_in(rows.column("id"), value_set=ids.combine_chunks())))


class MutationStaging:
    """Pending rows of all tables of one query, in the order in which tables were first written."""

    def __init__(self) -> None:
        self._tables: dict[str, PendingRows] = {}

    def of(self, entity: EntityType) -> PendingRows:
        """Pending rows of a type, none at first."""
        if entity.table_key not in self._tables:
            self._tables[entity.table_key] = PendingRows(entity)
        return self._tables[entity.table_key]

    def inserted(self, table_key: str) -> set[str]:
        """Ids of rows that statements made so far in a table."""
        pending = self._tables.get(table_key)
        return pending.inserted if pending is not None else set()

    def written(self) -> dict[str, PendingRows]:
        """Tables that have rows to write, in key order."""
        return {key: self._tables[key] for key in sorted(self._tables) if self._tables[key].table().num_rows}


class PendingTable:
    """Pending rows as the checks of a load see them."""

    keeps_ends = False

    def __init__(self, pending: PendingRows, target: TableTarget) -> None:
        self.target = target
        self.given_ids = pending.given_ids
        self.unit = "row of the query"
        self.changed = None if pending.inserted else frozenset(pending.updated)
        self.rows = pending.table()
        self.dropped = np.zeros(self.rows.num_rows, dtype=bool)

    @property
    def table_key(self) -> TableKey:
        return self.target.table_key

    @property
    def input_rank(self) -> Rows:
        return np.arange(self.rows.num_rows, dtype=np.int64)

    def column(self, name: str) -> pa.ChunkedArray:
        return self.rows.column(name)

    def files(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        yield 0, self.rows.select(list(names))

    def load(self, names: Iterable[str]) -> None:
        """Nothing to do: all columns are here."""

    def drop(self, rows: Rows) -> None:
        self.dropped[rows] = True

    def take_back(self, rows: Rows) -> None:
        self.dropped[rows] = False
