"""Restoring: a new commit whose rows are those of an old state, written as the difference.

The rows of the old state and of the present one are compared as a merge compares them, with the present as the base:
what differs becomes the old row, and nothing else is written. So the change feed shows exactly those rows, and the cost
follows the change. Lance's own restore would set versions of rows back, and readers of the feed would miss them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TypedDict

from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.plan import PreparedCommit, WriterKind
from spark_omnigraph.commit.schema.lock import refuse_schema_change
from spark_omnigraph.draw.card import Card, commit_line, counts_line, figures_grid, grid, phases_grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.arguments import require_known
from spark_omnigraph.graph.merge.rows import MergedTable, TableDelta, TableSides, candidates, merge_slice, slices
from spark_omnigraph.graph.read.history import ReadTarget, resolve
from spark_omnigraph.graph.read.scan import pinned_rows
from spark_omnigraph.graph.schema.since import refuse_another_schema
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.facts import CommitFacts, CommitOrigin, RowFacts
from spark_omnigraph.manifest.rows import last_transactions
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.manifest.table import read_rows
from spark_omnigraph.storage.tables.scan import PinnedTable
from spark_omnigraph.write.attempts import in_attempts
from spark_omnigraph.write.candidates import Base, candidate, capture, fork_first, target_of
from spark_omnigraph.write.clock import Clock
from spark_omnigraph.write.executor import Executor
from spark_omnigraph.write.staged_files import StagedFiles, staged_files

_WAY_OUT = "Choose a later state, or export the old one"


class RestoreChoices(TypedDict, total=False):
    """Which state, and how; see `Graph.restore`."""

    version: int | None
    snapshot: str | None
    as_of: datetime | str | None
    tag: str | None
    dry_run: bool
    confirm: bool
    rewind_apps: bool
    metadata: Mapping[str, str] | None
    executor: Executor | None


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """Which branch becomes what `state` shows."""

    branch: Branch
    state: Snapshot
    actor: str | None = None
    dry_run: bool = False
    """Everything is found and counted, nothing is written."""
    confirm: bool = False
    """Go on although applications have committed since, whose numbers stay."""
    rewind_apps: bool = False
    """Set those applications back to their last transaction of the state, so that they write again what is gone."""
    origin: CommitOrigin = field(default_factory=CommitOrigin)


def restore_request(store: GraphStore, branch: Branch, actor: str | None, choices: RestoreChoices) -> RestoreRequest:
    """A checked request. BadRequestError for choices that there are not, and where no state is named; NotFoundError for
    one that there is not.
    """
    require_known(choices, RestoreChoices, "a restore")
    past = (choices.get("version"), choices.get("snapshot"), choices.get("as_of"), choices.get("tag"))
    if past == (None,) * len(past):
        raise BadRequestError("say what to restore: version, snapshot (the id of a commit), as_of (a time) or tag")
    state = resolve(store, ReadTarget(display(branch), *past))
    dry_run, confirm, rewind = (choices.get(name) is True for name in ("dry_run", "confirm", "rewind_apps"))
    return RestoreRequest(branch, state, actor, dry_run, confirm, rewind)


@dataclass(frozen=True, slots=True)
class LaterApplication:
    """An application that committed after the state: its last transaction now, and by then."""

    app_id: str
    now: int
    then: int | None


@dataclass(frozen=True, slots=True, repr=False)
class RestoreReport(Displayed):
    """What a restore did to each table. `commit` is None when none was made; `restored` names the state."""

    branch: str
    restored_branch: str
    restored_version: int
    commit: str | None
    base_commit: str | None
    manifest_version: int
    tables: Mapping[str, MergedTable]
    applications: tuple[LaterApplication, ...]
    """Those that committed after the state."""
    phases: Mapping[str, float]
    warnings: tuple[str, ...] = ()

    def _card(self) -> Card:
        tables = {key: rows.figures() for key, rows in self.tables.items()}
        state = f"version {self.restored_version} of {self.restored_branch} on {self.branch}"
        later = ((app.app_id, app.now, app.then) for app in self.applications)
        return Card(
            "RestoreReport",
            f"{state}: {counts_line(tables.values())}, {commit_line(self.commit)}",
            {"base commit": self.base_commit, "manifest version": self.manifest_version},
            without_empty(
                figures_grid("Rows", tables),
                grid(
                    "Applications that committed since", ("application", "now", "then"), later, len(self.applications)
                ),
                phases_grid(self.phases),
            ),
            self.warnings,
        )


def restore(store: GraphStore, request: RestoreRequest, executor: Executor) -> RestoreReport:
    """Restores in one commit, or refuses and changes nothing.

    BadRequestError across a schema change, which it names, and for applications that committed since, unless the
    request says what becomes of them; ConflictError when anything moved meanwhile, since what a restore undoes is what
    its caller saw.
    """
    store.require_branch(request.branch)
    clock = Clock()

    def attempt() -> RestoreReport:
        with staged_files(store) as files:
            return _attempt(store, request, executor, clock, files)

    return in_attempts(store, request.branch, attempt, lambda _: None)


def _attempt(
    store: GraphStore, request: RestoreRequest, executor: Executor, clock: Clock, files: StagedFiles
) -> RestoreReport:
    refuse_schema_change(store)
    base = capture(store, request.branch)
    differ = _differing(base, request.state)
    refuse_another_schema(store, base.contract, base.snapshot, request.state, _WAY_OUT)
    later = _later_applications(store, base.snapshot, request.state)
    if not request.dry_run:
        _refuse_unsaid(request, later)
    reach(CrashPoint.PLANNED)
    with clock.phase("stage"):
        sources = {key: pinned_rows(store, request.state, key) for key in differ}
        deltas = dict(stage_difference(store, base, sources, executor, files, dry_run=request.dry_run))
    reach(CrashPoint.STAGED)
    reach(CrashPoint.CHECKED)
    tables = {key: delta.counts for key, delta in deltas.items() if delta.has_changes}
    published = base.unchanged
    prepared = _candidate(store, request, base, deltas, later, clock)
    if not request.dry_run and not prepared.is_empty:
        with clock.phase("commit"):
            published = files.commit(prepared)
    return RestoreReport(
        display(request.branch),
        display(request.state.branch),
        request.state.version,
        published.commit_id,
        base.commit,
        published.manifest_version,
        tables,
        later,
        clock.seconds(),
        published.warnings,
    )


def _differing(base: Base, state: Snapshot) -> list[str]:
    keys = sorted(entity.table_key for entity in base.contract.catalog.tables())
    return [key for key in keys if base.snapshot.place(key) != state.place(key)]


def stage_difference(
    store: GraphStore,
    base: Base,
    sources: Mapping[str, PinnedTable | None],
    executor: Executor,
    files: StagedFiles,
    *,
    dry_run: bool = False,
) -> Iterator[tuple[str, TableDelta]]:
    """Table by table, the rows that the sources have otherwise; in a dry run they are staged and removed again."""
    now = base.snapshot
    for key, source in sources.items():
        present = pinned_rows(store, now, key)
        entity = base.contract.catalog.require(key)
        sides = TableSides(entity, source, present, (present,))
        found = candidates(sides)
        if not found.num_rows:
            continue
        if not dry_run:
            fork_first(store, now, [key])
        into = target_of(store, now, key, now.entry(key).branch if dry_run else now.branch)
        parts = []
        for part in executor.map(partial(merge_slice, sides, into, store.storage_options), list(slices(found))):
            files.add(part.files)
            parts.append(part)
        yield key, TableDelta(sides, into, tuple(parts))


def _candidate(
    store: GraphStore,
    request: RestoreRequest,
    base: Base,
    deltas: Mapping[str, TableDelta],
    later: tuple[LaterApplication, ...],
    clock: Clock,
) -> PreparedCommit:
    changes = {key: delta.change for key, delta in deltas.items() if delta.has_changes}
    counted = {key: deltas[key].counts for key in changes}
    counts = {key: RowFacts(rows.appended, rows.updated, rows.deleted) for key, rows in counted.items()}
    # What was compared must still stand, in tables that do not change too.
    prepared = candidate(store, base, WriterKind.MUTATION, request.actor, changes, set(base.snapshot.entries))
    rewound = {app.app_id: app.then for app in later} if request.rewind_apps else {}
    facts = CommitFacts("restore", None, counts, None, clock.total(), request.origin)
    return replace(prepared, rewound=rewound, facts=facts)


def _later_applications(store: GraphStore, now: Snapshot, state: Snapshot) -> tuple[LaterApplication, ...]:
    present = last_transactions(store.manifest_rows(store.manifest(now.branch)))
    before = last_transactions(read_rows(store.manifest(state.branch, state.version))) if present else {}
    return tuple(
        LaterApplication(app, last, before.get(app))
        for app, last in sorted(present.items())
        if last > before.get(app, -1)
    )


def _refuse_unsaid(request: RestoreRequest, later: tuple[LaterApplication, ...]) -> None:
    if later and not (request.rewind_apps or request.confirm):
        named = ", ".join(f"'{app.app_id}' (last {app.now}, by then {app.then})" for app in later[:5])
        more = f" and {len(later) - 5} more" if len(later) > 5 else ""
        raise BadRequestError(
            f"applications committed after the state: {named}{more}. What they wrote since would be gone, and they "
            "would not write it again; rewind_apps (--rewind-apps) sets them back, confirm (--confirm) leaves them"
        )
