"""`Graph`: everything a caller does with one graph, without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spark_omnigraph.branch.control import check_new_branch, create_branch, list_branches, parse_branch
from spark_omnigraph.branch.delete import DeletedBranch, MergedBranches, check_deletable, delete_branch, delete_merged
from spark_omnigraph.branch.info import BranchInfo, branch_infos
from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.commit.contract import Contract, read_contract, view
from spark_omnigraph.commit.recovery import Recovered, recover
from spark_omnigraph.graph import verbs
from spark_omnigraph.graph.arguments import CALLABLE, EXECUTOR, NAMES, PATH, checked, instance_of
from spark_omnigraph.graph.load.options import LoadOptions, LoadReport
from spark_omnigraph.graph.opened import open_graph
from spark_omnigraph.graph.read.describe import GraphDescription, describe_graph
from spark_omnigraph.graph.read.export import export_records, read_entity
from spark_omnigraph.graph.read.history import Bounded, ReadTarget, State, Watched, Where, resolve
from spark_omnigraph.graph.read.pending import PendingWrite, interrupted_writes, running_writes
from spark_omnigraph.graph.read.scan import row_count
from spark_omnigraph.graph.states import READS, StateVerbs
from spark_omnigraph.limits import split_limits
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.manifest.facts import CommitOrigin
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.manifest.commit_log import RecoveryAudit, read_recoveries
from spark_omnigraph.storage.tables.index import Upkeep
from spark_omnigraph.write.after import after
from spark_omnigraph.write.attempts import ATTEMPTS
from spark_omnigraph.write.executor import Executor, LocalExecutor
from spark_omnigraph.write.indexes import BuiltIndexes, IndexStatus, ensure_indices, index_status

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from spark_omnigraph.graph.provider import VectorSource


@checked(
    READS,
    **{"types": NAMES, "tables": NAMES, "conflicts": PATH, "bad_rows": PATH, "progress": CALLABLE},
    options=instance_of(LoadOptions),
    executor=EXECUTOR,
)
@dataclass(frozen=True, slots=True, repr=False)
class Graph(StateVerbs):
    """A handle on one graph. Each call reads a fresh snapshot of its branch, unless the handle is pinned (`at`).

    Handles are cheap, immutable and may be used from several threads. Pickled, one is opened anew where it arrives,
    with its storage options: a task of Spark may query with it what its driver pinned.

    Examples:
        >>> import tempfile
        >>> g = Graph.init(tempfile.mkdtemp() + "/g", "node Person { name: String @key  age: I32? }")
        >>> report = g.load(['{"type": "Person", "data": {"name": "Ada", "age": 36}}'])
        >>> report.nodes_loaded
        {'Person': 1}
        >>> g.entity("node:Person", "Ada")
        {'id': 'Ada', 'age': 36, 'name': 'Ada'}
    """

    @classmethod
    def init(
        cls,
        uri: str | os.PathLike[str],
        schema: str | os.PathLike[str],
        *,
        force: bool = False,
        storage_options: Mapping[str, str] | None = None,
    ) -> Graph:
        """Makes a graph from `.pg` text or a file's path. AlreadyInitializedError when one is there."""
        return cls(verbs.create_graph(uri, schema, force, storage_options))

    @classmethod
    def open(
        cls,
        uri: str | os.PathLike[str],
        mode: str = "rw",
        branch: str = "main",
        storage_options: Mapping[str, str] | None = None,
    ) -> Graph:
        """Opens a graph for reading (`"r"`) or reading and writing (`"rw"`).

        Read-write probes the store, brings an older internal format up to date, and recovers interrupted writes
        (RecoveryRequiredError when one cannot be read; one that cannot be brought to an end bars its tables, see
        `interrupted`; DriftError when the manifest lacks publishes); a read-only open changes nothing. NotFoundError
        for a missing graph or branch, UnsupportedFormatError for a format that this release does not know, and
        read-write for one that it only reads.
        """
        opened = open_graph(uri, mode, branch, storage_options)
        return cls(opened.store, mode == "rw", ReadTarget(display(opened.branch)), opened.recovered, opened.lost)

    def at(self, **where: Unpack[Where]) -> Graph:
        """A read-only handle pinned to what these name now, by default the newest state of its branch: `branch`,
        `version`, `snapshot` (the id of a commit), `as_of` (a time), `tag`. It shows that and nothing else:
        NotFoundError once the graph or the branch was made anew.
        """
        found = self._state(where)
        target = ReadTarget(display(found.branch), version=found.version, mark=found.mark)
        return replace(self, writable=False, target=target)

    def with_origin(self, origin: CommitOrigin) -> Graph:
        """A handle whose commits say this of who makes them."""
        return replace(self, origin=origin)

    def catalog(self) -> Catalog:
        """The accepted schema; of a pinned handle that of its state."""
        return self._contract().catalog

    def schema(self) -> str:
        """The accepted schema as `.pg` text; of a pinned handle that of its state."""
        return self._contract().source

    def apply_schema(self, schema: str | os.PathLike[str], **choices: Unpack[verbs.ApplyChoices]) -> verbs.SchemaReport:
        """Gives main this schema, with all its rows, in one commit; choices as in `plan_schema`, and `actor` and
        `metadata`. Raises what that raises, BadRequestError for a step that no change can do, BadRowsError for rows
        that break a rule, ConflictError while there are other branches or somebody else won; then nothing has changed.
        """
        self._require_writable()
        request = verbs.apply_request(schema, choices, self.origin)
        self.refresh()
        report = verbs.apply_schema(self.store, request, choices.get("executor"))
        return after(self.store, None, report, "schema change", report.to_index)

    def plan_schema(
        self, schema: str | os.PathLike[str], **choices: Unpack[verbs.SchemaChoices]
    ) -> verbs.SchemaPreview:
        """What a change to this schema (`.pg` text or a file's path) would do to main, step by step: the rows that each
        step touches, writes and would break; all that would break go to the file `bad_rows`. Nothing is written.

        `values` are for stored rows: `{"Film.year": 1999}`, or `FromColumn("other")` for what each row has in another
        property. Raises SchemaParseError, CatalogError, NotFoundError, BadRequestError; a step that no change can do is
        part of the plan.
        """
        return verbs.preview(self.store, verbs.change_request(schema, choices), choices.get("executor"))

    def load(  # noqa: PLR0913 - what the commit says of itself, and what the input is, come besides
        self,
        source: object = None,
        mode: str = "append",
        *,
        branch: str | None = None,
        base: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        options: LoadOptions | None = None,
        **inputs: Unpack[verbs.InputArguments],
    ) -> LoadReport:
        """Loads files in one commit (paths, globs, folders, URIs; JSON lines, Parquet, CSV or Arrow by their `format`),
        an iterable of JSON lines or of records as dictionaries, or a table of Arrow, pandas or polars. `node` or `edge`
        names the type of the rows of tables, `mapping` (a path, a text or a dictionary) says more.

        `mode` is append, merge, update or overwrite. A missing branch is an error, unless `base` names a branch to
        create it from. `metadata` are texts of your own, kept with the commit. Raises BadRowsError, ConstraintError,
        ConflictError; then nothing has changed.
        """
        origin, line = self.origin.with_metadata(metadata), self.branch if branch is None else branch
        self.refresh()
        call = verbs.LoadCall(mode, line, base, actor, origin, options or LoadOptions(), inputs)
        return verbs.load_source(self.store, source, call)

    def load_table(
        self, type: str, rows: object, mode: str = "append", **how: Unpack[verbs.LoadArguments]
    ) -> LoadReport:
        """Like `load`, of rows of one type, `node:T` or `edge:T`: a table, a list of dictionaries, or table files."""
        named = {self.catalog().require(type).table_key.kind: self.catalog().require(type).name}
        return self.load(rows, mode, **{**how, **named})  # type: ignore[arg-type]  # node or edge

    def ingest(  # noqa: PLR0913 - as many as `load` has
        self,
        source: object = None,
        branch: str | None = None,
        base: str = "main",
        mode: str = "append",
        *,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        options: LoadOptions | None = None,
        **inputs: Unpack[verbs.InputArguments],
    ) -> LoadReport:
        """Like `load`, but a missing branch is created from `base` first."""
        return self.load(
            source, mode, branch=branch, base=base, actor=actor, metadata=metadata, options=options, **inputs
        )

    def delete(
        self,
        table: str,
        ids: Iterable[str],
        *,
        branch: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> verbs.DeleteReport:
        """Deletes rows of `node:T` or `edge:E` by id in one commit, with nodes the edges that touch them.

        Ids that are not stored are counted. Raises BadRequestError (also for a single text, whose letters would each
        count as an id), NotFoundError, ConflictError.
        """
        self._require_writable()
        origin = self.origin.with_metadata(metadata)
        wanted = verbs.id_array(table, ids)
        self.refresh()
        line = parse_branch(branch or self.branch)
        return verbs.delete_ids(self.store, verbs.DeleteRequest({table: wanted}, line, actor, origin=origin))

    def mutate(  # noqa: PLR0913 - as many as `load` has
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        actor: str | None = None,
        branch: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> verbs.MutationResult:
        """Runs one mutation of a `.gq` text in one commit: the one of that `name`, or the only one. A dry run checks
        and counts, and writes nothing.

        Raises QueryParseError, QueryTypeError, ParameterError, BadRequestError or ConstraintError when it is refused,
        ConflictError when somebody else won; then nothing has changed.
        """
        self._require_writable()
        origin = self.origin.with_metadata(metadata)
        line = self._existing_branch(branch)
        request = verbs.prepare_mutation(read_contract(self.store), text, name, params)
        self.refresh()
        result = verbs.mutate(self.store, replace(request, branch=line, actor=actor, dry_run=dry_run, origin=origin))
        return after(self.store, line, result, "mutation")

    def embed(
        self,
        type: str | None = None,
        property: str | None = None,
        embedder: object = None,
        **choices: Unpack[verbs.EmbedChoices],
    ) -> verbs.EmbedReport:
        """Gives rows that have a text and no vector one, in one commit: of a property, or of all with `@embed`. Each
        text is paid for once, and whoever is stopped goes on. `embedder` is a function from texts to vectors, an
        `EmbedConfig`, or None: what the environment names. docs/embeddings.md tells the choices. Raises EmbeddingError,
        EmbeddingConfigError, ConflictError.
        """
        request = verbs.embed_request(self.store, self.branch, (type, property), embedder, choices, self.origin)
        if not request.bounds.dry_run:
            self.refresh()
        return after(self.store, request.branch, verbs.embed(self.store, request), "embedding")

    def count(self, table: str, **where: Unpack[Where]) -> int:
        """Stored rows of `node:T` or `edge:E`, from the manifest alone."""
        return row_count(self.store, self.snapshot(**where), table)

    def entity(self, table: str, entity_id: str, **where: Unpack[Where]) -> dict[str, object] | None:
        """One row by id as a dictionary (values as in `export`), or None."""
        return read_entity(self.store, *self._shown(where), table, entity_id)

    def query(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        embedder: VectorSource | None = None,
        **choices: Unpack[Watched],
    ) -> verbs.QueryResult:
        """The rows of a read query; `name` picks one where the text has several, `params` are its parameters' values.
        `embedder` gives vectors for texts of `nearest`: a function `f(texts) -> vectors`, an `EmbedConfig`, or by
        default the provider that variables `OMNIGRAPH_EMBED_…` name. Choices: a state as in `at`; `time_limit`, seconds
        after which the query is given up; `max_rows`, of which an answer may not have more; `progress`, a function that
        is told of each operator that is done (`f("query", done, of)`).

        Raises QueryParseError, QueryTypeError, ParameterError, BadRequestError, LimitError, EmbeddingConfigError,
        EmbeddingError.
        """
        limits, where = split_limits(choices)
        progress = where.pop("progress", None)
        catalog, snapshot = self._shown(where)
        plan = verbs.bound_plan(verbs.prepare(catalog, text, name), params, embedder=embedder)
        source = verbs.source_of(self.store, catalog, snapshot)
        return verbs.answer_query(source, snapshot, plan, limits, progress)

    def explain(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        analyze: bool = False,
        **choices: Unpack[Bounded],
    ) -> str:
        """The plan of a read query as text, one operator a line, and the engine that `read_query` would take for it by
        itself; with `params` their values stand in it. With `analyze` the query runs, with choices as in `query`, and
        each line has the rows that its operator gave and the time that it took itself.
        """
        if not analyze:
            return verbs.explain_query(*self._shown(split_limits(choices)[1]), text, name, params)
        limits, where = split_limits(choices)
        catalog, snapshot = self._shown(where)
        plan = verbs.bound_plan(verbs.prepare(catalog, text, name), params)
        return verbs.analyze_query(verbs.source_of(self.store, catalog, snapshot), plan, limits)

    def sql(
        self, text: str, params: Mapping[str, object] | None = None, **choices: Unpack[verbs.SqlChoices]
    ) -> verbs.SqlResult:
        """The rows of one SQL statement that reads, by DataFusion (extra `sql`), found when they are asked for. Types
        are tables, branches, tags and versions schemas (`"review/x".Film`, `"main@7".Film`); `params` are values of
        `$name`. Choices as in `query`, and the bytes of `memory` and, on the disk, `spill`. docs/sql.md tells the rest.

        Raises QueryParseError, QueryTypeError, ParameterError, BadRequestError for what does more than read,
        NotFoundError, LimitError; UsageError without DataFusion.
        """
        graph = verbs.SqlGraph(self.store, self._shown, self.target.version is not None)
        return graph.run(text, params, choices)

    def export(
        self, types: Sequence[str] | None = None, tables: Sequence[str] | None = None, **where: Unpack[Where]
    ) -> Iterator[str]:
        """JSON lines that `load` accepts again, of the chosen types or tables; all when none is chosen."""
        return export_records(self.store, *self._shown(where), types, tables)

    def export_tables(
        self,
        output: str | os.PathLike[str],
        format: str = "delta",
        types: Sequence[str] | None = None,
        *,
        incremental: bool = False,
        with_blobs: bool = False,
        executor: Executor | None = None,
        **where: Unpack[Where],
    ) -> dict[str, verbs.WrittenTable]:
        """Types as tables: a Delta table `OUTPUT/nodes/TYPE` or `OUTPUT/edges/TYPE`, or a file of Parquet; by table key
        what was written. `incremental` writes what changed since the state that a Delta table shows. With
        `SparkExecutor(spark)` the session's own Delta writes. Raises ConflictError when somebody else writes meanwhile.
        """
        shown, chosen = self._shown(where), types or ()
        return verbs.export_types(self.store, *shown, output, format, chosen, incremental, with_blobs, executor)

    def describe(self, **where: Unpack[Where]) -> GraphDescription:
        """Types, counts, versions, index coverage and branches; `to_dict()` of it is what the job `describe` prints."""
        warnings = () if self.lost is None else (str(self.lost),)
        shown, form = self._shown(where), self.store.form()
        return describe_graph(self.store, *shown, warnings if form.is_written else (*warnings, form.note))

    def commits(self, *, branch: str | None = None, limit: int | None = None, actor: str | None = None) -> list[Commit]:
        """Commits that a branch sees, newest first, with their facts; the newest `limit` of them, or of one actor's."""
        return verbs.commit_history(self.store, branch or self.branch, limit, actor)

    def commit(self, commit_id: str) -> Commit:
        """A commit by id with its facts. NotFoundError when no branch has it."""
        return verbs.get_commit(self.store, commit_id, parse_branch(self.branch))

    def diff(self, before: State, after: State | None = None, *, only: verbs.DiffFilter | None = None) -> verbs.Diff:
        """Net changes from one state to another; `after` is by default what this handle shows.

        A state is a manifest version, a commit id, a time, a branch or else a tag, or what `at` takes: `g.diff(3)`,
        `g.diff("main", "draft")`, `g.diff({"branch": "draft", "version": 3})`.
        The cost follows the number of changes, not the size of the graph.
        """
        contract, later = view(self.store, lambda: self.snapshot() if after is None else self._named(after))
        return verbs.diff(self.store, contract.catalog, self._named(before), later, only)

    def branches(self) -> list[str]:
        """`main`, then the other branches by name."""
        return list_branches(self.store)

    def branch_infos(self) -> list[BranchInfo]:
        """Each branch with its parent, its head, the tables of its own, and how far it is ahead and behind."""
        return branch_infos(self.store)

    def create_branch(
        self,
        name: str,
        base: str = "main",
        *,
        version: int | None = None,
        snapshot: str | None = None,
        tag: str | None = None,
        dry_run: bool = False,
    ) -> str:
        """Creates a branch that shows what `base` shows, now, at a manifest version, or what the commit `snapshot` or a
        `tag` shows (of whatever branch); a dry run only checks that it can. No table is copied.

        Raises BranchExistsError, NotFoundError for a missing base or state, BadRequestError, ConflictError.
        """
        if (version, snapshot, tag) != (None, None, None):
            found = resolve(self.store, ReadTarget(base, version, snapshot, tag=tag))
            base, version = display(found.branch), found.version
        if dry_run:
            return check_new_branch(self.store, name, base, version)
        self.refresh()  # the commits that the branch is to see are in the log then
        return create_branch(self.store, name, base, version)

    def merge_branch(
        self, source: str, into: str = "main", *, actor: str | None = None, **choices: Unpack[verbs.MergeChoices]
    ) -> verbs.MergeReport:
        """Merges what `source` changed since the branches parted, by row, in one commit with two parents. `source` does
        not change. Choices: `dry_run` only finds and checks; `metadata` are texts of yours; `executor` does the work.

        A row that both changed differently is a conflict. MergeConflictsError counts them; all are, with their rows, in
        the file `conflicts` (JSON lines, or Parquet by its name). `decisions`, a file, a frame or dicts of what that
        file has, say what becomes of single rows: `take` is "source" or "target", or `row` is a record. With
        `on_conflict` "source" or "target" that side wins elsewhere, and the file `conflicts` is required.
        """
        self._require_writable()
        request = verbs.merge_request(self.store, source, into, actor, choices)
        request = replace(request, origin=self.origin.with_metadata(choices.get("metadata")))
        self.refresh()
        report = verbs.merge_branch(self.store, request, choices.get("executor") or LocalExecutor(1))
        return after(self.store, request.target, report, "merge")

    def delete_branch(self, name: str, *, dry_run: bool = False) -> DeletedBranch:
        """Removes a branch with its commits and its own versions of tables; a dry run only checks that it can.

        Raises BadRequestError for main, NotFoundError, ConflictError when another branch depends on it.
        """
        if dry_run:
            return check_deletable(self.store, name)
        self.refresh()
        return delete_branch(self.store, name)

    def delete_merged_branches(self, *, dry_run: bool = False) -> MergedBranches:
        """Deletes every branch whose commits all lie behind main or its parent; which went, and why others stay."""
        if not dry_run:
            self.refresh()
        return delete_merged(self.store, dry_run)

    def ensure_indices(self, *, branch: str | None = None, executor: Executor | None = None) -> BuiltIndexes:
        """Builds the indexes that the schema asks for and that are missing, extends those that do not cover all rows,
        and builds anew what cannot be extended; a list of names as `table.column`, whose `warnings` say what could not
        be built. Tables that the branch shares with another one are that one's to index.
        """
        self.refresh()
        where = parse_branch(branch or self.branch)
        return ensure_indices(self.store, where, upkeep=Upkeep(), attempts=ATTEMPTS, executor=executor)

    def optimize(
        self,
        *,
        branch: str | None = None,
        actor: str | None = None,
        dry_run: bool = False,
        executor: Executor | None = None,
    ) -> verbs.OptimizeReport:
        """Joins small files of the tables that were written on a branch and drops masked rows, in one commit; makes
        indexes whole, and compacts the manifest and the commit log. No row changes. A dry run counts files.
        """
        request = verbs.OptimizeRequest(self._existing_branch(branch), actor=actor, dry_run=dry_run, origin=self.origin)
        if not dry_run:
            self.refresh()
        return verbs.optimize(self.store, request, executor)

    def indexes(self, **where: Unpack[Where]) -> list[IndexStatus]:
        """The indexes that the schema asks for, and how many rows each covers."""
        return index_status(self.store, *self._shown(where))

    def recover(self, *, break_lock: bool = False) -> list[Recovered]:
        """Finishes or undoes writes whose writer is gone; `break_lock` is for another engine's lock of the schema."""
        self._require_writable()
        return recover(self.store, break_lock=break_lock)

    def repair(self, *, branch: str | None = None, confirm: bool = False, force: bool = False) -> verbs.RepairReport:
        """Finds tables of a branch that another program committed to past the manifest, and says how to go on.

        With `confirm` those that were only compacted are published, with `force` besides also what nobody checked.
        Refused while a write is pending.
        """
        if confirm:
            self._require_writable()
        return verbs.repair(self.store, parse_branch(branch or self.branch), confirm, force, self.origin)

    def interrupted(self) -> list[PendingWrite]:
        """Writes whose writer is gone and that await recovery."""
        return interrupted_writes(self.store)

    def running(self) -> list[PendingWrite]:
        """Writes under way, and until when each counts as alive unless its writer says so again."""
        return running_writes(self.store)

    def recoveries(self) -> list[RecoveryAudit]:
        """Audit rows of all recoveries, oldest first."""
        self.store.manifest(None)
        return read_recoveries(self.store.location)

    def _shown(self, where: Where) -> tuple[Catalog, Snapshot]:
        is_pinned = self.target.version is not None
        contract, snapshot = self._pinned(where) if is_pinned else view(self.store, lambda: self.snapshot(**where))
        return contract.catalog, snapshot

    def _contract(self) -> Contract:
        return read_contract(self.store) if self.target.version is None else self._pinned({})[0]
