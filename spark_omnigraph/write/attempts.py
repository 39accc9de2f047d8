"""The one loop in which a write is tried again."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TypeVar

from spark_omnigraph.commit.owners import await_turn
from spark_omnigraph.errors import ConflictError, ExpectedVersionMismatch, VersionExpiredError
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.storage.graph_store import GraphStore

ATTEMPTS = 5
"""Times that a write is tried while others keep winning."""

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
    be removed meanwhile, as by a change of the schema that drops data: that is a loss once, and then an error.
    """
    left, expired = ATTEMPTS if most is None else most, False
    while True:
        left -= 1
        try:
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
