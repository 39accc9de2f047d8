"""The proof that the history of the stress test is a sequence of what its processes reported.

Each write names itself as the actor of its commit and as the tag of its rows. So every commit is known to be one write,
and playing the writes in the order of the commits must give the rows of the graph at each of them: then nothing was
lost, doubled, seen in part, or based on something that had moved. Of merges `merged.py` says what they must have given.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Container, Iterable, Set
from dataclasses import dataclass

from spark_omnigraph import Commit, Graph
from spark_omnigraph.manifest.branches import Branch, stored_branch
from spark_omnigraph.manifest.rows import PublishFacts, sentinel_facts
from spark_omnigraph.manifest.snapshot import reduce_rows
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.manifest.table import read_rows
from tests.races.merged import MERGE, Buried, Commits
from tests.races.states import Shown, State, embedded, ends_of, row_of, shown, tagged
from tests.support.cases import Json

RECOVERY = "omnigraph:recovery"


def play(before: State, load: Json) -> State:
    """The state after a load, a mutation or an embedding. One that could not have succeeded on the state before
    fails.
    """
    if "key" in load:
        return _mutated(before, load)
    if load["mode"] == "update":
        return _patched(before, load)
    if load["mode"] == "embed":
        return {key: _embedded(key[0], value, load) for key, value in before.items()}
    if load["mode"] == "changes":
        records = [json.loads(line) for line in load["lines"]]
        before = without(before, {record["data"]["code"] for record in records if record["op"] == "d"})
    changed = dict(row_of(line) for line in load["lines"] if '"op": "d"' not in line)
    for end in (end for value in changed.values() for end in ends_of(value)):
        assert end in before or end in changed, f"{load['tag']} was published though {end} was not there"
    kinds = {kind for kind, _ in changed}
    if load["mode"] == "append":
        double = [key for key in changed if key in before]
        assert double == [], f"{load['tag']} was published though {double} was there"
    kept = {key: tag for key, tag in before.items() if load["mode"] != "overwrite" or key[0] not in kinds}
    return {**kept, **changed}


def without(before: State, parts: Set[str]) -> State:
    """A state without some parts and their edges."""
    gone = {("Part", part) for part in parts}
    return {key: value for key, value in before.items() if key not in gone and gone.isdisjoint(ends_of(value))}


def _embedded(kind: str, value: Shown, told: Json) -> Shown:
    return embedded(value, told["rows"] == "all") if isinstance(value, str) and kind in told["types"] else value


def _patched(before: State, load: Json) -> State:
    """Rows get the tag, and edges keep their ends."""
    after = dict(before)
    for line in load["lines"]:
        record = json.loads(line)
        key = (record.get("type") or record["edge"], record["data"].get("id") or record["data"]["code"])
        assert key in before, f"{load['tag']} was published though {key} was not there"
        value, tag = before[key], record["data"]["tag"]
        after[key] = tagged(value, tag) if isinstance(value, str) else (tag, *value[1:])
    return after


def _mutated(before: State, mutation: Json) -> State:
    node = ("Part", mutation["key"])
    assert node in before, f"{mutation['tag']} was published though {node} was not there"
    if mutation["mode"] == "update":
        return {**before, node: tagged(str(before[node]), mutation["tag"])}
    return without(before, {mutation["key"]})


@dataclass
class _Loads:
    """All loads that were tried, by tag; what became of them; and which commits stand for them."""

    tried: dict[str, Json]
    ended: dict[str, Json]
    """What they reported of their end."""
    done: dict[str, str]
    refused: set[str]
    finished: dict[str, str]
    """Commits of recoveries that finished a load."""
    empty: set[str]
    """Those of recoveries that undid one, or finished an index: no row changes."""


WRITES = ("load", "branch", "mutate", "frame", "stream", "review", "merge", "restore", "evolve", "embed", "sync")
_KINDS = ("Load", "Mutation", "BranchMerge", "SchemaApply")
_UNKNOWN = ("begins", "recovery_required", "raw")
"""Outcomes that do not say what became of a write."""


def check_history(graph: Graph, answers: Iterable[Json], replaced: Container[str] = ()) -> dict[str, int]:
    """Proves what the head of this module says, for every branch; counts of what was looked at. The commits of
    `replaced` loads may be missing: the graph was made anew after them.
    """
    told = list(answers)
    loads = _loads(graph, told)
    commits = Commits(graph, Buried(told))
    seen: set[str] = set()
    counts = {
        "branches": 0,
        "commits": 0,
        "recovered forward": len(loads.finished),
        "changed nothing": len(loads.empty),
    }
    for branch in graph.branches():
        counts["branches"] += 1
        counts["commits"] += _check_branch(commits, branch, loads, seen)
    lost = {tag: commit for tag, commit in loads.done.items() if commit not in seen and tag not in replaced}
    lost = {tag: commit for tag, commit in lost.items() if not commits.buried.may_have(commit, loads.tried[tag])}
    assert lost == {}, f"reported as done, and not in the log: {lost}"
    commits.check_up_to_date(told)
    return {**counts, **commits.counts}


def _loads(graph: Graph, answers: Iterable[Json]) -> _Loads:
    tried, ended, done, refused = {}, {}, {}, set()
    for answer in answers:
        if answer["outcome"] == "tries":
            tried[answer["tag"]] = answer
            continue
        ended[answer["tag"]] = answer
        if answer["outcome"] == "returned" and answer.get("commit"):
            done[answer["tag"]] = answer["commit"]
        elif answer["verb"] in WRITES and answer["outcome"] not in _UNKNOWN:
            refused.add(answer["tag"])
    audits = graph.recoveries()
    operations = [audit.operation_id for audit in audits]
    assert len(set(operations)) == len(operations), "a write was recovered twice"
    writes = [a for a in audits if a.kind == "RolledForward" and a.writer_kind in _KINDS]
    finished = {a.commit_id: a.for_actor or "" for a in writes}
    empty = {a.commit_id for a in audits} - finished.keys()
    return _Loads(tried, ended, done, refused, finished, empty)


def _check_branch(line: Commits, branch: str, loads: _Loads, seen: set[str]) -> int:
    """Plays the writes of one branch; how many commits of its own it has."""
    graph, name = line.graph, stored_branch(branch)
    commits = graph.commits(branch=branch)[::-1]  # a write is played on what those before it left
    assert len({c.id for c in commits}) == len(commits)
    own = [c for c in commits if c.branch == name]
    _check_line(own, commits)
    before: State | None = None
    for commit in own:
        now = shown(graph.export(branch=branch, snapshot=commit.id))
        if before is None:
            before = {} if commit.parent is None else line.state(commit.parent)
            assert before is not None, f"{commit.parent}, on which {branch} begins, cannot be read"
        _check_commit(line, commit, loads, own[0].id, before, now)
        line.note(commit.id, now)
        seen.add(commit.id)
        before = now
    if before is not None:
        assert shown(graph.export(branch=branch)) == before, "the branch shows more than its commits"
    _check_publishes(graph.store, name)
    _check_heads(graph, branch)
    return len(own)


def _check_commit(line: Commits, commit: Commit, loads: _Loads, first: str, before: State, now: State) -> None:
    """A commit is what its writer makes of its parent."""
    # A writer that was killed between the rows of its commit and of its actor is known from its recovery.
    tag = commit.actor if commit.actor not in (RECOVERY, None) else loads.finished.get(commit.id)
    if tag not in loads.tried:
        # The beginning of the graph, and recoveries that change no row.
        setup = commit.actor is None and commit.parent in (None, first)
        upkeep = commit.facts is not None and commit.facts.operation == "optimize" and commit.actor in (None, RECOVERY)
        empty = now == before and (commit.id in loads.empty or upkeep)
        assert setup or empty, f"nobody made {commit}"
        return
    told = loads.tried[tag]
    assert tag not in loads.refused, f"{tag} was refused, and is commit {commit.id}"
    if told["mode"] == MERGE:
        line.check_merge(commit, told, loads.ended.get(tag), before, now)
        return
    assert commit.merged_parent is None, f"{tag} merged nothing, and has two parents"
    if told["mode"] == "restore":
        assert now == line.state(told["state"]), f"commit {commit.id} is not what {tag} restored"
        return
    if told["mode"] == "evolve":
        assert now == before, f"{tag} changed the schema, and commit {commit.id} has other rows"
        return
    assert now == play(before, told), f"commit {commit.id} is not what {tag} makes of its parent"


def _check_line(own: list[Commit], visible: list[Commit]) -> None:
    """One line: each commit follows the one before, on a later manifest version."""
    for earlier, later in itertools.pairwise(own):
        assert later.parent == earlier.id, (earlier, later)
        assert later.manifest_version > earlier.manifest_version
    assert [c.id for c in visible[-len(own) :]] == [c.id for c in own] if own else True


def _check_publishes(store: GraphStore, branch: Branch) -> None:
    """What a publish expected was looked at on the version right below it: nothing was published in between.

    Every version is read. Table versions only grow, and a compaction changes no row.
    """
    previous: PublishFacts | None = None
    published = 0
    pins: dict[str, int] = {}
    newest = store.manifest(branch)
    oldest = min(int(v["version"]) for v in newest.versions())
    for version in range(oldest, int(newest.version) + 1):
        found = read_rows(store.manifest(branch, version))
        facts = sentinel_facts(found)
        entries = reduce_rows(branch, version, found).entries
        versions = {key: entry.version for key, entry in entries.items()}
        assert all(versions[key] >= number for key, number in pins.items()), (version, pins, versions)
        if facts is not None and (previous is None or facts.operation != previous.operation):
            assert facts.base >= published, f"publish {facts.operation} at {version} overlooked that at {published}"
            published = version
        else:
            assert pins in ({}, versions), f"version {version} moved a table without a publish"
        previous, pins = facts, versions


def _check_heads(graph: Graph, branch: str) -> None:
    for entry in graph.snapshot(branch=branch).entries.values():
        if entry.branch == (None if branch == "main" else branch):
            assert graph.store.head_version(entry.location, entry.branch) == entry.version, (branch, entry)
        assert graph.store.open_table(entry).count_rows() == entry.row_count
