"""States of a graph as a handle knows them: which one it shows, names that keep them, and how old ones expire."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from spark_omnigraph.branch.consumers import Consumer, delete_consumer, list_consumers
from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.branch.tags import create_tag, delete_tag, list_tags
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit.contract import Contract, pinned_view, read_catalog
from spark_omnigraph.commit.lost import LostPublishes
from spark_omnigraph.commit.recovery import Recovered, Scope, recover_for_writing
from spark_omnigraph.draw.card import LINE, Card, shown
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph import verbs
from spark_omnigraph.graph.arguments import EXECUTOR, checked, instance_of
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.graph.read.history import ReadTarget, State, Where, check_where, resolve, target_of
from spark_omnigraph.graph.read.picture import graph_card
from spark_omnigraph.manifest.branches import MAIN, Branch
from spark_omnigraph.manifest.facts import CommitOrigin
from spark_omnigraph.manifest.kept import Tag
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.uri import locate
from spark_omnigraph.write.after import after
from spark_omnigraph.write.executor import LocalExecutor

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from spark_omnigraph.graph.convert.convert import ConvertReport
    from spark_omnigraph.graph.copy.copy import CopyReport
    from spark_omnigraph.graph.erase.erase import EraseReport
    from spark_omnigraph.graph.maintain.cleanup import CleanupReport
    from spark_omnigraph.graph.restore.restore import RestoreChoices, RestoreReport
    from spark_omnigraph.graph.sync.source import DeltaSource
    from spark_omnigraph.graph.sync.sync import SyncChoices, SyncReport


@dataclass(frozen=True, slots=True, repr=False)
class Handle(Displayed):
    """What a handle on a graph holds, and the state that it shows."""

    store: GraphStore
    writable: bool = True
    target: ReadTarget = field(default_factory=ReadTarget)
    recovered: tuple[Recovered, ...] = ()
    """Writes that opening this handle finished or undid."""
    lost: LostPublishes | None = None
    """What the manifest of the branch was found to lack when this handle was opened for reading: an older state is
    shown, and the graph cannot be opened for writing.
    """
    origin: CommitOrigin = field(default_factory=CommitOrigin)
    """What commits of this handle say of who makes them."""

    @property
    def uri(self) -> str:
        return self.store.root

    @property
    def branch(self) -> str:
        return self.target.branch or MAIN

    def __repr__(self) -> str:
        """Without a look at the store, which a debugger or a log must not cost."""
        return f"<Graph: {shown(self._line(), LINE)}>"

    def _line(self) -> str:
        state = "" if self.target.version is None else f" at version {self.target.version}"
        return f"{self.uri}, branch {self.branch}{state}, {'read and write' if self.writable else 'read only'}"

    def _card(self) -> Card:
        return graph_card(self.store, self.target, self._line())

    def snapshot(self, **where: Unpack[Where]) -> Snapshot:
        """Tables and versions that a read shows; `branch`, `version`, `snapshot`, `as_of`, `tag` as in `at`.

        Whoever opens a table by other means opens it at its version here: what is newer may not be published yet.

        A pinned handle shows its own state alone: BadRequestError for any other.
        """
        if self.target.version is None:
            return self._state(where)
        self._refuse_other(where)
        # Read, since a kept one does not know whether its schema is a former one by now.
        return resolve(self.store, self.target)

    def _refuse_other(self, where: Where) -> None:
        """BadRequestError when a pinned handle is asked for another state."""
        asked = [name for name, value in where.items() if value is not None]
        if asked:
            raise BadRequestError(
                f"this handle is pinned to version {self.target.version} of '{self.branch}', so '{asked[0]}' cannot be"
                " chosen: ask the handle that it was made from"
            )

    def _pinned(self, where: Where) -> tuple[Contract, Snapshot]:
        """What a pinned handle shows, with the schema of then."""
        self._refuse_other(where)
        branch, version = parse_branch(self.target.branch), self.target.version or 0
        find = partial(resolve, self.store, self.target)
        return pinned_view(self.store, branch, version, self.target.mark, find)

    def refresh(self) -> list[Recovered]:
        """Finishes interrupted writes that only lack their publish or clean-up; undoing is left to `recover`."""
        self._require_writable()
        return recover_for_writing(self.store, Scope.FORWARD_ONLY)

    def _named(self, state: State) -> Snapshot:
        """A state as `diff` takes it."""
        if isinstance(state, Mapping):
            return self._state(state)
        target = target_of(state)
        name = target.branch
        if name not in (None, MAIN) and name not in self.store.branch_names() and name in list_tags(self.store):
            return resolve(self.store, ReadTarget(tag=name))
        return resolve(self.store, replace(target, branch=name or self.branch))

    def _state(self, where: Where) -> Snapshot:
        """A state of the graph, on this handle's branch unless another is named."""
        check_where(where)
        branch = where.get("branch")
        line = self.branch if branch is None else branch
        past = (where.get("version"), where.get("snapshot"), where.get("as_of"), where.get("tag"))
        return resolve(self.store, ReadTarget(line, *past))

    def _existing_branch(self, branch: str | None) -> Branch:
        name = parse_branch(branch if branch is not None else self.branch)
        self.store.require_branch(name, "; create it first")
        return name

    def _require_writable(self) -> None:
        self.store.require_writable()
        if not self.writable:
            raise BadRequestError("this handle is read-only: open the graph with mode='rw'")


_OF_STATES = ("at", "with_origin", "catalog", "schema", "describe", "count", "entity", "query", "explain", "indexes")
_OF_HISTORY = ("commits", "commit", "diff", "branches", "branch_infos", "tags", "consumers", "recoveries")
_OF_OTHERS = ("interrupted", "running", "export", "export_tables", "sql", "convert")
READS = frozenset((*_OF_STATES, *_OF_HISTORY, *_OF_OTHERS))
"""Methods of a handle that leave the graph as it is; they work on graphs of every format that is known."""


@checked(READS, executor=EXECUTOR, options=instance_of(LoadOptions))
@dataclass(frozen=True, slots=True, repr=False)
class StateVerbs(Handle):
    """Verbs about states of the past (tags, restores, expiry), and about the state of another table: `sync`."""

    def tag(self, name: str, *, dry_run: bool = False, **where: Unpack[Where]) -> Tag:
        """Names a state, by default the newest of this handle's branch: it stays readable (`tag=`) until the tag is
        deleted, and its branch cannot be deleted before. A dry run only checks that it can.

        Raises TagExistsError, NotFoundError for a missing state, BadRequestError for a name that is not usable.
        """
        self._require_writable()
        if not dry_run:
            self.refresh()
        return create_tag(self.store, name, self.snapshot(**where), dry_run)

    def tags(self) -> list[Tag]:
        """All tags of the graph, by name."""
        return list(list_tags(self.store).values())

    def delete_tag(self, name: str, *, dry_run: bool = False) -> Tag:
        """Removes a tag; what it kept may expire from now on. NotFoundError when there is none."""
        self._require_writable()
        if not dry_run:
            self.refresh()
        return delete_tag(self.store, name, dry_run)

    def copy(
        self,
        to: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        dry_run: bool = False,
        **where: Unpack[Where],
    ) -> CopyReport:
        """Copies the graph to another place, on a local disk or an object store, which `storage_options` are for: all
        branches with their history, or only the state that is named as in `at` (`version`, `snapshot`, `as_of`, `tag`,
        `branch`), as the main of a new graph. Others may write meanwhile. Every file is read back and compared.

        A copy that died opens nowhere, and goes on when it is run again. AlreadyInitializedError when the target is a
        graph, BadRequestError when anything else is there.
        """
        state = None if all(value is None for value in where.values()) else self.snapshot(**where)
        if self.target.version is not None:
            state = self.snapshot(**where)
        return verbs.copy_graph(self.store, locate(to, storage_options), state, dry_run)

    def convert(
        self,
        to: str | os.PathLike[str],
        *,
        all_branches: bool = False,
        storage_options: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> ConvertReport:
        """Makes a graph of the format that is written of one of any format that is read: at another place, which
        `storage_options` are for, of the newest state of main, or of all branches under their names. The source is only
        read. All rows are compared by counts and digests. History and tags stay behind; the report says what else does.

        A conversion that died opens nowhere, and goes on when it is run again. AlreadyInitializedError when the target
        is a graph, BadRequestError when anything else is there, for a branch of another schema, and from a handle that
        shows something else than the newest state of main.
        """
        if (self.target.version, self.branch) != (None, MAIN):
            raise BadRequestError(
                f"convert takes the newest state of main, or of all branches, and this handle shows {self._line()}: "
                "ask a handle that was opened without branch and state; an export of what this one shows can be loaded"
            )
        return verbs.convert_graph(self.store, locate(to, storage_options), all_branches, dry_run, self.origin)

    def erase(
        self, table: str, entity_id: str, *, confirm: bool = False, dry_run: bool = False, actor: str | None = None
    ) -> EraseReport:
        """Erases a row (`node:T`, `edge:T`, or the name of a type) on every branch, with the edges that touch it, so
        that no file of the graph holds it: it is deleted, its files and indexes are written anew, and all older states
        of branches that have shown it expire. Without `confirm` it is only looked for.

        What tags, consumers, merges of branches, writers and other programs keep cannot expire: the report names them,
        and another run ends the work.
        """
        key = self._table(table)
        if confirm and not dry_run:
            self._require_writable()
            self.refresh()
        request = verbs.EraseRequest(key, entity_id, confirm and not dry_run, actor, self.origin)
        return verbs.erase(self.store, request)

    def _table(self, name: str) -> TableKey:
        """The table of a type; NotFoundError for none."""
        catalog = read_catalog(self.store)
        if ":" not in name:
            name = f"node:{name}" if name in catalog.nodes else f"edge:{name}"
        return catalog.require(name).table_key

    def consumers(self) -> list[Consumer]:
        """Readers of the change feed that said where they stand (option `consumer`), by name: expiry waits for them."""
        return list_consumers(self.store)

    def delete_consumer(self, name: str) -> Consumer:
        """Forgets where a reader stood: nothing waits for it any more. NotFoundError when there is none."""
        self._require_writable()
        return delete_consumer(self.store, name)

    def restore(
        self, *, branch: str | None = None, actor: str | None = None, **choices: Unpack[RestoreChoices]
    ) -> RestoreReport:
        """Makes a branch show the rows of an old state again, in a new commit that writes the difference alone. The
        state is named as in `at`: `version`, `snapshot`, `as_of`, or `tag`. Choices besides: `dry_run` counts,
        `metadata` are texts of yours, `executor` does the work.

        BadRequestError across a change of the schema, which it names. Applications whose last transaction is later (of
        streams, and of named writes) bar it, unless `rewind_apps` sets them back or `confirm` leaves them: then what
        they wrote since is gone for good. ConflictError when anything was written meanwhile.
        """
        self._require_writable()
        request = verbs.restore_request(self.store, parse_branch(branch or self.branch), actor, choices)
        request = replace(request, origin=self.origin.with_metadata(choices.get("metadata")))
        if not request.dry_run:
            self.refresh()
        report = verbs.restore(self.store, request, choices.get("executor") or LocalExecutor(1))
        return after(self.store, request.branch, report, "restore")

    def sync(self, source: DeltaSource | str | os.PathLike[str], **choices: Unpack[SyncChoices]) -> SyncReport:
        """Brings types to what a Delta table shows, in one commit: its newest version the first time, then what changed
        since, exactly once. The graph remembers where it stands. `source` is `delta:URI`, or `delta_source(spark, URI)`
        for what a Spark session reads. `node`, `edge` or `mapping` say what its rows are. `full` compares the whole
        table, and deletes what is not in it. `app_id` names the place where it stands; by default that follows from the
        table and the types. Choices besides: `branch`, `actor`, `metadata`, `options` (its `max_deletes` is 0.1 here).

        Raises FeedLostError when only `full` leads on, TooManyDeletesError, and what a load raises; then nothing has
        changed.
        """
        self._require_writable()
        options = choices.get("options")
        if isinstance(source, (str, os.PathLike)):
            executor = None if options is None else options.executor
            source = verbs.LocalDelta(verbs.place_of(os.fspath(source)), self.store.storage_options, executor)
        line = parse_branch(choices.get("branch") or self.branch)
        request = verbs.sync_request(source, line, choices, self.origin)
        self.refresh()
        return verbs.sync(self.store, request)

    def cleanup(
        self,
        older_than: timedelta | None = None,
        *,
        keep: int | None = None,
        confirm: bool = False,
        force: bool = False,
    ) -> CleanupReport:
        """Finds files that no version of any table names, forks that no branch shows, and leases of the dead; with
        `confirm` removes them. What is younger than `older_than` (7 days), or than any writer that is alive or awaits
        recovery, stays.

        `keep` and `older_than` also let old states expire, of all branches: those beyond the newest `keep` commits of
        their branch, that nobody was shown for `older_than`; of both, what both let go. What was shown within 7 days
        stays unless `force` is set; and always the newest state of each branch, what tags show, consumers have not
        read, and merges start from. StorageError while a branch cannot be read, DriftError for a table that drifted:
        then nothing was removed. With `older_than` alone that is a warning, and no state expires.
        """
        if confirm:
            self._require_writable()
        return verbs.cleanup(self.store, verbs.Policy(keep, older_than, force), confirm)
