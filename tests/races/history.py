"""What the stress test loads, and the proof that its history is a sequence of those loads.

Each load names itself as the actor of its commit and as the tag of its rows. So every commit is known to be one load,
and playing the loads in the order of the commits must give the rows of the graph at each of them: then nothing was
lost, doubled, seen in part, or based on something that had moved.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from spark_omnigraph import Commit, Graph
from spark_omnigraph.manifest.branches import Branch, stored_branch
from spark_omnigraph.manifest.rows import PublishFacts, sentinel_facts
from spark_omnigraph.manifest.snapshot import reduce_rows
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.manifest.table import read_rows
from tests.support.cases import Json

SCHEMA = """
node Part { code: String @key  tag: String }
node Bin { code: String @key  tag: String }
edge In: Part -> Bin { tag: String }
"""
KEYS = [f"k{n}" for n in range(8)]
RECOVERY = "omnigraph:recovery"

Shown = str | tuple[str, str, str]
State = Mapping[tuple[str, str], Shown]
"""(type, id) → tag, and the ends of an edge."""


def rows(tag: str, keys: Iterable[str]) -> list[str]:
    """For each key one node of either type and one edge, all with the tag."""
    lines = []
    for key in keys:
        lines.append({"type": "Part", "data": {"code": key, "tag": tag}})
        lines.append({"type": "Bin", "data": {"code": key, "tag": tag}})
        lines.append({"edge": "In", "from": key, "to": key, "data": {"id": f"in-{key}", "tag": tag}})
    return [json.dumps(line) for line in lines]


def parts(tag: str, keys: Iterable[str]) -> list[str]:
    """Nodes of one type alone."""
    return [json.dumps({"type": "Part", "data": {"code": key, "tag": tag}}) for key in keys]


def edges(tag: str, pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Edges alone: their ends must be there when the load is published, and stay there."""
    return [
        json.dumps({"edge": "In", "from": a, "to": b, "data": {"id": f"{tag}-{a}-{b}", "tag": tag}}) for a, b in pairs
    ]


def first_rows() -> list[str]:
    return rows("first", KEYS)


def _row(line: str) -> tuple[tuple[str, str], Shown]:
    record = json.loads(line)
    kind, data = record.get("type") or record["edge"], record["data"]
    value = (data["tag"], record["from"], record["to"]) if kind == "In" else data["tag"]
    return (kind, data.get("id") or data["code"]), value


def _ends(value: Shown) -> list[tuple[str, str]]:
    """The nodes at which an edge ends; none for a node."""
    return [] if isinstance(value, str) else [("Part", value[1]), ("Bin", value[2])]


def shown(lines: Iterable[str]) -> dict[tuple[str, str], Shown]:
    """Rows as a state; an id that occurs twice, or an edge without its ends, fails."""
    found: dict[tuple[str, str], Shown] = {}
    for line in lines:
        key, value = _row(line)
        assert key not in found, f"{key} is there twice"
        found[key] = value
    ends = [end for value in found.values() for end in _ends(value)]
    dangling = [end for end in ends if end not in found]
    assert dangling == [], f"edges end nowhere: {dangling}"
    return found


def play(before: State, load: Json) -> State:
    """The state after a load or a mutation. One that could not have succeeded on the state before fails."""
    if load["mode"] in ("update", "delete"):
        return _mutated(before, load)
    changed = dict(_row(line) for line in load["lines"])
    for end in (end for value in changed.values() for end in _ends(value)):
        assert end in before or end in changed, f"{load['tag']} was published though {end} was not there"
    kinds = {kind for kind, _ in changed}
    if load["mode"] == "append":
        double = [key for key in changed if key in before]
        assert double == [], f"{load['tag']} was published though {double} was there"
    kept = {key: tag for key, tag in before.items() if load["mode"] != "overwrite" or key[0] not in kinds}
    return {**kept, **changed}


def _mutated(before: State, mutation: Json) -> State:
    node = ("Part", mutation["key"])
    assert node in before, f"{mutation['tag']} was published though {node} was not there"
    if mutation["mode"] == "update":
        return {**before, node: mutation["tag"]}
    return {key: value for key, value in before.items() if key != node and node not in _ends(value)}


@dataclass
class _Loads:
    """All loads that were tried, by tag; what became of them; and which commits stand for them."""

    tried: dict[str, Json]
    done: dict[str, str]
    refused: set[str]
    finished: dict[str, str]
    """Commits of recoveries that finished a load."""
    empty: set[str]
    """Those of recoveries that undid one, or finished an index: no row changes."""


WRITES = ("load", "branch", "mutate", "frame", "stream")
_UNKNOWN = ("begins", "recovery_required", "raw")
"""Outcomes that do not say what became of a write."""


def check_history(graph: Graph, answers: Iterable[Json], replaced: Container[str] = ()) -> dict[str, int]:
    """Proves what the head of this module says, for every branch; counts of what was looked at. The commits of
    `replaced` loads may be missing: the graph was made anew after them.
    """
    loads = _loads(graph, answers)
    seen: set[str] = set()
    counts = {
        "branches": 0,
        "commits": 0,
        "recovered forward": len(loads.finished),
        "changed nothing": len(loads.empty),
    }
    for branch in graph.branches():
        counts["branches"] += 1
        counts["commits"] += _check_branch(graph, branch, loads, seen)
    lost = {tag: commit for tag, commit in loads.done.items() if commit not in seen and tag not in replaced}
    assert lost == {}, f"reported as done, and not in the log: {lost}"
    return counts


def _loads(graph: Graph, answers: Iterable[Json]) -> _Loads:
    tried, done, refused = {}, {}, set()
    for answer in answers:
        if answer["outcome"] == "tries":
            tried[answer["tag"]] = answer
        elif answer["outcome"] == "returned" and answer.get("commit"):
            done[answer["tag"]] = answer["commit"]
        elif answer["verb"] in WRITES and answer["outcome"] not in _UNKNOWN:
            refused.add(answer["tag"])
    audits = graph.recoveries()
    operations = [audit.operation_id for audit in audits]
    assert len(set(operations)) == len(operations), "a write was recovered twice"
    writes = [a for a in audits if a.kind == "RolledForward" and a.writer_kind in ("Load", "Mutation")]
    finished = {a.commit_id: a.for_actor or "" for a in writes}
    empty = {a.commit_id for a in audits} - finished.keys()
    return _Loads(tried, done, refused, finished, empty)


def _check_branch(graph: Graph, branch: str, loads: _Loads, seen: set[str]) -> int:
    """Plays the loads of one branch; how many commits of its own it has."""
    name = stored_branch(branch)
    commits = graph.commits(branch=branch)[::-1]  # a load is played on what those before it left
    assert len({c.id for c in commits}) == len(commits)
    own = [c for c in commits if c.branch == name]
    _check_line(own, commits)
    before: State | None = None
    for commit in own:
        now = shown(graph.export(branch=branch, snapshot=commit.id))
        if before is None:
            before = _first(graph, branch, commit)
        # A writer that was killed between the rows of its commit and of its actor is known from its recovery.
        tag = commit.actor if commit.actor not in (RECOVERY, None) else loads.finished.get(commit.id)
        if tag in loads.tried:
            assert tag not in loads.refused, f"{tag} was refused, and is commit {commit.id}"
            assert now == play(before, loads.tried[tag]), f"commit {commit.id} is not what {tag} makes of its parent"
        else:
            # The beginning of the graph, and recoveries that change no row.
            setup = commit.actor is None and commit.parent in (None, own[0].id)
            assert setup or (commit.id in loads.empty and now == before), f"nobody made {commit}"
        seen.add(commit.id)
        before = now
    if before is not None:
        assert shown(graph.export(branch=branch)) == before, "the branch shows more than its commits"
    _check_publishes(graph.store, name)
    _check_heads(graph, branch)
    return len(own)


def _first(graph: Graph, branch: str, commit: Commit) -> State:
    """What the first commit of a branch was built on."""
    if commit.parent is None:
        return {}
    return shown(graph.export(snapshot=commit.parent))


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
