"""Following a Delta table: types of a graph are brought to what it shows, exactly once.

The number of the last version that a branch shows is the transaction of an application, published with the rows. So a
run that was stopped anywhere goes on from what the graph itself says, and of two runs at once one finds that the other
was first. Beside the number is kept what it is the number of: a table that took the place of another one, and rows that
are read in another way, are seen before anything is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TypedDict

import msgspec

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, NodeType, Scalar
from spark_omnigraph.commit.contract import former_catalogs, read_catalog
from spark_omnigraph.draw.card import Card, commit_line
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRequestError, ConflictError, FeedLostError
from spark_omnigraph.graph.arguments import SWITCH, TEXT, Kind, require, require_known
from spark_omnigraph.graph.load.bad_rows import check_report_path
from spark_omnigraph.graph.load.inputs import accepted, input_choices
from spark_omnigraph.graph.load.load import LoadRequest
from spark_omnigraph.graph.load.options import LoadOptions, LoadReport, decoding
from spark_omnigraph.graph.load.source import OnceRows, load_once
from spark_omnigraph.graph.sync.source import ComparedTable, DeltaSource, NotToldError, ToldChanges
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.facts import CommitOrigin
from spark_omnigraph.manifest.rows import Transaction, noted_transactions
from spark_omnigraph.records.frames.mapping import MappingSource, TableInput
from spark_omnigraph.records.frames.rules import PlannedRows, plan_rows
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.input.delta_feed import FEED, WAY, DeltaState
from spark_omnigraph.storage.uri import DELTA
from spark_omnigraph.words import TextEnum
from spark_omnigraph.write.attempts import in_attempts
from spark_omnigraph.write.staged_files import StagedFiles

MAX_DELETES = 0.1
"""Share of the stored rows of a type that one run deletes at most, unless it is told otherwise."""


_SOURCE: Kind = (lambda source: hasattr(source, "changes"), "'delta:URI' or delta_source(spark, URI)")


class SyncChoices(TypedDict, total=False):
    """What a sync may be told besides: the type of the rows, or a mapping; whether the whole table is compared; under
    which name the graph remembers where it stands; and what a load is told.
    """

    node: str | None
    edge: str | None
    mapping: MappingSource | None
    full: bool
    app_id: str | None
    branch: str | None
    actor: str | None
    metadata: Mapping[str, str] | None
    options: LoadOptions | None


class SyncOutcome(TextEnum):
    """What a run did."""

    SNAPSHOT = "snapshot"
    """Took all rows of a version; what else is stored stayed."""
    FULL = "full"
    """Compared all rows of a version; what else was stored went."""
    CHANGES = "changes"
    """Applied what changed."""
    SAME = "same"
    """The graph shows the newest version already."""


@dataclass(frozen=True, slots=True, repr=False)
class SyncReport(Displayed):
    """What a sync did: the graph shows `version` of the table now, and showed `since` before; so many versions it is
    `behind`. `load` is None when there was nothing to do.
    """

    table: str
    table_id: str
    app_id: str
    outcome: SyncOutcome
    version: int
    since: int | None
    behind: int = 0
    load: LoadReport | None = None
    warnings: tuple[str, ...] = ()

    @property
    def commit(self) -> str | None:
        """The commit; None when no row changed."""
        return None if self.load is None else self.load.commit

    def _card(self) -> Card:
        since = "" if self.since is None else f" (was {self.since})"
        line = f"{self.table} at version {self.version}{since}: {self.outcome}, {commit_line(self.commit)}"
        return Card("SyncReport", line, {"table": self.table_id, "app id": self.app_id}, (), self.warnings)


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """What the caller asked for; `branch` None is main."""

    source: DeltaSource
    how: TableInput
    branch: Branch
    options: LoadOptions
    full: bool = False
    app_id: str | None = None
    actor: str | None = None
    origin: CommitOrigin = field(default_factory=CommitOrigin)
    mapping_digest: str | None = None


class _Bearing(msgspec.Struct, frozen=True):
    """What the number of a version is the number of: the table, and its place; which types have its rows, and how these
    are read, as a digest. `turn` counts the tables that one place has had, `at` is the version of the graph that the
    rows were written upon.
    """

    table: str
    place: str
    types: list[str]
    how: str
    turn: int = 0
    at: int | None = None


def sync_request(source: DeltaSource, branch: Branch, choices: SyncChoices, origin: CommitOrigin) -> SyncRequest:
    """The checked request. BadRequestError names a choice that is unknown or wrong."""
    require("source", source, _SOURCE)
    require_known(choices, SyncChoices, "a sync")
    full, app_id = choices.get("full", False), choices.get("app_id")
    require("full", full, SWITCH)
    if app_id is not None:
        require("app_id", app_id, TEXT)
    inputs = input_choices({name: choices.get(name) for name in ("node", "edge", "mapping")})
    if inputs.mapping is not None and inputs.mapping.of_given is None:
        raise BadRequestError("the mapping of a table that is followed has one input, without a path")
    how = inputs.of_tables
    if any(rule.table_key is None for rule in how.rules):
        raise BadRequestError("name the type of the rows of the table: node, edge or mapping")
    if any(rule.distinct for rule in how.rules):
        raise BadRequestError("'distinct' does not go with changes: no change tells that the last equal row went")
    options = choices.get("options") or LoadOptions()
    if full and options.max_bad_rows:
        raise BadRequestError("a row that is left out would be gone: a full sync takes no bad rows (max_bad_rows)")
    limit = MAX_DELETES if options.max_deletes is None else options.max_deletes
    return SyncRequest(
        source,
        how,
        branch,
        replace(options, max_deletes=limit, on_duplicate=OnDuplicate.ERROR),
        full,
        app_id,
        choices.get("actor"),
        origin.with_metadata(choices.get("metadata")),
        inputs.digest,
    )


def sync(store: GraphStore, request: SyncRequest) -> SyncReport:
    """One batch, in one commit: all rows of the newest version the first time, then what changed since. Of types with
    blobs, of which no row is left out once it is written, each version is a batch.

    Raises FeedLostError when the changes do not lead from what is shown to what is there, TooManyDeletesError, and what
    a load raises; then nothing has changed.
    """
    check_report_path(request.options.bad_rows, (), store.root)
    store.require_branch(request.branch, "; create it first")
    types = {str(rule.table_key) for rule in request.how.rules}

    def batch() -> SyncReport:
        return in_attempts(
            store, request.branch, lambda: _Sync(store, request).run(), lambda _: types, lost=ConflictError
        )

    report = first = batch()
    while report.behind and not request.options.dry_run:
        report = replace(batch(), since=first.since)
    return report


class _Sync:
    """One attempt: what the table is, and what the graph says that it shows."""

    def __init__(self, store: GraphStore, request: SyncRequest) -> None:
        self._store, self._request = store, request
        self._name = f"{DELTA}{request.source.place}"
        self._state = request.source.newest()
        self._upto = self._state.version
        self._types = sorted({str(rule.table_key) for rule in request.how.rules})
        catalog = accepted(read_catalog(store), request.options)
        types = (catalog.table(key) for key in self._types)
        self._has_blobs = any(p.type.scalar is Scalar.BLOB for each in types if each for p in each.properties)
        decode = decoding(request.options, LoadMode.CHANGES)
        planned = plan_rows(catalog, request.how, self._state.schema, replace(decode, changes=False))
        _require_ids(catalog, planned, decode.edge_id)
        self._how = _digest(planned, request.how, self._state, (decode.edge_id, decode.coerce))
        self._app = request.app_id or f"delta:{self._state.table_id}:{','.join(self._types)}"
        self._columns = [(str(plan.rule.table_key), {name for name, _ in plan.named}) for plan in planned]
        self._at = store.snapshot(request.branch).version
        known = list(noted_transactions(store.manifest_rows(store.manifest(request.branch))))
        self._last = next((each for each in known if each.app_id == self._app), None)
        notes = [note for each in known if (note := _note_of(each)) is not None]
        here = [note for note in notes if note.place == request.source.place and note.types == self._types]
        self._here = max(here, key=lambda note: note.turn, default=None)

    def run(self) -> SyncReport:
        state, last = self._state, self._last
        if not self._request.full:
            self._require_same_table()
        if self._request.full or last is None:
            if state.bar is not None and not self._request.full:
                raise BadRequestError(state.bar)
            if not (state.has_feed or self._request.full):
                raise FeedLostError(
                    f"'{self._name}' keeps no change data feed, so what follows its snapshot would not be known: set "
                    f"its property {FEED} to true, or compare the whole table each time with --full (full=True)"
                )
            return self._snapshot()
        if last.version == state.version:
            return self._report(SyncOutcome.SAME, None)
        if self._has_blobs:
            self._upto = last.version + 1
        return self._report(SyncOutcome.CHANGES, self._changes(last.version + 1))

    def _changes(self, first: int) -> LoadReport:
        source, takes_bad = self._request.source, bool(self._request.options.max_bad_rows)
        try:
            return self._load(ToldChanges(source.changes(first, self._upto), takes_bad))
        except NotToldError as found:
            with StagedFiles(self._store) as in_vain:
                in_vain.add(found.files)
            return self._load(ComparedTable(source.rows(self._upto), found.gone))

    def _snapshot(self) -> SyncReport:
        full = self._request.full
        report = self._load(ComparedTable(self._request.source.rows(self._state.version), None if full else {}))
        return self._report(SyncOutcome.FULL if full else SyncOutcome.SNAPSHOT, report)

    def _load(self, rows: OnceRows) -> LoadReport:
        request, whole = self._request, isinstance(rows, ComparedTable)
        turn = 0 if self._here is None else self._here.turn + (self._here.table != self._state.table_id)
        note = _Bearing(self._state.table_id, request.source.place, self._types, self._how, turn, self._at)
        text, options = msgspec.json.encode(note).decode(), request.options
        if options.batch is not None or self._has_blobs:
            options = replace(options, batch=self._upto)  # one of several, whose reports stand side by side
        load = LoadRequest(
            (),
            request.branch,
            LoadMode.CHANGES,
            request.actor,
            options,
            transaction=Transaction(self._app, self._upto, text, resets=request.full),
            origin=request.origin,
            mapping_digest=request.mapping_digest,
            compares=whole,
        )
        return load_once(self._store, load, request.how, rows)

    def _report(self, outcome: SyncOutcome, load: LoadReport | None) -> SyncReport:
        warnings = () if load is None else load.warnings
        if outcome is SyncOutcome.SNAPSHOT and load is not None and not self._request.options.dry_run:
            warnings += self._strangers(load)
        since = None if self._last is None else self._last.version
        found = self._name, self._state.table_id, self._app, outcome, self._upto, since
        return SyncReport(*found, self._state.version - self._upto, load, warnings)

    def _strangers(self, load: LoadReport) -> tuple[str, ...]:
        """Warnings about rows that were there before, and are not in the table."""
        snapshot = self._store.snapshot(self._request.branch, load.manifest_version)
        counts = ((key, snapshot.entry(TableKey(key)).row_count) for key in self._types)
        left = ((key, rows - (load.tables[key].valid if key in load.tables else 0)) for key, rows in counts)
        return tuple(
            f"{rows:,} rows of {key} are not in '{self._name}', and stay; a sync with --full (full=True) deletes them"
            for key, rows in left
            if rows > 0
        )

    def _require_same_table(self) -> None:
        """FeedLostError when another table stands where the followed one did, or rows are read in another way."""
        state, note = self._state, None if self._last is None else _note_of(self._last)
        types = ", ".join(self._types)
        for each in (self._here, note):
            if each is not None and each.table != state.table_id:
                raise FeedLostError(
                    f"'{self._name}' is another table ({state.table_id}) than the one that {types} followed "
                    f"({each.table}), so its changes do not lead to what it shows: {WAY}"
                )
        if note is not None and note.how != self._how:
            raise FeedLostError(
                f"the columns of '{self._name}' that {types} are made of, or how they are read, are not those of the "
                f"version that is shown; rows that did not change since would stay as they were: {WAY}"
            )
        if note is not None and note.at is not None and self._made_anew(note.at):
            raise FeedLostError(
                f"{types}, or a property of it, was dropped and made again since it showed '{self._name}': rows that "
                f"did not change since have lost what they had: {WAY}"
            )
        if self._last is not None and state.version < self._last.version:
            raise FeedLostError(
                f"'{self._name}' is at version {state.version}, and {types} showed its version {self._last.version} "
                f"already: it was put back from a copy, or is another table: {WAY}"
            )

    def _made_anew(self, at: int) -> bool:
        """Whether the schema was without one of the types, or of the properties that rows fill, since a version."""
        for catalog in former_catalogs(self._store, at):
            for key, columns in self._columns:
                entity = catalog.table(key)
                if entity is None or not columns <= {*entity.columns}:
                    return True
        return False


def _note_of(transaction: Transaction) -> _Bearing | None:
    """What the number is of; None where another kind of writer, or a restore, left it."""
    try:
        return None if transaction.note is None else msgspec.json.decode(transaction.note, type=_Bearing)
    except msgspec.MsgspecError:
        return None


def _require_ids(catalog: Catalog, planned: tuple[PlannedRows, ...], edge_id: tuple[str, ...] | None) -> None:
    """BadRequestError for rows that a later change could not name."""
    for plan in planned:
        entity = catalog.require(str(plan.rule.table_key))
        named = {name for name, _ in plan.named} | ({"id"} if plan.rule.id else set())
        if "id" in named or (isinstance(entity, NodeType) and entity.key):
            continue
        if isinstance(entity, NodeType) or edge_id is None:
            way = "" if isinstance(entity, NodeType) else ", or let it follow from their ends (--edge-id, edge_id)"
            raise BadRequestError(
                f"rows of {entity.name} have no id by which a later change finds them: give them a column 'id'{way}"
            )


def _digest(planned: tuple[PlannedRows, ...], how: TableInput, state: DeltaState, options: object) -> str:
    """How rows are made of which columns, of which types."""
    rules = [
        (
            str(plan.rule.table_key),
            [(name, source, state.types[source]) for name, source in sorted(plan.named)],
            [(name, [(source, state.types[source]) for source in sources]) for name, _, sources in plan.ends],
            [(source, state.types[source]) for source in plan.rule.id],
            plan.rule.when,
            sorted((name, repr(value)) for name, value in plan.rule.constants),
        )
        for plan in planned
    ]
    return sha256(json.dumps([rules, how.coerce, options]).encode()).hexdigest()[:32]
