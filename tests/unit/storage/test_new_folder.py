"""Folders that Spark makes: none is taken that is there, and what one run made goes without what others put there."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_omnigraph.errors import BadRequestError, StorageError
from spark_omnigraph.storage.objects.new_folder import NewFolder
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.uri import locate
from tests.support.memory_store import memory_server
from tests.support.object_store import BUCKET

MADE = ("part-00000-x.txt", ".part-00000-x.txt.crc", "_SUCCESS", "._SUCCESS.crc", "_temporary/0/part-1")


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


@pytest.mark.parametrize("spelling", ["{0}", "{0}/", "file://{0}"])
def test_what_spark_made_goes_with_its_folder(tmp_path: Path, spelling: str) -> None:
    folder = NewFolder(spelling.format(tmp_path / "out"))
    folder.claim()
    fill(tmp_path / "out", *MADE)
    folder.remove()
    assert list(tmp_path.iterdir()) == []
    folder.remove()  # nothing was made


def test_what_somebody_else_put_there_stays(tmp_path: Path) -> None:
    folder = NewFolder(str(tmp_path / "out"))
    folder.claim()
    fill(tmp_path / "out", *MADE, "notes.txt")
    folder.remove()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("step", ["before", "in between"])
def test_a_folder_of_others_stays(tmp_path: Path, step: str) -> None:
    folder = NewFolder(str(tmp_path / "out"))
    if step == "before":
        fill(tmp_path / "out", *MADE)
        with pytest.raises(BadRequestError, match="is there already: Spark writes a new folder of files"):
            folder.claim()
    else:
        folder.claim()
        fill(tmp_path / "out", *MADE)
        folder.give_up()
    folder.remove()
    assert all((tmp_path / "out" / name).exists() for name in MADE)


def test_a_file_and_a_link_to_nowhere_are_there_already(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link"):
        with pytest.raises(BadRequestError, match="is there already"):
            NewFolder(str(tmp_path / name)).refuse_other()


def test_objects_that_spark_made_go(tmp_path: Path) -> None:
    fill(tmp_path / "store", "out2/part-0", "taken/part-0")
    with memory_server(tmp_path / "store", "rows") as server:
        root = f"s3://{BUCKET}/rows"
        folder = NewFolder(f"{root}/out", server.storage_options)
        folder.claim()
        objects = Objects(locate(f"s3://{BUCKET}", server.storage_options))
        for name in (*MADE, "notes.txt"):
            objects.put(f"rows/out/{name}", b"x")
        folder.remove()
        left = [each.path for each in objects.walk("rows")]
        with pytest.raises(BadRequestError, match="is there already"):
            NewFolder(f"{root}/taken", server.storage_options).refuse_other()
    assert left == ["rows/out/notes.txt", "rows/out2/part-0", "rows/taken/part-0"]


def test_a_store_that_does_not_answer_is_left_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(_objects: Objects, folder: str) -> tuple[()]:
        raise StorageError(f"cannot list {folder}")

    monkeypatch.setattr(Objects, "walk", walk)
    folder = NewFolder(f"s3://{BUCKET}/out")
    folder.claim()
    folder.remove()
