"""Tables of Delta that follow a graph, written without a JVM: whole, or by the rows that changed.

Each commit says which state the table shows afterwards (`delta_record`): who writes again sees it, and two who write at
once conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.errors import BadRequestError, ConflictError
from spark_omnigraph.storage.delta_append import refuse_unwritable, writing
from spark_omnigraph.storage.delta_record import APPLICATION, ShownState, TableCommit, TableState, shown
from spark_omnigraph.storage.input.delta import wrapped_column
from spark_omnigraph.storage.uri import DELTA, locate, plain

if TYPE_CHECKING:
    from deltalake import DeltaTable

OPERATION = "op?"
"""Column of changed rows that says what became of each: `u` for what stands, `d` for what went. No property has such a
name."""
RECENT = 100
"""Commits of a table that are looked at first."""
_FILE_BYTES = 16 << 20
"""About how large files become: a merge writes each anew that has a changed row."""
_HELD_PARTS = 4
"""So many parts of changed rows are held in memory: then bounds of their ids say which files a merge need not read."""


@dataclass(frozen=True, slots=True)
class Followed:
    """Which table shows what: its place, the name of what it follows, and facts that stand in each of its commits."""

    uri: str
    follows: str
    facts: Mapping[str, str]
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def state(self, version: int, number: int) -> ShownState:
        """What a commit tells after which the table shows a version of the graph."""
        return ShownState(self.follows, version, number, self.facts)

    def told(self, found: TableState | None) -> int | None:
        """The version that a table shows of this, by what was found out about it."""
        state = None if found is None else found.state
        return state.version if state is not None and state.follows == self.follows else None


class Part(Protocol):
    """Rows that one task reads. Picklable."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, with the columns of the table, of changed ones with `OPERATION` too."""


@dataclass(slots=True)
class RowCounts:
    """Rows that stand of those that were written, and rows that went."""

    rows: int = 0
    deleted: int = 0

    def counted(self, parts: Sequence[Part]) -> Iterator[pa.RecordBatch]:
        """The rows of the parts, one after the other, which are counted on their way."""
        for batch in (batch for part in parts for batch in part.batches()):
            gone = 0
            if OPERATION in batch.schema.names:
                gone = pc.sum(pc.equal(batch.column(OPERATION), "d")).as_py() or 0
            self.rows, self.deleted = self.rows + batch.num_rows - gone, self.deleted + gone
            yield batch


class FollowingTable(Protocol):
    """A Delta table that shows one type of a graph. What is written stands on what `look` has seen: ConflictError when
    somebody wrote to the table since.
    """

    def look(self) -> tuple[int | None, pa.Schema | None]:
        """The version of the graph that the table shows, None for what does not follow it; and its columns.
        BadRequestError for a table that cannot be written.
        """

    def can_merge(self) -> bool:
        """Whether rows that stay can be read without loss, which a merge writes anew beside those that change."""

    def replace(self, schema: pa.Schema, parts: Sequence[Part], version: int) -> RowCounts:
        """All rows anew."""

    def merge(self, schema: pa.Schema, parts: Sequence[Part], version: int) -> RowCounts:
        """Changed rows by id, each once: those of `schema`, which has `OPERATION`."""

    def note(self, version: int) -> None:
        """That the table shows a later version, of which no row differs."""


class LocalTable:
    """A `FollowingTable` that `deltalake` writes from this process."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed
        self._place = plain(followed.uri)
        self._name = f"{DELTA}{self._place}"
        found = locate(self._place, followed.options).options if self._place.startswith("s3://") else {}
        self._options = dict(found) or None
        self._table: DeltaTable | None = None
        self._number = 0

    def look(self) -> tuple[int | None, pa.Schema | None]:
        with writing(self._name) as package:
            if not package.DeltaTable.is_deltatable(self._place, storage_options=self._options):
                return None, None
            self._table = table = package.DeltaTable(self._place, storage_options=self._options)
            refuse_unwritable(self._name, table)
            found = shown(_history(table, RECENT)) or shown(_history(table, None))
            self._number = table.version() + 1 if found is None else found.next_number
            return self._followed.told(found), pa.schema(table.schema().to_arrow())

    def can_merge(self) -> bool:
        return self._table is not None and wrapped_column(self._table, self._place, self._followed.options) is None

    def replace(self, schema: pa.Schema, parts: Sequence[Part], version: int) -> RowCounts:
        counts, there = RowCounts(), self._table is not None
        parted = self._table.metadata().partition_columns if self._table is not None else []
        missing = sorted(set(parted) - set(schema.names))
        if missing:
            raise BadRequestError(
                f"'{self._name}' is partitioned by '{missing[0]}', which the type does not have: name another place"
            )
        with self._committing() as package:
            package.write_deltalake(
                self._table if there else self._place,
                pa.RecordBatchReader.from_batches(schema, counts.counted(parts)),
                mode="overwrite" if there else "error",
                schema_mode="overwrite" if there else None,
                storage_options=None if there else self._options,
                target_file_size=_FILE_BYTES,
                commit_properties=self._marked(package, version),
            )
        return counts

    def merge(self, schema: pa.Schema, parts: Sequence[Part], version: int) -> RowCounts:
        counts = RowCounts()
        with self._committing() as package:
            assert self._table is not None
            columns = {f"`{name}`": f"s.`{name}`" for name in schema.names if name != OPERATION}
            (
                self._table.merge(
                    pa.RecordBatchReader.from_batches(schema, counts.counted(parts)),
                    "t.id = s.id",
                    source_alias="s",
                    target_alias="t",
                    streamed_exec=len(parts) > _HELD_PARTS,
                    commit_properties=self._marked(package, version),
                )
                .when_matched_delete(f"s.`{OPERATION}` = 'd'")
                .when_matched_update(columns, f"s.`{OPERATION}` = 'u'")
                .when_not_matched_insert(columns, f"s.`{OPERATION}` = 'u'")
                .execute()
            )
        return counts

    def note(self, version: int) -> None:
        with self._committing() as package:
            assert self._table is not None
            marked = self._marked(package, version)
            self._table.create_write_transaction([], "append", self._table.schema(), commit_properties=marked)

    def _marked(self, package: Any, version: int) -> Any:
        state = self._followed.state(version, self._number)
        return package.CommitProperties(
            custom_metadata={**state.to_dict(), "userMetadata": state.encoded()},
            app_transactions=[package.Transaction(APPLICATION, state.number)],
            max_commit_retries=0,
        )

    @contextmanager
    def _committing(self) -> Iterator[Any]:
        errors = import_module("deltalake.exceptions")
        with writing(self._name) as package:
            try:
                yield package
            except errors.CommitFailedError as error:
                raise written_meanwhile(self._name) from error
            except errors.DeltaError as error:
                if self._table is None and package.DeltaTable.is_deltatable(self._place, storage_options=self._options):
                    raise written_meanwhile(self._name) from error
                raise


def written_meanwhile(name: str) -> ConflictError:
    """What somebody else's commit makes of an export."""
    return ConflictError(f"'{name}' was written by somebody else meanwhile, and shows nothing of this: run it again")


def _history(table: DeltaTable, limit: int | None) -> Iterator[TableCommit]:
    for each in table.history(limit):
        yield TableCommit(each.get("version", 0), each.get("operation"), each.get("userMetadata"))
