"""Graph roots of any spelling: everything stands at one place, or the root is refused."""

from __future__ import annotations

import json
import os
import stat
import unicodedata
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from spark_omnigraph import BadRequestError, Graph, LoadOptions, StorageError
from spark_omnigraph.storage.uri import locate

SCHEMA = "node A { k: String @key v: I32? }"
PLAIN = LoadOptions(build_indexes=False)
NAMES = ["jürgen", unicodedata.normalize("NFD", "jürgen"), "two words", "50%20#~[x]日本"]


def row(key: str, v: int) -> str:
    return json.dumps({"type": "A", "data": {"k": key, "v": v}})


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_everything_of_a_graph_stands_under_its_root(tmp_path: Path, name: str) -> None:
    graph = Graph.init(tmp_path / name, SCHEMA)
    graph.load([row("a", 1), row("b", 1)], options=PLAIN)
    graph.create_branch("draft")
    graph.load([row("a", 2), row("c", 3)], "merge", branch="draft", options=PLAIN)
    graph.optimize()
    graph = Graph.open(tmp_path / name)
    text = "query q() { match { $a: A } return { $a.k, $a.v } order { $a.k } }"
    assert [tuple(found.values()) for found in graph.query(text).to_pylist()] == [("a", 1), ("b", 1)]
    assert [tuple(found.values()) for found in graph.query(text, branch="draft").to_pylist()] == [
        ("a", 2),
        ("b", 1),
        ("c", 3),
    ]
    assert graph.branches() == ["main", "draft"]
    assert os.listdir(tmp_path) == [name]


def test_two_spellings_of_one_letter_are_two_graphs_with_their_own_files(tmp_path: Path) -> None:
    forms: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")
    for form in forms:
        Graph.init(tmp_path / unicodedata.normalize(form, "jürgen"), SCHEMA).load([row(form, 1)], options=PLAIN)
    for form in forms:
        graph = Graph.open(tmp_path / unicodedata.normalize(form, "jürgen"))
        assert graph.entity("node:A", form) == {"id": form, "k": form, "v": 1}
        assert graph.count("node:A") == 1


def test_a_neighbour_at_the_other_spelling_stays(tmp_path: Path) -> None:
    neighbour = Graph.init(tmp_path / "j%C3%BCrgen", SCHEMA)
    before = sorted((tmp_path / "j%C3%BCrgen").rglob("*"))
    Graph.init(tmp_path / "jürgen", SCHEMA).create_branch("draft")
    assert sorted((tmp_path / "j%C3%BCrgen").rglob("*")) == before
    assert neighbour.branches() == ["main"]


def test_a_parent_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.init(tmp_path / "jürgen", SCHEMA)

    def refuse(path: str, **_: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "makedirs", refuse)
    with pytest.raises(StorageError, match=r"needs the folder .*j%C3%BCrgen for a moment.*Permission denied.*ASCII"):
        graph.create_branch("draft")
    monkeypatch.undo()
    assert graph.create_branch("draft") == "draft"
    assert stat.S_ISDIR(os.stat(tmp_path / "jürgen").st_mode)


@pytest.mark.parametrize("name", ["a?b", "a\tb", "a\nb", "a\x00b", "a\x1b[2J", "a\udc80b"], ids=ascii)
def test_roots_that_cannot_be_spelled_are_refused(tmp_path: Path, name: str) -> None:
    root = f"{tmp_path}/{name}"
    for attempt in (partial(Graph.init, root, SCHEMA), partial(Graph.open, root)):
        with pytest.raises(BadRequestError, match="cannot hold a graph: with the character") as caught:
            attempt()
        assert caught.value.message.isprintable()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("s3://b/a?b", r"character '\?'"),
        ("s3://b/a#b", "character '#'"),
        ("s3a://b/a%20b", "escape '%20', which stands for ' '"),
        ("s3://b/a//b", "segment ''"),
        ("s3://b/a/../b", r"segment '\.\.'"),
        ("s3://b/./a", r"segment '\.'"),
        ("s3://b/a\nb", "character"),
    ],
)
def test_keys_that_clients_read_in_two_ways_are_refused(uri: str, why: str) -> None:
    with pytest.raises(BadRequestError, match=why):
        locate(uri)


@pytest.mark.parametrize("uri", ["s3://b/jürgen", "s3://b/two words/50%", "s3://b/a~b/", "s3://b"])
def test_other_keys_are_taken(uri: str) -> None:
    assert locate(uri).root == uri.rstrip("/")
