"""Frames of ids to delete: which table each row means, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from spark_omnigraph import BadRequestError, Graph, NotFoundError, TransactionCommittedError
from spark_omnigraph.graph.delete.by_id import DeleteRequest
from spark_omnigraph.graph.delete.frame import FrameIds, check_delete_columns, delete_frame, frame_ids
from spark_omnigraph.manifest.rows import Transaction

SCHEMA = """
node Person { name: String @key }
node City { name: String @key }
edge Lives: Person -> City
edge Twins: City -> City
"""
TEXT = pa.string()


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    g = Graph.init(tmp_path / "g", SCHEMA)
    records: list[dict[str, object]] = [
        {"type": t, "data": {"name": n}} for t, names in (("Person", "ab"), ("City", "axy")) for n in names
    ]
    ends = [("Lives", "a", "x", 1), ("Lives", "b", "y", 2), ("Twins", "a", "x", 3), ("Twins", "a", "y", 4)]
    records += [{"edge": e, "from": s, "to": t, "data": {"id": f"e{i}"}} for e, s, t, i in ends]
    g.load([json.dumps(record) for record in records])
    return g


def rows(*given: tuple[str | None, str | None, str | None]) -> pa.RecordBatch:
    """Rows of type, edge and id."""
    columns = zip(*given, strict=True)
    return pa.record_batch({n: pa.array(c, TEXT) for n, c in zip(("type", "edge", "id"), columns, strict=True)})


def stored(graph: Graph) -> set[tuple[str, str]]:
    records = (json.loads(line) for line in graph.export())
    return {(r.get("type") or r.get("edge"), r["data"]["id"]) for r in records}


def test_ids_of_many_types_go_in_one_commit(graph: Graph) -> None:
    before = len(graph.commits())
    parts = [
        frame_ids([rows(("Person", None, "a"), (None, "Twins", "e4")), rows(("Person", None, "a"))], None),
        frame_ids([rows(("City", None, "x"), ("City", None, "nowhere"))], None),
        frame_ids([], None),
    ]
    report = delete_frame(graph.store, parts, DeleteRequest({}, actor="eve"))
    # The city 'a' has the id of the person 'a', and stays.
    assert stored(graph) == {("Person", "b"), ("City", "a"), ("City", "y"), ("Lives", "e2")}
    assert report.deleted == {"edge:Lives": 1, "edge:Twins": 2, "node:City": 1, "node:Person": 1}
    assert report.missing == {"edge:Twins": 0, "node:City": 1, "node:Person": 0}
    assert (len(graph.commits()), graph.commits()[0].actor) == (before + 1, "eve")


def test_a_frame_of_one_type_needs_no_name_in_its_rows(graph: Graph) -> None:
    batch = pa.record_batch({"id": ["a", "b", "a"], "type": ["City", None, "what"]})
    part = frame_ids([batch], "node:Person")
    assert part == FrameIds({"node:Person": ("a", "b")})
    delete_frame(graph.store, [part], DeleteRequest({}))
    assert {key for key in stored(graph) if key[0] == "Person"} == set()
    assert ("City", "a") in stored(graph)


@pytest.mark.parametrize(
    ("batch", "error", "text"),
    [
        (
            rows((None, None, "a"), ("City", None, "x")),
            BadRequestError,
            "1 row of the frame to delete has no type, or both a node type and an edge type: each must have "
            "either 'type' or 'edge'. One has the id 'a'",
        ),
        (rows(("City", "Twins", "a")), BadRequestError, "1 row of the frame to delete has no type, or"),
        (rows(("City", None, None), (None, None, None)), BadRequestError, "2 rows of the frame to delete have no id"),
        (rows(("Citty", None, "x")), NotFoundError, "node type 'Citty' is not in the schema; did you mean 'City'?"),
        (rows((None, "City", "x")), NotFoundError, "edge type 'City' is not in the schema"),
    ],
    ids=["no type", "two types", "no id", "misspelt", "no such edge"],
)
def test_rows_that_mean_no_stored_row_are_refused(
    graph: Graph, batch: pa.RecordBatch, error: type[Exception], text: str
) -> None:
    before = graph.snapshot()
    with pytest.raises(error) as caught:
        delete_frame(
            graph.store, [frame_ids([rows(("City", None, "x"))], None), frame_ids([batch], None)], DeleteRequest({})
        )
    assert text in str(caught.value)
    assert graph.snapshot() == before


@pytest.mark.parametrize(
    ("key", "columns", "error", "text"),
    [
        (None, [("id", TEXT)], BadRequestError, "with a column 'type' or 'edge'"),
        (None, [("type", TEXT)], BadRequestError, "needs a string column 'id', which is missing"),
        (None, [("id", TEXT), ("type", pa.int32())], BadRequestError, "'type', which is int32"),
        ("node:City", [("id", pa.int64())], BadRequestError, "needs a string column 'id', which is int64"),
        ("node:City", [("id", TEXT), ("id", TEXT)], BadRequestError, "'id', which is there twice"),
        ("node:Robot", [("id", TEXT)], NotFoundError, "node type 'Robot' is not in the schema"),
    ],
)
def test_frames_that_do_not_fit_are_refused_before_tasks_run(
    graph: Graph, key: str | None, columns: list[tuple[str, pa.DataType]], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        check_delete_columns(graph.catalog(), key, pa.schema(columns))
    assert text in str(caught.value)


def test_further_columns_do_not_matter(graph: Graph) -> None:
    check_delete_columns(graph.catalog(), "edge:Twins", pa.schema([("id", TEXT), ("edge", pa.int8())]))
    check_delete_columns(graph.catalog(), None, pa.schema([("edge", TEXT), ("id", TEXT), ("data", pa.int8())]))


def test_a_named_frame_that_deleted_nothing_does_nothing_when_it_comes_again(graph: Graph) -> None:
    request = DeleteRequest({}, transaction=Transaction("job", 1))
    commits = len(graph.commits())
    assert delete_frame(graph.store, [FrameIds({})], request).commit is None
    with pytest.raises(TransactionCommittedError):
        delete_frame(graph.store, [FrameIds({"node:Person": ("a",)})], request)
    assert ("Person", "a") in stored(graph)
    assert len(graph.commits()) == commits


def test_text_that_is_none_is_refused_with_its_place(graph: Graph) -> None:
    bad = pa.array([b"a", b"b\xed\xa0\x80"]).view(TEXT)
    good = pa.record_batch({"id": pa.array(["x"], TEXT)})
    part = frame_ids([good, pa.record_batch({"id": bad, "other": bad})], "node:Person")
    message = (
        r"1 row of .* has text that cannot be read.*: row 3 of a partition: column 'id' holds .*'b\\xed\\xa0\\x80'"
    )
    with pytest.raises(BadRequestError, match=message):
        delete_frame(graph.store, [frame_ids([good], "node:City"), part], DeleteRequest({}))
    named = pa.record_batch({"id": pa.array(["a", "b"]), "type": bad})
    with pytest.raises(BadRequestError, match="row 2 of a partition: column 'type'"):
        delete_frame(graph.store, [frame_ids([named], None)], DeleteRequest({}))
    assert ("Person", "a") in stored(graph)
    # What is not asked for does not matter.
    assert frame_ids([pa.record_batch({"id": pa.array(["a", "b"]), "other": bad})], "node:Person").illegible == 0
