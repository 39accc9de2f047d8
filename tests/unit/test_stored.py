"""What other hands may have written into a store: small JSON objects and paths of tables, within bounds."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from spark_omnigraph.errors import DamagedError
from spark_omnigraph.redaction import excerpt
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.uri import locate
from spark_omnigraph.stored import OBJECT_LIMIT, Count, Instant, decode, refuse_branch, refuse_path


class Shape(msgspec.Struct):
    owner: str
    at: Instant = 0.0
    version: Count = 0


def test_an_object_has_its_declared_shape_and_unknown_members_are_passed_over() -> None:
    found = decode(b'{"owner": "a", "at": 12, "version": 7, "later": {"x": [1]}}', Shape, "it")
    assert (found.owner, found.at, found.version) == ("a", 12.0, 7)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"owner": "a"} x',
        b'{"owner": "\xff"}',
        b'{"owner": "a", "x\xff": 1}',
        b'{"owner": "\\ud800"}',
        b'{"owner": 1}',
        b'{"at": 1}',
        b'{"owner": "a", "at": Infinity}',
        b'{"owner": "a", "at": NaN}',
        b'{"owner": "a", "at": 1e999}',
        b'{"owner": "a", "at": 1e300}',
        b'{"owner": "a", "at": -1}',
        b'{"owner": "a", "at": true}',
        b'{"owner": "a", "version": 1.0}',
        b'{"owner": "a", "version": -1}',
        b'{"owner": "a", "version": 9223372036854775808}',
        b'{"owner": "a", "version": ' + b"9" * 20_000 + b"}",
        b'{"owner": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    ],
    ids=lambda content: content[:40].decode("latin-1"),
)
def test_anything_else_is_damaged_and_named(content: bytes) -> None:
    with pytest.raises(DamagedError, match=r"^f/a\.json cannot be read: .*\. Move it away$"):
        decode(content, Shape, "f/a.json", "Move it away")


def test_an_object_is_bounded(tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match="it has 16,777,217 bytes"):
        decode(b" " * (OBJECT_LIMIT + 1), Shape, "it")
    with open(tmp_path / "a.json", "wb") as file:
        file.truncate(1 << 40)  # a hole; nobody has to read a terabyte to see that it is none of ours
    with pytest.raises(DamagedError, match=r"a\.json has 1,099,511,627,776 bytes"):
        Objects(locate(tmp_path)).get("a.json")


def test_a_pipe_in_place_of_an_object_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "b.json").mkdir()
    (tmp_path / "c.json").symlink_to("/dev/zero")
    objects = Objects(locate(tmp_path))
    for name in ("a.json", "b.json", "c.json"):
        with pytest.raises(DamagedError, match=rf"{name} is no regular file"):
            objects.get(name)
        with pytest.raises(DamagedError, match=rf"{name} is no regular file"):
            objects.swap(name, b"1", b"2")


@pytest.mark.parametrize("path", ["nodes/40d76f1f51639ec0", "edges/a.b_c-d~1", "t"])
def test_paths_below_the_root_are_used(path: str) -> None:
    assert refuse_path(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/srv/other",
        "../victim/nodes/x",
        "nodes/../../x",
        "nodes/..",
        "nodes/./x",
        "nodes//x",
        "nodes/x/",
        "nodes\\..\\x",
        "nodes/%2e%2e/x",
        "nodes/%2E./x",
        "file:///etc",
        "file:/etc",
        "s3://other/g",
        "C:x",
        "nodes/x\n",
        "nodes/x\x00",
        "nodes/x\x1b[2J",
        "nodes/x?y",
        "nodes/x#1",
        "nodes/x y",
        "nodes/ü",
        "__manifest",
        "_graph_commits.lance",
        "nodes/x/_versions",
        "n/" * 600 + "x",
    ],
)
def test_other_paths_are_refused_in_a_message_that_a_terminal_bears(path: str) -> None:
    why = refuse_path(path)
    assert why is not None
    assert why.isprintable()
    assert len(why) < 200


@pytest.mark.parametrize(("branch", "good"), [("a", True), ("team/v1.2_x-y", True), ("é", True), ("__lock__", True)])
def test_names_of_branches(branch: str, good: bool) -> None:
    assert (refuse_branch(branch) is None) is good


@pytest.mark.parametrize("branch", ["", "a/", "/a", "a//b", ".", "a/..", "..", "a..b", "a b", "a\\b", "a%2f", "a\n"])
def test_other_names_of_branches_are_refused(branch: str) -> None:
    assert refuse_branch(branch) == f"'{excerpt(branch)}' is no name of a branch"
