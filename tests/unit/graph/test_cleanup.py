"""Clean-up: residue goes; what any version of any dataset names stays, and so does what a writer may need."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import lance
import pytest
from lance.fragment import write_fragments

from spark_omnigraph import (
    BadRequestError,
    BadRowsError,
    Graph,
    LoadOptions,
    RecoveryRequiredError,
)
from spark_omnigraph.branch import orphans
from spark_omnigraph.commit.announced import announced
from spark_omnigraph.commit.claim import claimed
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.commit.lease import SKEW, TERM, lease_path, read_lease
from spark_omnigraph.commit.owners import Owners, find_owners
from spark_omnigraph.commit.stage import close_stage, open_stage, staging
from spark_omnigraph.errors import StorageError
from spark_omnigraph.graph.maintain import cleanup as room
from spark_omnigraph.graph.maintain.cleanup import CleanupReport
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.residue import DatasetFiles
from tests.support.graph_files import pins

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge Lives: Person -> City
"""
PLAIN = LoadOptions(build_indexes=False)
PERSON, CITY = "node:Person", "node:City"
WEEK = timedelta(days=7)
NOW = timedelta(0)
OLD = 30 * 86400.0


def person(name: str, age: int = 1) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age}})


def city(name: str) -> str:
    return json.dumps({"type": "City", "data": {"name": name}})


@pytest.fixture
def graph(grown: Path) -> Graph:
    """A graph that the test may change, with files of now. It stands where it grew, for branches hold whole paths."""
    shutil.rmtree(grown, ignore_errors=True)
    return Graph.open(shutil.copytree(grown.with_name("kept"), grown, copy_function=shutil.copy))


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Loads in every mode with indexes, on main, on a branch and on a branch of it; beside it `kept`, its copy."""
    graph = Graph.init(tmp_path_factory.mktemp("grown") / "g", SCHEMA)
    graph.load([person("a"), person("b"), city("x")])
    graph.load([person("a", 5), person("c")], "merge")
    graph.load([city("y")], "overwrite")
    graph.create_branch("team/draft")
    graph.load([person("d"), city("z")], branch="team/draft")
    graph.create_branch("deep", base="team/draft")
    graph.load([city("w")], branch="deep")
    graph.load([person("e")])
    shutil.copytree(root(graph), root(graph).with_name("kept"))
    return root(graph)


def root(graph: Graph) -> Path:
    return Path(graph.uri)


def folder(graph: Graph, table: str, branch: str | None = None) -> Path:
    place = root(graph) / pins(root(graph))[table].location
    return place if branch is None else place.joinpath("tree", *branch.split("/"))


def age(*paths: Path, seconds: float = OLD) -> None:
    """Makes files, and everything below folders, look as old as that."""
    then = time.time() - seconds
    for path in paths:
        for each in [path, *path.rglob("*")]:
            os.utime(each, (then, then))


def stage(graph: Graph, table: str, branch: str | None = None, seconds: float = OLD) -> Path:
    """A fragment that nothing will ever name."""
    place = folder(graph, table, branch)
    rows = lance.dataset(place).head(1)
    (fragment,) = write_fragments(rows, str(place), mode="append", data_storage_version="2.2")
    path = place / "data" / fragment.files[0].path
    age(path, seconds=seconds)
    return path


def datasets(graph: Graph) -> Iterator[Path]:
    """Folders of all lines of versions: the datasets and the branches that they list."""
    for path in sorted(root(graph).rglob("_versions")):
        if "tree" not in path.parts:
            yield path.parent
            for name in lance.dataset(path.parent).branches.list():
                yield path.parent.joinpath("tree", *name.split("/"))


def history(graph: Graph) -> dict[tuple[str, int], str]:
    """Content of every version of every dataset on every branch, read from disk, as a hash."""
    seen = {}
    for path in datasets(graph):
        for version in lance.dataset(path).versions():
            dataset = lance.dataset(path, version=version["version"])
            rows = sorted(json.dumps(row, default=str, sort_keys=True) for row in dataset.to_table().to_pylist())
            indexes = sorted((i.name, i.num_rows_indexed) for i in dataset.describe_indices())
            text = json.dumps([rows, indexes, dataset.count_rows()])
            seen[str(path.relative_to(root(graph))), version["version"]] = hashlib.sha256(text.encode()).hexdigest()
    return seen


@contextmanager
def history_kept(graph: Graph, dropped: str = "///") -> Iterator[None]:
    """Every version opens and reads the same afterwards, except those below a folder that is meant to go."""
    before = {key: value for key, value in history(graph).items() if not key[0].startswith(dropped)}
    yield
    after = history(graph)
    assert after == before
    for path in datasets(graph):
        lance.dataset(path).validate()


def files(graph: Graph) -> set[str]:
    return {str(path.relative_to(root(graph))) for path in root(graph).rglob("*") if path.is_file()}


def paths(report: CleanupReport, reason: str | None = None) -> set[str]:
    return {item.path for item in report.items if reason is None or item.reason == reason}


def test_a_healthy_graph_has_no_residue(graph: Graph) -> None:
    """Nothing is old enough in the first run; in the second everything is."""
    for _ in range(2):
        before = files(graph)
        with history_kept(graph):
            report = graph.cleanup(confirm=True)
        assert (report.items, report.kept, report.warnings, report.younger) == ((), (), (), 0)
        assert files(graph) == before
        age(root(graph))


def test_residue_is_shown_by_a_dry_run_and_removed_when_confirmed(graph: Graph) -> None:
    staged = [stage(graph, PERSON), stage(graph, CITY), stage(graph, PERSON, "team/draft"), stage(graph, CITY, "deep")]
    sizes = {str(path.relative_to(root(graph))): path.stat().st_size for path in staged}
    before = files(graph)
    with history_kept(graph):
        dry = graph.cleanup()
    assert files(graph) == before
    assert {item.path: item.size for item in dry.items} == sizes
    assert {(item.reason, item.deleted) for item in dry.items} == {("unnamed_data", False)}
    assert (dry.size, dry.by_reason()) == (sum(sizes.values()), {"unnamed_data": (4, sum(sizes.values()))})
    assert all(timedelta(days=29) < datetime.now(timezone.utc) - item.modified for item in dry.items)

    with history_kept(graph):
        done = graph.cleanup(confirm=True)
    assert {item.path: item.deleted for item in done.items} == dict.fromkeys(sizes, True)
    assert files(graph) == before - set(sizes)
    first = done.items[0].to_dict()
    assert set(first) == {"path", "size", "modified", "reason", "deleted"}
    assert json.loads(json.dumps(first)) == first
    assert graph.cleanup(confirm=True).items == ()


def test_every_kind_of_file_is_found(graph: Graph) -> None:
    graph.load([person("p"), person("q")])
    dataset = lance.dataset(folder(graph, PERSON))
    before = files(graph)
    stage(graph, PERSON)
    for fragment in dataset.get_fragments():
        fragment.delete("name = 'p'")
    ids = [f.fragment_id for f in dataset.get_fragments()]
    dataset.create_index_uncommitted("age", index_type="BTREE", fragment_ids=ids)
    fresh = files(graph) - before
    assert {Path(path).parts[2] for path in fresh} == {"data", "_deletions", "_indices"}
    age(*(root(graph) / path for path in fresh))
    with history_kept(graph):
        report = graph.cleanup(confirm=True)
    assert paths(report) == fresh
    assert set(report.by_reason()) == {"unnamed_data", "unnamed_deletion", "unnamed_index"}
    assert files(graph) == before


def test_the_age_limit_is_kept(graph: Graph) -> None:
    old, young = stage(graph, PERSON, seconds=8 * 86400), stage(graph, PERSON, seconds=6 * 86400)
    report = graph.cleanup(WEEK, confirm=True)
    assert (len(report.items), report.younger, old.exists(), young.exists()) == (1, 1, False, True)
    assert graph.cleanup(timedelta(days=5), confirm=True).younger == 0
    assert not young.exists()


def test_an_index_goes_when_its_youngest_file_is_old_enough(graph: Graph) -> None:
    before = files(graph)
    dataset = lance.dataset(folder(graph, PERSON))
    dataset.create_index_uncommitted(
        "age", index_type="BTREE", fragment_ids=[f.fragment_id for f in dataset.get_fragments()]
    )
    fresh = sorted(root(graph) / path for path in files(graph) - before)
    age(*fresh[1:])
    assert graph.cleanup(WEEK, confirm=True).items == ()
    age(fresh[0])
    assert len(graph.cleanup(WEEK, confirm=True).items) == len(fresh) > 1


def test_internal_datasets_are_cleaned_but_never_of_fresh_files(graph: Graph) -> None:
    for name in ("__manifest", "_graph_commits.lance"):
        place = root(graph) / name
        rows = lance.dataset(place).to_table()
        write_fragments(rows, str(place), mode="append", data_storage_version="2.2")
    assert graph.cleanup(NOW, confirm=True).items == ()
    age(root(graph), seconds=2 * 3600)
    with history_kept(graph):
        assert len(graph.cleanup(NOW, confirm=True).items) == 2


def test_an_age_from_before_time_removes_nothing(graph: Graph) -> None:
    stage(graph, PERSON)
    report = graph.cleanup(timedelta(days=10**6), confirm=True)
    assert (report.items, report.younger) == ((), 1)


def test_a_negative_age_is_refused(graph: Graph) -> None:
    with pytest.raises(BadRequestError, match="negative"):
        graph.cleanup(timedelta(days=-1))


def test_a_read_only_handle_may_look(graph: Graph) -> None:
    stage(graph, PERSON)
    reader = Graph.open(graph.uri, mode="r")
    assert len(reader.cleanup().items) == 1
    with pytest.raises(BadRequestError, match="read-only"):
        reader.cleanup(confirm=True)


# --- what others may still need ---------------------------------------------------------------------------------------


def put_lease(graph: Graph, name: str, expires_in: float, started_ago: float | None) -> None:
    facts = {"owner": "x", "expires_at": time.time() + expires_in}
    if started_ago is not None:
        facts["started_at"] = time.time() - started_ago
    graph.store.objects.put(lease_path(name), json.dumps(facts).encode())


@pytest.mark.parametrize("name", ["x_stage~01J0000000000000000000000A", "01J0000000000000000000000A"])
def test_a_live_lease_protects_what_is_younger_than_its_start(graph: Graph, name: str) -> None:
    before, after = stage(graph, PERSON, seconds=9 * 3600), stage(graph, PERSON, seconds=7 * 3600)
    put_lease(graph, name, TERM, started_ago=8 * 3600)
    graph.cleanup(NOW, confirm=True)
    assert (before.exists(), after.exists()) == (False, True)
    put_lease(graph, name, -SKEW - 1, started_ago=8 * 3600)
    graph.cleanup(NOW, confirm=True)
    assert not after.exists()


@pytest.mark.parametrize("content", [None, b"not json", b"[]", b'{"owner": "x"}'])
def test_a_lease_that_does_not_say_when_it_began_protects_everything(graph: Graph, content: bytes | None) -> None:
    staged = stage(graph, PERSON)
    put_lease(graph, "x", TERM, None)
    if content is not None:
        graph.store.objects.put(lease_path("x"), content)
    assert graph.cleanup(NOW, confirm=True).items == ()
    assert staged.exists()


def test_a_stage_protects_its_files_whatever_the_age_limit(graph: Graph) -> None:
    with staging(graph.store):
        staged = stage(graph, PERSON, seconds=0)
        assert graph.cleanup(NOW, confirm=True).items == ()
    assert staged.exists()
    assert graph.store.objects.list("__recovery") == ["x_published~main"]
    age(staged, seconds=1)
    assert graph.cleanup(NOW, confirm=True).items
    name = open_stage(graph.store)
    lease = read_lease(graph.store, name)
    assert lease is not None
    assert lease.expires_at - lease.started_at == 24 * 3600
    later = stage(graph, PERSON, seconds=0)
    assert graph.cleanup(NOW, confirm=True).items == ()
    close_stage(graph.store, name)
    close_stage(graph.store, name)
    age(later, seconds=1)
    assert graph.cleanup(NOW, confirm=True).items


@pytest.mark.parametrize("where", [CrashPoint.STAGED, CrashPoint.BOUND, CrashPoint.ARMED, CrashPoint.LANDED_FIRST])
@pytest.mark.parametrize("branch", [None, "deep"])
def test_a_load_that_runs_meanwhile_loses_nothing(graph: Graph, where: CrashPoint, branch: str | None) -> None:
    """Clean-up without any age limit runs in the middle of a load, which has been at work for an hour."""
    reports: list[CleanupReport] = []

    def meanwhile() -> None:
        leases = [n for n in graph.store.objects.list("__recovery") if n.startswith("x_stage~")]
        assert len(leases) == 1
        reports.append(Graph.open(graph.uri).cleanup(NOW, confirm=True))

    with stop_at(where, meanwhile):
        graph.load([person("late"), city("later")], branch=branch)
    assert len(reports) == 1
    assert paths(reports[0]) == set()
    assert {"late", "later"} <= {json.loads(line)["data"].get("name") for line in graph.export(branch=branch or "main")}


def test_an_index_that_is_built_meanwhile_loses_nothing(graph: Graph) -> None:
    graph.load([person("f")], options=PLAIN)
    lance.dataset(folder(graph, PERSON)).drop_index("id_idx")
    graph.repair(confirm=True, force=True)
    reports: list[CleanupReport] = []
    with stop_at(CrashPoint.BOUND, lambda: reports.append(graph.cleanup(NOW, confirm=True))):
        assert graph.ensure_indices() == ["node:Person.id", "node:Person.name"]
    assert [paths(report) for report in reports] == [set()]
    assert graph.entity(PERSON, "f") is not None


def sidecar_of(graph: Graph, table: str, started: float, branch: str | None = None) -> str:
    name = "01J0000000000000000000000A"
    pin = {
        "table_key": table, "table_path": str(folder(graph, table)),
        "expected_version": 99, "post_commit_pin": 100,
    }  # laid out as a table  # fmt: skip
    if branch is not None:
        pin["table_branch"] = branch
    body = {
        "schema_version": 2, "operation_id": name, "started_at": str(int(started * 1e6)), "branch": branch,
        "actor_id": None, "writer_kind": "Load", "tables": [pin],
    }  # laid out as a table  # fmt: skip
    graph.store.objects.put(f"__recovery/{name}.json", json.dumps(body).encode())
    return name


def test_a_pending_write_protects_its_tables_and_what_is_younger_than_its_start(graph: Graph) -> None:
    covered, before = stage(graph, PERSON), stage(graph, CITY, seconds=9 * 86400)
    after = stage(graph, CITY, seconds=7 * 86400)
    name = sidecar_of(graph, PERSON, time.time() - 8 * 86400)
    report = graph.cleanup(NOW, confirm=True)
    assert (covered.exists(), before.exists(), after.exists()) == (True, False, True)
    location = pins(root(graph))[PERSON].location
    assert [(kept.what, kept.why) for kept in report.kept] == [(location, "a pending write covers it")]
    graph.store.objects.delete(f"__recovery/{name}.json")
    graph.cleanup(NOW, confirm=True)
    assert (covered.exists(), after.exists()) == (False, False)


def test_a_sidecar_that_cannot_be_read_stops_everything(graph: Graph) -> None:
    staged = stage(graph, PERSON)
    graph.store.objects.put("__recovery/01J0000000000000000000000A.json", b"not json")
    with pytest.raises(RecoveryRequiredError, match="01J0000000000000000000000A"):
        graph.cleanup(NOW, confirm=True)
    assert staged.exists()


def test_a_dataset_that_does_not_fit_its_files_is_left_and_the_others_are_cleaned(graph: Graph) -> None:
    staged, other = stage(graph, PERSON), stage(graph, CITY)
    named = lance.dataset(folder(graph, PERSON)).get_fragments()[0].data_files()[0].path
    (folder(graph, PERSON) / "data" / named).unlink()
    report = graph.cleanup(confirm=True)
    assert (staged.exists(), other.exists()) == (True, False)
    (kept,) = report.kept
    assert named in kept.why


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_load_that_commits_around_the_listing_loses_nothing(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    real = DatasetFiles.read

    def overtaken(store: Any, location: str) -> DatasetFiles:
        if moment == "before":
            graph.load([person("late")], "merge")
        listed = real(store, location)
        if moment == "after":
            graph.load([person("late", 2)], "merge")
        return listed

    monkeypatch.setattr(DatasetFiles, "read", overtaken)
    assert graph.cleanup(NOW, confirm=True).items == ()
    assert graph.entity(PERSON, "late") is not None


# --- what interrupted loads leave -------------------------------------------------------------------------------------


def test_files_of_a_killed_load_are_found(graph: Graph) -> None:
    program = (
        "import sys\n"
        "from spark_omnigraph import Graph\n"
        "from spark_omnigraph.commit.crash_points import CrashPoint, kill_process, stop_at\n"
        "with stop_at(CrashPoint.CHECKED, kill_process):\n"
        "    Graph.open(sys.argv[1]).load(sys.argv[2:], branch='deep')\n"
    )
    before = files(graph)
    data = root(graph).parent / "in.jsonl"
    data.write_text("\n".join([person("killed"), city("killed")]))
    run = subprocess.run(
        [sys.executable, "-c", program, graph.uri, str(data)], check=False, timeout=120, cwd=Path(__file__).parents[3]
    )
    assert run.returncode == -9
    left = files(graph) - before
    (lease,) = (path for path in left if path.endswith(".lease"))
    age(*(root(graph) / path for path in left))
    name = Path(lease).stem
    put_lease(graph, name, TERM, started_ago=OLD + 60)
    assert graph.cleanup(NOW, confirm=True).items == (), "its lease has not run out"
    put_lease(graph, name, -SKEW - 1, started_ago=OLD)
    with history_kept(graph, dropped=f"{pins(root(graph))[PERSON].location}/tree/deep"):
        report = graph.cleanup(confirm=True)
    assert paths(report) == left
    assert set(report.by_reason()) == {"unnamed_data", "orphan_branch", "lost_lease"}
    assert files(graph) == before


def test_a_refused_load_leaves_nothing_to_clean(graph: Graph) -> None:
    with pytest.raises(BadRowsError):
        graph.load([person("a"), person("f")])
    age(root(graph))
    assert graph.cleanup(NOW, confirm=True).items == ()


# --- forks ------------------------------------------------------------------------------------------------------------


def leave_fork(graph: Graph, branch: str = "deep") -> Path:
    """A load on a branch that stops after its fork of `Person`; the folder of the fork."""
    with stop_at(CrashPoint.FORKED), pytest.raises(Crashed):
        graph.load([person("never")], branch=branch, options=PLAIN)
    place = folder(graph, PERSON, branch)
    assert place.is_dir()
    return place


def age_fork(place: Path) -> None:
    age(place, *(p for p in place.parents[len(place.parts) - 1 - place.parts.index("tree")].glob("_refs/branches/*")))


def forks(graph: Graph, table: str) -> set[str]:
    return set(lance.dataset(folder(graph, table)).branches.list())


def test_a_fork_that_no_branch_shows_goes_with_everything_in_it(graph: Graph) -> None:
    place = leave_fork(graph)
    write_fragments(lance.dataset(place).head(1), str(place), mode="append", data_storage_version="2.2")
    assert forks(graph, PERSON) == {"team/draft", "deep"}
    young = graph.cleanup(confirm=True)
    assert (young.items, young.younger > 3) == ((), True)
    age_fork(place)
    dry = graph.cleanup()
    assert forks(graph, PERSON) == {"team/draft", "deep"}
    location = pins(root(graph))[PERSON].location
    with history_kept(graph, dropped=f"{location}/tree/deep"):
        report = graph.cleanup(confirm=True)
    assert paths(dry) == paths(report) == paths(report, "orphan_branch")
    assert f"{location}/_refs/branches/deep.json" in paths(report)
    assert forks(graph, PERSON) == {"team/draft"}
    assert not [path for path in files(graph) if path.startswith(f"{location}/tree/deep/")]
    graph.load([person("now")], branch="deep")
    assert graph.entity(PERSON, "now", branch="deep") is not None


def test_forks_that_are_shown_stay_even_by_another_branch_alone(graph: Graph) -> None:
    """`deep` shows Person on the fork of its base."""
    age(root(graph))
    assert graph.snapshot(branch="deep").entries[PERSON].branch == "team/draft"
    with history_kept(graph):
        assert graph.cleanup(confirm=True).items == ()
    assert (forks(graph, PERSON), forks(graph, CITY)) == ({"team/draft"}, {"team/draft", "deep"})


def drop_graph_branch(graph: Graph, name: str) -> None:
    """As the reference engine deletes a branch whose second half failed."""
    lance.dataset(root(graph) / "__manifest").branches.delete(name)


def test_what_a_deleted_branch_leaves_behind_goes(graph: Graph) -> None:
    drop_graph_branch(graph, "deep")
    age(root(graph))
    before = history(graph)
    report = graph.cleanup(confirm=True)
    assert set(report.by_reason()) == {"orphan_branch"}
    log = lance.dataset(root(graph) / "_graph_commits.lance")
    assert (forks(graph, CITY), set(log.branches.list())) == ({"team/draft"}, {"team/draft"})
    after = history(graph)
    assert after == {key: value for key, value in before.items() if key in after}
    assert {key[0] for key in before.keys() - after.keys()} == {
        f"{pins(root(graph))[CITY].location}/tree/deep",
        "_graph_commits.lance/tree/deep",
    }
    graph.create_branch("deep")
    graph.load([city("again")], branch="deep")


def test_a_fork_from_which_another_one_comes_stays_until_that_goes(graph: Graph) -> None:
    """Lance refuses to remove it; the fork inside goes first."""
    place = folder(graph, CITY)
    lance.dataset(place).create_branch("lost", None)
    lance.dataset(place / "tree" / "lost").create_branch("a/much/longer", ("lost", None))
    lance.dataset(place / "tree" / "lost").create_branch("b", ("lost", None))
    age(root(graph))
    report = graph.cleanup(confirm=True)
    assert [kept.what.rsplit("/", 1)[-1] for kept in report.kept] == ["lost"]
    assert "referenced" in report.kept[0].why
    assert forks(graph, CITY) == {"team/draft", "deep", "lost"}
    assert graph.cleanup(confirm=True).kept == ()
    assert forks(graph, CITY) == {"team/draft", "deep"}


@pytest.mark.parametrize("started_ago", [10.0, 2 * OLD])
def test_a_running_write_keeps_all_forks(graph: Graph, started_ago: float) -> None:
    place = leave_fork(graph)
    age_fork(place)
    put_lease(graph, "x_stage~a", TERM, started_ago)
    for confirm in (False, True):
        report = graph.cleanup(confirm=confirm)
        assert paths(report, "orphan_branch") == set()
    assert forks(graph, PERSON) == {"team/draft", "deep"}


def test_a_pending_write_keeps_forks_of_its_branch(graph: Graph) -> None:
    place = leave_fork(graph)
    age_fork(place)
    sidecar_of(graph, CITY, time.time() - OLD / 2, "deep")
    report = graph.cleanup(confirm=True)
    assert forks(graph, PERSON) == {"team/draft", "deep"}
    assert "awaits recovery" in " ".join(kept.why for kept in report.kept)


def test_a_fork_that_comes_into_use_under_the_claim_stays(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    place = leave_fork(graph)
    age_fork(place)

    def late(*args: Any) -> object:
        monkeypatch.setattr(orphans, "claimed", claimed)
        graph.load([person("first")], branch="deep")
        return claimed(*args)

    monkeypatch.setattr(orphans, "claimed", late)
    report = graph.cleanup(confirm=True)
    assert [kept.why for kept in report.kept] == ["it came into use meanwhile"]
    assert graph.entity(PERSON, "first", branch="deep") is not None


def test_the_lock_of_a_schema_change_is_no_orphan(graph: Graph) -> None:
    graph.store.manifest(None).create_branch("__schema_apply_lock__", None)
    graph.store.open_dataset("_graph_commits.lance").create_branch("__schema_apply_lock__", None)
    age(root(graph))
    assert graph.cleanup(confirm=True).items == ()


def test_debris_of_a_branch_no_longer_bars_a_new_one(graph: Graph) -> None:
    """Lance cannot create a branch where a folder of that name lies."""
    place = folder(graph, CITY)
    lance.dataset(place).create_branch("again", None)
    (place / "_refs" / "branches" / "again.json").unlink()
    graph.create_branch("again")
    age(root(graph))
    with history_kept(graph):
        report = graph.cleanup(confirm=True)
    assert set(report.by_reason()) == {"branch_debris"}
    graph.load([city("v")], branch="again")
    assert graph.count(CITY, branch="again") == graph.count(CITY) + 1


# --- leases, claims, probes -------------------------------------------------------------------------------------------


def test_traces_of_the_dead_go_and_those_of_the_living_stay(graph: Graph) -> None:
    objects = graph.store.objects

    def claim(name: str, expires_in: float) -> None:
        content = json.dumps({"token": "t", "expires_at": time.time() + expires_in}).encode()
        objects.put(f"__recovery/x_claim~{name}.claim", content)

    put_lease(graph, "x_stage~dead", -SKEW - 1, 5.0)
    put_lease(graph, "x_stage~alive", TERM, 5.0)
    claim("fork~dead", -SKEW - 1)
    claim("fork~alive", 50)
    claim("recover~dead", -SKEW - 1)
    for name in ("x_probe_old", "x_clock_old", "x_probe_new", "unknown"):
        objects.put(f"__recovery/{name}", b"1")
    age(root(graph) / "__recovery" / "x_probe_old", root(graph) / "__recovery" / "x_clock_old")
    dry = graph.cleanup()
    report = graph.cleanup(confirm=True)
    assert {(i.path.removeprefix("__recovery/"), i.reason) for i in report.items} == {
        ("x_stage~dead.lease", "lost_lease"),
        ("x_claim~fork~dead.claim", "lost_claim"),
        ("x_probe_old", "lost_probe"),
        ("x_clock_old", "lost_probe"),
    }
    assert paths(dry) == paths(report)
    assert set(objects.list("__recovery")) - {"x_swap.lock"} == {
        "x_stage~alive.lease",
        "x_claim~fork~alive.claim",
        "x_claim~recover~dead.claim",
        "x_probe_new",
        "x_published~main",
        "unknown",
    }


def test_stages_of_the_dead_are_over_before_owners_are_looked_for(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that goes on arms first and looks for its stage second: so one of the two sees the other."""
    put_lease(graph, "x_stage~dead", -SKEW - 1, 5.0)
    seen: list[str] = []

    def look(store: GraphStore) -> Owners:
        seen.extend(announced(store).held)
        return find_owners(store)

    monkeypatch.setattr(room, "find_owners", look)
    graph.cleanup(NOW)
    assert seen == ["x_stage~dead"], "a dry run removes nothing"
    seen.clear()
    report = graph.cleanup(NOW, confirm=True)
    assert seen == []
    assert [(item.path, item.deleted) for item in report.items] == [("__recovery/x_stage~dead.lease", True)]


def test_a_failing_store_is_reported_with_what_is_gone_and_what_is_not(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sorted([stage(graph, PERSON), stage(graph, PERSON)])

    def half(self: object, paths: list[str]) -> None:
        first.unlink()
        raise StorageError("storage: cannot delete: denied")

    monkeypatch.setattr(type(graph.store.objects), "delete_all", half)
    report = graph.cleanup(confirm=True)
    assert {Path(item.path).name: item.deleted for item in report.items} == {first.name: True, second.name: False}
    assert "denied" in report.warnings[0]


def test_a_copy_elsewhere_that_has_branches_is_not_touched(graph: Graph, tmp_path: Path) -> None:
    """Branches name their parents' folders by absolute path: a copied graph cannot tell what they need."""
    stage(graph, PERSON)
    shutil.copytree(graph.uri, tmp_path / "copy")
    age(tmp_path / "copy")
    report = Graph.open(tmp_path / "copy").cleanup(confirm=True)
    assert report.items == ()
    assert all("not a folder of the dataset" in kept.why for kept in report.kept)
    assert report.kept


def test_clean_up_bears_any_name_and_removes_what_interrupted_puts_left(graph: Graph) -> None:
    folder, place = root(graph) / "__recovery", graph.snapshot().entries[PERSON].location
    table = root(graph) / place
    left = [
        folder / ("01J0000000000000000000000A.lease#" + "0a" * 16),
        root(graph) / "_schema.pg#7",
        table / "data" / "0a0b.lance#3",
        table / "_versions" / "18446744073709551610.manifest#f",
    ]
    for odd in (folder / "two\nlines.json", root(graph) / place / "data" / os.fsdecode(b"\xff.lance")):
        odd.write_bytes(b"")
    for path in left:
        path.write_bytes(b"")
        os.utime(path, (time.time() - OLD, time.time() - OLD))
    young = folder / "x.json#1"
    young.write_bytes(b"")
    report = graph.cleanup(WEEK, confirm=True)
    assert sorted(item.path for item in report.items if item.reason == "unfinished_object") == sorted(
        str(path.relative_to(root(graph))) for path in left
    )
    assert not any(path.exists() for path in left)
    assert young.exists()
    assert graph.load([person("after")]).nodes_loaded == {"Person": 1}
    assert graph.recover() == []
