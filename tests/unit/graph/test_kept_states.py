"""What a handle keeps between queries: never more than what is there, and read again only where that has changed."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import lance
import pytest

from spark_omnigraph import Graph, LoadOptions, NotFoundError
from spark_omnigraph.errors import BadRequestError, VersionExpiredError
from spark_omnigraph.memory import Memory
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import manifest_file
from spark_omnigraph.storage.objects import local_walk
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.tables.reader import ReadCache

SCHEMA = "node P { name: String @key  city: String? }\nedge Knows: P -> P"
WIDER = "node P { name: String @key  city: String?  age: I32? }\nedge Knows: P -> P"
PLAIN = LoadOptions(build_indexes=False)
ONE = "query q($n: String) { match { $p: P { name: $n } } return { $p.city as found } }"
HOP = "query q($n: String) { match { $p: P { name: $n } $p knows $q } return { $q.name as found } order { found } }"
FAR = (
    "query q($n: String) { match { $p: P { name: $n } $p knows{1,3} $q } return { $q.name as found } order { found } }"
)
BACK = "query q($n: String) { match { $p: P { name: $n } $q knows $p } return { $q.name as found } order { found } }"


def person(name: str, city: str = "x") -> str:
    return json.dumps({"type": "P", "data": {"name": name, "city": city}})


def edge(a: str, b: str) -> str:
    return json.dumps({"edge": "Knows", "from": a, "to": b})


CHAIN = [person("a"), person("b"), person("c"), person("d"), edge("a", "b"), edge("b", "c"), edge("c", "d")]


def seen(graph: Graph, name: str = "a") -> list[list[object]]:
    """What the four short questions find."""
    texts = (ONE, HOP, FAR, BACK)
    return [[row["found"] for row in graph.query(text, params={"n": name}).to_pylist()] for text in texts]


BEFORE = [["x"], ["b"], ["b", "c", "d"], []]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A handle that has asked often, so that all it keeps is there."""
    made = Graph.init(tmp_path / "g", SCHEMA)
    made.load(CHAIN, options=PLAIN)
    kept = Graph.open(made.uri, mode="r")
    kept.store.reads = ReadCache(Memory())
    assert [seen(kept) for _ in range(6)] == [BEFORE] * 6
    return kept


def load_more(uri: str) -> None:
    Graph.open(uri).load([person("e", "y"), edge("a", "e"), edge("e", "a")], options=PLAIN)


def delete_one(uri: str) -> None:
    Graph.open(uri).delete("node:P", ["b"])


def replace_one(uri: str) -> None:
    Graph.open(uri).load([person("a", "z")], "merge", options=PLAIN)


def compact(uri: str) -> None:
    load_more(uri)
    Graph.open(uri).optimize()


def make_anew(uri: str) -> None:
    Graph.init(uri, SCHEMA, force=True).load([person("a", "new"), person("f"), edge("f", "a")], options=PLAIN)


WRITES: dict[str, tuple[Callable[[str], None], list[list[object]]]] = {
    "load": (load_more, [["x"], ["b", "e"], ["b", "c", "d", "e"], ["e"]]),
    "delete": (delete_one, [["x"], [], [], []]),
    "replace": (replace_one, [["z"], ["b"], ["b", "c", "d"], []]),
    "compact": (compact, [["x"], ["b", "e"], ["b", "c", "d", "e"], ["e"]]),
    "init": (make_anew, [["new"], [], [], ["f"]]),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_of_another_handle_shows_at_the_next_query(graph: Graph, write: str) -> None:
    work, after = WRITES[write]
    pinned = graph.at()
    assert seen(pinned) == BEFORE
    work(graph.uri)
    assert [seen(graph) for _ in range(3)] == [after] * 3
    if write == "init":
        with pytest.raises(NotFoundError, match="was made anew"):
            seen(pinned)
    else:
        assert seen(pinned) == BEFORE


def test_a_commit_of_another_process_shows_at_the_next_query(graph: Graph) -> None:
    other = multiprocessing.get_context("spawn").Process(target=load_more, args=(graph.uri,))
    other.start()
    other.join()
    assert other.exitcode == 0
    assert seen(graph) == WRITES["load"][1]


def test_a_schema_change_shows_at_the_next_query_and_a_pinned_handle_keeps_its_own(graph: Graph) -> None:
    age = 'query q() { match { $p: P { name: "a" } } return { $p.age as found } }'
    pinned = graph.at()
    assert (seen(pinned), pinned.schema()) == (BEFORE, SCHEMA)
    Graph.open(graph.uri).apply_schema(WIDER)
    assert (graph.schema(), seen(graph)) == (WIDER, BEFORE)
    assert graph.query(age).to_pylist() == [{"found": None}]
    assert (seen(pinned), pinned.schema()) == (BEFORE, SCHEMA)
    Graph.open(graph.uri).load(['{"type": "P", "data": {"name": "a", "age": 7}}'], "merge", options=PLAIN)
    assert graph.query(age).to_pylist() == [{"found": 7}]


def test_a_branch_that_is_made_anew_shows_its_own_rows(graph: Graph) -> None:
    writer = Graph.open(graph.uri)
    writer.create_branch("draft")
    writer.load([person("a", "first")], "merge", branch="draft", options=PLAIN)
    draft = Graph.open(graph.uri, mode="r", branch="draft")
    pinned = draft.at()
    assert [seen(draft)[0] for _ in range(3)] == [["first"]] * 3
    assert seen(pinned)[0] == ["first"]
    writer.delete_branch("draft")
    with pytest.raises(NotFoundError, match="branch 'draft' not found"):
        seen(draft)
    writer.create_branch("draft")
    writer.load([person("a", "second")], "merge", branch="draft", options=PLAIN)
    assert [seen(draft)[0] for _ in range(3)] == [["second"]] * 3
    with pytest.raises(NotFoundError, match="the branch was made anew"):
        seen(pinned)
    assert seen(graph) == BEFORE


def test_states_of_the_past_keep_their_rows_until_they_expire(graph: Graph) -> None:
    then = graph.snapshot().version
    pinned = graph.at(version=then)
    assert seen(pinned) == BEFORE
    replace_one(graph.uri)
    assert (seen(pinned), seen(graph.at(version=then)), seen(graph)[0]) == (BEFORE, BEFORE, ["z"])
    load_more(graph.uri)
    Graph.open(graph.uri).cleanup(timedelta(0), keep=1, confirm=True, force=True)
    with pytest.raises(VersionExpiredError):
        seen(pinned)
    assert seen(graph)[:2] == [["z"], ["b", "e"]]


def test_what_has_not_changed_is_not_read_again(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = graph.at()
    assert seen(pinned) == BEFORE
    for owner, name in ((GraphStore, "manifest"), (GraphStore, "_manifest"), (Objects, "get"), (Objects, "list")):
        monkeypatch.setattr(owner, name, lambda *_, name=name: pytest.fail(f"{name} is asked"))
    assert (seen(graph), seen(pinned)) == (BEFORE, BEFORE)


def test_a_look_up_of_what_is_kept_looks_at_few_files_and_asks_lance_for_nothing(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_walk.FileStamp, "may_recur", False)  # what was written a moment ago is not read once more
    pinned = graph.at()
    assert seen(pinned) == seen(graph) == BEFORE
    newest = f"__manifest/{manifest_file(graph.snapshot().version)}"
    looks: list[str] = []
    stamp, listdir = Objects.stamp, os.listdir

    def stamped(objects: Objects, path: str) -> object:
        looks.append(path)
        return stamp(objects, path)

    def listed(folder: str) -> list[str]:
        looks.append(os.path.relpath(folder, graph.uri))
        return listdir(folder)

    monkeypatch.setattr(Objects, "stamp", stamped)
    monkeypatch.setattr(os, "listdir", listed)
    for name in ("take", "scanner", "count_rows", "get_fragments"):
        monkeypatch.setattr(
            lance.LanceDataset, name, lambda *_, name=name, **__: pytest.fail(f"Lance is asked: {name}")
        )
    schema = ["_schema.pg", "_schema.ir.json"]
    for question in (ONE, HOP, FAR, BACK):
        looks.clear()
        assert len(pinned.query(question, params={"n": "b"})) == len(graph.query(question, params={"n": "b"}))
        assert looks == [newest, "__schema_state.json", "__manifest/_versions", newest, *schema]


@pytest.mark.parametrize("budget", [0, 4_000, 1 << 16])
def test_any_memory_gives_the_same_answers_and_is_kept_to(graph: Graph, budget: int) -> None:
    memory = Memory(budget)
    graph.store.reads = ReadCache(memory)
    names = [f"n{i}" for i in range(200)]
    more = [*map(person, names), *(edge("a", name) for name in names)]
    Graph.open(graph.uri).load(more, options=PLAIN)
    for _ in range(6):
        assert seen(graph)[1:] == [["b", *sorted(names)], ["b", "c", "d", *sorted(names)], []]
        assert memory.bytes <= budget


def test_a_graph_that_is_put_in_the_place_of_another_shows_its_own_rows(graph: Graph) -> None:
    """They have one past, so that their manifests begin alike, and their tables have versions of the same numbers."""
    other = Path(graph.uri).with_name("other")
    shutil.copytree(graph.uri, other)
    for uri, city in ((graph.uri, "one"), (str(other), "two")):
        Graph.open(uri).load([person("a", city)], "merge", options=PLAIN)
    pinned = graph.at()
    assert [(seen(graph)[0], seen(pinned)[0]) for _ in range(3)] == [(["one"], ["one"])] * 3
    Path(graph.uri).rename(other.with_name("former"))
    other.rename(graph.uri)
    assert [seen(graph)[0] for _ in range(3)] == [["two"]] * 3
    with pytest.raises(NotFoundError, match="was made anew"):
        seen(pinned)


@pytest.mark.parametrize("branch", [None, "draft"])
def test_a_backup_that_is_written_on_shows_its_own_rows(tmp_path: Path, branch: str | None) -> None:
    uri, backup = tmp_path / "g", tmp_path / "backup"
    Graph.init(uri, SCHEMA).load(CHAIN, options=PLAIN)
    shutil.copytree(uri, backup)
    Graph.open(uri).load([person("a", "one")], "merge", options=PLAIN)
    asked = Graph.open(uri, mode="r")
    asked.store.reads = ReadCache(Memory())
    assert [seen(asked)[0] for _ in range(6)] == [["one"]] * 6
    shutil.rmtree(uri)
    shutil.copytree(backup, uri)
    Graph.open(uri).load([person("a", "two")], "merge", options=PLAIN)
    Graph.open(uri).create_branch("draft")
    found = [asked.query(ONE, params={"n": "a"}, branch=branch).to_pylist() for _ in range(3)]
    assert found == [[{"found": "two"}]] * 3
    assert seen(asked)[0] == ["two"]


def test_a_pinned_handle_knows_that_its_schema_is_a_former_one(graph: Graph) -> None:
    before = graph.snapshot().version
    Graph.open(graph.uri).load([person("e"), '{"edge": "Knows", "from": "e", "to": "a"}'], options=PLAIN)
    pinned = graph.at()
    after = [["x"], ["b"], ["b", "c", "d"], ["e"]]
    assert (len(pinned.diff(before)), seen(pinned)) == (2, after)
    Graph.open(graph.uri).apply_schema(SCHEMA.partition("\n")[0])
    assert (len(pinned.diff(before)), seen(pinned), pinned.schema()) == (2, after, SCHEMA)
    with pytest.raises(BadRequestError, match="drop edge type 'Knows'"):
        pinned.copy(f"{graph.uri}-copy")


def test_a_file_that_changes_twice_in_a_tick_of_the_clock_is_read_again(tmp_path: Path) -> None:
    """As of a network file system that tells neither inodes nor parts of a second."""
    uri, store = tmp_path / "g", Graph.init(tmp_path / "g", SCHEMA).store
    now = 1_700_000_000_000_000_000

    def coarse(file: int) -> object:
        size = os.lseek(file, 0, os.SEEK_END)
        return SimpleNamespace(st_dev=0, st_ino=0, st_size=size, st_mtime_ns=now, st_ctime_ns=now)

    clock = SimpleNamespace(time_ns=lambda: now + 999_999_999)
    with patch.object(os, "fstat", coarse), patch.object(local_walk, "time", clock):
        for name in ("city", "town", "home"):
            text = SCHEMA.replace("city", name)
            (uri / "_schema.pg").write_text(text)
            assert store.schema_file("_schema.pg") == text.encode()
