"""Every file of an input is read, or named; each once."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from spark_omnigraph.errors import BadRequestError, NotFoundError
from spark_omnigraph.storage.input.foreign import looks_like
from spark_omnigraph.storage.input.found import list_inputs
from spark_omnigraph.storage.input.ranges import cut, read_chunks

LINE = '{"type": "T", "data": {}}\n'


def make(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(LINE)
    return folder


def names(source: Any, base: Path) -> list[str]:
    return [os.path.relpath(file.name, base) for file in list_inputs(source, {}).files]


def read(path: Path) -> list[bytes]:
    ranges = cut(list_inputs(path, {}).files, 2)
    return [line for range_ in ranges for chunk in read_chunks(range_, {}) for line in chunk.lines]


def test_linked_folders_and_files_are_read_once(tmp_path: Path) -> None:
    make(tmp_path, "in/a.jsonl", "elsewhere/b.jsonl")
    (tmp_path / "in/more").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in/more_again").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in/self").symlink_to(tmp_path / "in")
    (tmp_path / "in/z.jsonl").symlink_to(tmp_path / "in/a.jsonl")
    assert names(tmp_path / "in", tmp_path) == ["in/a.jsonl", "in/more/b.jsonl"]
    assert names([tmp_path / "in", tmp_path / "in/a.jsonl", f"{tmp_path}/in/*.jsonl"], tmp_path) == [
        "in/a.jsonl",
        "in/more/b.jsonl",
    ]


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    make(tmp_path, "in/a.jsonl")
    (tmp_path / "in/b.jsonl").symlink_to(tmp_path / "lost.jsonl")
    for source in (tmp_path / "in", tmp_path / "in/b.jsonl", f"{tmp_path}/in/*"):
        with pytest.raises(NotFoundError, match=r"in/b\.jsonl' is a link to '.*lost\.jsonl'"):
            list_inputs(source, {})


@pytest.mark.parametrize("content", [(), ("_SUCCESS",), ("_temporary/0/x.jsonl", ".a.jsonl"), ("x.jsonl.tmp",)])
def test_a_folder_without_input_is_a_warning(tmp_path: Path, content: tuple[str, ...]) -> None:
    folder = make(tmp_path, *(f"in/{name}" for name in content)) / "in"
    folder.mkdir(exist_ok=True)
    found = list_inputs(folder, {})
    assert found.files == ()
    assert found.warnings[0] == f"no input files in '{folder}'"


def test_files_that_nobody_finished_are_left_out_and_named(tmp_path: Path) -> None:
    make(tmp_path, "a.jsonl", "x.jsonl.tmp", "x.jsonl~", "part-1.jsonl._COPYING_", "_dt=2020/b.jsonl", "o.tmp/c.jsonl")
    for source in (tmp_path, f"{tmp_path}/*"):
        found = list_inputs(source, {})
        assert names(source, tmp_path) == ["_dt=2020/b.jsonl", "a.jsonl", "o.tmp/c.jsonl"]
        assert found.warnings == (
            f"left out as unfinished, by its name: {tmp_path}/part-1.jsonl._COPYING_, {tmp_path}/x.jsonl.tmp, "
            f"{tmp_path}/x.jsonl~; name such a file itself to read it",
        )
    for asked in (tmp_path / "x.jsonl.tmp", f"{tmp_path}/*.tmp"):
        assert "x.jsonl.tmp" in names(asked, tmp_path)


def test_a_glob_reads_the_folders_that_it_names_as_folders(tmp_path: Path) -> None:
    make(tmp_path, "dt=1/a.jsonl", "dt=2/b.jsonl", "dt=2/_SUCCESS", "_temporary/0/x.jsonl", "_committed_1")
    assert names(f"{tmp_path}/dt=*", tmp_path) == ["dt=1/a.jsonl", "dt=2/b.jsonl"]
    assert names(f"{tmp_path}/**", tmp_path) == ["dt=1/a.jsonl", "dt=2/b.jsonl"]
    assert names(f"{tmp_path}/_temporary/*/*", tmp_path) == ["_temporary/0/x.jsonl"]


@pytest.mark.parametrize("given", ["-", "/dev/stdin", "fifo", "folder"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, given: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder/x.jsonl")
    source = given if given.startswith(("-", "/")) else str(tmp_path / given)
    with pytest.raises(BadRequestError, match="is no regular file, and input is read twice"):
        list_inputs(source, {})


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (gzip.compress(LINE.encode(), mtime=0), "gzip"),
        (b"PAR1\x15\x04\x15", "Parquet"),
        (LINE.encode("utf-16"), "UTF-16 text"),
        (LINE.encode("utf-16-le"), "UTF-16 text"),
        (LINE.encode("utf-16-be"), "UTF-16 text"),
        (LINE.encode("utf-32"), "UTF-32 text"),
        (LINE.encode("utf-32-be"), "UTF-32 text"),
        (b"PK\x03\x04\x14\x00", "zip"),
        (b"\x28\xb5\x2f\xfd\x04", "zstd"),
        (b"ARROW1\x00\x00", "Arrow"),
        (b'\xef\xbb\xbfname;"born in"\nAda;1815\n', "CSV"),
        (b"id\tname\r\n1\tAda\r\n", "CSV"),
        (b'[\n{"type": "T", "data": {}},\n', "a JSON array"),
        (b'[{"type": "T", "data": {}}]', "a JSON array"),
        (b'{\n  "type": "T",\n  "data": {}\n}\n', "pretty-printed JSON"),
        (b'{"type": "T", "data": {\n"k": 1}}\n', "pretty-printed JSON"),
    ],
)
def test_a_file_of_another_format_is_named_once(tmp_path: Path, content: bytes, found: str) -> None:
    plain, packed = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    for path in (plain, packed):
        with pytest.raises(BadRequestError, match=rf"{path.name}' looks like {found}, not like JSON lines"):
            read(path)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", LINE, "\ufeff" + LINE, "// é\n", "\n\n", "é", "[1]\n" + LINE, "a, b\n" + LINE, "a\nb\n", "a, b\n",
        '{"type": "T",\n' + LINE,
    ],
)  # laid out as a table  # fmt: skip
def test_a_line_that_is_bad_makes_no_other_format(text: str) -> None:
    assert looks_like(text.encode()) is None


def test_an_ending_in_capitals_is_gzip_too(tmp_path: Path) -> None:
    path = tmp_path / "A.JSONL.GZ"
    path.write_bytes(gzip.compress(LINE.encode() * 2))
    assert read(path) == [LINE.strip().encode()] * 2


def damaged(place: int) -> bytes:
    whole = bytearray(gzip.compress(os.urandom(64).hex().encode() * 9))
    whole[place] ^= 0xFF
    return bytes(whole)


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(LINE.encode() * 99, mtime=0)[:-9],
        gzip.compress(b"x", mtime=0)[:12],
        damaged(20),
        damaged(-6),
        damaged(-2),
        b"\x1f\x8b",
    ],
    ids=["ends early", "no body", "bent", "checksum", "length", "no header"],
)
def test_a_damaged_gzip_file_is_named_as_that(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(BadRequestError, match=r"a\.jsonl\.gz' is a damaged gzip file"):
        read(path)


def test_a_name_that_says_gzip_of_a_plain_file(tmp_path: Path) -> None:
    path = make(tmp_path, "a.jsonl.gz") / "a.jsonl.gz"
    with pytest.raises(BadRequestError, match="is no gzip file, as its name says"):
        read(path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (pd.DataFrame({"name": ["x"]}), "a DataFrame is a table"),
        (pa.table({"name": ["x"]}), "a Table is a table"),
        (pa.record_batch({"name": ["x"]}), "a RecordBatch is a table"),
        ({"type": "T"}, "a dict is no input"),
        (b'{"type": "T"}', "a bytes is no input"),
        (7, "a int is no input"),
        ([{"type": "T"}], "item 0 of the input is a dict, no JSON line: json.dumps"),
        (['{"type": "T"}', None], "item 1 of the input is a NoneType, no JSON line"),
        ('{"type": "T", "data": {}}', "is a JSON line where a path is expected: give a list"),
        ("a\0b", "has a zero byte"),
    ],
)
def test_what_is_neither_paths_nor_lines_is_refused(source: Any, message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        list_inputs(source, {})


def test_lines_of_an_open_file_keep_their_numbers(tmp_path: Path) -> None:
    path = make(tmp_path, "a.jsonl") / "a.jsonl"
    path.write_text(LINE * 3)
    with path.open() as lines:
        (file,) = list_inputs(lines, {}).files
    assert file.content == (LINE * 3).strip().encode()


def test_text_that_has_no_utf_8_is_left_to_the_reader_of_lines() -> None:
    (file,) = list_inputs(['{"type": "\ud800"}'], {}).files
    assert file.content == b'{"type": "\xed\xa0\x80"}'
