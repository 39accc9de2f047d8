"""A schema change, from a text to one commit.

plan       accepted and desired schema → steps                                   refused: BadRequestError
lock       nobody else changes the graph; writers under way are waited for       schema_lock
check      the whole graph, for every step that stored rows may break            refused: BadRowsError
stage      columns and rows; nothing refers to them                              executors
commit     tables, staged schema files, publish, their names                     commit/protocol.py
remove     what was dropped for good
unlock, and indexes as after every write
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import cast

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.migration.document import document
from spark_omnigraph.catalog.migration.effects import asks_indexes
from spark_omnigraph.catalog.migration.planner import SchemaPlan
from spark_omnigraph.catalog.migration.sentences import sentence
from spark_omnigraph.catalog.migration.steps import RemoveConstraint, SchemaStep
from spark_omnigraph.catalog.types import Index
from spark_omnigraph.commit.contract import Contract, read_contract
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.owners import await_turn
from spark_omnigraph.commit.plan import Identity, PreparedCommit, Published, SchemaWrite, WriterKind
from spark_omnigraph.commit.schema.lock import refuse_branches
from spark_omnigraph.commit.schema.removal import (
    DroppedVersions,
    forget_removals,
    note_removals,
    refuse_needed,
    remove_through,
)
from spark_omnigraph.draw.card import Card, commit_line, figures_grid, grid, phases_grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRequestError, BadRowsError, ConflictError, OmnigraphError
from spark_omnigraph.graph.load.bad_rows import check_report_path
from spark_omnigraph.graph.schema.bad_rows import report_broken
from spark_omnigraph.graph.schema.count import check_steps
from spark_omnigraph.graph.schema.lock import schema_lock
from spark_omnigraph.graph.schema.preview import ChangeRequest, SchemaChoices, change_request, plan_change
from spark_omnigraph.graph.schema.tables import StagedChange, TableStager, removals_of
from spark_omnigraph.graph.schema.values import SCHEMA_APPLY, digest_of, values_given_by
from spark_omnigraph.manifest.facts import CommitFacts, CommitOrigin, RowFacts
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.write.attempts import in_attempts
from spark_omnigraph.write.candidates import Base, capture
from spark_omnigraph.write.clock import Clock
from spark_omnigraph.write.executor import Executor, LocalExecutor
from spark_omnigraph.write.indexes import drop_indices
from spark_omnigraph.write.staged_files import StagedFiles, staged_files

_NAMED = 5
"""Steps that cannot be done and that a refusal names."""


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """A schema that a graph is to have, who asks for it, and why."""

    change: ChangeRequest
    actor: str | None = None
    origin: CommitOrigin = field(default_factory=CommitOrigin)


class ApplyChoices(SchemaChoices, total=False):
    """How a schema change is done; see `Graph.apply_schema`."""

    actor: str | None
    metadata: Mapping[str, str] | None


def apply_request(schema: str | os.PathLike[str], choices: ApplyChoices, origin: CommitOrigin) -> ApplyRequest:
    """A request by `.pg` text or a file's path. BadRequestError for a choice that there is not."""
    own = {name: value for name, value in choices.items() if name not in ("actor", "metadata")}
    change = change_request(schema, cast(SchemaChoices, own))
    return ApplyRequest(change, choices.get("actor"), origin.with_metadata(choices.get("metadata")))


@dataclass(frozen=True, slots=True, repr=False)
class SchemaReport(Displayed):
    """What a schema change did. `applied` is False when there was nothing to do; then the text was not stored either.
    `tables` are those that the change names and that are there afterwards, `dropped` those that are not.
    """

    steps: tuple[SchemaStep, ...]
    applied: bool
    commit: str | None
    manifest_version: int
    tables: Mapping[str, RowFacts]
    dropped: tuple[str, ...] = ()
    phases: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    base_commit: str | None = None
    """The newest commit that the change was made from; None when there was nothing to do."""
    to_index: tuple[str, ...] = ()
    """Tables whose indexes may not be complete."""

    def _card(self) -> Card:
        tables = {key: asdict(rows) for key, rows in self.tables.items()}
        steps = f"{len(self.steps):,} step{'' if len(self.steps) == 1 else 's'}"
        return Card(
            "SchemaReport",
            f"{steps} applied, {commit_line(self.commit)}"
            if self.applied
            else "nothing to do: the graph has this schema",
            {
                "base commit": self.base_commit,
                "manifest version": self.manifest_version,
                "dropped": ", ".join(self.dropped) or None,
            },
            without_empty(
                grid("Steps", ("step",), ((sentence(step),) for step in self.steps), len(self.steps)),
                figures_grid("Rows", tables),
                phases_grid(self.phases),
            ),
            self.warnings,
        )

    def to_dict(self) -> dict[str, object]:
        """What the job prints."""
        steps = [document(step) for step in self.steps]
        done = {"supported": True, "step_count": len(steps), "steps": steps}
        return {"applied": self.applied, **done, "dropped": list(self.dropped)}


def apply_schema(store: GraphStore, request: ApplyRequest, executor: Executor | None = None) -> SchemaReport:
    """Gives a graph another schema, with all rows it has, or refuses that and changes nothing.

    Raises SchemaParseError, CatalogError, NotFoundError or BadRequestError for the text, its steps and values,
    BadRowsError for stored rows that break a rule, ConflictError while there are branches besides main, somebody else
    changes the graph, or another change runs.
    """
    check_report_path(request.change.bad_rows, (), store.root)
    clock = Clock()
    with clock.phase("plan"):
        contract = read_contract(store)
        plan = _plan(store, contract, request.change)
    if not plan.steps:
        return SchemaReport((), False, None, store.snapshot(None).version, {})
    refuse_branches(store)
    with schema_lock(store) as lock:
        refuse_branches(store)

        def attempt() -> SchemaReport:
            with staged_files(store) as files:
                change = _Change(store, request, executor or LocalExecutor(1), clock, lock)
                await_turn(store, None, frozenset(each.table_key for each in contract.catalog.tables()))
                base = capture(store, None)
                found = plan if base.contract == contract else _plan(store, base.contract, request.change)
                return change.run(files, base, found)

        report = in_attempts(store, None, attempt, lambda _: frozenset())
    warnings = drop_indices(store, _unasked(report.steps)) if report.applied else ()
    return replace(report, warnings=(*report.warnings, *warnings))


def _unasked(steps: Iterable[SchemaStep]) -> dict[str, set[str]]:
    """Columns of each table whose indexes go."""
    found: dict[str, set[str]] = {}
    for step in steps:
        if isinstance(step, RemoveConstraint) and isinstance(step.constraint, Index):
            found.setdefault(step.table_key, set()).update(step.constraint.columns)
    return found


def _plan(store: GraphStore, contract: Contract, change: ChangeRequest) -> SchemaPlan:
    """The steps of a change. BadRequestError where some cannot be done: the first ones are named."""
    plan = plan_change(contract, change, store)
    if not plan.supported:
        more = len(plan.unsupported) - _NAMED
        shown = [step.message for step in plan.unsupported[:_NAMED]] + ([f"and {more} more"] if more > 0 else [])
        raise BadRequestError("; ".join(shown))
    return plan


@dataclass(frozen=True, slots=True)
class _Change:
    """One attempt, while its process holds the lock."""

    store: GraphStore
    request: ApplyRequest
    executor: Executor
    clock: Clock
    lock: str

    def run(self, files: StagedFiles, base: Base, plan: SchemaPlan) -> SchemaReport:
        store, clock = self.store, self.clock
        if not plan.steps:  # somebody else applied the same schema
            return SchemaReport((), False, None, base.snapshot.version, {})
        removals = removals_of(base.snapshot, plan.tables)
        with clock.phase("check"):
            self._check(base, plan)
            refuse_needed(store, removals)
        reach(CrashPoint.CHECKED)
        with clock.phase("stage"):
            change = TableStager(store, base.snapshot, self.executor, files).stage(plan.tables)
        reach(CrashPoint.STAGED)
        prepared = self._prepared(base, plan, change)
        with clock.phase("commit"):
            published, warnings = self._commit(files, prepared, removals)
        counts = _counts(base, plan, change)
        return SchemaReport(
            plan.steps,
            True,
            published.commit_id,
            published.manifest_version,
            {key: rows for key, rows in counts.items() if key not in change.dropped},
            tuple(sorted(change.dropped)),
            clock.seconds(),
            (*published.warnings, *warnings),
            base.commit,
            tuple(each.new.table_key for each in plan.tables if each.new and any(map(asks_indexes, each.steps))),
        )

    def _check(self, base: Base, plan: SchemaPlan) -> None:
        counts = check_steps(self.store, base.snapshot, plan, self.executor, rules_only=True)
        if counts.bad_rows:
            summary = report_broken(counts, plan, self.request.change.bad_rows, self.store.storage_options)
            raise BadRowsError(
                f"schema change refused, nothing changed: {summary.told()} Mend or delete what breaks the new "
                "schema, then apply again",
                summary,
            )

    def _prepared(self, base: Base, plan: SchemaPlan, change: StagedChange) -> PreparedCommit:
        contract, snapshot = base.contract, base.snapshot
        written = {write.table_key for write in change.writes} | change.dropped.keys()
        schema = SchemaWrite(
            contract.source, plan.desired, self.request.change.source, self.lock, snapshot.version, change.dropped
        )
        facts = CommitFacts(
            SCHEMA_APPLY,
            "allow_data_loss" if self.request.change.allow_data_loss else None,
            _counts(base, plan, change),
            seconds=self.clock.total(),
            origin=self.request.origin,
            input_digest=digest_of(values_given_by(plan.steps)),
        )
        return PreparedCommit(
            Identity(new_ulid(), new_ulid(), self.request.actor, WriterKind.SCHEMA_APPLY),
            None,
            contract.schema_hash,
            tuple(change.writes),
            {key: snapshot.pin(key) for key in snapshot.entries if key not in written},
            facts=facts,
            schema=schema,
        )

    def _commit(
        self, files: StagedFiles, prepared: PreparedCommit, removals: tuple[DroppedVersions, ...]
    ) -> tuple[Published, tuple[str, ...]]:
        operation, commit = prepared.identity.operation_id, prepared.identity.commit_id
        if not removals or commit is None:
            return files.commit(prepared), ()
        note_removals(self.store, operation, commit, removals)
        try:
            published = files.commit(prepared)
        except ConflictError:
            forget_removals(self.store, operation)
            raise
        try:
            remove_through(self.store, removals)
            forget_removals(self.store, operation)
        except OmnigraphError as error:
            return published, (f"what was dropped is not all removed yet: {error.message}; recover goes on with it",)
        return published, ()


def _counts(base: Base, plan: SchemaPlan, change: StagedChange) -> dict[str, RowFacts]:
    """Rows of each table that count as inserted, updated or deleted."""
    counts: dict[str, RowFacts] = {}
    for diff in plan.tables:
        if diff.new is not None:
            counts[diff.new.table_key] = RowFacts()
        if diff.new is None and diff.old is not None:
            counts[diff.old.table_key] = RowFacts(deleted=base.snapshot.entry(diff.old.table_key).row_count)
    for write in change.writes:
        layout = write.change.layout
        if not write.is_new and (write.change.files or (layout is not None and layout.filled)):
            counts[TableKey(write.table_key)] = RowFacts(updated=write.row_count)
    return counts
