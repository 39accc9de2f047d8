"""What must hold of merges and of deleted branches in a history of the stress test.

A merge is one commit with both parents, and shows exactly what a merge in plain Python makes of the states of both and
of the commits where they parted: so each row that it took is there, nothing that it refused is, and no table lacks its
part. Commits of deleted branches cannot be read; whoever deleted one told of them before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from math import inf

from spark_omnigraph import Commit, Graph
from tests.races.states import State, shown
from tests.support.cases import Json
from tests.support.three_way import ancestors, merge_bases, merge_rows

MERGE = "merge_branch"
"""What stands for the mode of a load."""


class Buried:
    """Commits of branches that somebody tried to delete, as they were told before, and when they went."""

    def __init__(self, answers: Iterable[Json]) -> None:
        self.commits: dict[str, Json] = {}
        self._begun: dict[str, Json] = {}
        self._ended: dict[str, Json] = {}
        for answer in answers:
            if answer["outcome"] == "buries":
                self._begun[answer["tag"]] = answer
                self.commits |= {commit["id"]: commit for commit in answer["commits"]}
            elif answer["verb"] == "drop":
                self._ended[answer["tag"]] = answer

    def may_have(self, commit: str, write: Json) -> bool:
        """Whether a commit that cannot be found may have gone with its branch."""
        return any(
            commit in {each["id"] for each in begun["commits"]} or write.get("at", 0.0) < end
            for begun, end in self._deletions(write["branch"])
        )

    def gone_by(self, time: float, at_all: bool) -> set[str]:
        """Ids of commits whose branch had gone at a time for certain, or may have (`at_all`)."""
        return {
            each["id"]
            for begun, end in self._deletions()
            for each in begun["commits"]
            if (begun["at"] if at_all else end) < time
        }

    def _deletions(self, branch: str | None = None) -> Iterator[tuple[Json, float]]:
        """Those that may have come about, with their ends."""
        for tag, begun in self._begun.items():
            end = self._ended.get(tag)
            refused = end is not None and end["outcome"] in ("conflict", "not_found", "writer_busy")
            if not refused and branch in (None, begun["branch"]):
                yield begun, inf if end is None or end["outcome"] != "returned" else end["at"]


class Commits:
    """All commits of a history, those of deleted branches too, and what each of them showed."""

    def __init__(self, graph: Graph, buried: Buried) -> None:
        self.graph, self.buried = graph, buried
        self.counts: Counter[str] = Counter({"merges": 0, "merges of what is gone": 0, "buried": len(buried.commits)})
        self._states: dict[str, State] = {}
        self._alive: dict[str, Commit] = {c.id: c for b in graph.branches() for c in graph.commits(branch=b)}
        told = {each["id"]: (each["parent"], each["merged_parent"]) for each in buried.commits.values()}
        found = told | {c.id: (c.parent, c.merged_parent) for c in self._alive.values()}
        self._parents = {each: [p for p in parents if p is not None] for each, parents in found.items()}

    def note(self, commit: str, state: State) -> None:
        self._states[commit] = state

    def state(self, commit: str) -> State | None:
        """What a commit showed; None for one of a deleted branch of which nobody told."""
        if commit not in self._states:
            if commit in self._alive:
                self._states[commit] = shown(self.graph.export(snapshot=commit))
            elif commit in self.buried.commits:
                self._states[commit] = shown(self.buried.commits[commit]["rows"])
        return self._states.get(commit)

    def check_merge(self, commit: Commit, told: Json, end: Json | None, before: State, now: State) -> None:
        """A merge is what the plain one makes of both its parents."""
        tag, source = told["tag"], commit.merged_parent
        assert source is not None, f"{tag} is a merge, and {commit.id} has one parent"
        if end is not None and end["outcome"] == "returned":
            heads = (end["source_commit"], end["target_commit"], end["commit"])
            assert heads == (source, commit.parent, commit.id), f"{tag} reported {heads}, and is {commit}"
        self.counts["merges"] += 1
        theirs = self.state(source)
        if theirs is None:
            self.counts["merges of what is gone"] += 1
            return
        disputed = []
        for gone in self._gone(told, end):
            merged, conflicts = self._merged(commit, source, told, before, theirs, gone)
            if merged == now and (not conflicts or told["on_conflict"] != "fail"):
                disputed.append(conflicts)
        if not disputed and self._is_dark(commit):
            self.counts["merges of what is gone"] += 1
            return
        assert disputed, f"commit {commit.id} is not what {tag} makes of {commit.parent} and {source}"
        if end is not None and end["outcome"] == "returned":
            reported = {(table.partition(":")[2], name) for table, name in end["conflicts"]}
            assert reported in disputed, f"{tag} discarded other rows than it reported: {reported}"

    def _gone(self, told: Json, end: Json | None) -> list[set[str]]:
        """Commits that the merge could not see: which were gone depends on how it met a deletion."""
        last = inf if end is None else end.get("at", inf)
        sets = [set(), self.buried.gone_by(told.get("at", 0.0), False), self.buried.gone_by(last, True)]
        return [each - self._alive.keys() for each in sets]

    def _is_dark(self, commit: Commit) -> bool:
        """Whether something behind a commit went with its branch, and nobody told of it."""
        return not ancestors(self._parents, commit.id) <= self._parents.keys()

    def _merged(
        self, commit: Commit, source: str, told: Json, before: State, theirs: State, gone: set[str]
    ) -> tuple[State, set[tuple[str, str]]]:
        parents = {each: known for each, known in self._parents.items() if each not in gone or each == source}
        assert commit.parent is not None
        states = [self.state(base) for base in merge_bases(parents, source, commit.parent)]
        merged, conflicts = merge_rows(theirs, before, [state for state in states if state is not None])
        if told["on_conflict"] == "source":
            taken = {key: theirs[key] for key in conflicts if key in theirs}
            merged = {key: row for key, row in merged.items() if key not in conflicts} | taken
        return merged, conflicts

    def check_up_to_date(self, answers: Iterable[Json]) -> None:
        """A merge that found nothing to do had everything."""
        for answer in answers:
            if answer.get("came_to") == "already_up_to_date":
                has = answer["source_commit"] in ancestors(self._parents, answer["target_commit"])
                known = answer["target_commit"] in self._parents
                assert has or not known, f"{answer['tag']} found nothing to merge, and lacks {answer['source_commit']}"
