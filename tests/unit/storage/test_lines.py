"""Byte ranges: every line belongs to exactly one range, with its exact offset."""

from __future__ import annotations

import gzip
import itertools
import os
import pickle
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_omnigraph.errors import NotFoundError, StorageError
from spark_omnigraph.storage.input import ranges as lines
from spark_omnigraph.storage.input.found import list_inputs
from spark_omnigraph.storage.input.ranges import InputFile, InputRange, cut, read_chunks


def lines_of(range_: InputRange, block: int = 1 << 20) -> list[tuple[int, int, bytes]]:
    """(line in range, offset, text) of every line of a range."""
    found = []
    for chunk in read_chunks(range_, {}, block):
        for i, (line, offset) in enumerate(zip(chunk.lines, chunk.offsets.tolist(), strict=True)):
            found.append((chunk.first_line + i, offset, line))
    return found


def expected(content: bytes) -> list[tuple[int, bytes]]:
    offset, found = 0, []
    for line in content.split(b"\n") if content else []:
        found.append((offset, line))
        offset += len(line) + 1
    if found and found[-1][1] == b"":
        found.pop()
    return found


@pytest.mark.parametrize("seed", range(40))
def test_random_cuts_and_blocks_give_every_line_once(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(0, 60)
    texts = [bytes(rng.choice(b"abc\r{}") for _ in range(rng.choice([0, 1, 5, 40]))) for _ in range(count)]
    content = b"".join(text + b"\n" for text in texts)
    if rng.random() < 0.5 and content:
        content = content[:-1]
    path = tmp_path / "input.jsonl"
    path.write_bytes(content)
    file = list_inputs(str(path), {}).files[0]
    edges = sorted({0, len(content), *(rng.randint(0, len(content)) for _ in range(rng.randint(0, 8)))})
    ranges = [InputRange(i, file, a, b) for i, (a, b) in enumerate(itertools.pairwise(edges))]
    seen = [(offset, line) for r in ranges for _, offset, line in lines_of(r, rng.choice([1, 3, 7, 64, 4096]))]
    assert [pair for pair in seen if pair[1] or pair[0] < len(content)] == expected(content)
    for range_ in ranges:
        numbers = [n for n, _, _ in lines_of(range_)]
        assert numbers == list(range(len(numbers)))


def test_a_compressed_file_is_one_range_with_offsets_of_its_text(tmp_path: Path) -> None:
    path = tmp_path / "input.jsonl.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\nthree"))
    ranges = cut(list_inputs(str(path), {}).files, 8)
    assert len(ranges) == 1
    assert lines_of(ranges[0]) == [(0, 0, b"one"), (1, 4, b"two"), (2, 8, b"three")]


def test_folders_and_globs_are_read_in_name_order_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "_SUCCESS", ".crc", "sub/c.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    folder = [Path(f.name).name for f in list_inputs(tmp_path, {}).files]
    assert folder == ["a.jsonl", "b.jsonl", "c.jsonl"]
    globbed = [Path(f.name).name for f in list_inputs(str(tmp_path / "*.jsonl"), {}).files]
    assert globbed == ["a.jsonl", "b.jsonl"]
    mixed: list[str | os.PathLike[str]] = [str(tmp_path / "b.jsonl"), tmp_path / "a.jsonl"]
    listed = list_inputs(mixed, {}).files
    assert [Path(f.name).name for f in listed] == ["b.jsonl", "a.jsonl"]


def test_folders_that_are_left_out_are_not_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("in/a.jsonl", ".trash/b.jsonl", "in/_log/c.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}\n")
    plain = os.scandir

    def scandir(path: str) -> Iterator[os.DirEntry[str]]:
        if Path(path).name in (".trash", "_log"):
            raise PermissionError(13, "Permission denied", path)
        return plain(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert [Path(f.name).name for f in list_inputs(tmp_path, {}).files] == ["a.jsonl"]


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nothing-here"):
        list_inputs(str(tmp_path / "nothing-here*.jsonl"), {})


def test_lines_in_memory_are_one_input() -> None:
    files = list_inputs(['{"a": 1}', "", '{"b": 2}'], {}).files
    assert files == (InputFile("<input>", 18, "memory", b'{"a": 1}\n\n{"b": 2}'),)
    assert [line for _, _, line in lines_of(cut(files, 1)[0])] == [b'{"a": 1}', b"", b'{"b": 2}']


@pytest.mark.parametrize("seed", range(20))
def test_a_range_of_lines_in_memory_carries_those_lines_alone(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(lines, "RANGE_MIN", 16)
    given = ["x" * rng.choice([0, 1, 7, 90]) for _ in range(rng.randint(0, 40))]
    content = "\n".join(given).encode()
    ranges = cut(list_inputs(given, {}).files, 8)
    assert len(ranges) == max(1, -(-len(content) // max(16, -(-len(content) // 16))))
    assert b"".join(range_.text or b"" for range_ in ranges) == content
    sent = [pickle.loads(pickle.dumps(range_)) for range_ in ranges]
    assert [range_.file.content for range_ in sent] == [None] * len(ranges)
    seen = [(offset, line) for range_ in sent for _, offset, line in lines_of(range_, rng.choice([1, 7, 4096]))]
    assert [pair for pair in seen if pair[1] or pair[0] < len(content)] == expected(content)


def test_a_file_that_changes_after_it_was_listed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "input.jsonl"
    path.write_text("one\n")
    range_ = cut(list_inputs(str(path), {}).files, 1)[0]
    path.write_text("one\ntwo\n")
    with pytest.raises(StorageError, match="changed while"):
        lines_of(range_)


def test_large_files_are_cut_and_small_ones_are_not() -> None:
    big = InputFile("big", 364 << 20, "s")
    assert [(r.start, r.end) for r in cut([big], 2)] == [
        (0, 91 << 20),
        (91 << 20, 182 << 20),
        (182 << 20, 273 << 20),
        (273 << 20, 364 << 20),
    ]
    assert [r.index for r in cut([InputFile("a", 5, "s"), InputFile("b", 0, "s")], 8)] == [0, 1]
