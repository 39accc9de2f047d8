"""Which old states go by which policy, what stays whatever it says, and what is said of both."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from spark_omnigraph import BadRequestError, DriftError, Graph, LoadOptions, StorageError
from spark_omnigraph.branch.consumers import take_consumer
from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.errors import VersionExpiredError
from spark_omnigraph.graph.changes.feed import feed_tasks, first_parents
from spark_omnigraph.graph.maintain.expire import ExpiryReport
from spark_omnigraph.storage.layout import COMMITS, MANIFEST
from spark_omnigraph.storage.manifest.commit_log import read_commits
from spark_omnigraph.storage.manifest.table import read_rows
from spark_omnigraph.storage.versions import stored_since
from tests.crash.matrix import expire_leases
from tests.crash.worlds import assert_whole

PLAIN = LoadOptions(build_indexes=False)
NOW = timedelta(0)
DAY = 86400.0


def person(name: str, age: int = 1) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age}})


def load(graph: Graph, age: int, branch: str | None = None) -> str:
    """A commit that sets the age of one person; its id."""
    commit = graph.load([person("p", age)], "merge", branch=branch, options=PLAIN).commit
    assert commit is not None
    return commit


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", "node Person { name: String @key  age: I32? }")


def age_at(graph: Graph, commit: str) -> object:
    found = graph.at(snapshot=commit).entity("node:Person", "p")
    return None if found is None else found["age"]


def expire(graph: Graph, keep: int | None = None, age: timedelta | None = None, confirm: bool = True) -> ExpiryReport:
    found = graph.cleanup(age, keep=keep, confirm=confirm, force=True).expiry
    assert found is not None
    return found


def readable(graph: Graph, commits: list[str]) -> list[int]:
    """Places of the commits whose rows can be read."""
    found = []
    for place, commit in enumerate(commits):
        try:
            list(graph.export(snapshot=commit))
        except VersionExpiredError:
            continue
        found.append(place)
    return found


def make_older(graph: Graph, days: float) -> None:
    """Everything stored so far was written so many days ago."""
    then = time.time() - days * DAY
    for path in Path(graph.uri).rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


@pytest.mark.parametrize(("keep", "left"), [(0, [4]), (2, [3, 4]), (100, [0, 1, 2, 3, 4])])
def test_exactly_the_newest_commits_are_kept(graph: Graph, keep: int, left: list[int]) -> None:
    commits = [load(graph, age) for age in range(5)]
    expire(graph, keep)
    assert readable(graph, commits) == left
    assert [age_at(graph, commits[place]) for place in left] == left
    assert len(stored_since(graph.store.objects, graph.snapshot().entries["node:Person"].location)) >= len(left)


def test_the_table_keeps_as_many_versions_as_states_show(graph: Graph) -> None:
    for age in range(5):
        load(graph, age)
    expire(graph, 2)
    folder = graph.snapshot().entries["node:Person"].location
    assert len(stored_since(graph.store.objects, folder)) == 2
    assert sorted(stored_since(graph.store.objects, MANIFEST))[0] == graph.commits()[1].manifest_version


def test_a_dry_run_says_what_goes_and_removes_nothing(graph: Graph) -> None:
    commits = [load(graph, age) for age in range(4)]
    dry = expire(graph, 1, confirm=False)
    assert readable(graph, commits) == [0, 1, 2, 3]
    assert (dry.bytes_before, dry.bytes_after) == (None, None)
    done = expire(graph, 1)
    assert done.bytes_before is not None
    assert done.bytes_after is not None
    assert dry.bytes == done.bytes == done.bytes_before - done.bytes_after > 0
    assert [(line.dataset, line.versions) for line in dry.lines] == [
        (line.dataset, line.versions) for line in done.lines
    ]
    (main,) = done.branches
    assert main.commits[-3:] == tuple(commits[:3])
    assert main.oldest_version == graph.commits()[0].manifest_version


def test_nothing_younger_than_the_retention_goes_unless_forced(graph: Graph) -> None:
    commits = [load(graph, age) for age in range(3)]
    make_older(graph, 6)
    for policy in ({"keep": 1}, {"keep": 1, "older_than": NOW}, {"older_than": timedelta(days=1)}):
        report = graph.cleanup(confirm=True, **policy)
        assert report.expiry is not None
        assert report.expiry.versions == 0
    make_older(graph, 8)
    graph.cleanup(keep=1, confirm=True)
    assert readable(graph, commits) == [2]


def test_a_state_ages_from_when_it_was_shown_last(graph: Graph) -> None:
    """One that was current until yesterday is what a reader of yesterday asks for."""
    commits = [load(graph, 0)]
    make_older(graph, 90)
    commits.append(load(graph, 1))
    make_older(graph, 40)
    commits.append(load(graph, 2))
    graph.cleanup(timedelta(days=30), confirm=True)
    assert readable(graph, commits) == [1, 2]


def test_both_limits_must_let_a_state_go(graph: Graph) -> None:
    commits = [load(graph, age) for age in range(4)]
    make_older(graph, 60)
    commits += [load(graph, age) for age in range(4, 6)]
    graph.cleanup(timedelta(days=30), keep=4, confirm=True)
    assert readable(graph, commits) == [2, 3, 4, 5]


def test_no_policy_expires_nothing(graph: Graph) -> None:
    commits = [load(graph, age) for age in range(3)]
    make_older(graph, 60)
    assert graph.cleanup(confirm=True).expiry is None
    assert readable(graph, commits) == [0, 1, 2]


@pytest.mark.parametrize("policy", [{"keep": -1}, {"keep": "2"}, {"older_than": 7}, {"older_than": timedelta(-1)}])
def test_what_is_no_policy_is_refused(graph: Graph, policy: dict[str, object]) -> None:
    with pytest.raises(BadRequestError, match=next(iter(policy))):
        graph.cleanup(**policy)  # type: ignore[arg-type]  # what is refused


def test_branches_tags_and_merge_bases_stay(graph: Graph) -> None:
    first = load(graph, 0)
    graph.create_branch("lazy")
    load(graph, 1)
    graph.create_branch("busy")
    load(graph, 2, "busy")
    load(graph, 3)
    graph.tag("three")
    last = [load(graph, age) for age in (4, 5)]
    expire(graph, 1)
    assert (graph.count("node:Person", branch="lazy"), age_at(graph, first)) == (1, 0)
    assert graph.at(tag="three").entity("node:Person", "p") == {"id": "p", "name": "p", "age": 3}
    assert readable(graph, last) == [1]
    load(graph, 9, "lazy")
    assert graph.merge_branch("lazy", dry_run=True, on_conflict="source", conflicts=f"{graph.uri}-c").tables
    assert str(graph.merge_branch("busy", on_conflict="source", conflicts=f"{graph.uri}-c").outcome) == "merged"
    assert graph.cleanup(NOW).kept == ()


def test_a_fork_keeps_the_files_that_it_shares_after_a_compaction(graph: Graph) -> None:
    for name in "abcd":
        graph.load([person(name)], options=PLAIN)
    graph.create_branch("dev")
    graph.load([person("e")], branch="dev", options=PLAIN)
    graph.optimize()
    expire(graph, 0)
    expire(graph, 0)
    assert sorted(json.loads(line)["data"]["name"] for line in graph.export(branch="dev")) == ["a", "b", "c", "d", "e"]


def test_rows_of_the_manifest_and_the_log_never_go(graph: Graph) -> None:
    for age in range(4):
        load(graph, age)
    rows = {row.object_id for row in read_rows(graph.store.manifest(None))}
    commits = {commit.id for commit in read_commits(graph.store.location, None)}
    done = expire(graph, 1)
    assert {MANIFEST, COMMITS} <= {line.dataset for line in done.lines}
    assert rows < {row.object_id for row in read_rows(graph.store.manifest(None))}
    assert commits == {commit.id for commit in read_commits(graph.store.location, None)}
    assert len(graph.commits()) == 5


def test_an_expired_state_is_refused_with_the_oldest_that_is_left(graph: Graph) -> None:
    commits = [load(graph, age) for age in range(4)]
    expire(graph, 2)
    oldest = graph.commit(commits[2]).manifest_version
    with pytest.raises(VersionExpiredError, match=rf"the oldest that can be read is {oldest}\b") as caught:
        graph.query("query q() { match { $p: Person } return { $p.age } }", snapshot=commits[0])
    assert (caught.value.kind, caught.value.exit_code) == ("version_expired", 6)
    with pytest.raises(VersionExpiredError):
        graph.create_branch("old", version=2)
    assert graph.create_branch("new", version=oldest) == "new"
    assert graph.commits(branch="new")[0].id == commits[2]


def test_a_branch_can_begin_at_a_tag_that_outlived_its_neighbours(graph: Graph) -> None:
    commits = [load(graph, 0), load(graph, 1)]
    graph.tag("t")
    load(graph, 2)
    load(graph, 3)
    expire(graph, 1)
    graph.create_branch("old", tag="t")
    assert graph.commits(branch="old")[0].id == commits[1]
    assert graph.entity("node:Person", "p", branch="old") == {"id": "p", "name": "p", "age": 1}
    assert load(graph, 7, "old")


@pytest.mark.parametrize("by_age", [False, True])
def test_a_branch_that_begins_behind_a_commit_can_be_merged(graph: Graph, tmp_path: Path, by_age: bool) -> None:
    """Also when it begins at a state that shows indexes and compactions since the commit."""
    load(graph, 1)
    graph.ensure_indices()
    state = graph.snapshot()
    assert state.version > graph.commits()[0].manifest_version
    if by_age:
        for file in (tmp_path / "g").rglob("_versions/*"):
            os.utime(file, (time.time() - 2 * DAY,) * 2)
        graph.ensure_indices()
        expire(graph, age=timedelta(days=1))
    else:
        graph.tag("kept")
        load(graph, 2)
        load(graph, 3)
        expire(graph, keep=1)
    graph.create_branch("late", version=state.version)
    load(graph, 4, "late")
    report = graph.merge_branch("main", "late", on_conflict="target", conflicts=tmp_path / "conflicts.jsonl")
    assert [parent.id for parent in graph.commits(branch="late")][-1] is not None
    assert report.outcome is not None


def test_consumers_are_waited_for(graph: Graph) -> None:
    commits = [load(graph, age) for age in range(5)]
    stands = graph.commit(commits[1]).manifest_version
    take_consumer(graph.store, "search", None, first_parents(graph.store, None), stands)
    done = expire(graph, 1)
    assert readable(graph, commits) == [1, 2, 3, 4]
    assert done.kept == (("consumer search", f"has read branch 'main' up to version {stands}"),)
    line = first_parents(graph.store, parse_branch("main"))
    tasks = feed_tasks(graph.store, graph.catalog(), line, stands + 1, line[-1].manifest_version, None)
    assert [task.commit.id for task in tasks] == commits[2:]
    with pytest.raises(VersionExpiredError, match=rf"the change feed can start at version {stands + 1}\b"):
        take_consumer(graph.store, "late", None, line, graph.commit(commits[0]).manifest_version)
    assert [each.name for each in graph.consumers()] == ["search"]
    graph.delete_consumer("search")
    expire(graph, 1)
    assert readable(graph, commits) == [4]


def test_drift_bars_all_of_it(graph: Graph) -> None:
    commits = [load(graph, age) for age in range(3)]
    dataset = graph.store.open_table(graph.snapshot().entries["node:Person"])
    dataset.delete("age = 2")
    with pytest.raises(DriftError, match="Run repair first"):
        expire(graph, 1)
    assert readable(graph, commits) == [0, 1, 2]


def test_a_branch_that_cannot_be_read_bars_all_of_it(graph: Graph) -> None:
    commits = [load(graph, age) for age in range(3)]
    graph.create_branch("dev")
    load(graph, 5, "dev")
    (newest, *_) = sorted(Path(graph.uri, MANIFEST, "tree", "dev", "_versions").glob("*.manifest"))
    newest.write_bytes(b"no manifest" * 100)
    with pytest.raises(StorageError):
        expire(Graph.open(graph.uri, mode="r"), 1, confirm=False)
    assert readable(graph, commits) == [0, 1, 2]


def test_tables_of_an_interrupted_write_are_left_alone(graph: Graph) -> None:
    commits = [load(graph, age) for age in range(3)]
    with stop_at(CrashPoint.LANDED_ALL), pytest.raises(Crashed):
        load(graph, 9)
    expire_leases(graph)
    before = stored_since(graph.store.objects, graph.snapshot().entries["node:Person"].location)
    done = expire(graph, 1)
    assert stored_since(graph.store.objects, graph.snapshot().entries["node:Person"].location) == before
    assert [why for _, why in done.kept] in ([], ["a pending write covers it"])
    graph.recover()
    assert graph.entity("node:Person", "p") == {"id": "p", "name": "p", "age": 9}
    assert readable(graph, commits)[-1] == 2


def test_a_lost_version_above_what_expired_is_still_noticed(graph: Graph) -> None:
    """Files that only it names would look like residue."""
    for age in range(5):
        load(graph, age)
    expire(graph, 3)
    folder = Path(graph.uri, graph.snapshot().entries["node:Person"].location, "_versions")
    assert graph.cleanup(NOW).kept == ()
    (_, middle, _) = sorted(folder.glob("*.manifest"))
    middle.unlink()
    (kept,) = graph.cleanup(NOW).kept
    assert "lacks the files of published versions" in kept.why


def test_tables_that_a_schema_change_removed_for_good_bar_nothing(graph: Graph) -> None:
    """A type that was dropped, and one that lost a property with its name, have no version of before any more."""
    lone = "node Kite { label: String @key  size: I32? }"
    graph.apply_schema(f"{graph.schema()} {lone} node Ball {{ label: String @key }}")
    graph.load(['{"type": "Kite", "data": {"label": "k", "size": 1}}', '{"type": "Ball", "data": {"label": "b"}}'])
    kite = 'node Dragon @rename_from("Kite") { label: String @key }'
    graph.apply_schema(f"node Person {{ name: String @key  age: I32? }} {kite}", allow_data_loss=True)
    first, last = load(graph, 1), load(graph, 2)
    assert expire(graph, keep=1).versions > 0
    assert readable(graph, [first, last]) == [1]
    assert graph.entity("node:Dragon", "k") == {"id": "k", "label": "k"}
    assert expire(graph, keep=1).kept == ()


def test_a_table_that_was_dropped_goes_with_the_last_state_that_shows_it(graph: Graph) -> None:
    schema = graph.schema()
    graph.apply_schema(f"{schema} node Kite {{ label: String @key }}")
    graph.load(['{"type": "Kite", "data": {"label": "k"}}'])
    location = graph.snapshot().entry("node:Kite").location
    graph.tag("kites")
    graph.apply_schema(schema)
    load(graph, 1)
    expire(graph, keep=1)
    assert graph.count("node:Kite", tag="kites") == 1
    graph.delete_tag("kites")
    load(graph, 2)
    planned = {line.dataset: line for line in expire(graph, keep=1, confirm=False).lines}
    done = {line.dataset: line for line in expire(graph, keep=1).lines}
    assert planned[location].versions == done[location].versions
    assert planned[location].bytes == pytest.approx(done[location].bytes, rel=0.5)
    store = graph.store
    assert [each.path for each in store.objects.walk(location) if "/data/" in each.path] == []
    assert min(stored_since(store.objects, location)) > max(planned[location].versions)
    assert location not in {line.dataset for line in expire(graph, keep=1).lines}
    graph.apply_schema(f"{schema} node Kite {{ label: String @key }}")
    graph.load(['{"type": "Kite", "data": {"label": "new"}}'])
    assert graph.count("node:Kite") == 1
    assert_whole(graph)


def test_a_tag_of_another_program_is_spared(graph: Graph) -> None:
    commits = [load(graph, age) for age in range(4)]
    entry = graph.at(snapshot=commits[1]).snapshot().entries["node:Person"]
    graph.store.open_dataset(entry.location).tags.create("theirs", entry.version)
    expire(graph, 1)
    assert entry.version in stored_since(graph.store.objects, entry.location)
    assert graph.store.open_table(entry).to_table(columns=["age"]) == pa.table({"age": pa.array([1], pa.int32())})
