"""Differences of two states: found by files and row versions, checked against a dictionary of the rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.changes.diff import DiffFilter, Image, RowChange, changed_tables
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.storage.tables.commits import compact

SCHEMA = """
node Lamp { tag: String @key  watt: I32?  marks: [String]?  photo: Blob? }
node Room { name: String @key }
edge In: Lamp -> Room { since: Date? }
"""


def lamp(tag: str, watt: int | None = None, **more: object) -> str:
    return json.dumps({"type": "Lamp", "data": {"tag": tag, "watt": watt, **more}})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    g = Graph.init(tmp_path / "g", SCHEMA)
    edge = {"edge": "In", "from": "a", "to": "r", "data": {"id": "i1"}}
    g.load([lamp("a", 1), lamp("b", 2), '{"type": "Room", "data": {"name": "r"}}', json.dumps(edge)])
    return g


def listed(changes: tuple[RowChange, ...]) -> list[tuple[str, str, str]]:
    return [(str(c.op), c.table_key, c.id) for c in changes]


def test_inserts_and_updates_of_one_line(graph: Graph) -> None:
    before = graph.snapshot().version
    graph.load([lamp("b", 75), lamp("c", 3)], mode="merge")
    found = graph.diff({"version": before})
    assert listed(found.changes) == [("insert", "node:Lamp", "c"), ("update", "node:Lamp", "b")]
    assert found.stats() == {"inserts": 1, "updates": 1, "deletes": 0, "types_affected": ["Lamp"]}
    assert (found.from_version, found.to_version) == (before, graph.snapshot().version)


def test_the_way_back_swaps_inserts_and_deletes(graph: Graph) -> None:
    before = graph.snapshot().version
    graph.load([lamp("b", 75), lamp("c", 3)], mode="merge")
    found = graph.diff({}, {"version": before})
    assert listed(found.changes) == [("update", "node:Lamp", "b"), ("delete", "node:Lamp", "c")]


def test_an_overwrite_deletes_what_it_leaves_out(graph: Graph) -> None:
    before = graph.snapshot().version
    graph.load([lamp("a", 1), lamp("z", 9)], mode="overwrite")
    assert listed(graph.diff({"version": before}).changes) == [
        ("insert", "node:Lamp", "z"),
        ("update", "node:Lamp", "a"),
        ("delete", "node:Lamp", "b"),
    ]


def test_an_edge_has_its_ends(graph: Graph) -> None:
    before = graph.snapshot().version
    graph.load([json.dumps({"edge": "In", "from": "b", "to": "r", "data": {"id": "i2"}})])
    (change,) = graph.diff({"version": before}).changes
    assert change.to_dict() == {
        "table_key": "edge:In",
        "kind": "edge",
        "type_name": "In",
        "id": "i2",
        "op": "insert",
        "manifest_version": graph.snapshot().version,
        "endpoints": {"src": "b", "dst": "r"},
    }


def test_a_row_written_again_with_equal_values_is_updated(graph: Graph) -> None:
    before = graph.snapshot().version
    graph.load([lamp("b", 2)], mode="merge")
    assert listed(graph.diff({"version": before}).changes) == [("update", "node:Lamp", "b")]


def test_what_is_undone_in_between_does_not_show(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.load([lamp("q", 5)], branch="draft")
    graph.load([lamp("a", 1), lamp("b", 2)], mode="overwrite", branch="draft")
    assert listed(graph.diff({}, {"branch": "draft"}).changes) == []


def test_branches_that_went_apart_are_compared_by_values(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.load([lamp("a", 10), lamp("b", 2, marks=["x"]), lamp("d", 4)], mode="merge", branch="draft")
    graph.load([lamp("a", 10), lamp("m", 6)], mode="merge")
    assert listed(graph.diff({}, {"branch": "draft"}).changes) == [
        ("insert", "node:Lamp", "d"),
        ("update", "node:Lamp", "b"),
        ("delete", "node:Lamp", "m"),
    ]


def test_equal_blobs_in_other_files_are_no_change(graph: Graph) -> None:
    graph.create_branch("draft")
    photos = {"a": "base64:" + "QUFB" * 9, "b": "base64:" + "QkJC" * 99, "c": "base64:QUI="}
    for branch, tags in (("main", "abc"), ("draft", "cba")):
        graph.load([lamp(tag, 1, photo=photos[tag]) for tag in tags], mode="merge", branch=branch)
    assert graph.diff({}, {"branch": "draft"}).changes == ()
    graph.load([lamp("c", 1, photo="base64:QUE=")], mode="merge", branch="draft")
    assert listed(graph.diff({}, {"branch": "draft"}).changes) == [("update", "node:Lamp", "c")]


def test_deleted_nodes_and_their_edges(graph: Graph) -> None:
    before = graph.snapshot().version
    graph.delete("node:Lamp", ["a"])
    found = graph.diff({"version": before})
    assert listed(found.changes) == [("delete", "edge:In", "i1"), ("delete", "node:Lamp", "a")]
    assert (found.changes[0].src, found.changes[0].dst) == ("a", "r")


def test_a_pinned_handle_compares_with_what_it_shows(graph: Graph) -> None:
    first = graph.snapshot().version
    graph.load([lamp("c", 3)])
    then = graph.at()
    graph.load([lamp("d", 4)])
    assert listed(then.diff({"version": first}).changes) == [("insert", "node:Lamp", "c")]
    assert listed(then.diff({"version": first}, {}).changes) == [
        ("insert", "node:Lamp", "c"),
        ("insert", "node:Lamp", "d"),
    ]


def test_only_the_wanted_changes(graph: Graph) -> None:
    before = graph.snapshot().version
    graph.load([lamp("b", 75), lamp("c", 3), '{"type": "Room", "data": {"name": "s"}}'], mode="merge")
    inserts = graph.diff({"version": before}, only=DiffFilter(ops=["insert"]))
    assert listed(inserts.changes) == [("insert", "node:Lamp", "c"), ("insert", "node:Room", "s")]
    rooms = graph.diff({"version": before}, only=DiffFilter(type_names=["Room"]))
    assert listed(rooms.changes) == [("insert", "node:Room", "s")]
    assert graph.diff({"version": before}, only=DiffFilter(kinds=["edge"])).changes == ()
    with pytest.raises(BadRequestError, match="unknown operation 'upsert'"):
        DiffFilter(ops=["upsert"])


def test_images_have_the_values_before_and_after(graph: Graph) -> None:
    before = graph.snapshot()
    graph.load([lamp("b", 75, photo="base64:aGk=")], mode="merge")
    (table,) = changed_tables(graph.store, graph.catalog(), before, graph.snapshot())
    found = [(image, batch.to_pylist()) for image, batch in table.images(table.columns)]
    assert found == [
        (Image.UPDATE_BEFORE, [{"id": "b", "marks": None, "photo": None, "tag": "b", "watt": 2}]),
        (Image.UPDATE_AFTER, [{"id": "b", "marks": None, "photo": b"hi", "tag": "b", "watt": 75}]),
    ]


_WRITES = st.lists(
    st.tuples(
        st.sampled_from(["append", "merge", "overwrite", "delete", "compact"]),
        st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 2), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25, deadline=None)
@given(_WRITES)
def test_random_histories_agree_with_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, dict[str, int]]]
) -> None:
    g = Graph.init(tmp_path_factory.mktemp("g") / "g", SCHEMA)
    rows: dict[str, tuple[int, int]] = {}  # value and the number of the write
    states = [(g.snapshot().version, dict(rows))]
    for number, (mode, drawn) in enumerate(writes):
        if mode == "compact":
            _compact(g)
            continue
        if mode == "delete":
            g.delete("node:Lamp", drawn)
            rows = {k: v for k, v in rows.items() if k not in drawn}
            states.append((g.snapshot().version, dict(rows)))
            continue
        lamps = {k: v for k, v in drawn.items() if mode != "append" or k not in rows}
        if not lamps:
            continue
        g.load([lamp(k, v) for k, v in lamps.items()], mode=mode)
        rows = {**(rows if mode != "overwrite" else {}), **{k: (v, number) for k, v in lamps.items()}}
        states.append((g.snapshot().version, dict(rows)))
    for earlier, had in states:
        found = {(str(c.op), c.id) for c in g.diff({"version": earlier}).changes}
        expected = {("insert", k) for k in rows.keys() - had.keys()}
        expected |= {("delete", k) for k in had.keys() - rows.keys()}
        expected |= {("update", k) for k in rows.keys() & had.keys() if rows[k] != had[k]}
        assert found == expected


def _compact(g: Graph) -> None:
    entry = g.snapshot().entries["node:Lamp"]
    if entry.row_count:
        compact(g.store.open_table(entry))
        g.repair(confirm=True)
