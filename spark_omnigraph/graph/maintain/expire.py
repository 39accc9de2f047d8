"""Expiry: old versions of every dataset go by a policy, over all branches; rows of the manifest and the log never do.

    plan        what everybody needs (referenced.py); what remains, is old enough and is stored     reads only
    announce    how far each dataset expires, as rows of main's manifest                            one publish
    plan again  whoever named a state meanwhile is seen now, or saw the announcement and stepped back
    remove      explicit lists: states first, then what they show

Nothing is removed that anybody was shown since the earliest writer began that is alive or awaits recovery, nor, unless
it is forced, within the retention. A branch that cannot be read, or a table that drifted, bars all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import pairwise

from spark_omnigraph.branch.orphans import Shown, what_is_shown
from spark_omnigraph.branch.pins import internal_pins
from spark_omnigraph.catalog.dates import moment_text
from spark_omnigraph.commit.claim import STATES_CLAIM, claimed
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.owners import Owners, covering
from spark_omnigraph.commit.publisher import Publication, publish
from spark_omnigraph.commit.schema.lock import refuse_schema_change
from spark_omnigraph.commit.schema.removal import empty_above
from spark_omnigraph.draw.card import Card, Grid, grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRequestError, DamagedError, DriftError, StorageError
from spark_omnigraph.graph.arguments import WHOLE, require
from spark_omnigraph.graph.maintain.referenced import BranchStates, Needed, branch_states, needed, unbroken
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.kept import Floors, floor_row, floors_of
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import COMMIT_ACTORS, COMMITS, MANIFEST, RECOVERIES, branch_path
from spark_omnigraph.storage.tables.handles import Dataset
from spark_omnigraph.storage.versions import (
    lance_tags,
    origins,
    remove,
    stored_since,
    version_of,
    would_remove,
)

RETENTION = timedelta(days=7)
"""What anybody was shown within it stays, unless the caller forces the expiry."""
_EPOCH = datetime.fromtimestamp(0, timezone.utc)
Line = tuple[str, Branch]
"""Dataset and Lance branch."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Which states go: those beyond the newest `keep` commits of their branch, that nobody was shown for `older_than`;
    of both, what both let go.
    """

    keep: int | None = None
    older_than: timedelta | None = None
    force: bool = False
    """Also what was shown within the retention."""
    among: frozenset[Branch] | None = None
    """Only states of these branches go; None for all."""

    def __post_init__(self) -> None:
        """BadRequestError for what is no policy."""
        if self.keep is not None:
            require("keep", self.keep, WHOLE)
            if self.keep < 0:
                raise BadRequestError(f"keep is a number of commits, 0 or more, not {self.keep}")
        if self.older_than is not None:
            require("older_than", self.older_than, (_is_duration, "a timedelta, such as timedelta(days=7)"))
            if self.older_than < timedelta(0):
                raise BadRequestError(f"older_than must not be negative, got {self.older_than}")

    @property
    def lets_go(self) -> bool:
        """Whether it says which states go."""
        return self.keep is not None or self.older_than is not None

    @property
    def age(self) -> timedelta:
        """For how long a state that goes was shown to nobody, at least."""
        asked = self.older_than if self.older_than is not None else timedelta(0)
        return asked if self.force else max(asked, RETENTION)


def before(now: datetime, age: timedelta) -> datetime:
    """The time so long ago, at least that where clocks begin."""
    return now - age if age < now - _EPOCH else _EPOCH


def _is_duration(value: object) -> bool:
    return isinstance(value, timedelta)


@dataclass(frozen=True, slots=True)
class ExpiredLine:
    """Versions of one dataset on one Lance branch that go, in a confirmed run those that are gone, and their bytes."""

    dataset: str
    branch: str
    versions: tuple[int, ...]
    bytes: int
    left: int
    """How many versions stay."""


@dataclass(frozen=True, slots=True)
class ExpiredStates:
    """What of one branch can be read: all states from `oldest_version` on, of `oldest_at`; besides what tags show and
    merges start from. `states` and `commits` count what cannot be read any more.
    """

    branch: str
    oldest_version: int
    oldest_at: datetime
    states: int
    commits: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ExpiryReport(Displayed):
    """What goes or went, and what is waited for. Bytes before and after are those of the datasets that lose something,
    as they are stored; None in a dry run.
    """

    branches: tuple[ExpiredStates, ...]
    lines: tuple[ExpiredLine, ...]
    kept: tuple[tuple[str, str], ...]
    """What was left although it is old enough, and why."""
    bytes_before: int | None = None
    bytes_after: int | None = None

    def _card(self) -> Card:
        facts = {"bytes before": self.bytes_before, "bytes after": self.bytes_after}
        return Card("ExpiryReport", f"{self.versions:,} versions, {self.bytes:,} bytes", facts, self.grids())

    def grids(self) -> tuple[Grid, ...]:
        """What expires as tables, for people."""
        states = ((b.branch, b.oldest_version, moment_text(b.oldest_at), b.states) for b in self.branches)
        lines = ((line.dataset, line.branch, len(line.versions), line.bytes, line.left) for line in self.lines)
        columns = ("dataset", "branch", "versions", "bytes", "left")
        return without_empty(
            grid("What can be read", ("branch", "from version", "of", "states that go"), states, len(self.branches)),
            grid("Versions that go", columns, lines, len(self.lines)),
            grid("What is waited for", ("what", "why"), self.kept, len(self.kept)),
        )

    @property
    def bytes(self) -> int:
        """Of all versions that go, as Lance counts them."""
        return sum(line.bytes for line in self.lines)

    @property
    def versions(self) -> int:
        """How many go, of all datasets."""
        return sum(len(line.versions) for line in self.lines)

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON; of versions the first, the last and how many."""
        return {
            "versions": self.versions,
            "bytes": self.bytes,
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "branches": [
                {
                    "branch": each.branch,
                    "oldest_version": each.oldest_version,
                    "oldest_at": moment_text(each.oldest_at),
                    "states": each.states,
                    "commits": list(each.commits),
                }
                for each in self.branches
            ],
            "datasets": [
                {
                    "dataset": each.dataset,
                    "branch": each.branch,
                    "versions": len(each.versions),
                    "first": min(each.versions, default=None),
                    "last": max(each.versions, default=None),
                    "bytes": each.bytes,
                    "left": each.left,
                }
                for each in self.lines
            ],
            "kept": [{"what": what, "why": why} for what, why in self.kept],
        }


@dataclass(slots=True)
class _Plan:
    lines: Mapping[Branch, BranchStates]
    needed: Needed
    going: dict[Line, tuple[int, ...]] = field(default_factory=dict)
    """Line → versions to remove, states first."""
    kept: list[tuple[str, str]] = field(default_factory=list)
    spared: dict[str, set[tuple[Branch, int]]] = field(default_factory=dict)
    """Dataset → what forks begin at, and what anybody tagged."""


def expire(store: GraphStore, policy: Policy, now: datetime, owners: Owners, confirm: bool) -> ExpiryReport:
    """Finds what the policy lets go; removes it with `confirm`. `now` was taken before the `owners` were looked for.

    StorageError while a branch cannot be read, DriftError for a table with commits past the manifest: nothing is
    removed then.
    """
    limit = owners.spare(before(now, policy.age))
    if not _is_any_old(store, limit):
        return ExpiryReport((), (), ())
    if not confirm:
        plan = _plan(store, policy, limit, owners, None)
        going = plan.going.items()
        return _report(plan, [_expired(store, line, _would_remove(store, line, gone), gone) for line, gone in going])
    with claimed(store, STATES_CLAIM):
        plan = _plan(store, policy, limit, owners, None)
        reach(CrashPoint.EXPIRY_PLANNED)
        if not plan.going:
            return _report(plan, [])
        floors = _announce(store, plan.going)
        reach(CrashPoint.EXPIRY_ANNOUNCED)
        plan = _plan(store, policy, limit, owners, floors)
        had = _bytes(store, plan)
        lines = _remove(store, plan)
        return _report(plan, lines, had, _bytes(store, plan))


def _is_any_old(store: GraphStore, limit: datetime) -> bool:
    """Whether any dataset has a version that was replaced before the limit. Where none has, there is nothing to refuse
    either: what is damaged stands in nobody's way.
    """
    files = (each for each in store.objects.walk("") if each.modified < limit)
    folders = Counter(each.path.rpartition("/")[0] for each in files if version_of(each.path.rpartition("/")[2]))
    return any(count > 1 for count in folders.values())


def _plan(store: GraphStore, policy: Policy, limit: datetime, owners: Owners, floors: Floors | None) -> _Plan:
    """What may go. Of what was announced as going no more than that, where `floors` say what was."""
    refuse_schema_change(store)
    shown = what_is_shown(store)
    if shown.damaged:
        raise DamagedError(f"nothing expires: {shown.damaged[min(shown.damaged)]}")
    for internal in (COMMITS, COMMIT_ACTORS):
        internal_pins(store, internal)  # rows that are lost there would make states look as if nothing needed them
    lines = branch_states(store)
    plan = _Plan(lines, needed(store, lines, policy.keep, limit, policy.among))
    for line in _lines(store, shown, lines):
        why = _why_spared(store, shown, owners, line)
        gone = _going(store, plan, line, limit, shown)
        if floors is not None:
            gone = tuple(version for version in gone if version < floors.get(line[0], {}).get(line[1], 0))
        if gone and why is None and store.objects.links(branch_path(*line)):
            why = "a symbolic link is in it or leads to it"
        if gone and why is not None:
            plan.kept.append((branch_path(*line), why))
        elif gone:
            plan.going[line] = gone
    plan.kept += [
        (f"consumer {each.name}", f"has read branch '{display(each.branch)}' up to version {each.version}")
        for each in plan.needed.consumers
    ]
    return plan


def _lines(store: GraphStore, shown: Shown, lines: Mapping[Branch, BranchStates]) -> Iterator[Line]:
    """Lines of all datasets, those that lead to others first."""
    for dataset in (MANIFEST, COMMITS):
        yield from ((dataset, branch) for branch in lines)
    yield from ((dataset, None) for dataset in (COMMIT_ACTORS, RECOVERIES))
    for location in sorted(shown.pins):
        yield from ((location, branch) for branch in sorted(shown.pins[location], key=lambda b: b or ""))


def _going(store: GraphStore, plan: _Plan, line: Line, limit: datetime, shown: Shown) -> tuple[int, ...]:
    """Versions of a line that nothing needs, and that were the newest at no time from the limit on; of a table that a
    schema change has hidden the newest as well.
    """
    (location, branch), found = line, plan.needed
    stored = stored_since(store.objects, branch_path(location, branch))
    old = [version for version, after in pairwise(stored) if stored[after] < limit]
    newest = max(stored, default=0)
    published = shown.pins.get(location, {}).get(None, frozenset())
    if branch is None and newest in published and newest <= shown.hidden.get(location, 0):
        old.append(newest)
    if location in (MANIFEST, COMMITS):
        first = (found.cutoffs if location == MANIFEST else found.logs).get(branch, 0)
        old = [version for version in old if version < first]
    old = [version for version in old if version not in found.versions.get(line, ())]
    if not old:
        return ()
    if location not in plan.spared:
        dataset = store.open_dataset(location)
        plan.spared[location] = {*origins(dataset).values(), *lance_tags(dataset).values()}
    return tuple(version for version in old if (branch, version) not in plan.spared[location])


def _why_spared(store: GraphStore, shown: Shown, owners: Owners, line: Line) -> str | None:
    """Why a table is left alone whole, or None. DriftError, StorageError when nothing may be removed at all."""
    location, branch = line
    if location not in shown.pins:
        return None
    keys = shown.tables[location]
    if any(owners.covers(key) for key in keys):
        return "a pending write covers it"
    stored = stored_since(store.objects, branch_path(location, branch))
    newest, hidden = max(shown.pins[location][branch]), shown.hidden.get(location, 0)
    oldest = min(stored, default=0)
    if branch is None and newest <= hidden < oldest:
        return None  # a schema change has removed it for good
    floor = floors_of(store.manifest_rows(store.manifest(None))).get(location, {}).get(branch, 0)
    is_gone = branch is None and newest <= hidden
    lost = [v for v in shown.pins[location][branch] if v not in stored]
    lost = [v for v in lost if v > max(floor, oldest) or (v == newest and not is_gone)]
    if lost:
        if branch is not None and (location, branch) not in what_is_shown(store).forks:
            return f"branch '{branch}' was deleted a moment ago"
        raise StorageError(
            f"storage: nothing expires: {branch_path(location, branch)} lacks version {max(lost)}, which is published; "
            "put it back from a backup"
        )
    if max(stored) == newest or is_gone:  # nobody commits to what no state shows
        return None
    if any(covering(store, branch, frozenset({key})) is not None for key in keys):
        return "a pending write covers it"
    again = what_is_shown(store).pins.get(location, {}).get(branch, ())
    if not again or max(again) >= max(stored):
        return "it was written a moment ago"
    raise DriftError(
        f"nothing expires: '{min(keys)}' of branch '{display(branch)}' is at version {max(stored)}, but version "
        f"{newest} is published: another program committed to it past the manifest. Run repair first"
    )


def _announce(store: GraphStore, going: Mapping[Line, tuple[int, ...]]) -> dict[str, dict[Branch, int]]:
    """Says in main's manifest below which version each line expires, before anything is removed."""
    known = floors_of(store.manifest_rows(store.manifest(None)))
    changed: dict[str, dict[Branch, int]] = {}
    for (location, branch), versions in going.items():
        lines = changed.setdefault(location, dict(known.get(location, {})))
        lines[branch] = max(lines.get(branch, 0), versions[-1] + 1)
    rows = tuple(floor_row(location, lines) for location, lines in changed.items())
    publish(WholeBranch(store, None), Publication((), {}, new_ulid(), None, None, rows=rows))
    return changed


def _remove(store: GraphStore, plan: _Plan) -> list[ExpiredLine]:
    done = []
    states_gone = False
    for line, versions in plan.going.items():
        if not states_gone and line[0] != MANIFEST:
            states_gone = True
            reach(CrashPoint.EXPIRY_MANIFESTS_GONE)
        try:
            if _is_whole(store, line, versions):
                empty_above(_open(store, line), versions[-1])
            removed = remove(_open(store, line), versions)
        except CommitFailed as failure:  # somebody tagged one of them, or the store failed: the next run goes on
            plan.kept.append((branch_path(*line), str(failure)))
            continue
        left = stored_since(store.objects, branch_path(*line))
        done.append(_expired(store, line, removed.bytes, tuple(v for v in versions if v not in left)))
        reach(CrashPoint.EXPIRY_FIRST_GONE)
    return done


def _is_whole(store: GraphStore, line: Line, versions: tuple[int, ...]) -> bool:
    """Whether the newest version goes as well, as that of a hidden table does: an empty one comes in its place, since
    numbers of versions must not begin anew.
    """
    return versions[-1] == max(stored_since(store.objects, branch_path(*line)))


def _would_remove(store: GraphStore, line: Line, versions: tuple[int, ...]) -> int:
    """Bytes that the removal of some versions takes away; Lance does not say it of the newest one."""
    if not _is_whole(store, line, versions):
        return would_remove(_open(store, line), versions).bytes
    if len(versions) == len(stored_since(store.objects, branch_path(*line))):
        return sum(each.size for each in store.objects.walk(branch_path(*line)))
    return would_remove(_open(store, line), versions[:-1]).bytes


def _expired(store: GraphStore, line: Line, size: int, versions: tuple[int, ...]) -> ExpiredLine:
    left = set(stored_since(store.objects, branch_path(*line))) - set(versions)
    return ExpiredLine(line[0], display(line[1]), versions, size, len(left))


def _open(store: GraphStore, line: Line) -> Dataset:
    return store.open_dataset(branch_path(*line))


def _bytes(store: GraphStore, plan: _Plan) -> int:
    locations = {location for location, _ in plan.going}
    return sum(each.size for location in locations for each in store.objects.walk(location))


def _report(plan: _Plan, lines: list[ExpiredLine], had: int | None = None, has: int | None = None) -> ExpiryReport:
    branches = []
    for branch, line in plan.lines.items():
        gone = set(plan.going.get((MANIFEST, branch), ()))
        commits = tuple(commit.id for commit in line.own if commit.manifest_version in gone)
        oldest = min(unbroken({version: at for version, at in line.stored.items() if version not in gone}))
        branches.append(ExpiredStates(display(branch), oldest, line.stored[oldest], len(gone), commits))
    return ExpiryReport(tuple(branches), tuple(lines), tuple(plan.kept), had, has)
