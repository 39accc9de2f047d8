"""Version files that are gone: nothing that only they name is removed, and no write makes the loss final."""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lance
import pytest

from spark_omnigraph import CleanupReport, DriftError, Graph, LoadOptions, StorageError
from spark_omnigraph.branch import pins as branch_pins
from spark_omnigraph.commit import protocol
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.commit.owners import await_logged
from spark_omnigraph.commit.plan import Identity, PreparedCommit, WriterKind
from spark_omnigraph.commit.protocol import commit
from spark_omnigraph.commit.publisher import publish
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import COMMIT_ACTORS, COMMITS, MANIFEST, manifest_file
from spark_omnigraph.storage.manifest import commit_log
from spark_omnigraph.storage.uri import Location
from tests.support.graph_files import pins

SCHEMA = "node Person { name: String @key }"
PERSON = "node:Person"
PLAIN = LoadOptions(build_indexes=False)
NOW = timedelta(0)


def person(name: str) -> str:
    return json.dumps({"type": "Person", "data": {"name": name}})


@pytest.fixture
def root(grown: Path) -> Path:
    """A graph of three loads and one on a branch, all files a month old; branches hold whole paths, so it stays."""
    shutil.rmtree(grown, ignore_errors=True)
    shutil.copytree(grown.with_name("kept"), grown)
    then = grown.stat().st_mtime - 30 * 86400
    for each in (path for path in grown.rglob("*") if path.is_file()):
        os.utime(each, (then, then))
    return grown


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lost") / "g"
    graph = Graph.init(root, SCHEMA)
    for name in "abc":
        graph.load([person(name)], actor="eve", options=PLAIN)
    graph.create_branch("draft")
    graph.load([person("d")], branch="draft", options=PLAIN)
    shutil.copytree(root, root.with_name("kept"))
    return root


def take(root: Path, folder: str, versions: int = 1) -> list[Path]:
    """Moves the newest version files of a dataset away."""
    newest = int(lance.dataset(root / folder).version)
    paths = [root / folder / manifest_file(newest - back) for back in range(versions)]
    for path in paths:
        path.rename(root.with_name(path.name))
    return paths


def put_back(paths: list[Path], root: Path) -> None:
    for path in paths:
        root.with_name(path.name).rename(path)


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def names(graph: Graph, branch: str = "main") -> set[str]:
    return {json.loads(line)["data"]["name"] for line in graph.export(branch=branch)}


@pytest.mark.parametrize("line", ["", "/tree/draft"])
def test_data_of_a_version_whose_file_is_missing_stays(root: Path, line: str) -> None:
    folder = pins(root)[PERSON].location
    gone = take(root, folder + line)
    before = files(root)
    report = Graph.open(root).cleanup(NOW, confirm=True)
    assert report.items == ()
    assert [kept.what for kept in report.kept] == [folder]
    assert f"{folder}{line} lacks the files of published versions (" in report.kept[0].why
    assert "from a backup" in report.kept[0].why
    assert before <= files(root)
    put_back(gone, root)
    graph = Graph.open(root)
    assert (names(graph), names(graph, "draft")) == ({"a", "b", "c"}, {"a", "b", "c", "d"})
    assert graph.cleanup(NOW).kept == ()


def test_a_version_in_the_middle_counts_too_and_the_first_ones_do_not(root: Path) -> None:
    folder = pins(root)[PERSON].location
    (root / folder / manifest_file(1)).unlink()  # as another engine's clean-up does
    assert Graph.open(root).cleanup(confirm=True).kept == ()
    (root / folder / manifest_file(3)).unlink()
    report = Graph.open(root).cleanup(confirm=True)
    assert (report.items, len(report.kept)) == ((), 1)
    assert "published versions (3)" in report.kept[0].why


@pytest.mark.parametrize(("folder", "why"), [(COMMITS, "lacks the row of"), (COMMIT_ACTORS, "lacks the row of")])
def test_internal_datasets_that_lack_their_newest_rows_are_not_judged(root: Path, folder: str, why: str) -> None:
    take(root, folder)
    before = files(root)
    report = Graph.open(root).cleanup(NOW, confirm=True)
    assert report.items == ()
    assert {kept.what: why in kept.why for kept in report.kept} == {folder: True}
    assert before <= files(root)


@pytest.mark.parametrize("late", ["commit", "actor"])
def test_rows_that_a_live_writer_is_about_to_add_are_waited_for(
    root: Path, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    begins, append_actor = threading.Event(), commit_log._append_actor
    cleaning: list[Future[CleanupReport]] = []

    def waiting(store: GraphStore, commit: str) -> None:
        begins.set()
        await_logged(store, commit)

    def clean() -> None:
        cleaner = Graph(Graph.open(root, mode="r").store)
        cleaning.append(pool.submit(lambda: cleaner.cleanup(NOW, keep=1, confirm=True)))
        assert begins.wait(60)

    def then_actor(location: Location, commit: Commit) -> dict[str, int]:
        clean()
        return append_actor(location, commit)

    monkeypatch.setattr(branch_pins, "await_logged", waiting)
    with ThreadPoolExecutor(1) as pool:
        if late == "actor":
            monkeypatch.setattr(commit_log, "_append_actor", then_actor)
            Graph.open(root).load([person("e")], actor="eve", options=PLAIN)
        else:
            with stop_at(CrashPoint.PUBLISHED, clean):
                Graph.open(root).load([person("e")], actor="eve", options=PLAIN)
        report = cleaning[0].result(60)
    assert (report.expiry is not None, report.warnings) == (True, ())
    assert {kept.why for kept in report.kept} == {"a pending write covers it"}


WRITES: dict[str, Callable[[Path], object]] = {
    "open": Graph.open,
    "recover": lambda root: Graph(Graph.open(root, mode="r").store).recover() or Graph.open(root),
    "load": lambda root: _writable(root).load([person("x")], options=PLAIN),
    "mutate": lambda root: _writable(root).mutate('query q() { insert Person { name: "x" } }'),
    "delete": lambda root: _writable(root).delete(PERSON, ["a"]),
    "repair": lambda root: _writable(root).repair(confirm=True, force=True),
    "cleanup": lambda root: _writable(root).cleanup(NOW, confirm=True),
    "branch": lambda root: _writable(root).create_branch("other"),
    "index": lambda root: _writable(root).ensure_indices(),
    "optimize": lambda root: _writable(root).optimize(),
}


def _writable(root: Path) -> Graph:
    """A handle from before the loss."""
    return Graph(Graph.open(root, mode="r").store)


@pytest.mark.parametrize("write", list(WRITES))
def test_no_write_makes_the_loss_of_manifest_versions_final(root: Path, write: str) -> None:
    gone = take(root, MANIFEST, 2)
    before = files(root)
    with pytest.raises(DriftError, match="newest files of __manifest/_versions are gone") as raised:
        WRITES[write](root)
    assert (raised.value.kind, raised.value.exit_code) == ("drift", 5)
    data = {name for name in before if name.endswith((".lance", ".manifest"))}
    assert data <= files(root)
    put_back(gone, root)
    graph = Graph.open(root)
    graph.load([person("x")], options=PLAIN)
    assert names(graph) == {"a", "b", "c", "x"}
    commits = graph.commits()
    assert [c.parent for c in commits[:-1]] == [c.id for c in commits[1:]]


def test_reading_goes_on_and_says_what_is_lost(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    newest = Graph.open(root).commits()[0]
    take(root, MANIFEST)
    with caplog.at_level(logging.WARNING):
        graph = Graph.open(root, mode="r")
    assert names(graph) == {"a", "b"}
    assert graph.lost is not None
    assert (graph.lost.branch, graph.lost.logged_version, graph.lost.commit) == (
        None,
        newest.manifest_version,
        newest.id,
    )
    assert graph.lost.manifest_version == newest.manifest_version - 1 == graph.snapshot().version
    assert graph.describe().warnings == (str(graph.lost),)
    assert [newest.id in record.message for record in caplog.records] == [True]
    assert Graph.open(root, mode="r", branch="draft").lost is None


def test_a_branch_of_the_manifest_is_looked_at_by_itself(root: Path) -> None:
    gone = take(root, f"{MANIFEST}/tree/draft")
    lost = Graph.open(root, mode="r", branch="draft").lost
    assert lost is not None
    assert lost.branch == "draft"
    graph = Graph.open(root)
    assert graph.lost is None
    assert graph.describe().warnings == ()
    with pytest.raises(DriftError, match="branch 'draft'"):
        graph.load([person("x")], branch="draft", options=PLAIN)
    with pytest.raises(DriftError, match="branch 'draft'"):
        graph.cleanup(NOW, confirm=True)
    graph.load([person("x")], options=PLAIN)
    assert names(graph) == {"a", "b", "c", "x"}
    put_back(gone, root)
    assert names(graph, "draft") == {"a", "b", "c", "d"}


def test_a_log_that_is_older_than_the_manifest_is_completed(root: Path) -> None:
    graph = Graph.open(root)
    with stop_at(CrashPoint.PUBLISHED), pytest.raises(Crashed):
        graph.load([person("x")], options=PLAIN)
    assert Graph.open(root, mode="r").lost is None
    for lease in (root / "__recovery").glob("*.lease"):
        lease.unlink()
    graph = Graph.open(root)
    assert [r.kind.value for r in graph.recovered] == ["RolledForward"]
    assert (names(graph), len(graph.commits())) == ({"a", "b", "c", "x"}, 5)


def test_a_row_that_recovery_added_late_does_not_hide_the_loss(root: Path) -> None:
    graph = Graph.open(root)
    with stop_at(CrashPoint.PUBLISHED), pytest.raises(Crashed):
        graph.load([person("x")], options=PLAIN)
    (root / "__recovery").rename(root.with_name("aside"))
    later = Graph.open(root)
    later.load([person("y")], options=PLAIN)
    shutil.copytree(root.with_name("aside"), root / "__recovery", dirs_exist_ok=True)
    for lease in (root / "__recovery").glob("*.lease"):
        lease.unlink()
    Graph.open(root)
    take(root, MANIFEST)
    assert Graph.open(root, mode="r").lost is not None


def undone(graph: Graph) -> None:
    """A write whose first publish is refused: it takes back what it landed."""
    refusals = iter([StorageError("storage: refused by the test")])

    def refuse(*arguments: Any) -> object:
        for refusal in refusals:
            raise refusal
        return publish(*arguments)

    with patch.object(protocol, "publish", refuse), pytest.raises(StorageError):
        graph.load([person("x")], branch=graph.branch, options=PLAIN)


def named(graph: Graph) -> None:
    """A write that changes no table and has a name."""
    identity = Identity(new_ulid(), new_ulid(), None, WriterKind.LOAD)
    commit(graph.store, PreparedCommit(identity, None, "", (), transaction=Transaction("job", 1)))


WITHOUT_A_COMMIT: dict[str, Callable[[Graph], object]] = {
    "index": Graph.ensure_indices,
    "undo": undone,
    "name": named,
}


@pytest.mark.parametrize("kind", list(WITHOUT_A_COMMIT))
def test_the_loss_of_a_publish_without_a_commit_is_not_made_final(root: Path, kind: str) -> None:
    graph = Graph.open(root)
    WITHOUT_A_COMMIT[kind](graph)
    newest, commits, rows = graph.snapshot(), graph.commits(), names(graph)
    noted = int(json.loads((root / "__recovery" / "x_published~main").read_text())["version"])
    gone = take(root, MANIFEST, newest.version - noted + 1)
    for writer in (Graph.open, lambda _: graph):
        with pytest.raises(DriftError, match=rf"followed by version {noted}, as __recovery/x_published~main"):
            writer(root).load([person("y")], options=PLAIN)
    assert not gone[0].exists()
    lost = Graph.open(root, mode="r").lost
    assert lost is not None
    assert (lost.logged_version, lost.commit) == (noted, commits[0].id)
    put_back(gone, root)
    assert Graph.open(root).snapshot() == newest
    graph.load([person("y")], options=PLAIN)
    assert names(graph) == {*rows, "y"}


def test_such_a_loss_is_accepted_by_removing_the_note(root: Path) -> None:
    Graph.open(root).ensure_indices()
    take(root, MANIFEST)
    with pytest.raises(DriftError, match="to accept the loss, remove __recovery/x_published~main"):
        Graph.open(root)
    (root / "__recovery" / "x_published~main").unlink()
    graph = Graph.open(root)
    graph.load([person("y")], options=PLAIN)
    assert names(graph) == {"a", "b", "c", "y"}


def test_a_note_of_what_was_made_anew_since_is_passed_over(root: Path) -> None:
    graph = Graph.open(root)
    graph.ensure_indices()
    graph.ensure_indices(branch="draft")
    notes = {name: (root / "__recovery" / f"x_published~{name}").read_bytes() for name in ("main", "draft")}
    for name in (MANIFEST, COMMITS):
        lance.dataset(root / name).branches.delete("draft")
    graph.create_branch("draft")
    Graph.open(root, branch="draft").load([person("y")], branch="draft", options=PLAIN)
    Graph.init(root, SCHEMA, force=True)
    assert list((root / "__recovery").glob("x_published~*")) == []
    for name, content in notes.items():
        (root / "__recovery" / f"x_published~{name}").write_bytes(content)
    Graph.open(root).load([person("y")], options=PLAIN)


def test_a_handle_that_wrote_before_sees_the_loss_too(root: Path) -> None:
    graph = Graph.open(root)
    graph.load([person("x")], options=PLAIN)
    gone = take(root, MANIFEST)
    with pytest.raises(DriftError, match="cannot be written"):
        graph.load([person("y")], options=PLAIN)
    put_back(gone, root)
    graph.load([person("y")], options=PLAIN)
    assert names(graph) == {"a", "b", "c", "x", "y"}
