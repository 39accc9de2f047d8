"""Mutations: the statements of one query → rows in memory → checked → one staged commit a table, one publish.

    prepare_mutation   text → parsed, checked against the schema, parameters bound            no table is read
    statements         each sees what stands and what those before it did                     reads only
    check              the rules of a load, once, over everything the query wrote             reads only
    stage, commit      fragments that nothing names; then the commit protocol                 all or nothing

A query of inserts alone that lost a race runs again on the new state, a bounded number of times. Updates and deletes
were decided by what they read, so for them the loss is the caller's to see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone

from spark_omnigraph.commit.contract import Contract
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.plan import WriterKind
from spark_omnigraph.draw.card import Card, commit_line, counts_line, figures_grid, phases_grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.graph.mutate.check import check_pending
from spark_omnigraph.graph.mutate.staging import ChangedRows, changed_rows, count_pending, stage_pending
from spark_omnigraph.graph.mutate.statements import Statements
from spark_omnigraph.lang.gq.bind import bind
from spark_omnigraph.lang.gq.check.mutation import TypedInsert, TypedMutation, TypedStatement, check_mutation
from spark_omnigraph.lang.gq.params import bind_params
from spark_omnigraph.lang.gq.syntax.parser import check_kinds, parse_queries, pick_query
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.facts import CommitFacts, CommitOrigin, RowFacts
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.validate.probes import tables_read
from spark_omnigraph.write.attempts import in_attempts
from spark_omnigraph.write.candidates import candidate, capture, fork_first
from spark_omnigraph.write.clock import Clock
from spark_omnigraph.write.staged_files import StagedFiles, staged_files


@dataclass(frozen=True, slots=True)
class MutationRequest:
    """A checked query with its parameters bound; `branch` None is main."""

    name: str
    statements: tuple[TypedStatement, ...]
    contract: Contract
    branch: Branch = None
    actor: str | None = None
    dry_run: bool = False
    """Everything is checked and counted, nothing is written."""
    origin: CommitOrigin = field(default_factory=CommitOrigin)

    @property
    def only_inserts(self) -> bool:
        return all(isinstance(statement, TypedInsert) for statement in self.statements)


@dataclass(frozen=True, slots=True, repr=False)
class MutationResult(Displayed):
    """What a mutation did. `affected_nodes` and `affected_edges` are summed over its statements: a row counts for each
    statement that touched it. `commit` is None when nothing was to be done.
    """

    query: str
    branch: str
    affected_nodes: int
    affected_edges: int
    actor: str | None
    commit: str | None
    base_commit: str | None
    manifest_version: int
    tables: Mapping[str, ChangedRows]
    phases: Mapping[str, float]
    warnings: tuple[str, ...] = field(default=())

    def _card(self) -> Card:
        tables = {key: asdict(rows) for key, rows in self.tables.items()}
        return Card(
            "MutationResult",
            f"{self.query} on {self.branch}: {counts_line(tables.values())}, {commit_line(self.commit)}",
            {
                "affected nodes": self.affected_nodes,
                "affected edges": self.affected_edges,
                "actor": self.actor,
                "base commit": self.base_commit,
                "manifest version": self.manifest_version,
            },
            without_empty(figures_grid("Rows", tables), phases_grid(self.phases)),
            self.warnings,
        )


def prepare_mutation(
    contract: Contract, text: str, name: str | None, params: Mapping[str, object] | None
) -> MutationRequest:
    """Everything that can be refused without looking at a row: the text, the choice of the query, its types, deletes
    beside other statements, its parameters. `now()` is the instant of this call.
    """
    check_kinds(text, name)
    checked: TypedMutation = check_mutation(contract.catalog, pick_query(parse_queries(text), name))
    values = bind_params(checked.name, checked.params, params, datetime.now(timezone.utc))
    return MutationRequest(checked.name, bind(checked.statements, values), contract)


def mutate(store: GraphStore, request: MutationRequest) -> MutationResult:
    """Runs a mutation in one commit, or refuses it and changes nothing.

    Raises ConstraintError and BadRequestError for what breaks a rule, ConflictError when somebody else won.
    """
    clock = Clock()
    written = {statement.entity.table_key for statement in request.statements}

    def attempt() -> MutationResult:
        with staged_files(store) as files:
            return _attempt(store, request, clock, files)

    return in_attempts(store, request.branch, attempt, lambda _: written if request.only_inserts else None)


def _attempt(store: GraphStore, request: MutationRequest, clock: Clock, files: StagedFiles) -> MutationResult:
    with clock.phase("plan"):
        base = capture(store, request.branch, contract=request.contract)
    snapshot = base.snapshot
    statements = Statements(store, request.contract.catalog, snapshot)
    with clock.phase("run"):
        for statement in request.statements:
            statements.run(statement)
    with clock.phase("check"):
        check_pending(store, snapshot, statements)
    reach(CrashPoint.CHECKED)
    pending, changes, published = statements.pending.written(), statements.deletion.changes(), base.unchanged
    changed = {key: changed_rows(change) for key, change in changes.items()}
    if request.dry_run:
        changed |= {key: count_pending(store, snapshot, key, rows) for key, rows in pending.items()}
    elif statements.written:
        with clock.phase("stage"):
            fork_first(store, snapshot, statements.written)
            changes |= {key: stage_pending(store, snapshot, key, rows, files) for key, rows in pending.items()}
        reach(CrashPoint.STAGED)
        changed |= {key: changed_rows(change) for key, change in changes.items()}
        # It relies on every table that a statement or a check looked at.
        read = statements.looked_at | tables_read(base.contract.catalog, pending, False)
        prepared = candidate(store, base, WriterKind.MUTATION, request.actor, changes, read)
        with clock.phase("commit"):
            published = files.commit(replace(prepared, facts=_facts(request, changed, clock)))
    return MutationResult(
        query=request.name,
        branch=display(request.branch),
        affected_nodes=statements.affected_nodes,
        affected_edges=statements.affected_edges,
        actor=request.actor,
        commit=published.commit_id,
        base_commit=base.commit,
        manifest_version=published.manifest_version,
        tables=dict(sorted(changed.items())),
        phases=clock.seconds(),
        warnings=published.warnings,
    )


def _facts(request: MutationRequest, changed: Mapping[str, ChangedRows], clock: Clock) -> CommitFacts:
    counts = {key: RowFacts(each.inserted, each.updated, each.deleted) for key, each in sorted(changed.items())}
    return CommitFacts("mutation", None, counts, seconds=clock.total(), origin=request.origin)
