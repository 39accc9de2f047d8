"""Copying a graph: all branches with their history, or one state as the main of a new graph.

    lease at the target ──▶ note what is copied ──▶ files, each read back ──▶ say what it is a copy of ──▶ count rows
                                                                                       ──▶ schema files ──▶ note goes

Nothing opens at the target before its schema file is there, which comes last, so half a copy is no graph. A copy that
died is gone on with by the next one: files that are there with the right bytes stay. At the source a stage keeps away
whoever removes what is younger, where it can be written; what else expires meanwhile is no part of the next attempt.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

import msgspec

from spark_omnigraph.branch.control import list_branches, parse_branch
from spark_omnigraph.commit.contract import read_contract
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.making import end_stages, remaking
from spark_omnigraph.commit.publisher import Publication, publish
from spark_omnigraph.commit.stage import staging
from spark_omnigraph.draw.card import Card, grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRequestError, ConflictError, NotFoundError, StorageError
from spark_omnigraph.graph.copy.captured import Captured, capture_all, files_of
from spark_omnigraph.graph.copy.state import copy_tables, files_of_state
from spark_omnigraph.graph.copy.target import FOLDERS, NOTE, Copying, counted, refuse_inside, refuse_other
from spark_omnigraph.graph.schema.since import refuse_another_schema
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.copied import CopyOrigin, copy_row
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.faults import alone
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import (
    RECOVERY,
    SCHEMA_IR,
    SCHEMA_SOURCE,
    SCHEMA_STATE,
)
from spark_omnigraph.storage.manifest.commit_log import copy_commits
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.objects.transfer import Transferred, put_checked, transfer
from spark_omnigraph.storage.rebase import rebased
from spark_omnigraph.storage.uri import Location

_ATTEMPTS = 5
"""Plans of a copy of all branches, while others write and let states expire."""
_AT_ONCE = 8
"""Files under way at a time: most of it is waiting for the store."""


@dataclass(frozen=True, slots=True, repr=False)
class CopyReport(Displayed):
    """What is at the target: manifest version and rows of each branch, files and bytes, and how many of the files this
    run sent; the others were there. In a dry run, what there would be. `warnings` says when nothing kept clean-up away.
    """

    source: str
    target: str
    all_branches: bool
    branches: Mapping[str, int]
    rows: int
    files: int
    bytes: int
    sent: int
    warnings: tuple[str, ...] = ()

    def _card(self) -> Card:
        what = "all branches" if self.all_branches else "one state"
        size = f"{self.rows:,} rows, {self.files:,} files, {self.bytes:,} bytes"
        versions = grid("Branches", ("branch", "manifest version"), self.branches.items(), len(self.branches))
        facts = {"from": self.source, "to": self.target, "files sent by this run": self.sent}
        return Card("CopyReport", f"{what} of {self.source} to {self.target}: {size}", facts, without_empty(versions))


def copy_graph(
    source: GraphStore, target: Location, state: Snapshot | None = None, dry_run: bool = False
) -> CopyReport:
    """Copies all branches, or one `state` as main. What is there already of the same copy is gone on with.

    AlreadyInitializedError when the target is a graph, BadRequestError when anything else is there, or for a state of
    another schema, ConflictError or WriterBusyError while somebody else works on either; StorageError when what arrived
    is not what was sent: then there is no graph, and the next run goes on.
    """
    refuse_inside(source, target.root)
    _refuse_links(source)
    if state is not None:  # the copy has one schema file, as the graph has
        now = source.snapshot(state.branch)
        refuse_another_schema(source, read_contract(source), now, state, "Copy a newer state, or all branches")
    wanted = _wanted(source, state)
    if dry_run:
        return _planned(source, target, state)
    place = GraphStore(target, Objects(target, create=True))
    refuse_other(place, wanted)
    place.objects.probe(RECOVERY)
    with _kept(source) as warnings, remaking(place) as hold:
        refuse_other(place, wanted)
        if place.objects.get(SCHEMA_SOURCE) is not None:  # it died when all was done
            place.objects.delete(NOTE)
            return _found(place, source.root, state is None)
        end_stages(place)
        place.objects.put(NOTE, msgspec.json.encode(wanted))
        reach(CrashPoint.COPY_STARTED)
        copier = _Copier(source, place, hold)
        states = copier.state(state) if state is not None else copier.all_branches()
        reach(CrashPoint.COPY_NAMED)
        hold()
        rows = {display(branch): counted(place, branch) for branch in states}
        _show(source, place)
        reach(CrashPoint.COPY_SHOWN)
        place.objects.delete(NOTE)
    done = list(copier.done.values())
    branches = {display(branch): place.snapshot(branch).version for branch in states}
    sizes = sum(each.size for each in done)
    sent = sum(each.sent for each in done)
    whole, count = state is None, sum(rows.values())
    return CopyReport(source.root, target.root, whole, branches, count, len(done), sizes, sent, warnings)


@contextmanager
def _kept(source: GraphStore) -> Iterator[tuple[str, ...]]:
    """Keeps clean-up at the source away during the block; yields a warning instead where it cannot be written."""
    with ExitStack() as held:
        warnings: tuple[str, ...] = ()
        try:
            held.enter_context(staging(source))
        except StorageError as error:
            warnings = (
                f"{source.root} cannot be written, so that nothing kept clean-up there away: had it removed a file, "
                f"there would be no copy ({error.message})",
            )
        yield warnings


def _found(place: GraphStore, source: str, is_whole: bool) -> CopyReport:
    """The report of a copy that is there."""
    shown = [place.snapshot(parse_branch(name)) for name in list_branches(place)]
    rows = sum(entry.row_count for snapshot in shown for entry in snapshot.entries.values())
    files = [each for folder in FOLDERS for each in place.objects.walk(folder)]
    branches = {display(snapshot.branch): snapshot.version for snapshot in shown}
    size = sum(each.size for each in files)
    return CopyReport(source, place.root, is_whole, branches, rows, len(files), size, 0)


def _wanted(source: GraphStore, state: Snapshot | None) -> Copying:
    if state is None:
        return Copying(source.root)
    return Copying(source.root, display(state.branch), state.version)


def _planned(source: GraphStore, target: Location, state: Snapshot | None) -> CopyReport:
    if not target.is_local or os.path.exists(target.root):
        wanted = _wanted(source, state)
        refuse_other(GraphStore(target, Objects(target)), wanted)
    if state is not None:
        rows = sum(entry.row_count for entry in state.entries.values())
        files = files_of_state(source, state)
        return CopyReport(source.root, target.root, False, {"main": 3}, rows, len(files), sum(files.values()), 0)
    captured = capture_all(source)
    files = files_of(source, captured)
    rows = sum(entry.row_count for shown in captured.states.values() for entry in shown.entries.values())
    branches = {display(branch): shown.version for branch, shown in captured.states.items()}
    return CopyReport(source.root, target.root, True, branches, rows, len(files), sum(files.values()), 0)


def _refuse_links(store: GraphStore) -> None:
    """What lies behind symbolic links of a local disk is not looked at, so it would be missing."""
    links = [link for link in store.objects.links("") if link.startswith(FOLDERS)]
    if links:
        raise BadRequestError(
            f"'{store.root}' has symbolic links ({links[0]}), and what lies behind them is no part of a graph: put it "
            "in their place, then copy"
        )


@dataclass(slots=True)
class _Copier:
    source: GraphStore
    place: GraphStore
    hold: Callable[[], None]
    done: dict[str, Transferred] = field(default_factory=dict)

    def all_branches(self) -> list[Branch]:
        """Files of all lines, planned anew when one of them went or the branches moved apart."""
        for left in reversed(range(_ATTEMPTS)):
            captured, failure = self._attempt()
            if captured is not None:
                break
            if not left and failure is not None:
                raise failure
        assert captured is not None
        with alone(f"late commits cannot be copied to '{self.place.root}'"):
            for branch, commits in captured.late.items():
                copy_commits(self.place.location, branch, commits)
        main = captured.states[None]
        self._sign(CopyOrigin(self.source.root, "main", main.version, True, time.time_ns() // 1000))
        return list(captured.states)

    def _attempt(self) -> tuple[Captured | None, Exception | None]:
        try:
            captured = capture_all(self.source)
            files = files_of(self.source, captured)
            self._send(files)
        except (ConflictError, NotFoundError, StorageError) as failure:
            return None, failure
        return captured, None

    def _send(self, files: Mapping[str, int]) -> None:
        there = {each.path: each.size for folder in FOLDERS for each in self.place.objects.walk(folder)}
        self.place.objects.delete_all(sorted(there.keys() - files.keys()))
        self.done.clear()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for each in pool.map(lambda path: self._one(path, there.get(path)), sorted(files)):
                self.done[each.path] = each
                reach(CrashPoint.COPY_FIRST)
                self.hold()
        reach(CrashPoint.COPY_FILES)

    def _one(self, path: str, there: int | None) -> Transferred:
        if not path.endswith(".manifest"):
            return transfer(self.source.objects, self.place.objects, path, there)
        location = path.rpartition("/_versions/")[0].partition("/tree/")[0]
        content = self.source.objects.get(path, limit=None)
        if content is None:
            raise StorageError(f"storage: {self.source.root}/{path} went while it was copied")
        moved = rebased(content, location, self.place.root)
        return put_checked(self.place.objects, path, moved, there is not None)

    def state(self, state: Snapshot) -> list[Branch]:
        """Each table as a dataset of its own, at the version that the state shows; then a manifest that shows them."""
        origin = CopyOrigin(self.source.root, display(state.branch), state.version, False, time.time_ns() // 1000)
        for each in copy_tables(self.source, self.place, state, copy_row(origin), self.hold):
            self.done[each.path] = each
            reach(CrashPoint.COPY_FIRST)
        reach(CrashPoint.COPY_FILES)
        return [None]

    def _sign(self, origin: CopyOrigin) -> None:
        publish(WholeBranch(self.place, None), Publication((), {}, new_ulid(), None, None, rows=(copy_row(origin),)))


def _show(source: GraphStore, place: GraphStore) -> None:
    """The schema files, that which makes a graph of it last."""
    for name in (SCHEMA_IR, SCHEMA_STATE, SCHEMA_SOURCE):
        content = source.objects.get(name, limit=None)
        if content is not None:
            place.objects.put(name, content)
        else:
            with suppress(StorageError):
                place.objects.delete(name)
