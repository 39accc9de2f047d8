"""The change feed below Spark: which commits it has, on which branch, and what is said when a version is gone."""

from __future__ import annotations

import json
import pickle
from datetime import timedelta
from pathlib import Path

import lance
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spark_omnigraph import Graph, NotFoundError
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.graph.changes.feed import (
    FeedTask,
    check_start,
    feed_tasks,
    first_parents,
    read_envelopes,
    read_typed,
)
from spark_omnigraph.manifest.branches import stored_branch

SCHEMA = "node Lamp { tag: String @key  watt: F64?  photo: Blob? }\nedge Near: Lamp -> Lamp"


def lamp(tag: str, watt: float, **more: object) -> str:
    return json.dumps({"type": "Lamp", "data": {"tag": tag, "watt": watt, **more}})


def near(name: str) -> str:
    return json.dumps({"edge": "Near", "from": name[0], "to": name[1], "data": {"id": name}})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    g = Graph.init(tmp_path / "g", SCHEMA)
    g.load([lamp("a", 1)])
    g.create_branch("draft")
    g.load([lamp("b", 2)])
    g.load([lamp("c", 3)], branch="draft")
    return g


def tasks(graph: Graph, branch: str | None = None, first: int = 0, table: str | None = None) -> list[FeedTask]:
    commits = first_parents(graph.store, stored_branch(branch))
    return feed_tasks(
        graph.store, graph.catalog(), commits, first, commits[-1].manifest_version, TableKey(table) if table else None
    )


def rows(found: list[FeedTask]) -> list[tuple[str, str]]:
    return [(r["_change_type"], r["id"]) for t in found for b in read_envelopes(t) for r in b.to_pylist()]


def test_a_branch_has_its_own_commits_and_those_before_it(graph: Graph) -> None:
    assert rows(tasks(graph)) == [("insert", "a"), ("insert", "b")]
    assert rows(tasks(graph, "draft")) == [("insert", "a"), ("insert", "c")]
    own = graph.commits(branch="draft")[0].manifest_version
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
    newest = graph.commits()[0].manifest_version
    found = tasks(graph, first=newest)
    assert rows(found) == [("delete", "n"), ("delete", "a")]
    (batch,) = read_typed(found[1])
    assert batch.to_pylist()[0]["watt"] == 1.0


def test_an_edge_type_alone_has_its_ends_before_and_after(graph: Graph) -> None:
    first = graph.commits()[0].manifest_version + 1
    for end in ("b", "a"):
        graph.load([json.dumps({"edge": "Near", "from": "a", "to": end, "data": {"id": "n"}})], "merge")
    graph.load([lamp("z", 1)])  # a commit that leaves the type alone has no row here
    graph.delete("edge:Near", ["n"])
    found = tasks(graph, first=first, table="edge:Near")
    changes = [row for task in found for batch in read_typed(task) for row in batch.to_pylist()]
    assert list(changes[0]) == [
        *("id", "src", "dst"),
        *("_change_type", "_commit_version", "_commit_id", "_commit_timestamp"),
    ]
    commits = {c.id: c.manifest_version for c in graph.commits()}
    assert [(r["_change_type"], r["id"], r["src"], r["dst"], r["_commit_version"]) for r in changes] == [
        ("insert", "n", "a", "b", first),
        ("update_preimage", "n", "a", "b", commits[changes[1]["_commit_id"]]),
        ("update_postimage", "n", "a", "a", commits[changes[2]["_commit_id"]]),
        ("delete", "n", "a", "a", graph.commits()[0].manifest_version),
    ]
    assert changes[1]["_commit_id"] == changes[2]["_commit_id"] != changes[3]["_commit_id"]


def test_a_task_travels_and_needs_no_graph(graph: Graph) -> None:
    (task,) = tasks(graph, first=graph.commits()[0].manifest_version)
    assert rows([pickle.loads(pickle.dumps(task))]) == [("insert", "b")]
    assert len(pickle.dumps(task)) < 5_000


def test_what_json_lacks_has_a_text(graph: Graph) -> None:
    graph.load([lamp("e", 5, photo="base64:aGk=")])
    (task,) = tasks(graph, first=graph.commits()[0].manifest_version)
    (batch,) = read_envelopes(task)
    assert json.loads(batch.to_pylist()[0]["data"]) == {"id": "e", "photo": "base64:aGk=", "tag": "e", "watt": 5.0}


def test_a_start_may_be_the_version_that_comes_next(graph: Graph) -> None:
    newest = graph.snapshot().version
    check_start(graph.store, None, newest + 1)
    with pytest.raises(NotFoundError, match=f"version {newest + 2} does not exist yet: the newest is {newest}"):
        check_start(graph.store, None, newest + 2)


def test_where_the_feed_can_start_when_versions_are_gone(graph: Graph) -> None:
    for number in range(4):
        graph.load([lamp("l", number)], mode="merge")
    fourth, third = (c.manifest_version for c in graph.commits(limit=2))
    entry = graph.at(version=third).snapshot().entries["node:Lamp"]
    table = lance.dataset(graph.store.table_uri(entry.location, None))
    gone = [v["version"] for v in table.versions() if v["version"] < entry.version]
    assert gone
    table.cleanup_old_versions(older_than=timedelta(0), retain_versions=table.version - entry.version + 1)
    with pytest.raises(NotFoundError, match=f"clean-up removed .* the change feed can start at version {fourth}$"):
        rows(tasks(graph))
    found = [
        row
        for task in tasks(graph, first=fourth, table="node:Lamp")
        for batch in read_typed(task)
        for row in batch.to_pylist()
    ]
    assert [(row["_change_type"], row["watt"]) for row in found] == [("update_preimage", 2), ("update_postimage", 3)]
    says = "a clean-up removed it, or a change of the schema that drops data for good; the oldest that is left is"
    with pytest.raises(
        NotFoundError,
        match=says,
    ):
        graph.diff({"version": graph.commits()[-2].manifest_version})


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "merge", "overwrite", "delete", "edges", "optimize"]),
        st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=15, deadline=None)
@example([("append", {"a": 0}), ("edges", {"a": 0}), ("overwrite", {"a": 0})])
@given(_STEPS)
def test_the_feed_replayed_is_the_graph(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, dict[str, int]]]
) -> None:
    g = Graph.init(tmp_path_factory.mktemp("g") / "g", SCHEMA)
    states = {}
    for kind, drawn in steps:
        _write(g, kind, drawn)
        states[g.commits()[0].manifest_version] = _stored(g)
    held: dict[tuple[str, str], str] = {}
    seen: dict[int, dict[tuple[str, str], str]] = {}
    for task in tasks(g):
        for batch in read_envelopes(task):
            for change in batch.to_pylist():
                _apply(held, change)
        seen[task.commit.manifest_version] = dict(held)
    assert {version: _latest(seen, version) for version in states} == states


def _latest(seen: dict[int, dict[tuple[str, str], str]], version: int) -> dict[tuple[str, str], str]:
    """What was held after the last commit up to a version: not every commit changes a row, and a step may make two."""
    return next((seen[v] for v in sorted(seen, reverse=True) if v <= version), {})


def _write(g: Graph, kind: str, drawn: dict[str, int]) -> None:
    stored = [key for table, key in _stored(g) if table == "node:Lamp"]
    if kind == "optimize":
        g.optimize()
    elif kind == "delete":
        g.delete("node:Lamp", drawn)
    elif kind == "edges":
        known = [a + b for a in drawn for b in drawn if a in stored and b in stored]
        if known:
            g.load([near(name) for name in known], mode="merge")
    elif kind == "overwrite":
        edges = [key for table, key in _stored(g) if table == "edge:Near"]
        if edges:
            g.delete("edge:Near", edges)
        g.load([lamp(k, v) for k, v in drawn.items()], mode="overwrite")
    else:
        lines = [lamp(k, v) for k, v in drawn.items() if kind == "merge" or k not in stored]
        if lines:
            g.load(lines, mode=kind)


def _stored(g: Graph) -> dict[tuple[str, str], str]:
    """Rows by table and id, as the text of their values."""
    found = {}
    for line in g.export():
        record = json.loads(line)
        table = f"node:{record['type']}" if "type" in record else f"edge:{record['edge']}"
        found[table, record["data"]["id"]] = json.dumps(record["data"], sort_keys=True)
    return found


def _apply(held: dict[tuple[str, str], str], change: dict[str, object]) -> None:
    """One image: what goes must be there with these values, what comes must not be there."""
    key = (str(change["table"]), str(change["id"]))
    values = json.dumps(json.loads(str(change["data"])), sort_keys=True)
    if change["_change_type"] in ("delete", "update_preimage"):
        assert held.pop(key) == values
    else:
        assert key not in held
        held[key] = values
