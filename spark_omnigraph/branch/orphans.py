"""Lance branches that no graph branch shows (storage format, section 9.4): forks whose write never came, or whose graph
branch is gone, and branches of the commit log without one of the manifest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from spark_omnigraph.catalog.identity import is_table_path
from spark_omnigraph.commit.claim import branch_claim, claimed, fork_claim
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.owners import find_owners
from spark_omnigraph.errors import NotFoundError
from spark_omnigraph.manifest.branches import Branch, BranchName, display
from spark_omnigraph.manifest.rows import ManifestRow, RowKind
from spark_omnigraph.manifest.snapshot import damaged
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import COMMITS, SCHEMA_APPLY_LOCK, branch_path
from spark_omnigraph.storage.objects.small import StoredObject
from spark_omnigraph.storage.residue import lance_branches
from spark_omnigraph.storage.tables.commits import drop_branch


@dataclass(frozen=True, slots=True)
class Shown:
    """What the manifest shows on all graph branches together, now and in the past.

    `tables`: location → keys of tables there. `forks`: (location, Lance branch) of every version row. `damaged`: keys
    of tables some row of which is not acted on, and why; what else belongs to those is not known.
    """

    tables: dict[str, frozenset[str]]
    forks: frozenset[tuple[str, BranchName]]
    pins: dict[str, dict[Branch, frozenset[int]]] = field(default_factory=dict)
    """Location → Lance branch → versions that were ever published."""
    damaged: dict[str, str] = field(default_factory=dict)
    """Table key → why its manifest row is not to be believed."""
    hidden: dict[str, int] = field(default_factory=dict)
    """Location → version up to which a table that main does not show any more is hidden."""

    def why_unknown(self, location: str) -> str | None:
        """Why it cannot be told what of a dataset is shown; None where it can."""
        return next((self.damaged[key] for key in self.tables.get(location, ()) if key in self.damaged), None)


@dataclass(frozen=True, slots=True)
class Orphan:
    """A Lance branch of a dataset that nothing shows, with everything that goes with it."""

    location: str
    branch: BranchName
    objects: tuple[StoredObject, ...]

    @property
    def folder(self) -> str:
        return branch_path(self.location, self.branch) + "/"

    @property
    def newest(self) -> datetime | None:
        return max((each.modified for each in self.objects), default=None)


def what_is_shown(store: GraphStore, apart_from: frozenset[str] = frozenset()) -> Shown:
    """Reads the manifest of every graph branch but some. Its rows are never removed, so the newest version tells all,
    unless that is gone: DriftError.
    """
    tables: dict[str, set[str]] = {}
    pins: dict[str, dict[Branch, set[int]]] = {}
    bad: dict[str, str] = {}
    hidden: dict[str, int] = {}
    names = [name for name in store.graph_branches() if name is not None and name not in apart_from]
    for branch in (None, *names):
        try:
            rows = store.manifest_rows(WholeBranch(store, branch).manifest())
        except NotFoundError:
            if branch in store.branch_names():
                raise
            continue  # it was deleted meanwhile, and shows nothing
        locations = _locations(rows)
        where = f"the manifest of branch '{display(branch)}'"
        bad |= {row.table_key: damaged(row, where).message for row in rows if row.fault is not None}
        for key, location in locations.items():
            tables.setdefault(location, set()).add(key)
        if branch is None:
            hidden = _hidden(rows, locations)
        for row in rows:
            if row.kind == RowKind.VERSION and row.table_version is not None and row.table_key in locations:
                lines = pins.setdefault(locations[row.table_key], {})
                lines.setdefault(row.table_branch, set()).add(row.table_version)
    forks = {(location, line) for location, lines in pins.items() for line in lines if line is not None}
    forks |= {(COMMITS, name) for name in names}
    frozen = {place: {line: frozenset(found) for line, found in lines.items()} for place, lines in pins.items()}
    shown = {location: frozenset(keys) for location, keys in tables.items()}
    return Shown(shown, frozenset(forks), frozen, bad, hidden)


def _hidden(rows: Iterable[ManifestRow], locations: dict[str, str]) -> dict[str, int]:
    newest: dict[str, dict[str, int]] = {RowKind.VERSION: {}, RowKind.TOMBSTONE: {}}
    for row in rows:
        if row.kind in newest and row.table_version is not None:
            found = newest[row.kind]
            found[row.table_key] = max(found.get(row.table_key, 0), row.table_version)
    covered = newest[RowKind.TOMBSTONE].items()
    return {locations[k]: v for k, v in covered if k in locations and newest[RowKind.VERSION].get(k, 0) <= v}


def _locations(rows: Iterable[ManifestRow]) -> dict[str, str]:
    return {row.table_key: row.location for row in rows if row.kind == RowKind.TABLE and row.location is not None}


def stray_tables(store: GraphStore, shown: Shown) -> dict[str, list[StoredObject]]:
    """Objects of datasets in the places of tables that no manifest names, by dataset: a schema change made them, and
    died before its publish. None while a row of a manifest is not to be believed, which may be the one that names them.
    """
    found: dict[str, list[StoredObject]] = {}
    for each in () if shown.damaged else (*store.objects.walk("nodes"), *store.objects.walk("edges")):
        location = "/".join(each.path.split("/")[:2])
        if location not in shown.tables and is_table_path(location):
            found.setdefault(location, []).append(each)
    return found


def find_orphans(store: GraphStore, location: str, shown: Shown) -> list[Orphan]:
    """Orphans of a dataset, those that may lie inside or come from another one first."""
    names = {n for n in lance_branches(store, location) if n.lstrip("/") != SCHEMA_APPLY_LOCK}
    orphans = sorted((n for n in names if (location, n) not in shown.forks), key=lambda n: (-len(n), n))
    if not orphans:
        return []
    objects = store.objects.walk(location)
    return [Orphan(location, name, _objects_of(location, name, names, objects)) for name in orphans]


def _objects_of(
    location: str, branch: BranchName, names: Iterable[BranchName], objects: Iterable[StoredObject]
) -> tuple[StoredObject, ...]:
    """The reference of a Lance branch and everything in its folder that is not in the folder of another one."""
    reference = f"{location}/_refs/branches/{branch.replace('/', '%2F')}.json"
    own = branch_path(location, branch) + "/"
    inner = tuple(branch_path(location, n) + "/" for n in names if n.startswith(f"{branch}/"))
    return tuple(
        each
        for each in objects
        if each.path == reference or (each.path.startswith(own) and not each.path.startswith(inner))
    )


def remove_orphan(store: GraphStore, orphan: Orphan, before: datetime) -> str | None:
    """Removes an orphan, looked at again under the claim that whoever makes it holds; else says why it stays."""
    name = branch_claim(orphan.branch) if orphan.location == COMMITS else fork_claim(orphan.location, orphan.branch)
    with claimed(store, name) as claim:
        # A stage says that it is there before it looks for a fork: an orphan that it may use is seen here.
        owners = find_owners(store)
        if owners.alive:
            return "a write is running, which may use it"
        if any(orphan.branch in {s.branch, *(pin.branch for pin in s.pins)} for s in owners.sidecars):
            return "a write on this branch awaits recovery"
        shown = what_is_shown(store)
        unknown = shown.why_unknown(orphan.location)
        if unknown is not None:
            return unknown
        again = find_orphans(store, orphan.location, shown)
        found = next((each for each in again if each.branch == orphan.branch), None)
        if found is None:
            return "it came into use meanwhile"
        if found.newest is None or found.newest >= before:
            return "it is younger than the age limit"
        if store.objects.links(orphan.folder):
            return "a symbolic link is in it or leads to it"
        claim.keep()
        try:
            drop_branch(store.open_dataset(orphan.location), orphan.branch)
        except CommitFailed as failure:
            return str(failure)
    return None
