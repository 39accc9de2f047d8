"""The machine of graphs with what keeps the past and what ends it: tags, consumers, restores, expiry by any policy.

What is promised can be read afterwards, the rest is gone with an error that says so; bytes fall as the dry run said.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from spark_omnigraph import ConflictError, StorageError
from spark_omnigraph.branch.consumers import take_consumer
from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.commit.owners import find_owners
from spark_omnigraph.errors import VersionExpiredError
from spark_omnigraph.graph.changes.feed import feed_tasks, first_parents
from spark_omnigraph.storage.layout import MANIFEST
from spark_omnigraph.storage.versions import origins
from tests.model.test_machine import BRANCHES, KEYS, MADE, GraphMachine, State, play, rows
from tests.support.three_way import merge_bases

NAMES = ["t1", "t2", "t3"]


class KeepingMachine(GraphMachine):
    """`tagged`: tag → its branch and state; `reading`: consumer → its branch and version; `gone`: expired commits."""

    @initialize()
    def begin(self) -> None:
        self.tagged: dict[str, tuple[str, State]] = {}
        self.reading: dict[str, tuple[str, int]] = {}
        self.gone: set[str] = set()
        self.expired = False

    @rule(name=st.sampled_from(NAMES), branch=st.sampled_from([*BRANCHES, *MADE]))
    def tag(self, name: str, branch: str) -> None:
        if branch not in self.shown:
            return
        self._healed()
        if name in self.tagged:
            with pytest.raises(ConflictError, match="exists already"):
                self.graph.tag(name, branch=branch)
            return
        self.graph.tag(name, branch=branch)
        self.tagged[name] = (branch, self.shown[branch])

    @precondition(lambda self: self.tagged)
    @rule(name=st.sampled_from(NAMES))
    def untag(self, name: str) -> None:
        if self.tagged.pop(name, None) is not None:
            self._healed()
            self.graph.delete_tag(name)

    @precondition(lambda self: self.tagged)
    @rule(name=st.sampled_from(NAMES))
    def read_tag(self, name: str) -> None:
        if name in self.tagged:
            commit = self.graph.at(tag=name).snapshot()
            assert (commit.branch or "main") == self.tagged[name][0]
            self._assert_tags()

    @rule(name=st.sampled_from(["main", "draft", "none", *MADE, *MADE]))
    def delete_branch(self, name: str) -> None:
        if name in MADE and name in self.shown and any(branch == name for branch, _ in self.tagged.values()):
            self._healed()
            with pytest.raises(ConflictError, match=r"tag|descendant"):
                self.graph.delete_branch(name)
            return
        there = name in self.shown
        super().delete_branch(name)
        if there and name not in self.shown:
            self.reading = {consumer: place for consumer, place in self.reading.items() if place[0] != name}

    @rule(name=st.sampled_from(["c1", "c2"]), branch=st.sampled_from([*BRANCHES, *MADE]), back=st.integers(0, 3))
    def consume(self, name: str, branch: str, back: int) -> None:
        """A reader registers some commits behind the newest, or where the rest is gone is told so."""
        if branch not in self.shown or self.pending:
            return
        line = first_parents(self.graph.store, parse_branch(branch))
        version = line[max(-1 - back, -len(line))].manifest_version
        try:
            take_consumer(self.graph.store, name, parse_branch(branch), line, version)
        except VersionExpiredError:
            assert self.expired
            return
        self.reading[name] = (branch, version)

    @precondition(lambda self: self.commits and not self.pending)
    @rule(branch=st.sampled_from(BRANCHES), number=st.integers(0, 200))
    def restore(self, branch: str, number: int) -> None:
        """A branch shows an old state again, of whatever branch, and its feed the rows that differ."""
        commit = list(self.commits)[number % len(self.commits)]
        if commit in self.gone:
            return
        before, after = self.shown[branch], self.commits[commit]
        report = self.graph.restore(branch=branch, snapshot=commit)
        if before == after:
            assert report.commit is None
            return
        assert report.commit is not None
        newest, parent = self.graph.commits(branch=branch, limit=2)
        told = {change.id: str(change.op) for change in self.graph.diff(parent.id, newest.id).changes}
        differ = {key for key in {*before, *after} if before.get(key) != after.get(key)}
        assert told == {k: "insert" if k not in before else "delete" if k not in after else "update" for k in differ}
        self._note(report.commit, branch, after)

    @rule(keep=st.one_of(st.none(), st.integers(0, 4)), by_age=st.booleans())
    def expire(self, keep: int | None, by_age: bool) -> None:
        age = timedelta(0) if by_age or keep is None else None
        self.expired = True
        if self.pending:
            self._expire_beside_a_dead_write(keep, age)
            return
        lines, is_quiet = self._lines(), find_owners(self.graph.store).since is None
        dry = self.graph.cleanup(age, keep=keep, force=True).expiry
        done = self.graph.cleanup(age, keep=keep, force=True, confirm=True)
        assert dry is not None
        assert done.expiry is not None
        assert done.expiry.bytes == dry.bytes
        assert (done.expiry.bytes_before or 0) - (done.expiry.bytes_after or 0) == dry.bytes
        self._look_for_commits(lines, keep, is_quiet)
        self._assert_tags()
        self._assert_feeds()
        self._assert_merges()

    @precondition(lambda self: not self.pending)
    @rule(name=st.sampled_from(KEYS))
    def erase(self, name: str) -> None:
        """A person goes from every branch and every state, with its edges, but for what somebody keeps and is named."""
        self._healed()
        self.expired = True
        before = {branch: state for branch, state in self.shown.items() if name in state}
        report = self.graph.erase("Person", name, confirm=True)
        assert {branch for branch, rows in report.deleted.items() if rows.get("node:Person") == 1} == before.keys()
        for branch, state in before.items():
            left = {k: v for k, v in state.items() if k != name and not (isinstance(v, tuple) and name in v)}
            commit = next(c for c in self.graph.commits(branch=branch) if c.facts and c.facts.operation == "delete")
            self._note(commit.id, branch, left)
        made = {commit.id for branch in self.shown for commit in self.graph.commits(branch=branch)}
        self.gone |= {commit for commit in self.commits.keys() | made if not self._is_there(commit)}
        holding = [commit for commit, state in self.commits.items() if name in state and commit not in self.gone]
        tags = [tag for tag, (_, state) in self.tagged.items() if name in state]
        assert report.done is (not report.held and not report.blocked_by)
        assert report.blocked_by or not (holding or tags), "nobody is said to keep it"
        assert {text.split()[1].rstrip(":") for text in report.blocked_by if text.startswith("tag ")} >= {*tags}
        self._assert_tags()
        self._assert_feeds()
        self._assert_merges()

    def _expire_beside_a_dead_write(self, keep: int | None, age: timedelta | None) -> None:
        try:
            self.graph.cleanup(age, keep=keep, force=True, confirm=True)
        except StorageError as refused:
            pytest.fail(str(refused))
        self._assert_tags()
        self._assert_feeds()
        self.gone |= {commit for commit in self.commits if not self._is_there(commit)}

    def _look_for_commits(self, lines: dict[str, list[str]], keep: int | None, is_quiet: bool) -> None:
        """The newest commits of each branch are there, and what nothing else keeps is not."""
        heads = {name: self.graph.commits(branch=name)[0].id for name in self.shown}
        pairs = [(heads[name], heads[other]) for name in heads for other in {"main", self.parents.get(name, "main")}]
        bases = {base for one, other in pairs if one != other for base in merge_bases(lines, one, other)}
        states = {(tag.branch or "main", tag.manifest_version) for tag in self.graph.tags()}
        told = {
            c.id: (c.branch or "main", c.manifest_version) for n in self.shown for c in self.graph.commits(branch=n)
        }
        states |= {told[tag.commit] for tag in self.graph.tags() if tag.commit in told}
        states |= {
            (line or "main", version) for line, version in origins(self.graph.store.open_dataset(MANIFEST)).values()
        }
        for name in self.shown:
            own = [c for c in self.graph.commits(branch=name) if (c.branch or "main") == name]
            for place, commit in enumerate(own):
                there = self._is_there(commit.id)
                is_kept = place < max(keep or 1, 1)
                assert there or not is_kept or commit.id in self.gone, (name, place)
                assert there or commit.id not in bases or commit.id in self.gone, (name, place)
                waits = any(self._waits(consumer, name, commit.manifest_version) for consumer in self.reading)
                is_state = (name, commit.manifest_version) in states
                if is_quiet and not (is_kept or waits or is_state or commit.id in bases):
                    assert not there, (name, place, keep)
                if not there:
                    self.gone.add(commit.id)
                elif commit.id in self.commits:
                    assert rows(self.graph, name, commit.id) == self.commits[commit.id]

    def _waits(self, consumer: str, branch: str, version: int) -> bool:
        """Whether a consumer may need a state: of its branch from where it stands, or of one that it comes from."""
        on, stands = self.reading[consumer]
        line = first_parents(self.graph.store, parse_branch(on))
        first = max((c.manifest_version for c in line if c.manifest_version <= stands), default=0)
        return version >= first and any((c.branch or "main") == branch for c in line)

    def _is_there(self, commit: str) -> bool:
        try:
            rows(self.graph, "main", commit)
        except VersionExpiredError:
            return False
        return True

    def _assert_tags(self) -> None:
        assert sorted(self.tagged) == [tag.name for tag in self.graph.tags()]
        for name, (_, state) in self.tagged.items():
            assert rows(self.graph.at(tag=name), "main", None, pinned=True) == state

    def _assert_feeds(self) -> None:
        for branch, version in self.reading.values():
            store = self.graph.store
            line = first_parents(store, parse_branch(branch))
            for task in feed_tasks(store, self.graph.catalog(), line, version + 1, line[-1].manifest_version, None):
                task.change.rows()

    def _assert_merges(self) -> None:
        """Every branch can still be compared with main and with its parent, either way."""
        for name, parent in self.parents.items():
            for other in {"main", parent}:
                for source, target in ((name, other), (other, name)):
                    try:
                        self.graph.merge_branch(source, target, dry_run=True)
                    except ConflictError:
                        continue

    @precondition(lambda self: not self.pending)
    @rule(data=st.data())
    def merge_branch(self, data: st.DataObject) -> None:
        """Of two that are not related the states where they parted may be gone."""
        try:
            super().merge_branch(data)
        except VersionExpiredError:
            assert self.expired

    @precondition(lambda self: self.commits)
    @rule(number=st.integers(0, 200))
    def travel(self, number: int) -> None:
        if list(self.commits)[number % len(self.commits)] not in self.gone:
            super().travel(number)


@pytest.mark.timeout(900)
def test_short_sequences_with_expiry() -> None:
    play(examples=4, steps=40, derandomize=True, machine=KeepingMachine)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_long_sequences_with_expiry() -> None:
    play(examples=150, steps=60, machine=KeepingMachine)
