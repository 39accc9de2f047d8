"""Tables of Delta that follow a graph, written without a JVM: whole, or by the rows that changed.

Each commit has the version of the graph that the table shows afterwards, as the transaction of an application: who
writes again sees it, and two who write at once conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spark_omnigraph.errors import ConflictError
from spark_omnigraph.storage.delta_append import refuse_masked, writing
from spark_omnigraph.storage.uri import DELTA, locate, plain

if TYPE_CHECKING:
    from deltalake import DeltaTable

OPERATION = "_change"
"""Column of changed rows that says what became of each: `u` for what stands, `d` for what went."""


@dataclass(frozen=True, slots=True)
class Following:
    """A Delta table that shows one type of a graph. `application` is the name of what it follows, `facts` stand in each
    of its commits.
    """

    uri: str
    application: str
    facts: Mapping[str, str]
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return f"{DELTA}{self._place}"

    @property
    def _place(self) -> str:
        return plain(self.uri)

    @property
    def _given(self) -> dict[str, str] | None:
        found = locate(self._place, self.options).options if self._place.startswith("s3://") else {}
        return dict(found) or None

    def shown(self) -> tuple[int | None, pa.Schema | None]:
        """The version of the graph that the table shows, and its columns; None for what has never followed it."""
        with writing(self.name) as package:
            if not package.DeltaTable.is_deltatable(self._place, storage_options=self._given):
                return None, None
            table: DeltaTable = package.DeltaTable(self._place, storage_options=self._given)
            return table.transaction_version(self.application), pa.schema(table.schema().to_arrow())

    def replace(self, schema: pa.Schema, rows: Iterator[pa.RecordBatch], version: int) -> None:
        """All rows anew. ConflictError when somebody writes the table at the same moment."""
        with self._committing() as package:
            there = package.DeltaTable.is_deltatable(self._place, storage_options=self._given)
            target: Any = package.DeltaTable(self._place, storage_options=self._given) if there else self._place
            if there:
                refuse_masked(self.name, target)
            package.write_deltalake(
                target,
                pa.RecordBatchReader.from_batches(schema, rows),
                mode="overwrite" if there else "error",
                schema_mode="overwrite" if there else None,
                storage_options=None if there else self._given,
                commit_properties=self._marked(package, version),
            )

    def merge(self, schema: pa.Schema, rows: Iterator[pa.RecordBatch], version: int) -> None:
        """Changed rows by id, each once: those of `schema` and `OPERATION`. ConflictError as `replace`."""
        with self._committing() as package:
            table: DeltaTable = package.DeltaTable(self._place, storage_options=self._given)
            refuse_masked(self.name, table)
            columns = {name: f"s.`{name}`" for name in schema.names if name != OPERATION}
            (
                table.merge(
                    pa.RecordBatchReader.from_batches(schema, rows),
                    "t.id = s.id",
                    source_alias="s",
                    target_alias="t",
                    commit_properties=self._marked(package, version),
                )
                .when_matched_delete(f"s.{OPERATION} = 'd'")
                .when_matched_update(columns, f"s.{OPERATION} = 'u'")
                .when_not_matched_insert(columns, f"s.{OPERATION} = 'u'")
                .execute()
            )

    def note(self, version: int) -> None:
        """That the table shows a later version, of which no row differs."""
        with self._committing() as package:
            table: DeltaTable = package.DeltaTable(self._place, storage_options=self._given)
            marked = self._marked(package, version)
            table.create_write_transaction([], "append", table.schema(), commit_properties=marked)

    def _marked(self, package: Any, version: int) -> Any:
        return package.CommitProperties(
            custom_metadata={**self.facts, "omnigraph.manifest_version": str(version)},
            app_transactions=[package.Transaction(self.application, version)],
            max_commit_retries=0,
        )

    @contextmanager
    def _committing(self) -> Iterator[Any]:
        failed = import_module("deltalake.exceptions").CommitFailedError
        with writing(self.name) as package:
            try:
                yield package
            except failed as error:
                raise ConflictError(
                    f"'{self.name}' was written by somebody else meanwhile, and shows nothing of this: run it again"
                ) from error
