"""Which files of a dataset no version names: Lance's answer for every line of versions, and what it leaves out."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments

from spark_omnigraph.errors import StorageError
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.residue import DatasetFiles, find_residue
from spark_omnigraph.storage.uri import locate

PLACE = "nodes/a"
BLOB_SCHEMA = pa.schema([pa.field("id", pa.string()), lance.blob_field("b")])


def rows(count: int, start: int = 0) -> pa.Table:
    return pa.table({"id": [str(i + start) for i in range(count)], "x": list(range(count))})


def write(uri: Path, table: pa.Table, mode: str = "append") -> lance.LanceDataset:
    return lance.write_dataset(table, str(uri), mode=mode, data_storage_version="2.2", enable_stable_row_ids=True)


@pytest.fixture(params=["plain", "mit Leerzeichen/ü"])
def root(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    root: Path = tmp_path / request.param
    root.mkdir(parents=True)
    return root


@pytest.fixture
def busy(root: Path) -> Path:
    """A dataset with history of every kind: deletes, indexes, compaction, restore, an overwrite, a tag, branches that
    inherit all that and branches of branches; everything in it is named by some version.
    """
    uri = root / PLACE
    dataset = write(uri, rows(50), "create")
    dataset.delete("x < 5")
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_branch("team/x", None)
    branch = write(uri / "tree" / "team" / "x", rows(5, 100))
    branch.delete("id = '7'")
    branch.create_scalar_index("x", "BTREE")
    branch.create_branch("y", ("team/x", None))
    write(uri / "tree" / "y", rows(5, 200)).delete("id = '101'")
    for start in (300, 310):
        write(uri, rows(5, start))
    lance.dataset(uri).optimize.compact_files()
    lance.dataset(uri).optimize.optimize_indices()
    lance.dataset(uri).tags.create("kept", 2)
    lance.dataset(uri).checkout_version(3).restore()
    write(uri, rows(3, 400), "overwrite")
    lance.dataset(uri).update({"x": "9"}, where="id = '401'")
    return uri


def found(root: Path) -> dict[str, list[str]]:
    """Kind → paths below the dataset."""
    location = locate(root)
    store = GraphStore(location, Objects(location))
    result: dict[str, list[str]] = {}
    for piece in find_residue(store, DatasetFiles.read(store, PLACE)):
        paths = [each.path.removeprefix(f"{PLACE}/") for each in piece.objects]
        assert all((root / PLACE / path).stat().st_size == each.size for path, each in zip(paths, piece.objects))
        result.setdefault(str(piece.kind), []).extend(paths)
    return {kind: sorted(paths) for kind, paths in result.items()}


def test_history_is_no_residue(root: Path, busy: Path) -> None:
    assert found(root) == {}


def test_staged_fragments_are_residue_on_every_line(root: Path, busy: Path) -> None:
    names = []
    for folder in ("", "tree/team/x/", "tree/y/"):
        (fragment,) = write_fragments(rows(2), str(busy / folder), mode="append", data_storage_version="2.2")
        names.append(f"{folder}data/{fragment.files[0].path}")
    assert found(root) == {"unnamed_data": sorted(names)}


def test_staged_deletions_are_residue(root: Path, busy: Path) -> None:
    before = set(busy.rglob("_deletions/*"))
    lance.dataset(busy).get_fragments()[0].delete("id = '400'")
    lance.dataset(busy / "tree" / "y").get_fragments()[0].delete("x = 8")
    fresh = sorted(str(p.relative_to(busy)) for p in {*busy.rglob("_deletions/*")} - before)
    assert len(fresh) == 2
    assert found(root) == {"unnamed_deletion": fresh}


def test_staged_indexes_are_residue(root: Path, busy: Path) -> None:
    before = set(busy.rglob("_indices/*/*"))
    for folder in (busy, busy / "tree" / "team" / "x"):
        dataset = lance.dataset(folder)
        ids = [f.fragment_id for f in dataset.get_fragments()]
        dataset.create_index_uncommitted("x", index_type="BTREE", name="staged", fragment_ids=ids)
    fresh = sorted(str(p.relative_to(busy)) for p in {*busy.rglob("_indices/*/*")} - before)
    assert len(fresh) >= 2
    assert found(root) == {"unnamed_index": fresh}


def test_blobs_belong_to_their_data_file(root: Path) -> None:
    uri = root / PLACE
    payload = [os.urandom(200_000), os.urandom(100)]
    table = pa.table({"id": ["a", "b"], "b": lance.blob_array(payload)}, schema=BLOB_SCHEMA)
    write(uri, table, "create")
    assert list(uri.glob("data/*/*.blob")), "the large value lies beside the data file"
    assert found(root) == {}
    (fragment,) = write_fragments(table, str(uri), mode="append", data_storage_version="2.2")
    name = fragment.files[0].path
    side = sorted(str(p.relative_to(uri)) for p in (uri / "data" / name.removesuffix(".lance")).iterdir())
    assert side
    assert found(root) == {"unnamed_data": sorted([f"data/{name}", *side])}
    (uri / "data" / name).unlink()
    assert found(root) == {"unnamed_blob": side}


def test_a_folder_of_a_branch_that_is_gone_is_debris_as_a_whole(root: Path, busy: Path) -> None:
    dataset = lance.dataset(busy)
    dataset.create_branch("gone/deep", None)
    write(busy / "tree" / "gone" / "deep", rows(2, 900))
    (busy / "_refs" / "branches" / "gone%2Fdeep.json").unlink()
    files = sorted(str(p.relative_to(busy)) for p in (busy / "tree" / "gone").rglob("*") if p.is_file())
    assert {path.split("/")[3] for path in files} == {"_versions", "_transactions", "data"}
    assert found(root) == {"branch_debris": files}


def test_a_branch_inside_the_folder_of_one_that_is_gone_is_safe(root: Path, busy: Path) -> None:
    lance.dataset(busy).create_branch("team", None)
    (busy / "_refs" / "branches" / "team.json").unlink()
    debris = found(root)["branch_debris"]
    assert debris
    assert not [path for path in debris if path.startswith("tree/team/x/")]


def test_residue_of_a_branch_inside_the_folder_of_another_one_is_told_apart(root: Path, busy: Path) -> None:
    lance.dataset(busy).create_branch("team", None)
    names = []
    for folder in ("tree/team/", "tree/team/x/"):
        (fragment,) = write_fragments(rows(2), str(busy / folder), mode="append", data_storage_version="2.2")
        names.append(f"{folder}data/{fragment.files[0].path}")
    assert found(root) == {"unnamed_data": names}


def test_an_index_that_only_a_branch_still_has_is_kept(root: Path, busy: Path) -> None:
    """The main line dropped the versions that list it, and the branch does not list what it inherited."""
    shutil.rmtree(busy)
    dataset = write(busy, rows(20), "create")
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_branch("old", None)
    (number,) = [r["version"] for r in dataset.versions() if r["version"] == 2]
    dataset.drop_index("id_idx")
    (busy / "_versions" / f"{2**64 - 1 - number:020d}.manifest").unlink()
    assert found(root) == {}
    assert lance.dataset(busy / "tree" / "old").describe_indices()[0].name == "id_idx"


def test_a_folder_among_indexes_that_is_none_is_left_alone(root: Path, busy: Path) -> None:
    (busy / "_indices" / "mine").mkdir()
    (busy / "_indices" / "mine" / "x").write_bytes(b"1")
    (busy / "_indices" / "README").write_bytes(b"1")
    assert found(root) == {}


def test_other_files_of_a_dataset_are_not_judged(root: Path, busy: Path) -> None:
    for name in ("_transactions/0-x.txn", "_versions/notes.txt", "README", "_refs/tags/x.txt"):
        (busy / name).write_bytes(b"1")
    assert found(root) == {}


def test_a_named_file_that_is_missing_stops_everything(root: Path, busy: Path) -> None:
    write_fragments(rows(2), str(busy), mode="append", data_storage_version="2.2")
    lost = busy / "data" / lance.dataset(busy).get_fragments()[0].data_files()[0].path
    lost.unlink()
    with pytest.raises(StorageError, match=rf"not there: {PLACE}/data/{lost.name}"):
        found(root)


def test_a_dataset_that_was_moved_is_not_judged(root: Path, busy: Path) -> None:
    """Its branches name the old folder: what they show is not here."""
    elsewhere = root / "elsewhere"
    shutil.copytree(root / "nodes", elsewhere / "nodes")
    with pytest.raises(StorageError, match="not a folder of the dataset"):
        found(elsewhere)


def test_detached_versions_are_not_judged(root: Path, busy: Path) -> None:
    dataset = lance.dataset(busy)
    change = lance.LanceOperation.UpdateConfig(config_updates=lance.LanceOperation.UpdateMap({"a": "b"}))
    lance.LanceDataset.commit(dataset, change, read_version=dataset.version, detached=True)
    with pytest.raises(StorageError, match="detached"):
        found(root)


def test_what_is_committed_after_the_listing_is_named_and_missed_by_nobody(root: Path, busy: Path) -> None:
    location = locate(root)
    store = GraphStore(location, Objects(location))
    (staged,) = write_fragments(rows(2), str(busy), mode="append", data_storage_version="2.2")
    files = DatasetFiles.read(store, PLACE)
    dataset = lance.dataset(busy)
    lance.LanceDataset.commit(dataset, lance.LanceOperation.Append([staged]), read_version=dataset.version)
    write(busy, rows(2, 800))  # its files are not in the listing
    assert find_residue(store, files) == []


def test_a_walk_sees_sizes_and_times_and_the_clock_leaves_nothing(tmp_path: Path) -> None:
    objects = Objects(locate(tmp_path))
    objects.put("a/b/c", b"123")
    objects.put("a/d", b"1")
    objects.put("ab", b"1")
    found_objects = objects.walk("a")
    assert [(o.path, o.size) for o in found_objects] == [("a/b/c", 3), ("a/d", 1)]
    assert abs(objects.clock("a") - found_objects[0].modified) < timedelta(minutes=1)
    assert [o.path for o in objects.walk("a")] == ["a/b/c", "a/d"]
    assert objects.walk("nowhere") == ()
    objects.delete_all(["a/d", "a/nothing", "a/b/c"])
    objects.delete_all([])
    assert objects.walk("a") == ()
