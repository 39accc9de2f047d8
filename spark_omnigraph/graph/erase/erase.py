"""Erasing: after it no file of the graph holds a row, nor the edges that touched it.

    delete on every branch ──▶ write anew the files that hold the row, and their indexes ──▶ expire what shows it still
                                                                    ──▶ remove what nothing names ──▶ look for the rest

States of a branch that never showed the row stay. What a tag shows, a consumer has not read, or a merge starts from
cannot expire: it is named, and so are the versions that hold the row still. When those have gone, another run ends the
work. Each step may be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta

import pyarrow as pa

from spark_omnigraph.branch.control import list_branches
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.draw.card import Card, grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import NotFoundError
from spark_omnigraph.graph.delete.by_id import DeleteRequest, delete_ids
from spark_omnigraph.graph.erase.search import HeldVersion, Search
from spark_omnigraph.graph.maintain.cleanup import cleanup
from spark_omnigraph.graph.maintain.expire import Policy
from spark_omnigraph.graph.maintain.keepers import keepers, showing
from spark_omnigraph.graph.maintain.optimize import OptimizeRequest, rewrite_tables
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.facts import CommitOrigin
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.index import Upkeep
from spark_omnigraph.write.attempts import ATTEMPTS, lost_columns_named
from spark_omnigraph.write.indexes import ensure_indices

OUTSIDE = (
    "reports of bad rows (--bad-rows) and of conflicts (--conflicts), and logs of runs with --show-rows",
    "what was exported, copied (copy) or backed up, and input that holds the row",
    "replies of providers that embeddings were kept from (--cache)",
)
"""What a graph knows nothing of, and what may hold the row as well."""


@dataclass(frozen=True, slots=True, repr=False)
class EraseReport(Displayed):
    """What was erased, or would be. `deleted` counts rows by branch and table. `held` are the versions that hold the
    row: before in a dry run, and what is left of them otherwise, because of `blocked_by`. `outside` is to be seen to.
    """

    table: str
    id: str
    deleted: Mapping[str, Mapping[str, int]]
    held: tuple[HeldVersion, ...]
    blocked_by: tuple[str, ...]
    outside: tuple[str, ...]
    done: bool

    def _card(self) -> Card:
        """Without the id, which may be what was to be erased."""
        deleted = [(branch, key, rows) for branch, tables in self.deleted.items() for key, rows in tables.items()]
        rows = sum(count for *_, count in deleted)
        held = ((each.table, each.branch, each.version) for each in self.held)
        how = "done" if self.done else f"not done, {len(self.held):,} versions hold it"
        return Card(
            "EraseReport",
            f"a row of {self.table}, {rows:,} rows on {len(self.deleted):,} branches: {how}",
            grids=without_empty(
                grid("Rows that were or would be deleted", ("branch", "table", "rows"), deleted, len(deleted)),
                grid("Versions that hold the row", ("table", "branch", "version"), held, len(self.held)),
                grid("What keeps them", ("what",), ((each,) for each in self.blocked_by), len(self.blocked_by)),
                grid("To be seen to outside", ("what",), ((each,) for each in self.outside), len(self.outside)),
            ),
        )

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class EraseRequest:
    """Which row; without `confirm` it is only looked for."""

    table: TableKey
    id: str
    confirm: bool = False
    actor: str | None = None
    origin: CommitOrigin = field(default_factory=CommitOrigin)


def erase(store: GraphStore, request: EraseRequest) -> EraseReport:
    """Erases a row on all branches, with its edges; an id that is nowhere is done at once. NotFoundError for a type
    that there is not.
    """
    with lost_columns_named(store, None):
        return _erase(store, request)


def _erase(store: GraphStore, request: EraseRequest) -> EraseReport:
    search = Search.of(store, request.table, request.id)
    held, loose = search.held(), search.loose()
    if not request.confirm or not (held or loose):
        blocked = keepers(store, held.keys()) if held else []
        return _report(store, request, search.rows(), held.values(), blocked)
    deleted: dict[str, Mapping[str, int]] = {}
    stale: list[str] = []
    for branch in sorted(showing(store, held.keys()), key=display):
        try:
            deleted |= _erase_shown(store, request, search, branch, stale)
        except NotFoundError:
            if display(branch) in list_branches(store):
                raise
    going = showing(store, search.held().keys())
    cleanup(store, Policy(1, timedelta(0), force=True, among=going), confirm=True)
    reach(CrashPoint.ERASE_EXPIRED)
    held, loose = search.held(), search.loose()
    shown = [f"branch {name}: somebody wrote the row again; run it again" for name in search.rows()]
    kept = keepers(store, held.keys()) if held else []
    return _report(store, request, deleted, held.values(), [*shown, *stale, *kept, *loose])


def _erase_shown(
    store: GraphStore, request: EraseRequest, search: Search, branch: Branch, stale: list[str]
) -> dict[str, Mapping[str, int]]:
    """Deletes the row on a branch; files that hold it are written without it, and every index of their tables is built
    again; `stale` gets those that could not be. What was deleted, by branch and table.
    """
    ids = {str(request.table): pa.array([request.id])}
    report = delete_ids(store, DeleteRequest(ids, branch, request.actor, origin=request.origin))
    reach(CrashPoint.ERASE_DELETED)
    entries = store.snapshot(branch).entries
    keys = [key for key in search.present if key in entries]
    masked = (key for key in keys if search.present[key].is_in_rows(store.open_table(entries[TableKey(key)])))
    tables = frozenset(masked)
    if tables:
        rewrite_tables(store, OptimizeRequest(branch, actor=request.actor, origin=request.origin), tables)
    built = ensure_indices(store, branch, keys, upkeep=Upkeep(1, whole=True, anew=True), attempts=ATTEMPTS)
    stale += built.warnings
    reach(CrashPoint.ERASE_WRITTEN)
    return {display(branch): dict(report.deleted)} if report.deleted else {}


def _report(
    store: GraphStore,
    request: EraseRequest,
    deleted: Mapping[str, Mapping[str, int]],
    held: Iterable[HeldVersion],
    blocked: Iterable[str],
) -> EraseReport:
    found, why = tuple(held), tuple(blocked)
    if found and not why and request.confirm:
        why = ("other writers, which got in the way: run it again",)
    outside = (*OUTSIDE, f"{store.root}.embeddings/")
    return EraseReport(request.table, request.id, deleted, found, why, outside, done=not found and not why)
