"""Graphs of older internal formats: brought up to date by whoever writes, read as they are by everybody else."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from spark_omnigraph import DamagedError, Graph
from spark_omnigraph.errors import UnsupportedFormatError
from spark_omnigraph.storage.faults import CommitFailed, Outcome
from spark_omnigraph.storage.manifest import stamp
from spark_omnigraph.storage.manifest.stamp import migrate, read_format
from tests.support.graph_files import internal

STAMP = "omnigraph:internal_schema_version"
PUBLISHED = 5
KEY = "lance-schema:unenforced-primary-key"


def record(name: str) -> str:
    return f'{{"type": "Film", "data": {{"name": "{name}"}}}}'


def old_graph(root: Path, version: str | None = None, key: str | None = None, runs: tuple[str, ...] = ()) -> Path:
    """A graph whose manifest is written anew by pylance, as an old release left it: stamp and key as given."""
    Graph.init(root, "node Film { name: String @key }").load([record("Alien")])
    rows = internal(root, "__manifest").to_table()
    schema = pa.schema(
        [pa.field(f.name, f.type, f.nullable, {KEY: "true"} if f.name == key else None) for f in rows.schema],
        metadata={STAMP: version} if version is not None else None,
    )
    shutil.rmtree(root / "__manifest")
    dataset = lance.write_dataset(
        rows.cast(schema), root / "__manifest", schema=schema, data_storage_version="2.2", enable_stable_row_ids=True
    )
    while dataset.version < PUBLISHED:  # the load as 4, its index as 5: no release publishes less than is told of
        dataset.update_config({"made": str(dataset.version)})
    for name in runs:
        dataset.create_branch(name, None)
    return root


def primary_key(root: Path, branch: str | None = None) -> list[str]:
    fields = internal(root, "__manifest", branch).lance_schema.fields()
    return [f.name() for f in fields if f.is_unenforced_primary_key()]


def stamp_of(root: Path, branch: str | None = None) -> str | None:
    raw = (internal(root, "__manifest", branch).schema.metadata or {}).get(STAMP.encode())
    return raw.decode() if raw is not None else None


def branches(root: Path) -> set[str]:
    return set(internal(root, "__manifest").branches.list())


@pytest.mark.parametrize("version", [None, "1"])
def test_a_first_generation_graph_gets_key_and_stamp_at_a_read_write_open(tmp_path: Path, version: str | None) -> None:
    root = old_graph(tmp_path / "g", version, runs=("__run__1",))
    graph = Graph.open(root)
    assert (stamp_of(root), primary_key(root), branches(root)) == ("3", ["object_id"], set())
    graph.load([record("Heat")])
    assert graph.count("node:Film") == 2


def test_a_second_generation_graph_loses_the_branches_of_its_runs_only(tmp_path: Path) -> None:
    runs = ("__run__01A", "__run__01B/x", "__run__01B", "draft", "x/__run__y")
    root = old_graph(tmp_path / "g", "2", "object_id", runs)
    Graph.open(root)
    assert (stamp_of(root), branches(root)) == ("3", {"draft", "x/__run__y"})
    assert not list((root / "__manifest" / "tree").glob("__run__*"))


def test_a_run_that_came_from_a_run_goes_with_it(tmp_path: Path) -> None:
    root = old_graph(tmp_path / "g", "2", "object_id", ("__run__b_child_sorts_after",))
    lance.dataset(root / "__manifest" / "tree" / "__run__b_child_sorts_after").create_branch(
        "__run__a", ("__run__b_child_sorts_after", None)
    )
    Graph.open(root)
    assert (stamp_of(root), branches(root)) == ("3", set())


def test_a_key_that_is_set_is_left_alone(tmp_path: Path) -> None:
    root = old_graph(tmp_path / "g", "1", "object_id")
    before = internal(root, "__manifest").version
    Graph.open(root)
    assert internal(root, "__manifest").version == before + 2, "one version for each stamp, none for the key"


def test_another_key_is_a_fault_and_nothing_is_changed(tmp_path: Path) -> None:
    root = old_graph(tmp_path / "g", "1", "table_key")
    before = internal(root, "__manifest").version
    with pytest.raises(DamagedError, match="table_key"):
        Graph.open(root)
    assert internal(root, "__manifest").version == before
    assert Graph.open(root, mode="r").count("node:Film") == 1


def test_a_current_graph_is_not_touched(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node Film { name: String @key }")
    Graph.open(graph.uri)
    assert internal(tmp_path / "g", "__manifest").version == 3


def test_a_read_only_open_does_not_migrate(tmp_path: Path) -> None:
    root = old_graph(tmp_path / "g", None, runs=("__run__1",))
    before = internal(root, "__manifest").version
    reader = Graph.open(root, mode="r")
    assert [line for line in reader.export() if "Alien" in line]
    assert (internal(root, "__manifest").version, stamp_of(root), branches(root)) == (before, None, {"__run__1"})


def test_a_branch_is_migrated_by_the_first_write_on_it(tmp_path: Path) -> None:
    root = old_graph(tmp_path / "g", None, runs=("draft",))
    internal(root, "_graph_commits.lance").create_branch("draft", None)
    graph = Graph.open(root)
    assert (stamp_of(root), stamp_of(root, "draft")) == ("3", None)
    graph.load([record("Heat")], branch="draft")
    assert (stamp_of(root, "draft"), primary_key(root, "draft")) == ("3", ["object_id"])
    assert (graph.count("node:Film", branch="draft"), graph.count("node:Film")) == (2, 1)


@pytest.mark.parametrize("newer", ["4", "7"])
def test_a_newer_branch_is_refused_before_a_write_moves_anything(tmp_path: Path, newer: str) -> None:
    root = old_graph(tmp_path / "g", "3", "object_id", runs=("draft",))
    internal(root, "_graph_commits.lance").create_branch("draft", None)
    internal(root, "__manifest", "draft").update_schema_metadata({STAMP: newer})
    graph = Graph.open(root)
    with pytest.raises(UnsupportedFormatError, match=f"version {newer}"):
        graph.load([record("Heat")], branch="draft")
    assert graph.interrupted() == []
    assert graph.count("node:Film") == 1


def test_a_branch_of_a_format_that_is_not_known_is_not_read(tmp_path: Path) -> None:
    root = old_graph(tmp_path / "g", "3", "object_id", runs=("draft",))
    internal(root, "__manifest", "draft").update_schema_metadata({STAMP: "7"})
    with pytest.raises(UnsupportedFormatError, match="version 7"):
        Graph.open(root, mode="r").count("node:Film", branch="draft")


@pytest.mark.parametrize("step", ["set_primary_key", "set_schema_metadata", "drop_branch"])
@pytest.mark.parametrize("landed", [True, False])
def test_a_migration_that_dies_is_made_again(
    tmp_path: Path, step: str, landed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = old_graph(tmp_path / "g", None, runs=("__run__1", "__run__2"))
    real = getattr(stamp, step)

    def dying(*args: object) -> object:
        if landed:
            real(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(stamp, step, dying)
    with pytest.raises(KeyboardInterrupt):
        Graph.open(root)
    monkeypatch.setattr(stamp, step, real)
    Graph.open(root)
    assert (stamp_of(root), primary_key(root), branches(root)) == ("3", ["object_id"], set())


@pytest.mark.parametrize("step", ["set_primary_key", "set_schema_metadata", "drop_branch"])
def test_two_processes_may_migrate_at_the_same_time(tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever step one of them is at when the other goes all the way."""
    root = old_graph(tmp_path / "g", None, runs=("__run__1", "__run__2"))
    real = getattr(stamp, step)

    def overtaken(*args: object) -> object:
        monkeypatch.setattr(stamp, step, real)
        assert read_format(migrate(internal(root, "__manifest"))).stamp == 3
        return real(*args)

    monkeypatch.setattr(stamp, step, overtaken)
    assert read_format(migrate(internal(root, "__manifest"))).stamp == 3
    assert (stamp_of(root), primary_key(root), branches(root)) == ("3", ["object_id"], set())


def test_a_step_that_keeps_failing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = old_graph(tmp_path / "g", None)

    def refused(*_: object) -> object:
        raise CommitFailed(Outcome.UNKNOWN, "disk full")

    monkeypatch.setattr(stamp, "set_schema_metadata", refused)
    with pytest.raises(Exception, match=r"^storage: .*schema version 3 .disk full"):
        migrate(internal(root, "__manifest"))
