"""Converting: the newest state of a graph of any readable format, main or all branches by name, as a new graph.

    note what is converted ──▶ main's tables in streams, each read back ──▶ manifest and history ──▶ branches, parents
    first, as differences ──▶ compare all rows ──▶ schema file ──▶ note goes ──▶ indexes

The source is only read. Nothing opens at the target before its schema file is there, which comes last, so half a
conversion is no graph. One that died is gone on with by the next one: it reads the states that the note names, and what
is there and has the same rows stays. What the source has besides, its history and tags, stays behind, and is told.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec

from spark_omnigraph.branch.tags import list_tags
from spark_omnigraph.catalog.ir import ir_text
from spark_omnigraph.commit.contract import Contract, contract_at, state_text, view
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.making import end_stages, remaking
from spark_omnigraph.commit.recovery import Scope, recover_for_writing
from spark_omnigraph.draw.card import Card, grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRequestError, OmnigraphError
from spark_omnigraph.graph.convert.branches import convert_branch
from spark_omnigraph.graph.convert.digest import TableDigest
from spark_omnigraph.graph.convert.tables import digest_table, require_same, write_table
from spark_omnigraph.graph.copy.captured import children_first
from spark_omnigraph.graph.copy.target import (
    FIRST_MANIFEST,
    NOTE,
    Copying,
    begin_history,
    noted,
    refuse_inside,
    refuse_other,
)
from spark_omnigraph.manifest.branches import MAIN, Branch, display, stored_branch
from spark_omnigraph.manifest.copied import CopyOrigin, copy_row
from spark_omnigraph.manifest.facts import CommitOrigin
from spark_omnigraph.manifest.rows import ManifestRow
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import MANIFEST, RECOVERY, SCHEMA_IR, SCHEMA_SOURCE, SCHEMA_STATE, manifest_file
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.uri import Location
from spark_omnigraph.write.indexes import ensure_indices

_FIRST_COLUMN_IDS = 4
"""The stamp whose writers make the id of a composite key of its first column; older ones may be of either kind."""


@dataclass(frozen=True, slots=True, repr=False)
class ConvertReport(Displayed):
    """What was converted; in a dry run, what would be.

    `branches` are manifest versions of the target by branch, `tables` rows and digest by branch and table. `written`
    counts tables of main that this run wrote; the others were there. `left_behind` is what only the source has: numbers
    of commits by branch, names of branches, and of tags.
    """

    source: str
    target: str
    internal_schema_version: int
    branches: Mapping[str, int | None]
    tables: Mapping[str, Mapping[str, Mapping[str, object]]]
    rows: int
    written: int
    left_behind: Mapping[str, object]
    warnings: tuple[str, ...] = ()

    def _card(self) -> Card:
        rows = [(b, key, each.get("rows")) for b, tables in self.tables.items() for key, each in tables.items()]
        left = self.left_behind
        facts = {"from": self.source, "to": self.target, "stamp of the source": self.internal_schema_version}
        return Card(
            "ConvertReport",
            f"{self.source} to {self.target}: {self.rows:,} rows on {len(self.branches):,} branches",
            {**facts, "tables written by this run": self.written},
            without_empty(
                grid("Branches", ("branch", "manifest version"), self.branches.items(), len(self.branches)),
                grid("Rows", ("branch", "table", "rows"), rows, len(rows)),
                grid("What the source alone has", ("what", "which"), left.items(), len(left)),
            ),
            self.warnings,
        )


def convert_graph(
    source: GraphStore,
    target: Location,
    all_branches: bool = False,
    dry_run: bool = False,
    origin: CommitOrigin | None = None,
) -> ConvertReport:
    """Converts main, or all branches. What is there already of the same conversion is gone on with.

    AlreadyInitializedError when the target is a graph, BadRequestError when anything else is there, or for a branch of
    another schema, ConflictError or WriterBusyError while somebody else works on the target; StorageError when what
    arrived is not what was sent: then there is no graph, and the next run goes on.
    """
    refuse_inside(source, target.root)
    is_there = not target.is_local or os.path.exists(target.root)
    before = noted(GraphStore(target, Objects(target))) if is_there else None
    contract, states = _states(source, all_branches, before)
    wanted = Copying(source.root, converted={display(branch): state.version for branch, state in states.items()})
    if is_there:
        refuse_other(GraphStore(target, Objects(target)), wanted)
    work = _Conversion(source, target, contract, states)
    if dry_run:
        return work.planned()
    work.run(wanted, origin or CommitOrigin())
    return work.done()


def _states(source: GraphStore, all_branches: bool, before: Copying | None) -> tuple[Contract, dict[Branch, Snapshot]]:
    """The schema, and the states that are converted, parents first: those of the conversion that did not end, or the
    newest ones. BadRequestError for a branch that has another schema.
    """
    contract, main = view(source, lambda: source.snapshot(None))
    states: dict[Branch, Snapshot] = {None: main}
    for branch in reversed(children_first(source)) if all_branches else ():
        states[branch] = source.snapshot(branch)
    known = {} if before is None or before.graph != source.root else before.converted or {}
    if known.keys() == {display(branch) for branch in states}:
        states = {branch: source.snapshot(branch, known[display(branch)]) for branch in states}
    for branch, state in states.items():
        if contract_at(source, state, contract).catalog != contract.catalog:
            raise BadRequestError(
                f"version {state.version} of branch '{display(branch)}' of '{source.root}' is of another schema than "
                "the graph has now, and the converted graph has one for all: convert main alone, and load an export of "
                "the branch; or, where a conversion of it did not end, empty the place and begin anew"
            )
    return contract, states


class _Conversion:
    def __init__(
        self, source: GraphStore, target: Location, contract: Contract, states: Mapping[Branch, Snapshot]
    ) -> None:
        self.source, self.target, self.contract, self.states = source, target, contract, states
        self.catalog = contract.catalog
        self.digests: dict[Branch, dict[str, TableDigest]] = {branch: {} for branch in states}
        self.written, self.warnings = 0, tuple[str, ...]()

    @cached_property
    def place(self) -> GraphStore:
        """Where the new graph is made; its folder is, too."""
        return GraphStore(self.target, Objects(self.target, create=True))

    def run(self, wanted: Copying, origin: CommitOrigin) -> None:
        """Everything, from where the last run stopped."""
        place = self.place
        place.objects.probe(RECOVERY)
        if place.objects.get(SCHEMA_SOURCE) is None:
            if place.objects.get(f"{MANIFEST}/{manifest_file(FIRST_MANIFEST)}", limit=None) is None:
                self._main(wanted)
            else:
                recover_for_writing(place, Scope.FULL)
            self._branches(origin)
            self._compare()
            reach(CrashPoint.CONVERT_COMPARED)
            place.objects.put(SCHEMA_SOURCE, self.contract.source.encode())
            reach(CrashPoint.CONVERT_SHOWN)
        place.objects.delete(NOTE)
        self._index()

    def _main(self, wanted: Copying) -> None:
        """Tables, then what shows them; the schema by which writers know it, without the file that makes it a graph."""
        place, main = self.place, self.states[None]
        with remaking(place) as hold:
            refuse_other(place, wanted)
            end_stages(place)
            place.objects.put(NOTE, msgspec.json.encode(wanted))
            reach(CrashPoint.CONVERT_STARTED)
            place.objects.put(SCHEMA_IR, ir_text(self.catalog).encode())
            place.objects.put(SCHEMA_STATE, state_text(self.catalog.ir_hash).encode())
            root, whole = self.source.root, len(self.states) > 1
            rows: list[ManifestRow] = [copy_row(CopyOrigin(root, MAIN, main.version, whole, time.time_ns() // 1000))]
            for entity in self.catalog.tables():
                hold()
                entry = main.entries.get(entity.table_key)
                shown, digest, is_new = write_table(self.source, place, entity, entry, hold)
                self.digests[None][entity.table_key] = digest
                rows += shown
                self.written += is_new
            begin_history(place, rows, hold)
            reach(CrashPoint.CONVERT_MAIN)

    def _branches(self, origin: CommitOrigin) -> None:
        contract = Contract(self.catalog, self.contract.source, self.catalog.ir_hash)
        refs = self.source.branch_refs()
        for branch, state in self.states.items():
            if branch is not None:
                parent = self.states[stored_branch(refs[branch].parent)]
                convert_branch(self.source, self.place, contract, state, parent, origin)
                reach(CrashPoint.CONVERT_BRANCH)

    def _compare(self) -> None:
        """Rows and digests of every branch, each table once that several branches show."""
        known: dict[object, TableDigest] = {}
        for branch, state in self.states.items():
            shown = self.place.snapshot(branch)
            for entity in self.catalog.tables():
                key, at = entity.table_key, state.place(entity.table_key)
                if key not in self.digests[branch]:
                    wanted = known.get((key, at)) or digest_table(self.source, entity, state.entries.get(key))
                    if (key, at) not in known or shown.place(key) != self.place.snapshot(None).place(key):
                        require_same(entity, wanted, digest_table(self.place, entity, shown.entries.get(key)))
                    self.digests[branch][key] = wanted
                known.setdefault((key, at), self.digests[branch][key])

    def _index(self) -> None:
        """Builds indexes; they are derived, and what goes wrong is only told."""
        for branch in self.states:
            try:
                self.warnings += ensure_indices(self.place, branch).warnings
            except OmnigraphError as error:
                self.warnings += (f"indexes of '{display(branch)}' could not be built: {error.message}",)

    def planned(self) -> ConvertReport:
        """What a run would do."""
        rows = self._counts()
        return self._report(dict.fromkeys(rows), rows)

    def _counts(self) -> dict[str, dict[str, dict[str, object]]]:
        return {
            display(branch): {key: {"rows": e.row_count, "digest": None} for key, e in state.entries.items()}
            for branch, state in self.states.items()
        }

    def done(self) -> ConvertReport:
        """What a run did; without digests where the one before died when all was compared."""
        tables: dict[str, dict[str, dict[str, object]]] = {
            display(branch): {key: {"rows": each.rows, "digest": each.text} for key, each in found.items()}
            for branch, found in self.digests.items()
            if found
        }
        versions = {display(branch): self.place.snapshot(branch).version for branch in self.states}
        return self._report(versions, tables or self._counts())

    def _report(
        self, branches: Mapping[str, int | None], tables: Mapping[str, Mapping[str, Mapping[str, object]]]
    ) -> ConvertReport:
        rows = sum(int(str(each["rows"])) for found in tables.values() for each in found.values())
        left = dict(self._left_behind())
        warnings = (*self.warnings, *_told(left), *self._of_keys())
        stamp = self.source.form().stamp
        return ConvertReport(
            self.source.root, self.target.root, stamp, branches, tables, rows, self.written, left, warnings
        )

    def _left_behind(self) -> Iterator[tuple[str, object]]:
        yield "commits", {display(branch): len(self.source.commits(branch)) for branch in self.states}
        others = [display(branch) for branch in self.source.graph_branches() if branch not in self.states]
        yield "branches", others
        yield "tags", list(list_tags(self.source))

    def _of_keys(self) -> Iterator[str]:
        """Ids of composite keys have another form up to stamp 4; edges go by what is stored, so they stay."""
        composite = [node.name for node in self.catalog.nodes.values() if node.key is not None and len(node.key) > 1]
        if composite and self.source.form().stamp == _FIRST_COLUMN_IDS:
            yield (
                f"ids of {', '.join(composite)} stay as they are stored: release {self.source.form().release} makes "
                "them of the first column of a composite key, and new rows have all columns in theirs"
            )


def _told(left: Mapping[str, object]) -> Iterator[str]:
    yield "history is left behind: the converted graph begins with one commit on main, and the change feed with it"
    for what in ("branches", "tags"):
        names = left[what]
        if isinstance(names, list) and names:
            yield f"{what} are left behind: {', '.join(map(str, names))}"
