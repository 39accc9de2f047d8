"""Erasing: after it no file of the graph holds a row, nor the edges that touched it.

    delete on every branch ──▶ write anew the files that hold the row, and their indexes ──▶ expire every older state
                                                                    ──▶ remove what nothing names ──▶ look for the rest

What a tag shows, a consumer has not read, or a merge starts from cannot expire. It is named, and so are the versions
that hold the row still: when those have gone, another run ends the work. Each step may be repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta

import pyarrow as pa

from spark_omnigraph.branch.consumers import list_consumers
from spark_omnigraph.branch.control import list_branches, parse_branch
from spark_omnigraph.branch.orphans import what_is_shown
from spark_omnigraph.branch.tags import list_tags
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, EdgeType
from spark_omnigraph.commit.contract import read_catalog
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.graph.delete.by_id import DeleteRequest, delete_ids
from spark_omnigraph.graph.maintain.cleanup import cleanup
from spark_omnigraph.graph.maintain.expire import Policy
from spark_omnigraph.graph.maintain.optimize import OptimizeRequest, rewrite_tables
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.facts import CommitOrigin
from spark_omnigraph.storage.buried import Buried
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import branch_path
from spark_omnigraph.storage.tables.index import Upkeep
from spark_omnigraph.storage.versions import stored_since
from spark_omnigraph.write.attempts import ATTEMPTS
from spark_omnigraph.write.indexes import ensure_indices

OUTSIDE = (
    "reports of bad rows (--bad-rows) and of conflicts (--conflicts), and logs of runs with --show-rows",
    "what was exported, copied (copy) or backed up, and input that holds the row",
    "replies of providers that embeddings were kept from (--cache)",
)
"""What a graph knows nothing of, and what may hold the row as well."""


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """A version of a table that holds the row."""

    table: str
    branch: str
    version: int


@dataclass(frozen=True, slots=True)
class EraseReport:
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
    buried = _conditions(read_catalog(store), request)
    held = _held(store, buried)
    if not request.confirm or not held:
        return _report(store, request, buried, _rows(store, buried), held, done=not held)
    deleted = {}
    for name in list_branches(store):
        branch = parse_branch(name)
        ids = {str(request.table): pa.array([request.id])}
        report = delete_ids(store, DeleteRequest(ids, branch, request.actor, origin=request.origin))
        if report.deleted:
            deleted[name] = dict(report.deleted)
        reach(CrashPoint.ERASE_DELETED)
        _write_anew(store, request, buried, branch)
        reach(CrashPoint.ERASE_WRITTEN)
    cleanup(store, Policy(1, timedelta(0), force=True), confirm=True)
    reach(CrashPoint.ERASE_EXPIRED)
    left = _held(store, buried)
    return _report(store, request, buried, deleted, left, done=not left)


def _conditions(catalog: Catalog, request: EraseRequest) -> dict[str, Buried]:
    """By table: where the row and the edges that touch it are found."""
    entity = catalog.require(request.table)
    found = {str(request.table): Buried(("id",), request.id)}
    if isinstance(entity, EdgeType):
        return found
    for edge in catalog.edges_touching(entity.name):
        ends = tuple(c for c, name in (("src", edge.from_type), ("dst", edge.to_type)) if name == entity.name)
        found[str(edge.table_key)] = Buried(ends, request.id)
    return found


def _rows(store: GraphStore, buried: Mapping[str, Buried]) -> dict[str, dict[str, int]]:
    """Rows that each branch shows now."""
    found: dict[str, dict[str, int]] = {}
    for name in list_branches(store):
        for key, rows in buried.items():
            entry = store.snapshot(parse_branch(name)).entries.get(TableKey(key))
            count = 0 if entry is None else int(store.open_table(entry).count_rows(rows.condition))
            if count:
                found.setdefault(name, {})[key] = count
    return found


def _held(store: GraphStore, buried: Mapping[str, Buried]) -> tuple[HeldVersion, ...]:
    """All stored versions of all lines that hold the row."""
    shown = what_is_shown(store)
    found = []
    for location, keys in sorted(shown.tables.items()):
        for key in sorted(keys & buried.keys()):
            for branch in sorted(shown.pins.get(location, {}), key=lambda line: line or ""):
                found += [HeldVersion(key, display(branch), v) for v in _holding(store, location, branch, buried[key])]
    return tuple(found)


def _holding(store: GraphStore, location: str, branch: Branch, rows: Buried) -> Iterator[int]:
    folder = branch_path(location, branch)
    for version in stored_since(store.objects, folder):
        if rows.is_in(store.open_dataset(folder, version)):
            yield version


def _write_anew(store: GraphStore, request: EraseRequest, buried: Mapping[str, Buried], branch: Branch) -> None:
    """Files of a branch that hold the row are written without it, and every index of their tables is built again."""
    entries = store.snapshot(branch).entries
    tables = frozenset(
        key for key, rows in buried.items() if key in entries and rows.is_in(store.open_table(entries[TableKey(key)]))
    )
    deleted = OptimizeRequest(branch, actor=request.actor, origin=request.origin)
    if tables:
        rewrite_tables(store, deleted, tables)
    ensure_indices(store, branch, buried.keys(), upkeep=Upkeep(1, whole=True, anew=True), attempts=ATTEMPTS)


def _report(
    store: GraphStore,
    request: EraseRequest,
    buried: Mapping[str, Buried],
    deleted: Mapping[str, Mapping[str, int]],
    held: tuple[HeldVersion, ...],
    done: bool,
) -> EraseReport:
    blocked = tuple(_blockers(store, buried)) if held else ()
    nearby = f"{store.root}.embeddings/"
    return EraseReport(request.table, request.id, deleted, held, blocked, (*OUTSIDE, nearby), done)


def _blockers(store: GraphStore, buried: Mapping[str, Buried]) -> Iterator[str]:
    """Who keeps states that hold the row; what is only interrupted or under way is not among them."""
    for tag in list_tags(store).values():
        entries = store.snapshot(tag.branch, tag.manifest_version).entries
        if any(TableKey(k) in entries and b.is_in(store.open_table(entries[TableKey(k)])) for k, b in buried.items()):
            yield f"tag {tag.name}: delete it"
    for consumer in list_consumers(store):
        newest = store.snapshot(consumer.branch).version if display(consumer.branch) in list_branches(store) else 0
        if consumer.version < newest:
            yield f"consumer {consumer.name}: let it read on, or delete it"
    for name in list_branches(store)[1:]:
        yield f"branch {name}: merges start from an older state; merge and delete it"
