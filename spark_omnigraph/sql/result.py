"""What a statement returns; it runs when its rows are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_omnigraph.answer import Rows, table_grid
from spark_omnigraph.draw.card import GRID_ROWS, Card
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.draw.html import card_html
from spark_omnigraph.errors import QueryEngineError
from spark_omnigraph.limits import Leaving, Limits
from spark_omnigraph.sql.faults import running

if TYPE_CHECKING:
    from datafusion import DataFrame

    from spark_omnigraph.sql.states import States


@dataclass(slots=True)
class _RowsSeen:
    """What is known of the rows since they were read."""

    table: pa.Table | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class SqlResult(Rows, Displayed):
    """Rows of a statement, which runs when they are asked for: `batches`, iteration and streams run it and keep
    nothing, `to_arrow` keeps the rows. `branch` and `manifest_version` say which state names without a schema mean.
    """

    branch: str
    manifest_version: int
    _frame: DataFrame = field(repr=False)
    _states: States = field(repr=False)
    """Beside what it names, the context: DataFusion needs it as long as the frame."""
    _limits: Limits = field(default_factory=Limits, repr=False)
    _seen: _RowsSeen = field(default_factory=_RowsSeen, repr=False)

    def _card(self) -> Card:
        found = "rows" if self.row_count is None else f"{self.row_count:,} row{'' if self.row_count == 1 else 's'}"
        state = {"branch": self.branch, "manifest version": self.manifest_version}
        return Card("SqlResult", f"{found} of {', '.join(self.column_names)}", state)

    def _repr_html_(self) -> str:
        """The first rows; the statement is left when they are there."""
        first: list[pa.RecordBatch] = []
        for batch in self.batches():
            first.append(batch)
            if sum(each.num_rows for each in first) >= GRID_ROWS:
                break
        rows = table_grid(pa.Table.from_batches(first, self.arrow_schema), self.column_names)
        return card_html(replace(self._card(), grids=(rows,)))

    @property
    def row_count(self) -> int | None:
        """Rows that were read when the statement last ran to its end, None before."""
        return self._seen.count

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names and Arrow types of the columns. QueryEngineError for a type that Arrow has not, or has no values of."""
        with running(()):
            schema = self._frame.schema()
        for column in schema:
            if _has_keys_of_null(column.type):
                raise QueryEngineError(f"column '{column.name}' is a map without a type of its keys: cast them")
        return schema

    def to_arrow(self) -> pa.Table:
        """All rows, which are kept. Raises as `batches`."""
        if self._seen.table is None:
            self._seen.table = pa.Table.from_batches(self.batches(), self.arrow_schema)
        return self._seen.table

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, some thousand at a time, as they are found. QueryEngineError when the statement fails, LimitError
        when it takes more than it may, StorageError.
        """
        if self._seen.table is not None:
            yield from self._seen.table.to_batches()
            return
        count, work = 0, Leaving[pa.RecordBatch](self._limits.seconds, is_breakable=True)
        for batch in work.items(self._run):
            count += batch.num_rows
            self._limits.check_rows(count)
            yield batch
        self._seen.count = count

    def _run(self) -> Iterator[pa.RecordBatch]:
        schema = self.arrow_schema
        with running(self._states.faults):
            stream = self._frame.execute_stream()
        while True:
            with running(self._states.faults):
                batch = next(stream, None)
                rows = None if batch is None else _of_schema(batch.to_pyarrow(), schema)
            if rows is None:
                return
            yield rows


def _has_keys_of_null(of: pa.DataType) -> bool:
    """Whether a type has a map whose keys are null: Arrow ends the process when it is given one."""
    if pa.types.is_map(of) and pa.types.is_null(of.key_type):
        return True
    return any(_has_keys_of_null(of.field(at).type) for at in range(of.num_fields))


def _of_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch in the declared types: an optimized plan may find that a column has no nulls."""
    if batch.schema == schema:
        return batch
    return pa.RecordBatch.from_arrays(
        [c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)], schema=schema
    )
