"""Small objects: create-if-absent, flat listing, and the refusal of stores that would corrupt a graph."""

from __future__ import annotations

import os
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import InvalidPathError

from spark_omnigraph import Graph
from spark_omnigraph.errors import StorageError
from spark_omnigraph.storage.objects import small as room
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.uri import locate


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects(locate(tmp_path))


def test_create_lets_exactly_the_first_through(objects: Objects) -> None:
    assert objects.create("f/a.json", b"1") is True
    assert objects.create("f/a.json", b"2") is False
    assert objects.get("f/a.json") == b"1"


def test_put_replaces_and_delete_is_idempotent(objects: Objects) -> None:
    objects.put("a", b"1")
    objects.put("a", b"2")
    assert objects.get("a") == b"2"
    objects.delete("a")
    objects.delete("a")
    assert objects.get("a") is None


def test_listing_is_flat_sorted_and_empty_for_a_missing_folder(objects: Objects) -> None:
    for name in ("f/b", "f/a", "f/sub/c"):
        objects.put(name, b"")
    assert objects.list("f") == ["a", "b"]
    assert objects.list("none") == []
    assert objects.has_prefix("f/sub") is True
    assert objects.has_prefix("none") is False


def test_files_whose_names_no_store_allows_are_no_objects(objects: Objects, tmp_path: Path) -> None:
    """As another program may leave them on a disk."""
    objects.put("f/a.json", b"1")
    for odd in (b"\xff\xfe.json", b"two\nlines.json"):
        (tmp_path / "f" / os.fsdecode(odd)).write_bytes(b"not json")
    (tmp_path / "f" / "folder.json").mkdir()
    assert objects.list("f") == ["a.json"]


def test_purge_removes_everything_below(objects: Objects) -> None:
    objects.put("f/a", b"")
    objects.put("f/s/b", b"")
    objects.put("g/c", b"")
    objects.purge("f")
    assert objects.has_prefix("f") is False
    assert objects.get("g/c") == b""


def test_the_probe_leaves_nothing(objects: Objects, tmp_path: Path) -> None:
    objects.probe("__recovery")
    assert objects.list("__recovery") == []


def test_a_file_system_without_hard_links_is_refused(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(source: str, target: str) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(StorageError, match="no atomic link"):
        objects.probe("__recovery")
    assert objects.list("__recovery") == []


def test_a_graph_on_a_file_system_without_hard_links_is_refused_at_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Graph.init(tmp_path / "g", "node A { k: String @key }").uri

    def no_link(source: str, target: str) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(StorageError, match=r"no atomic link and rename .Operation not permitted.*Use a local disk"):
        Graph.open(root)
    assert Graph.open(root, mode="r").count("node:A") == 0


def test_a_store_that_ignores_create_if_absent_is_refused(tmp_path: Path) -> None:
    class Forgetful(Objects):
        def create(self, path: str, content: bytes) -> bool:
            self.put(path, content)
            return True

    with pytest.raises(StorageError, match="conditional puts"):
        Forgetful(locate(tmp_path)).probe("__recovery")


def test_missing_credentials_are_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask_the_machine(*_: object) -> None:
        raise OSError("Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 3ms")

    monkeypatch.setattr(obstore, "get", ask_the_machine)
    with pytest.raises(StorageError, match="no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        Objects(locate(tmp_path)).get("_schema.pg")


def test_names_that_are_no_paths_are_an_error_where_no_folder_can_be_looked_into(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise InvalidPathError('Path "f//a" contained empty path segment')

    monkeypatch.setattr(obstore, "list_with_delimiter", refuse)
    with pytest.raises(StorageError, match=r"cannot list s3://b/g/f: .*empty path segment"):
        Objects(locate("s3://b/g", {"aws_region": "us-east-1"})).list("f")


def test_the_lock_file_of_an_earlier_release_is_not_listed(tmp_path: Path) -> None:
    objects = Objects(locate(tmp_path))
    objects.put("f/a", b"1")
    (tmp_path / "f" / room.SWAP_LOCK).touch()
    assert objects.list("f") == ["a"]


def test_names_that_no_store_has_stop_nothing(objects: Objects, tmp_path: Path) -> None:
    for name in ("a", "f/b", "f/s/c"):
        objects.put(name, b"12")
    for odd in (b"f/two\nlines", b"f/\xff", b"f/s/\x1b[2J", b"\x07"):
        (tmp_path / os.fsdecode(odd)).write_bytes(b"")
    (tmp_path / "f" / "in\nside").mkdir()
    (tmp_path / "f" / "in\nside" / "d").write_bytes(b"")
    assert [(each.path, each.size) for each in objects.walk("f")] == [("f/b", 2), ("f/s/c", 2)]
    assert [each.path for each in objects.files("f")] == ["f/b"]
    assert [each.path for each in objects.files("")] == ["a"]
    assert objects.walk("f")[0].modified.tzinfo is not None
    assert objects.has_prefix("f") is True
    assert objects.has_prefix("f/in") is False
    objects.purge("f")
    assert objects.walk("f") == ()
    assert objects.has_prefix("f") is False


def test_pieces_of_interrupted_writes_are_found_and_removed(objects: Objects, tmp_path: Path) -> None:
    objects.put("f/x.lease", b"")
    for name in ("x.lease#1", "x.lease#" + "0a" * 16, "x#y.json"):
        (tmp_path / "f" / name).write_bytes(b"12")
    found = sorted(objects.pieces(), key=lambda each: each.path)
    assert [each.path for each in found] == ["f/x.lease#" + "0a" * 16, "f/x.lease#1"]
    for each in found:
        objects.remove_piece(each.path)
        objects.remove_piece(each.path)
    assert sorted(os.listdir(tmp_path / "f")) == ["x#y.json", "x.lease"]
    assert objects.pieces() == ()
