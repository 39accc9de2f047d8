"""Tags: names of states, on a row of the manifest and on each dataset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph import BadRequestError, ConflictError, Graph, LoadOptions, NotFoundError
from spark_omnigraph.branch.tags import half_tags, parse_tag
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.errors import TagExistsError
from spark_omnigraph.storage.layout import MANIFEST
from spark_omnigraph.storage.versions import lance_tags

PLAIN = LoadOptions(build_indexes=False)


def load(graph: Graph, name: str, branch: str | None = None) -> None:
    graph.load([json.dumps({"type": "Boat", "data": {"name": name}})], branch=branch, options=PLAIN)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = Graph.init(tmp_path / "g", "node Boat { name: String @key }\nedge Tows: Boat -> Boat")
    load(made, "ada")
    return made


def test_a_tag_names_the_newest_state_and_is_read_anywhere(graph: Graph) -> None:
    tag = graph.tag("one")
    load(graph, "bo")
    assert (tag.name, tag.branch, tag.commit) == ("one", None, graph.commits()[1].id)
    assert (graph.count("node:Boat", tag="one"), graph.count("node:Boat")) == (1, 2)
    assert graph.query("query q() { match { $b: Boat } return { $b.name } }", tag="one").to_pylist() == [
        {"b.name": "ada"}
    ]
    assert [json.loads(line)["data"]["name"] for line in graph.at(tag="one").export()] == ["ada"]
    assert [change.id for change in graph.diff({"tag": "one"}).changes] == ["bo"]
    assert graph.tags() == [tag]


def test_a_tag_may_name_any_state(graph: Graph) -> None:
    load(graph, "bo")
    graph.create_branch("dev")
    load(graph, "cy", "dev")
    first = graph.commits()[1]
    assert graph.tag("by-commit", snapshot=first.id).manifest_version == first.manifest_version
    assert graph.tag("by-version", version=first.manifest_version).commit == first.id
    assert graph.tag("on-dev", branch="dev").branch == "dev"
    assert [graph.count("node:Boat", tag=tag.name) for tag in graph.tags()] == [1, 1, 3]


def test_each_dataset_is_tagged_and_the_manifest_too(graph: Graph) -> None:
    tag = graph.tag("one")
    places = {entry.location: (entry.branch, entry.version) for entry in graph.snapshot().entries.values()}
    for location, place in {**places, MANIFEST: (None, tag.manifest_version)}.items():
        assert lance_tags(graph.store.open_dataset(location)) == {"omnigraph.one": place}
    graph.delete_tag("one")
    for location in (*places, MANIFEST):
        assert lance_tags(graph.store.open_dataset(location)) == {}
    assert graph.tags() == []


def test_a_name_is_given_once(graph: Graph) -> None:
    graph.tag("one")
    with pytest.raises(TagExistsError, match="tag 'one' exists already"):
        graph.tag("one")
    graph.delete_tag("one")
    load(graph, "bo")
    assert graph.at(tag=graph.tag("one").name).count("node:Boat") == 2


def test_a_missing_tag_is_named_with_the_nearest(graph: Graph) -> None:
    graph.tag("release-7")
    with pytest.raises(NotFoundError, match="did you mean 'release-7'"):
        graph.at(tag="relaese-7")
    with pytest.raises(NotFoundError, match="tag 'none' not found"):
        graph.delete_tag("none")


@pytest.mark.parametrize("name", ["", "a/b", "a b", ".a", "a.", "a..b", "a.lock", "é", "a" * 101, "a~b"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(BadRequestError, match="tag name"):
        parse_tag(name)


def test_two_ways_to_name_a_state_are_refused(graph: Graph) -> None:
    graph.tag("one")
    with pytest.raises(BadRequestError, match="give one of version, snapshot, as_of, tag"):
        graph.at(tag="one", version=3)


def test_a_branch_stays_while_a_tag_shows_it(graph: Graph) -> None:
    graph.create_branch("dev")
    load(graph, "bo", "dev")
    graph.tag("one", branch="dev")
    with pytest.raises(ConflictError, match="because tag 'one' shows it; delete one first"):
        graph.delete_branch("dev")
    graph.delete_tag("one")
    graph.delete_branch("dev")
    assert graph.branches() == ["main"]


def test_half_a_tag_of_a_branch_does_not_bar_its_deletion(graph: Graph) -> None:
    graph.create_branch("dev")
    load(graph, "bo", "dev")
    with stop_at(CrashPoint.TAG_ALL), pytest.raises(Crashed):
        graph.tag("one", branch="dev")
    assert [half.name for half in half_tags(graph.store, [MANIFEST])] == ["one"]
    assert graph.delete_branch("dev").warnings == ()


def test_a_tag_that_died_on_the_way_is_made_of_another_state(graph: Graph) -> None:
    with stop_at(CrashPoint.TAG_FIRST), pytest.raises(Crashed):
        graph.tag("one")
    load(graph, "bo")
    assert graph.at(tag=graph.tag("one").name).count("node:Boat") == 2
    assert graph.cleanup(confirm=True).items == ()


def test_a_dry_run_makes_and_deletes_nothing(graph: Graph) -> None:
    assert graph.tag("one", dry_run=True).name == "one"
    assert graph.tags() == []
    graph.tag("one")
    assert graph.delete_tag("one", dry_run=True).name == "one"
    assert [tag.name for tag in graph.tags()] == ["one"]
