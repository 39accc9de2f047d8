"""A glob over keys finds what the same glob finds in a folder of files."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_omnigraph.storage.input.globs import expand, fixed_folder, has_magic, is_hidden, matches

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
    "_day=1/a.jsonl",
    "_temporary/0/a.jsonl",
    "x/_committed_1",
)
PARTS = ("*", "**", "?", "x", "y", "*.jsonl", "a*", "?.jsonl", ".*", "[!b].jsonl", "z[[]1]", "a**", "_*")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for key in KEYS:
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_text("{}")
    return tmp_path


def test_every_short_glob_finds_the_same_files_and_keys(folder: Path) -> None:
    globs = ["/".join(parts) for size in (1, 2, 3) for parts in itertools.product(PARTS, repeat=size)]
    for pattern in globs:
        wanted: set[str] = set()
        for found in expand(f"{folder}/{pattern}"):
            wanted |= {found} if os.path.isfile(found) else set(visible(found))
        assert {key for key in KEYS if matches(key, pattern)} == {os.path.relpath(f, folder) for f in wanted}, pattern


def visible(folder: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_hidden(name)]
        yield from (os.path.join(parent, name) for name in names if not is_hidden(name))


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", {"a.jsonl", "ab.jsonl", "x/a.jsonl", "x/y/b.jsonl", "z[1]/a.jsonl", "x/a", "_day=1/a.jsonl"}),
        ("*.jsonl", {"a.jsonl", "ab.jsonl"}),
        ("**/*.jsonl", {"a.jsonl", "ab.jsonl", "x/a.jsonl", "x/y/b.jsonl", "z[1]/a.jsonl", "_day=1/a.jsonl"}),
        ("_*", {"_a.jsonl", "_day=1/a.jsonl", "_temporary/0/a.jsonl"}),
        ("*/_*", {"x/_committed_1"}),
        (".*", {".a.jsonl"}),
        ("_day=*/*.jsonl", {"_day=1/a.jsonl"}),
    ],
)
def test_hidden_names_are_met_by_globs_that_begin_so(pattern: str, found: set[str]) -> None:
    assert {key for key in KEYS if matches(key, pattern)} == found


def test_a_glob_of_any_depth_follows_each_link_once(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.jsonl").write_text("{}")
    for name in ("loop", "again"):
        (tmp_path / "in" / name).symlink_to(tmp_path / "in")
    assert list(expand(f"{tmp_path}/in/**/*.jsonl")) == [f"{tmp_path}/in/a.jsonl"]


def test_a_glob_begins_where_its_first_magic_is() -> None:
    assert fixed_folder("in/2024/part-?/*.jsonl") == "in/2024"
    assert fixed_folder("in/[ab].jsonl") == "in"
    assert fixed_folder("**/a.jsonl") == ""
    assert has_magic("in/[ab].jsonl")
    assert not has_magic("in/a.jsonl")
