"""Clean-up: removes what interrupted work left behind and nothing names, and old versions where a policy lets them go.

    owners ──▶ expiry ──▶ half tags, forks that nothing shows ──▶ files that no version names ──▶ leases, claims

Nothing is removed that is younger than the age limit or than the earliest writer that is alive or awaits recovery; and
nothing at all of a dataset whose own list of files does not fit what is stored. The order matters: the time is taken
first, then the owners, then the objects, then the versions; whatever a writer stages after the first is too young, and
whatever it commits before the last is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import partial

from spark_omnigraph.branch.orphans import Orphan, Shown, find_orphans, remove_orphan, stray_tables, what_is_shown
from spark_omnigraph.branch.pins import internal_pins, table_pins
from spark_omnigraph.branch.tags import drop_half_tags, half_tags
from spark_omnigraph.catalog.dates import moment_text
from spark_omnigraph.commit.announced import announced, claim_path
from spark_omnigraph.commit.claim import STATES_CLAIM, abandoned, claimed, is_held
from spark_omnigraph.commit.owners import Owners, end_lease, find_owners, lost_leases
from spark_omnigraph.draw.card import Card, grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import ConflictError, StorageError
from spark_omnigraph.graph.maintain.expire import ExpiryReport, Policy, before, expire
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import COMMIT_ACTORS, COMMITS, MANIFEST, RECOVERIES, RECOVERY
from spark_omnigraph.storage.objects.small import StoredObject
from spark_omnigraph.storage.residue import DatasetFiles, Pins, find_residue, require_versions

OLDER_THAN = timedelta(days=7)
"""Age below which residue is left alone, unless the caller says otherwise."""
SETTLED = timedelta(hours=1)
"""Age below which files of the manifest and the commit log always stay: publishes hold no lease of their own."""
INTERNAL = (MANIFEST, COMMITS, COMMIT_ACTORS, RECOVERIES)
ORPHAN, LEASE, CLAIM, PROBE, PIECE = "orphan_branch", "lost_lease", "lost_claim", "lost_probe", "unfinished_object"
HALF_TAG, STRAY = "half_tag", "unpublished_table"
"""Reasons besides the kinds of residue."""
_BRANCHING_CLAIMS = ("fork~", "branch~", "source~", STATES_CLAIM)
"""Claims that mean nothing once their owner died; those of recovery are for recovery."""
_PROBES = (f"{RECOVERY}/x_probe_", f"{RECOVERY}/x_clock_")


@dataclass(frozen=True, slots=True)
class CleanupItem:
    """One object: where it was below the root, how large, of what time, why it is residue, and whether it is gone."""

    path: str
    size: int
    modified: datetime
    reason: str
    deleted: bool

    def to_dict(self) -> dict[str, object]:
        return {
            "path": self.path,
            "size": self.size,
            "modified": moment_text(self.modified),
            "reason": self.reason,
            "deleted": self.deleted,
        }


@dataclass(frozen=True, slots=True)
class KeptObject:
    """Something that was not looked at, or not removed, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, repr=False)
class CleanupReport(Displayed):
    """What was found, and in a confirmed run deleted. `younger` counts residue that is not old enough yet."""

    before: datetime
    items: tuple[CleanupItem, ...]
    kept: tuple[KeptObject, ...]
    younger: int
    warnings: tuple[str, ...] = ()
    expiry: ExpiryReport | None = None
    """Of old versions; None where no policy was given."""

    def _card(self) -> Card:
        reasons = self.by_reason()
        by_reason = ((reason, count, size) for reason, (count, size) in reasons.items())
        gone = sum(item.deleted for item in self.items)
        done = f"{gone:,} of {len(self.items):,} objects removed" if gone else f"{len(self.items):,} objects found"
        expired = "" if self.expiry is None else f", {self.expiry.versions:,} versions expire"
        return Card(
            "CleanupReport",
            f"{done}, {self.size:,} bytes{expired}",
            {"older than": moment_text(self.before), "younger": self.younger or None},
            without_empty(
                grid("By reason", ("reason", "objects", "bytes"), by_reason, len(reasons)),
                *(() if self.expiry is None else self.expiry.grids()),
                grid("What was left", ("what", "why"), ((each.what, each.why) for each in self.kept), len(self.kept)),
            ),
            self.warnings,
        )

    @property
    def size(self) -> int:
        """Bytes of all items."""
        return sum(item.size for item in self.items)

    def by_reason(self) -> dict[str, tuple[int, int]]:
        """Reason → number of objects and their bytes."""
        found: dict[str, tuple[int, int]] = {}
        for item in self.items:
            count, size = found.get(item.reason, (0, 0))
            found[item.reason] = (count + 1, size + item.size)
        return dict(sorted(found.items()))


def cleanup(store: GraphStore, policy: Policy, confirm: bool = False) -> CleanupReport:
    """Finds residue that is older than the policy says, by default OLDER_THAN, and versions that it lets go, where it
    says which; removes both with `confirm`.

    RecoveryRequiredError when a sidecar cannot be read: nobody knows what its writer needs. StorageError and
    ConflictError of an expiry: then nothing was removed. By age alone, which is that of residue too, they are warnings.
    """
    older_than = OLDER_THAN if policy.older_than is None else policy.older_than
    now = store.objects.clock(RECOVERY) if confirm else datetime.now(timezone.utc)
    ended = _end_lost_stages(store, confirm)
    owners = find_owners(store)
    work = _Cleanup(store, owners, now, owners.spare(before(now, older_than)), confirm)
    expiry = work.expire(policy)
    shown = what_is_shown(store)
    work.kept += [KeptObject(MANIFEST, why) for _, why in sorted(shown.damaged.items())]
    known = [location for location in sorted(shown.tables) if shown.why_unknown(location) is None]
    work.half_tags((MANIFEST, *known))
    for location in (*known, COMMITS):
        work.forks(location, shown)
    for location in known:
        pins = shown.pins.get(location, {})
        if any(owners.covers(key) for key in shown.tables[location]):
            work.kept.append(KeptObject(location, "a pending write covers it"))
        else:
            hidden = shown.hidden.get(location, 0)
            work.sweep(location, partial(table_pins, store, location, pins, hidden), hidden=hidden)
    work.strays(shown)
    for location in INTERNAL:
        work.sweep(location, partial(internal_pins, store, location), SETTLED)
    work.links()
    work.traces(ended)
    return CleanupReport(work.before, tuple(work.items), tuple(work.kept), work.younger, tuple(work.warnings), expiry)


def _end_lost_stages(store: GraphStore, confirm: bool) -> list[StoredObject]:
    """Leases that nobody holds; removed first, so that whoever still goes on with one finds that it is over. Where one
    cannot be removed, nobody knows whether its owner goes on, and nothing else is.
    """
    stored = {each.path: each for each in store.objects.walk(RECOVERY)}
    lost = [stored[path] for path in lost_leases(store) if path in stored]
    return [each for each in lost if end_lease(store, each.path)] if confirm else lost


@dataclass(slots=True)
class _Cleanup:
    """One run: what it was told, and what it has found so far."""

    store: GraphStore
    owners: Owners
    now: datetime
    before: datetime
    confirm: bool
    items: list[CleanupItem] = field(default_factory=list)
    kept: list[KeptObject] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    younger: int = 0
    orphans: list[Orphan] = field(default_factory=list)

    def expire(self, policy: Policy) -> ExpiryReport | None:
        """Lets old versions go, where the policy says which."""
        try:
            return expire(self.store, policy, self.now, self.owners, self.confirm) if policy.lets_go else None
        except (StorageError, ConflictError) as refusal:
            if policy.keep is not None:
                raise
            self.warnings.append(f"no state expires: {refusal.message}")
        return None

    def half_tags(self, locations: Sequence[str]) -> None:
        """Lance tags of tags whose creation or deletion died; one under way holds the claim."""
        if self.confirm:
            found = drop_half_tags(self.store, locations)
        else:
            found = [] if is_held(self.store, STATES_CLAIM) else half_tags(self.store, locations)
        objects = (StoredObject(half.path, 0, self.now) for half in found)
        self._add(objects, HALF_TAG, self.confirm)

    def forks(self, location: str, shown: Shown) -> None:
        """Lance branches of a dataset that no graph branch shows."""
        try:
            orphans = find_orphans(self.store, location, shown)
        except StorageError as error:
            self.kept.append(KeptObject(location, error.message))
            return
        for orphan in orphans:
            if orphan.newest is None or orphan.newest >= self.before:
                self.younger += len(orphan.objects)
                continue
            why = self._why_kept(orphan)
            if why is not None:
                self.kept.append(KeptObject(orphan.folder.rstrip("/"), why))
                continue
            self.orphans.append(orphan)
            self._add(orphan.objects, ORPHAN, self.confirm)

    def strays(self, shown: Shown) -> None:
        """Datasets of tables that no branch has ever shown. A schema change that begins now makes its own files, and
        names no other, so those that are listed here may go beside it.
        """
        for location, objects in stray_tables(self.store, shown).items():
            if max(each.modified for each in objects) >= self.before:
                self.younger += len(objects)
            elif self.owners.alive or self.owners.sidecars or self.store.has_schema_lock():
                self.kept.append(KeptObject(location, "a write is running, or awaits recovery, which may use it"))
            elif self.store.objects.links(location):
                self.kept.append(KeptObject(location, "a symbolic link is in it or leads to it"))
            else:
                self._delete(location, [(each, STRAY) for each in objects])

    def _why_kept(self, orphan: Orphan) -> str | None:
        if self.confirm:
            return remove_orphan(self.store, orphan, self.before)
        return "a write is running, which may use it" if self.owners.alive else None

    def sweep(
        self, location: str, pins: Callable[[], Pins], at_least: timedelta = timedelta(0), hidden: int = 0
    ) -> None:
        """Files of a dataset that no version of it names, if it has all versions that it must show; see
        `require_versions` for `hidden`.
        """
        before = min(self.before, self.now - at_least)
        try:
            pinned = pins()  # before the files are listed: what is published later is there, too
            if not pinned and not self.store.objects.has_prefix(f"{location}/_versions"):
                return
            files = DatasetFiles.read(self.store, location)
            require_versions(files, pinned, hidden)
            residue = find_residue(self.store, files)
        except StorageError as error:
            self.kept.append(KeptObject(location, error.message))
            return
        gone = tuple(orphan.folder for orphan in self.orphans)
        old: list[tuple[StoredObject, str]] = []
        for piece in residue:
            if gone and piece.objects[0].path.startswith(gone):
                continue  # goes with its fork
            if piece.newest < before:
                old += [(each, piece.kind) for each in piece.objects]
            else:
                self.younger += len(piece.objects)
        self._delete(location, old)

    def _delete(self, location: str, found: Sequence[tuple[StoredObject, str]]) -> None:
        paths = [each.path for each, _ in found]
        left: frozenset[str] = frozenset()
        if self.confirm and paths:
            try:
                self.store.objects.delete_all(paths)
            except StorageError as error:
                self.warnings.append(error.message)
                left = frozenset(each.path for each in self.store.objects.walk(location))
        for each, reason in found:
            self._add((each,), reason, self.confirm and each.path not in left)

    def links(self) -> None:
        """Symbolic links of a local disk: they lead out of what the graph answers for."""
        why = "a symbolic link: neither it nor what it leads to was looked at"
        self.kept += [KeptObject(link, why) for link in self.store.objects.links("")]

    def traces(self, ended: Iterable[StoredObject]) -> None:
        """Leases, claims and probes in `__recovery/` whose owners are gone; the leases are removed already."""
        self._add(ended, LEASE, self.confirm)
        stored = {each.path: each for each in self.store.objects.walk(RECOVERY)}
        settled = min(self.before, self.now - SETTLED)
        lost = [(each, PROBE) for path, each in stored.items() if path.startswith(_PROBES) and each.modified < settled]
        self._delete(RECOVERY, lost)
        self._pieces(settled)
        for name in abandoned(self.store, announced(self.store), _BRANCHING_CLAIMS):
            path = claim_path(name)
            if self.confirm:
                with claimed(self.store, name):
                    pass  # taken over and removed
            if path in stored:
                self._add((stored[path],), CLAIM, self.confirm)

    def _pieces(self, settled: datetime) -> None:
        """Files that a write which was interrupted left half-written, under no name of theirs."""
        for each in self.store.objects.pieces():
            if each.modified >= settled:
                self.younger += 1
                continue
            gone = False
            if self.confirm:
                try:
                    self.store.objects.remove_piece(each.path)
                    gone = True
                except StorageError as error:
                    self.warnings.append(error.message)
            self._add((each,), PIECE, gone)

    def _add(self, objects: Iterable[StoredObject], reason: str, deleted: bool) -> None:
        self.items += [CleanupItem(o.path, o.size, o.modified, str(reason), deleted) for o in objects]
