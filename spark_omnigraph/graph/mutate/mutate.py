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
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from spark_omnigraph.branch.control import display
from spark_omnigraph.branch.fork import fork_tables
from spark_omnigraph.commit.contract import Contract
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.lease import staging
from spark_omnigraph.commit.owners import await_turn
from spark_omnigraph.commit.plan import Identity, PreparedCommit, TableWrite, WriterKind
from spark_omnigraph.commit.protocol import commit
from spark_omnigraph.commit.publisher import current_head
from spark_omnigraph.errors import ExpectedVersionMismatch, OmnigraphError
from spark_omnigraph.graph.mutate.check import check_pending
from spark_omnigraph.graph.mutate.staging import ChangedRows, StagedTables, count_pending, stage_pending
from spark_omnigraph.graph.mutate.statements import Statements
from spark_omnigraph.lang.gq.bind import bind
from spark_omnigraph.lang.gq.check.mutation import TypedInsert, TypedMutation, TypedStatement, check_mutation
from spark_omnigraph.lang.gq.params import bind_params
from spark_omnigraph.lang.gq.syntax.parser import check_kinds, parse_queries, pick_query
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.validate.probes import tables_read
from spark_omnigraph.write.clock import Clock

REPLANS = 5
"""Attempts of a query of inserts whose tables other writers move."""


@dataclass(frozen=True, slots=True)
class MutationRequest:
    """A checked query with its parameters bound; `branch` None is main."""

    name: str
    statements: tuple[TypedStatement, ...]
    contract: Contract
    branch: str | None = None
    actor: str | None = None
    dry_run: bool = False
    """Everything is checked and counted, nothing is written."""
    stages: tuple[str, ...] = ()
    """Under which its rows are staged."""

    @property
    def only_inserts(self) -> bool:
        return all(isinstance(statement, TypedInsert) for statement in self.statements)


@dataclass(frozen=True, slots=True)
class MutationResult:
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
    attempt = 1
    while True:
        try:
            with staging(store) as stage:
                return _attempt(store, replace(request, stages=(stage,)), clock)
        except ExpectedVersionMismatch as moved:
            if not request.only_inserts or attempt == REPLANS:
                raise
            attempt += 1
            written = {statement.entity.table_key for statement in request.statements}
            await_turn(store, request.branch, frozenset(written | {moved.table_key}))


def _attempt(store: GraphStore, request: MutationRequest, clock: Clock) -> MutationResult:
    with clock.phase("plan"):
        snapshot, rows = store.snapshot_with_rows(request.branch)
        base_commit = current_head(store, request.branch, snapshot.version, rows)
    statements = Statements(store, request.contract.catalog, snapshot)
    with clock.phase("run"):
        for statement in request.statements:
            statements.run(statement)
    with clock.phase("check"):
        check_pending(store, snapshot, statements)
    reach(CrashPoint.CHECKED)
    changed = {key: ChangedRows(deleted=len(gone)) for key, gone in statements.deletion.changes().items()}
    published = None
    if request.dry_run:
        pending = statements.pending.written()
        changed |= {key: count_pending(store, snapshot, key, rows) for key, rows in pending.items()}
    elif statements.written:
        with clock.phase("stage"):
            staged = _stage(store, snapshot, statements)
        reach(CrashPoint.STAGED)
        changed |= {key: ChangedRows(table.inserted, table.updated) for key, table in staged.tables.items()}
        with clock.phase("commit"):
            prepared = _prepare(request, snapshot, statements, staged)
            published = commit(store, prepared, staged.discard)
    return MutationResult(
        query=request.name,
        branch=display(request.branch),
        affected_nodes=statements.affected_nodes,
        affected_edges=statements.affected_edges,
        actor=request.actor,
        commit=published.commit_id if published is not None else None,
        base_commit=base_commit,
        manifest_version=published.manifest_version if published is not None else snapshot.version,
        tables=dict(sorted(changed.items())),
        phases=clock.seconds(),
        warnings=published.warnings if published is not None else (),
    )


def _stage(store: GraphStore, snapshot: Snapshot, statements: Statements) -> StagedTables:
    """On a branch, tables that are written for the first time are forked, then rows are written."""
    if any(snapshot.entry(key).branch != snapshot.branch for key in statements.written):
        fork_tables(store, snapshot, statements.written)
        reach(CrashPoint.FORKED)
    staged = StagedTables(store)
    try:
        for key, pending in statements.pending.written().items():
            staged.add(stage_pending(store, snapshot, key, pending))
    except OmnigraphError:
        staged.discard()
        raise
    return staged


def _prepare(
    request: MutationRequest, snapshot: Snapshot, statements: Statements, staged: StagedTables
) -> PreparedCommit:
    """The write as data. It relies on every table that a statement or a check looked at."""
    writes = []
    for key, table in staged.tables.items():
        change = TableChange(table.fragments, table.removed if table.updated else None)
        rows = snapshot.entry(key).row_count + table.inserted
        writes.append(TableWrite(snapshot.entry(key), snapshot.branch, change, rows))
    for key, gone in statements.deletion.changes().items():
        rows = snapshot.entry(key).row_count - len(gone)
        writes.append(TableWrite(snapshot.entry(key), snapshot.branch, TableChange(removed=gone), rows))
    written = {write.table_key for write in writes}
    read = (statements.looked_at | tables_read(request.contract.catalog, staged.tables, False)) - written
    identity = Identity(new_ulid(), new_ulid(), request.actor, WriterKind.MUTATION)
    pins = {key: snapshot.pin(key) for key in sorted(read)}
    schema = request.contract.schema_hash
    return PreparedCommit(identity, request.branch, schema, tuple(writes), pins, stages=request.stages)
