"""The one loop in which a write is tried again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from typing import TypeVar

from spark_omnigraph.commit.contract import read_catalog
from spark_omnigraph.commit.owners import await_turn
from spark_omnigraph.errors import ConflictError, ExpectedVersionMismatch, StorageError, VersionExpiredError
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.scan import refuse_lost

ATTEMPTS = 5
"""Times that a write is tried while others keep winning."""

_NO_COLUMN = re.compile("No field named|Column \\S+ not found")
"""What Lance says of a column that is not there."""

T = TypeVar("T")


def in_attempts(
    store: GraphStore,
    branch: Branch,
    attempt: Callable[[], T],
    again: Callable[[str], Set[str] | None],
    *,
    most: int | None = None,
    lost: type[ConflictError] = ExpectedVersionMismatch,
) -> T:
    """What the first attempt returns that no other writer gets in the way of. Each plans anew, on what is visible then.

    `again` is asked with the key of the table that moved, empty where none is named: for the tables whose writers are
    waited for first, or None when the loss is the caller's, as what the write means depends on what has changed. Raises
    what the last attempt was `lost` to, and at once whatever else an attempt raises. What an attempt was planned on may
    be removed meanwhile, as by a change of the schema that drops data: that is a loss once, and then an error. Whatever
    failed for a column that a table of the branch has lost is a DamagedError that names both.
    """
    left, expired = ATTEMPTS if most is None else most, False
    while True:
        left -= 1
        try:
            with lost_columns_named(store, branch):
                return attempt()
        except lost as conflict:
            moved = conflict.table_key if isinstance(conflict, ExpectedVersionMismatch) else ""
            tables = again(moved) if left else None
            if tables is None:
                raise
        except VersionExpiredError:
            moved, tables = "", again("") if left and not expired else None
            if tables is None:
                raise
            expired = True
        await_turn(store, branch, frozenset({*tables, moved}))


@contextmanager
def lost_columns_named(store: GraphStore, branch: Branch) -> Iterator[None]:
    """Says of what fails for a column that is not there which table of the branch has lost it: DamagedError."""
    try:
        yield
    except (KeyError, StorageError) as error:
        if isinstance(error, KeyError) or _NO_COLUMN.search(str(error)):
            _refuse_lost_columns(store, branch)
        raise


def _refuse_lost_columns(store: GraphStore, branch: Branch) -> None:
    """DamagedError for a table of a branch that lacks a column of its type."""
    snapshot = store.snapshot(branch)
    for entity in read_catalog(store).tables():
        entry = snapshot.entries.get(entity.table_key)
        if entry is not None:
            refuse_lost(entity.table_key, entry.version, entity.columns, store.columns(entry))
