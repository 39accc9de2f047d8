"""What a query returns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from spark_omnigraph.answer import Rows, table_grid
from spark_omnigraph.draw.card import Card
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.lang.gq.plan import ResultColumn

_RUN = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class QueryResult(Rows, Displayed):
    """Rows of a read query."""

    name: str
    columns: tuple[ResultColumn, ...]
    table: pa.Table
    branch: str
    manifest_version: int

    @property
    def row_count(self) -> int:
        return int(self.table.num_rows)

    @property
    def arrow_schema(self) -> pa.Schema:
        return self.table.schema

    def to_arrow(self) -> pa.Table:
        """The rows with the types in which they are stored, a DateTime as `timestamp[ms, UTC]`."""
        return self.table

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, some thousand at a time."""
        yield from self.table.to_batches(_RUN)

    def to_json(self) -> str:
        """`query_name`, `target`, `row_count`, `columns` and `rows` as one JSON object."""
        body = {
            "query_name": self.name,
            "target": {"branch": self.branch, "manifest_version": self.manifest_version},
            "row_count": self.row_count,
            "columns": self.column_names,
            "rows": self.to_pylist(),
        }
        return json.dumps(body, ensure_ascii=False)

    def __len__(self) -> int:
        return self.row_count

    def _card(self) -> Card:
        rows = f"{self.row_count:,} row{'' if self.row_count == 1 else 's'}"
        return Card(
            "QueryResult",
            f"{self.name}, {rows} of {', '.join(self.column_names)}",
            {"branch": self.branch, "manifest version": self.manifest_version},
            (table_grid(self.table, self.column_names),),
        )
