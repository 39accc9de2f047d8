"""A graph against a dictionary: loads, mutations, crashes, recoveries, maintenance, branches and reads in any order.

The default run of some two thousand steps is the same every time; `pytest tests/model -m long` looks for new ways in
some fifteen thousand.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Set
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from spark_omnigraph import (
    BadRequestError,
    BadRowsError,
    ConflictError,
    Graph,
    LoadOptions,
    MergeConflictsError,
    NotFoundError,
    OmnigraphError,
    RecoveryRequiredError,
)
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.graph.read.history import Where
from tests.crash.matrix import BRANCH_ROW, RECOVERY_POINTS, UNDO_ROWS, WRITE_ROWS, Row, crashed, expire_leases
from tests.crash.worlds import SCHEMA, assert_whole, city, knows, person, refused_first_publish, told
from tests.support.delta_tables import FEED
from tests.support.three_way import ancestors, conflict_kind, merge_bases, merge_rows

KEYS = ["a", "b", "c", "d"]
BRANCHES = ["main", "draft"]
MADE = ["b1", "b2", "b3"]
"""Branches that come and go."""
OPTIONS = LoadOptions(build_indexes=False)

State = Mapping[str, int | tuple[str, str]]
"""Name of a person → age; of a city → whether it has a vector; id of an edge → its ends."""
CITY = "city "


@dataclass(frozen=True)
class Load:
    """What a load brings: nodes, and one edge between two of them, so that every load writes both tables."""

    mode: str
    nodes: Mapping[str, int]
    edge: tuple[str, str]
    gone: frozenset[str] = frozenset()
    """In mode `changes`: people who are deleted, whether they are stored or not, and their edges with them."""

    @property
    def edge_id(self) -> str:
        return f"{self.edge[0]}-{self.edge[1]}"

    @property
    def lines(self) -> list[str]:
        written = [*(person(name, age) for name, age in self.nodes.items()), knows(*self.edge, self.edge_id)]
        if self.mode != "changes":
            return written
        deleted = [told("d", person(name)) for name in sorted(self.gone)]
        return [*deleted, *(told("u", line) for line in written)]

    def fits(self, state: State) -> bool:
        """Whether the load is valid on a state; only an append can meet keys that are there."""
        return self.mode != "append" or not ({*self.nodes, self.edge_id} & state.keys())

    def applied(self, state: State) -> State:
        cities = {key: value for key, value in state.items() if key.startswith(CITY)}
        kept = cities if self.mode == "overwrite" else without(state, self.gone)
        return {**kept, **self.nodes, self.edge_id: self.edge}


def without(state: State, names: Set[str]) -> State:
    """A state without some people, and without edges at either end of which they were."""
    return {k: v for k, v in state.items() if k not in names and not (isinstance(v, tuple) and names & {*v})}


@st.composite
def loads(draw: st.DrawFn) -> Load:
    nodes = draw(st.dictionaries(st.sampled_from(KEYS), st.integers(0, 9), min_size=1))
    ends = st.sampled_from(sorted(nodes))
    mode = draw(st.sampled_from(["append", "merge", "merge", "overwrite", "changes", "changes"]))
    edge = draw(ends), draw(ends)
    gone = draw(st.sets(st.sampled_from(KEYS))) - nodes.keys() if mode == "changes" else set()
    return Load(mode, nodes, edge, frozenset(gone))


@dataclass(frozen=True)
class Pending:
    """A write that died with its sidecar: how the branch looks once it is recovered."""

    row: Row
    after: State
    may_be_over: bool = False
    """A recovery died on the way and may have come so far that a writer does the rest."""

    @property
    def needs_an_open(self) -> bool:
        """A writer finishes what is finished; to take something back is left to a read-write open."""
        return not self.row.finished and self.row.point is not CrashPoint.UNDO_PUBLISHED


@cache
def template() -> Path:
    """An empty graph with a branch, to copy."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-model-")) / "g"
    Graph.init(folder, SCHEMA).create_branch("draft")
    return folder


def rows(graph: Graph, branch: str, snapshot: str | None = None, pinned: bool = False) -> State:
    """All rows of a state; an id that occurs twice fails."""
    found: dict[str, int | tuple[str, str]] = {}
    where: Where = {} if pinned else {"branch": branch} if snapshot is None else {"snapshot": snapshot}
    for line in graph.export(**where):
        record = json.loads(line)
        key = record["data"]["id"]
        assert key not in found
        data = record["data"]
        given = int(data["vec"] is not None) if key.startswith(CITY) else data.get("age")
        found[key] = given if "type" in record else (record["from"], record["to"])
    return found


class GraphMachine(RuleBasedStateMachine):
    """`shown` is what readers must see; `pending` what dies wait for recovery; `commits` what each commit showed."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(prefix="omnigraph-model-"))
        shutil.copytree(template(), self._folder / "g")
        self.graph = Graph.open(self._folder / "g")
        self.shown: dict[str, State] = {branch: {} for branch in BRANCHES}
        self.pending: dict[str, Pending] = {}
        self.commits: dict[str, State] = {}
        self.made_on: dict[str, str] = {}
        self.parents: dict[str, str] = {"draft": "main"}
        self._reader = Graph.open(self._folder / "g", mode="r")
        self._compared: dict[str, tuple[int, State]] = {}
        self._lake = str(self._folder / "people")
        self._tables: list[set[str]] = []
        """Who was in each version of the Delta table."""
        self._followed: dict[str, int] = {}
        """Which version of it a branch follows from."""

    def teardown(self) -> None:
        try:
            self._recover()
            assert_whole(self.graph)
            for branch, state in self.shown.items():
                commits = self.graph.commits(branch=branch)
                assert [c.parent for c in commits[:-1]] == [c.id for c in commits[1:]], "one line of commits"
                assert rows(self.graph, branch) == state
        finally:
            shutil.rmtree(self._folder)

    @rule(branch=st.sampled_from(BRANCHES), load=loads())
    def load(self, branch: str, load: Load) -> None:
        self._load(branch, load)

    def _load(self, branch: str, load: Load) -> None:
        self._healed()
        pending = self.pending.get(branch)
        refusals: list[type[OmnigraphError]] = [RecoveryRequiredError] if pending is not None else []
        refusals += [] if load.fits(self.shown[branch]) else [BadRowsError]
        self._write(
            branch,
            lambda: self.graph.load(load.lines, load.mode, branch=branch, options=OPTIONS).commit,
            refusals,
            load.applied,
        )

    @rule(
        branch=st.sampled_from(BRANCHES),
        ages=st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 9)), min_size=1, max_size=3),
        town=st.none() | st.sampled_from(KEYS[:2]),
    )
    def patch(self, branch: str, ages: list[tuple[str, int]], town: str | None) -> None:
        """Ages of persons who are there, the last of each counts; and a city gets a vector."""
        cities = {} if town is None else {f"{CITY}{town}": 1}
        lines = [person(name, age) for name, age in ages]
        lines += [json.dumps({"type": "City", "data": {"name": name, "vec": [1, 2]}}) for name in cities]
        self._healed()
        refusals: list[type[OmnigraphError]] = [RecoveryRequiredError] if branch in self.pending else []
        changed: State = {**dict(ages), **cities}
        refusals += [] if changed.keys() <= self.shown[branch].keys() else [BadRowsError]
        self._write(
            branch,
            lambda: self.graph.load(lines, "update", branch=branch, options=OPTIONS).commit,
            refusals,
            lambda state: {**state, **changed},
        )

    @rule(branch=st.sampled_from(BRANCHES), nodes=st.dictionaries(st.sampled_from(KEYS), st.integers(0, 9), min_size=1))
    def mutate(self, branch: str, nodes: dict[str, int]) -> None:
        """Inserts that replace, and an update that sees them."""
        inserts = " ".join(f'insert Person {{ name: "{name}", age: {age} }}' for name, age in nodes.items())
        text = f"query q() {{ {inserts} update Person set {{ age: 3 }} where age > 7 }}"

        def applied(state: State) -> State:
            together = {**state, **nodes}
            return {key: 3 if isinstance(value, int) and value > 7 else value for key, value in together.items()}

        self._mutate(branch, text, applied)

    @rule(branch=st.sampled_from(BRANCHES), name=st.sampled_from(KEYS))
    def delete(self, branch: str, name: str) -> None:
        """A person goes, and the edges at both ends with it."""

        self._mutate(
            branch, f'query q() {{ delete Person where name = "{name}" }}', lambda state: without(state, {name})
        )

    @rule(branch=st.sampled_from(BRANCHES), name=st.sampled_from(KEYS[:2]))
    def build_city(self, branch: str, name: str) -> None:
        """A city without a vector, new or in place of one that has one. No other write needs the table of cities."""
        self._healed()
        if branch not in self.pending:
            commit = self.graph.load([city(f"{CITY}{name}")], "merge", branch=branch, options=OPTIONS).commit
            assert commit is not None
            self._note(commit, branch, {**self.shown[branch], f"{CITY}{name}": 0})

    @rule(branch=st.sampled_from(BRANCHES))
    def embed(self, branch: str) -> None:
        """All cities that lack a vector get it."""
        self._healed()
        if branch in self.pending:
            return
        state = self.shown[branch]
        commit = self.graph.embed("City", "vec", MockEmbedder(), branch=branch).commit
        lacking = {key: 1 for key, value in state.items() if key.startswith(CITY) and value == 0}
        assert (commit is None) is not bool(lacking)
        if commit is not None:
            self._note(commit, branch, {**state, **lacking})

    @rule(
        branch=st.sampled_from(BRANCHES),
        ages=st.dictionaries(st.sampled_from(KEYS), st.integers(0, 9), min_size=1),
        full=st.booleans(),
    )
    def follow(self, branch: str, ages: dict[str, int], full: bool) -> None:
        """All rows of a Delta table become these, and a branch follows it from where it stood."""
        self._healed()
        if branch in self.pending:
            return
        rows = pa.table({"name": list(ages), "age": pa.array(ages.values(), pa.int32())})
        write_deltalake(self._lake, rows, mode="overwrite", configuration=FEED)
        state, since = self.shown[branch], self._followed.get(branch)
        gone = set().union(*self._tables[since:]) if since is not None else set[str]()
        if full:
            gone = {key for key, value in state.items() if isinstance(value, int) and not key.startswith(CITY)}
        after = {**without(state, gone - ages.keys()), **ages}
        self._tables.append(set(ages))
        self._followed[branch] = len(self._tables) - 1
        options = replace(OPTIONS, max_deletes=1.0)
        commit = self.graph.sync(self._lake, node="Person", branch=branch, full=full, options=options).commit
        assert commit is not None or ((full or since is None) and after == state), "what differs is written"
        if commit is not None:
            self._note(commit, branch, after)

    def _mutate(self, branch: str, text: str, applied: Callable[[State], State]) -> None:
        self._healed()
        pending = self.pending.get(branch)
        shown = self.shown[branch]
        if applied(shown) == shown and "delete" in text:
            assert self.graph.mutate(text, branch=branch).commit is None
            return  # nothing is to be done, so what is pending stands in nobody's way
        refusals: list[type[OmnigraphError]] = [RecoveryRequiredError] if pending is not None else []
        self._write(branch, lambda: self.graph.mutate(text, branch=branch).commit, refusals, applied)

    def _write(
        self,
        branch: str,
        write: Callable[[], str | None],
        refusals: list[type[OmnigraphError]],
        applied: Callable[[State], State],
    ) -> None:
        pending = self.pending.get(branch)
        if refusals and not (pending is not None and pending.may_be_over):
            with pytest.raises(tuple(refusals)):  # which comes first depends on what a load is looked at for first
                write()
            return
        try:
            commit = write()
        except tuple(refusals):
            return
        self.pending.pop(branch, None)
        assert commit is not None
        self._note(commit, branch, applied(self.shown[branch]))

    @precondition(lambda self: len(self.pending) < len(BRANCHES))
    @rule(branch=st.sampled_from(BRANCHES), load=loads(), row=st.sampled_from([*WRITE_ROWS, *UNDO_ROWS, BRANCH_ROW]))
    def crash(self, branch: str, load: Load, row: Row) -> None:
        """A load that dies at a point, on a branch where nothing is pending."""
        branch = branch if branch not in self.pending else next(b for b in BRANCHES if b not in self.pending)
        self._healed()
        fits = load.fits(self.shown[branch])
        with refused_first_publish() if row in UNDO_ROWS else nullcontext(), stop_at(row.point):
            try:
                died = crashed(lambda: self.graph.load(load.lines, load.mode, branch=branch, options=OPTIONS))
            except BadRowsError:
                assert not fits
                return
        expire_leases(self.graph)
        before, after = self.shown[branch], load.applied(self.shown[branch])
        if not died:  # the tables were forked before
            assert row is BRANCH_ROW
            self.shown[branch] = after
            return
        assert fits or row.point in (CrashPoint.STAGED, CrashPoint.FORKED)
        if row.visible:
            self.shown[branch] = after
        if row.audited:
            self.pending[branch] = Pending(row, after if row.finished else before)

    @precondition(lambda self: self.pending or self.commits)
    @rule()
    def recover(self) -> None:
        self._recover()

    @precondition(lambda self: self.pending)
    @rule(point=st.sampled_from(RECOVERY_POINTS))
    def crash_in_recovery(self, point: CrashPoint) -> None:
        """A recovery dies; what it published stays, the rest is left to the next."""
        with stop_at(point):
            crashed(lambda: Graph.open(self.graph.uri))
        left = self.graph.store.objects.list("__recovery")
        open_writes = sum(name.endswith(".json") for name in left)
        for branch, pending in list(self.pending.items()):
            seen = rows(Graph.open(self.graph.uri, mode="r"), branch)
            assert seen in (self.shown[branch], pending.after)
            self.shown[branch] = seen
            self.pending[branch] = replace(pending, may_be_over=True)
        if open_writes < len(self.pending):
            self._recover()  # one is done and which cannot be told from here
        self._note_recovered()

    @rule(branch=st.sampled_from(BRANCHES))
    def build_indexes(self, branch: str) -> None:
        if not self.pending:
            self.graph.ensure_indices(branch=branch)

    @rule(branch=st.sampled_from(BRANCHES))
    def optimize(self, branch: str) -> None:
        if not self.pending:
            self.graph.optimize(branch=branch)

    @precondition(lambda self: len(self.shown) < len(BRANCHES) + len(MADE))
    @rule(base=st.sampled_from([*BRANCHES, *MADE]))
    def create_branch(self, base: str) -> None:
        """A branch shows what its base shows, whatever else is pending there, and keeps it."""
        self._healed()
        base = base if base in self.shown else "main"
        name = next(each for each in MADE if each not in self.shown)
        self.graph.create_branch(name, base)
        self.shown[name], self.parents[name] = self.shown[base], base

    @rule(load=loads(), branch=st.sampled_from(MADE))
    def load_made(self, load: Load, branch: str) -> None:
        """A load into a branch that has come, where there is one."""
        if branch in self.shown:
            self._load(branch, load)

    @rule(name=st.sampled_from(["main", "draft", "none", *MADE, *MADE]))
    def delete_branch(self, name: str) -> None:
        """A branch goes unless it is main, something was made from it, or a write on it was interrupted."""
        self._healed()
        if name == "main":
            refusal: type[OmnigraphError] | None = BadRequestError
        elif name not in self.shown:
            refusal = NotFoundError
        elif name in self.parents.values():
            refusal = ConflictError
        elif name in self.pending:
            if self.pending[name].may_be_over:
                return
            refusal = RecoveryRequiredError
        elif name in BRANCHES:
            return  # other rules need it
        else:
            refusal = None
        if refusal is not None:
            with pytest.raises(refusal):
                self.graph.delete_branch(name)
            return
        self.graph.delete_branch(name)
        del self.shown[name], self.parents[name]
        self._compared.pop(name, None)
        gone = [commit for commit, branch in self.made_on.items() if branch == name]
        for commit in gone:
            del self.made_on[commit], self.commits[commit]

    @precondition(lambda self: not self.pending)
    @rule(data=st.data())
    def merge_branch(self, data: st.DataObject) -> None:
        """What a merge in plain Python makes of both branches and of where they parted; or all its conflicts."""
        names = sorted(self.shown)
        pairs = [(one, other) for one in names for other in names if one != other]
        source, target = data.draw(st.sampled_from([p for p in pairs if self.shown[p[0]] != self.shown[p[1]]] or pairs))
        lines = self._lines()
        one, other = (self.graph.commits(branch=branch)[0].id for branch in (source, target))
        theirs, ours = self.shown[source], self.shown[target]
        bases = [self._at(base) for base in merge_bases(lines, one, other)]
        merged, keys = merge_rows(theirs, ours, bases)
        differ = {(key, conflict_kind(theirs.get(key), ours.get(key))) for key in keys}
        ends = {key: value for key, value in merged.items() if isinstance(value, tuple)}
        orphans = {(key, "orphan_edge") for key, value in ends.items() if not set(value) <= merged.keys()}
        contained = one in ancestors(lines, other)
        try:
            report = self.graph.merge_branch(source, target)
        except MergeConflictsError as error:
            told = {(str(c.row_id), "divergent" if "divergent" in c.kind else c.kind) for c in error.conflicts}
            assert told == (differ or orphans), (source, target)
            return
        assert contained or not (differ or orphans), (source, target)
        assert (str(report.outcome) == "already_up_to_date") is contained
        if not contained:
            assert report.commit is not None
            assert self.graph.commits(branch=target)[0].merged_parent == one
            self._note(report.commit, target, merged)

    @rule()
    def look_at_branches(self) -> None:
        """Parents, heads, and how far each branch is ahead of its parent and behind it."""
        infos = {info.name: info for info in self.graph.branch_infos()}
        assert {name: info.parent for name, info in infos.items()} == {"main": None, **self.parents}
        if self.pending:
            return
        lines = self._lines()
        seen = {name: ancestors(lines, str(info.head)) for name, info in infos.items()}
        for name, parent in self.parents.items():
            counts = len(seen[name] - seen[parent]), len(seen[parent] - seen[name])
            assert (infos[name].ahead, infos[name].behind) == counts, name
            assert infos[name].head == self.graph.commits(branch=name)[0].id

    def _lines(self) -> dict[str, list[str]]:
        """Commits of all branches with their parents."""
        commits = {c.id: c for branch in self.shown for c in self.graph.commits(branch=branch)}
        return {key: [p for p in (c.parent, c.merged_parent) if p is not None] for key, c in commits.items()}

    def _at(self, commit: str) -> State:
        """What a commit showed; those of the beginning and of recoveries are read."""
        return self.commits[commit] if commit in self.commits else rows(self.graph, "main", commit)

    def _note(self, commit: str, branch: str, state: State) -> None:
        self.shown[branch] = self.commits[commit] = state
        self.made_on[commit] = branch

    @precondition(lambda self: self.commits)
    @rule(number=st.integers(0, 200))
    def travel(self, number: int) -> None:
        commit = list(self.commits)[number % len(self.commits)]  # an id differs from run to run, its place does not
        reader = Graph.open(self.graph.uri, mode="r")
        assert rows(reader, "main", commit) == self.commits[commit]

    @invariant()
    def readers_see_the_model(self) -> None:
        reader = self._reader
        for branch, state in self.shown.items():
            snapshot = reader.snapshot(branch=branch)
            if self._compared.get(branch) != (snapshot.version, state):  # a published version never changes
                assert rows(reader, branch) == state, branch
                self._compared[branch] = (snapshot.version, state)

    def _healed(self) -> None:
        """What every writer does at its entry: writes that are finished on any branch become visible."""
        for branch, pending in list(self.pending.items()):
            if not pending.needs_an_open:
                self.shown[branch] = pending.after
                del self.pending[branch]

    def _recover(self) -> None:
        self.graph = Graph.open(self.graph.uri)
        for branch, pending in self.pending.items():
            self.shown[branch] = pending.after
        self.pending.clear()
        self._note_recovered()

    def _note_recovered(self) -> None:
        """Commits of recoveries show what their branch shows now, if they are its newest."""
        for branch in BRANCHES:
            newest = self.graph.commits(branch=branch)[0]
            if branch not in self.pending and branch == (newest.branch or "main"):
                self.commits.setdefault(newest.id, self.shown[branch])


NO_SHRINKING = [phase for phase in Phase if phase is not Phase.shrink]
"""To shrink what fails takes minutes; the printed blob replays it, and then Hypothesis may shrink it."""


def play(
    examples: int, steps: int, derandomize: bool = False, machine: type[RuleBasedStateMachine] = GraphMachine
) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=derandomize,
        print_blob=True,
        phases=NO_SHRINKING,
    )
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.timeout(900)
def test_short_sequences() -> None:
    play(examples=25, steps=40, derandomize=True)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_long_sequences() -> None:
    play(examples=250, steps=60)
