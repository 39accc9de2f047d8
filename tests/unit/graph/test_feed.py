"""The change feed below Spark: which commits it has, on which branch, and what is said when a version is gone."""

from __future__ import annotations

import json
import pickle
from datetime import timedelta
from pathlib import Path

import lance
import pytest

from spark_omnigraph import Graph, NotFoundError
from spark_omnigraph.graph.feed import FeedTask, check_start, feed_tasks, first_parents, read_envelopes, read_typed

SCHEMA = "node Lamp { tag: String @key  watt: F64?  photo: Blob? }\nedge Near: Lamp -> Lamp"


def lamp(tag: str, watt: float, **more: object) -> str:
    return json.dumps({"type": "Lamp", "data": {"tag": tag, "watt": watt, **more}})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    g = Graph.init(tmp_path / "g", SCHEMA)
    g.load([lamp("a", 1)])
    g.create_branch("draft")
    g.load([lamp("b", 2)])
    g.load([lamp("c", 3)], branch="draft")
    return g


def tasks(graph: Graph, branch: str | None = None, first: int = 0, table: str | None = None) -> list[FeedTask]:
    commits = first_parents(graph.store, branch)
    return feed_tasks(graph.store, graph.catalog(), commits, first, commits[-1].manifest_version, table)


def rows(found: list[FeedTask]) -> list[tuple[str, str]]:
    return [(r["_change_type"], r["id"]) for t in found for b in read_envelopes(t) for r in b.to_pylist()]


def test_a_branch_has_its_own_commits_and_those_before_it(graph: Graph) -> None:
    assert rows(tasks(graph)) == [("insert", "a"), ("insert", "b")]
    assert rows(tasks(graph, "draft")) == [("insert", "a"), ("insert", "c")]
    own = graph.commits(branch="draft")[-1].manifest_version
    assert rows(tasks(graph, "draft", first=own)) == [("insert", "c")]


def test_maintenance_is_no_change(graph: Graph) -> None:
    graph.load([lamp("d", 4)])
    before = rows(tasks(graph))
    graph.optimize()
    graph.ensure_indices()
    assert rows(tasks(graph)) == before


def test_a_deletion_shows_the_row_that_is_gone(graph: Graph) -> None:
    graph.load(['{"edge": "Near", "from": "a", "to": "b", "data": {"id": "n"}}'])
    graph.delete("node:Lamp", ["a"])
    newest = graph.commits()[-1].manifest_version
    found = tasks(graph, first=newest)
    assert rows(found) == [("delete", "n"), ("delete", "a")]
    (batch,) = read_typed(found[1])
    assert batch.to_pylist()[0]["watt"] == 1.0


def test_a_task_travels_and_needs_no_graph(graph: Graph) -> None:
    (task,) = tasks(graph, first=graph.commits()[-1].manifest_version)
    assert rows([pickle.loads(pickle.dumps(task))]) == [("insert", "b")]
    assert len(pickle.dumps(task)) < 5_000


def test_what_json_lacks_has_a_text(graph: Graph) -> None:
    graph.load([lamp("e", 5, photo="base64:aGk=")])
    (task,) = tasks(graph, first=graph.commits()[-1].manifest_version)
    (batch,) = read_envelopes(task)
    assert json.loads(batch.to_pylist()[0]["data"]) == {"id": "e", "photo": "base64:aGk=", "tag": "e", "watt": 5.0}


def test_a_start_in_the_future_is_refused(graph: Graph) -> None:
    commits = first_parents(graph.store, None)
    with pytest.raises(NotFoundError, match="manifest version 99 does not exist yet"):
        check_start(commits, 99)


def test_a_version_that_was_cleaned_up_is_named_with_the_oldest_that_is_left(graph: Graph) -> None:
    graph.load([lamp("b", 9)], mode="merge")
    entry = graph.snapshot().entries["node:Lamp"]
    dataset = lance.dataset(graph.store.table_uri(entry.location, None))
    dataset.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)
    with pytest.raises(NotFoundError, match=r"version \d+ of .* is not stored any more: .* that is left is \d+"):
        rows(tasks(graph))
