"""Rows go by id, in one commit, and with nodes the edges that touch them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_omnigraph import BadRequestError, Graph, NotFoundError, TransactionCommittedError
from spark_omnigraph.graph.delete.by_id import DeleteRequest, delete_ids
from spark_omnigraph.manifest.rows import Transaction

SCHEMA = """
node Person { name: String @key }
node City { name: String @key }
edge Knows: Person -> Person
edge Lives: Person -> City
edge Twins: City -> City
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    g = Graph.init(tmp_path / "g", SCHEMA)
    nodes = [{"type": t, "data": {"name": n}} for t, names in (("Person", "abc"), ("City", "xy")) for n in names]
    ends = [("Knows", "a", "b", 1), ("Knows", "b", "a", 2), ("Knows", "b", "c", 3), ("Lives", "a", "x", 4)]
    ends += [("Lives", "b", "y", 5), ("Twins", "x", "y", 6)]
    edges = [{"edge": e, "from": s, "to": t, "data": {"id": f"e{i}"}} for e, s, t, i in ends]
    g.load([json.dumps(record) for record in nodes + edges])
    return g


def ids(graph: Graph, branch: str = "main") -> set[str]:
    return {json.loads(line)["data"]["id"] for line in graph.export(branch=branch)}


def test_a_node_takes_its_edges_along(graph: Graph) -> None:
    report = graph.delete("node:Person", ["a", "nobody", "a"], actor="eve")
    assert report.deleted == {"edge:Knows": 2, "edge:Lives": 1, "node:Person": 1}
    assert report.missing == {"node:Person": 1}
    assert ids(graph) == {"b", "c", "x", "y", "e3", "e5", "e6"}
    assert (graph.count("node:Person"), graph.count("edge:Knows"), graph.count("edge:Lives")) == (2, 1, 1)
    assert (graph.commits()[0].id, graph.commits()[0].actor) == (report.commit, "eve")


def test_an_edge_goes_alone(graph: Graph) -> None:
    assert graph.delete("edge:Knows", ["e3"]).deleted == {"edge:Knows": 1}
    assert ids(graph) == {"a", "b", "c", "x", "y", "e1", "e2", "e4", "e5", "e6"}


def test_several_types_in_one_commit_count_a_row_once(graph: Graph) -> None:
    before = len(graph.commits())
    wanted = {"edge:Twins": pa.array(["e6"]), "node:City": pa.array(["x", "y"])}
    report = delete_ids(graph.store, DeleteRequest(wanted))
    assert report.deleted == {"edge:Lives": 2, "edge:Twins": 1, "node:City": 2}
    assert len(graph.commits()) == before + 1


def test_nothing_to_delete_makes_no_commit(graph: Graph) -> None:
    before = graph.snapshot()
    report = graph.delete("node:Person", ["nobody"])
    assert (report.commit, report.deleted, report.missing) == (None, {}, {"node:Person": 1})
    assert graph.snapshot() == before


def test_on_a_branch_the_parent_keeps_its_rows(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.delete("node:City", ["x"], branch="draft")
    assert ids(graph, "draft") == {"a", "b", "c", "y", "e1", "e2", "e3", "e5"}
    assert "x" in ids(graph)


def test_what_cannot_be_deleted_is_refused(graph: Graph) -> None:
    before = graph.snapshot()
    with pytest.raises(BadRequestError, match="1 ids of 'node:Person' to delete are null"):
        delete_ids(graph.store, DeleteRequest({"node:Person": pa.array(["a", None])}))
    with pytest.raises(NotFoundError, match="node type 'Robot' is not in the schema"):
        graph.delete("node:Robot", ["a"])
    with pytest.raises(NotFoundError, match="branch 'nope' not found"):
        graph.delete("node:Person", ["a"], branch="nope")
    assert graph.snapshot() == before


def test_a_named_deletion_comes_once(graph: Graph) -> None:
    request = DeleteRequest({"node:Person": pa.array(["a"])}, transaction=Transaction("job", 1))
    delete_ids(graph.store, request)
    graph.load(['{"type": "Person", "data": {"name": "a"}}'])
    with pytest.raises(TransactionCommittedError):
        delete_ids(graph.store, request)
    assert "a" in ids(graph)


def test_a_named_deletion_without_effect_comes_once_too(graph: Graph) -> None:
    request = DeleteRequest({"node:Person": pa.array(["nobody"])}, transaction=Transaction("job", 1))
    commits = graph.commits()
    report = delete_ids(graph.store, request)
    assert (report.commit, report.manifest_version) == (None, graph.snapshot().version)
    graph.load(['{"type": "Person", "data": {"name": "nobody"}}'])
    with pytest.raises(TransactionCommittedError):
        delete_ids(graph.store, request)
    assert "nobody" in ids(graph)
    assert graph.commits()[1:] == commits


@pytest.mark.parametrize(
    "wanted",
    [
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array(["a", "b"], pa.large_string()),
        pa.array(["a", "b"], pa.string_view()),
        pa.chunked_array([pa.array(["a"]).dictionary_encode(), pa.array(["b"]).dictionary_encode()]),
    ],
    ids=["dictionary", "large", "view", "chunks"],
)
def test_ids_in_any_layout_of_text_are_taken(graph: Graph, wanted: pa.Array) -> None:
    report = graph.delete("node:Person", wanted)
    assert (report.deleted["node:Person"], report.missing) == (2, {"node:Person": 0})
    assert ids(graph) == {"c", "x", "y", "e6"}


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (pa.array([1, 2]), "ids of 'node:Person' to delete must be texts, not int64"),
        (pa.array([1, 2]).dictionary_encode(), "must be texts, not int64"),
        (pa.array([b"a"]), "must be texts, not binary"),
        (pa.array(["a", None]).dictionary_encode(), "1 ids of 'node:Person' to delete are null"),
        (pa.nulls(2), "2 ids of 'node:Person' to delete are null"),
    ],
)
def test_ids_that_are_no_texts_are_refused_by_type(graph: Graph, wanted: pa.Array, text: str) -> None:
    with pytest.raises(BadRequestError, match=text):
        delete_ids(graph.store, DeleteRequest({"node:Person": wanted}))


@pytest.mark.parametrize("wanted", ["abc", ["a", 1], ["\ud800"]], ids=["one text", "a number", "half a letter"])
def test_ids_that_are_no_list_of_texts_are_refused(graph: Graph, wanted: Any) -> None:
    before = graph.snapshot()
    with pytest.raises(BadRequestError, match="ids of 'node:Person' to delete must be"):
        graph.delete("node:Person", wanted)
    assert graph.snapshot() == before
