"""A glob over keys finds what the same glob finds in a folder of files."""

from __future__ import annotations

import glob
import itertools
from pathlib import Path

import pytest

from spark_omnigraph.storage.globs import fixed_folder, has_magic, matches

KEYS = (
    "a.jsonl",
    "ab.jsonl",
    "_a.jsonl",
    ".a.jsonl",
    "x/a.jsonl",
    "x/y/b.jsonl",
    "x/.h/a.jsonl",
    "z[1]/a.jsonl",
    "x/a",
)
PARTS = ("*", "**", "?", "x", "y", "*.jsonl", "a*", "?.jsonl", ".*", "[!b].jsonl", "z[[]1]", "a**")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for key in KEYS:
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_text("{}")
    return tmp_path


def test_every_short_glob_finds_the_same_files_and_keys(folder: Path) -> None:
    globs = ["/".join(parts) for size in (1, 2, 3) for parts in itertools.product(PARTS, repeat=size)]
    for pattern in globs:
        files = {Path(f) for f in glob.glob(str(folder / pattern), recursive=True)}
        wanted = {str(f.relative_to(folder)) for f in files if f.is_file()}
        assert {key for key in KEYS if matches(key, pattern)} == wanted, pattern


def test_a_glob_begins_where_its_first_magic_is() -> None:
    assert fixed_folder("in/2024/part-?/*.jsonl") == "in/2024"
    assert fixed_folder("in/[ab].jsonl") == "in"
    assert fixed_folder("**/a.jsonl") == ""
    assert has_magic("in/[ab].jsonl")
    assert not has_magic("in/a.jsonl")
