"""Edges whose ids follow from their ends: the same edge has the same id, whatever it is loaded from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_omnigraph import (
    BadRequestError,
    BadRowsError,
    ConflictError,
    ConstraintError,
    Graph,
    LoadOptions,
    LoadReport,
)
from spark_omnigraph.graph.load.frame import finish_frame_load
from tests.unit.graph.test_frame_load import stage, write

SCHEMA = """
node Person { name: String @key }
node Order { shop: String  number: I32  @key(shop, number) }
edge Knows: Person -> Person { since: I32?  met: Date?  share: F64?  tags: [String]? }
edge Placed: Person -> Order { role: String? }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    people = [{"type": "Person", "data": {"name": name}} for name in ("a", "b", 'c"', "ü")]
    load(graph, *people, {"type": "Order", "data": {"shop": "s", "number": 1}}, mode="append")
    return graph


def knows(source: str, target: str, edge_id: str | None = None, **data: Any) -> dict[str, Any]:
    return {"edge": "Knows", "from": source, "to": target, "data": {**({"id": edge_id} if edge_id else {}), **data}}


def load(graph: Graph, *records: dict[str, Any], mode: str = "merge", **options: Any) -> LoadReport:
    chosen = LoadOptions(**{"build_indexes": False, **options})
    return graph.load([json.dumps(record) for record in records], mode, options=chosen)


def ids(graph: Graph, kind: str = "Knows") -> dict[str, tuple[str, str]]:
    records = map(json.loads, graph.export(types=[kind]))
    return {record["data"]["id"]: (record["from"], record["to"]) for record in records}


def test_ids_are_arrays_of_the_ends_and_of_canonical_texts(graph: Graph) -> None:
    load(graph, knows("a", 'c"'), knows("ü", "ü"), edge_id="ends")
    assert ids(graph) == {'["a","c\\""]': ("a", 'c"'), '["ü","ü"]': ("ü", "ü")}
    records = [
        knows("a", "b", since=7, met="1969-12-31", share=0.5), knows("b", "a", share=1), knows("b", "a", since=0)
    ]  # laid out as a table  # fmt: skip
    load(graph, *records, edge_id="since, met,share")
    assert ids(graph).keys() >= {'["a","b","7","-1","0.5"]', '["b","a",null,null,"1"]', '["b","a","0",null,null]'}
    load(graph, {"edge": "placed", "from": "a", "to": ["1", "s"]}, edge_id="ends")
    assert ids(graph, "Placed") == {'["a","[\\"1\\",\\"s\\"]"]': ("a", '["1","s"]')}


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite", "changes"])
def test_two_rows_of_one_id_are_bad_rows_in_every_mode(graph: Graph, mode: str) -> None:
    told = {"op": "u"} if mode == "changes" else {}
    twice = [{**told, **knows("a", "b", since=1)}, {**told, **knows("a", "b", since=2)}]
    with pytest.raises(BadRowsError) as caught:
        load(graph, *twice, mode=mode, edge_id="ends")
    assert caught.value.summary.per_rule == {"key_duplicate": 1}
    assert (caught.value.summary.sample[0].line, ids(graph)) == (2, {})
    load(graph, *twice, mode=mode, edge_id="since")
    assert len(ids(graph)) == 2


def test_what_is_loaded_again_is_there_once(graph: Graph, tmp_path: Path) -> None:
    """From lines, files, tables and frames."""
    rows = pa.table({"src": ["a", "b"], "to": ["b", "a"], "since": [1, None]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("from,to,since\na,b,1\nb,a,\n")
    options = LoadOptions(edge_id="ends")
    reports = [
        load(graph, knows("a", "b", since=1), knows("b", "a"), edge_id="ends"),
        graph.load(tmp_path / "rows.parquet", "merge", edge="Knows", options=options),
        graph.load(tmp_path / "rows.csv", "merge", edge="Knows", options=options),
        graph.load_table("edge:Knows", rows, "merge", options=options),
        graph.load_table("edge:Knows", [{"src": "a", "dst": "b"}, {"from": "b", "to": "a"}], "merge", options=options),
        write(graph, "edge:Knows", rows, mode="merge", edge_id="ends"),
    ]
    counts = [(report.tables["edge:Knows"].inserted, report.tables["edge:Knows"].updated) for report in reports]
    assert counts == [(2, 0), *[(0, 2)] * 5]
    assert [report.warnings for report in reports] == [()] * 6
    with pytest.raises(BadRowsError, match=r'key_conflict.*\["a","b"\]'):
        load(graph, knows("a", "b"), mode="append", edge_id="ends")


def test_an_id_of_a_record_must_be_the_one_that_follows(graph: Graph) -> None:
    load(graph, knows("a", "b", '["a","b"]'), edge_id="ends")
    with pytest.raises(BadRowsError, match=r"""id 'k1' is not '\["a","b"\]', which the ends say""") as caught:
        load(graph, knows("a", "b", "k1"), {"type": "Person", "data": {"name": "d"}}, edge_id="ends")
    assert caught.value.summary.per_rule == {"id_mismatch": 1}


def test_stored_edges_with_the_same_ends_refuse_the_load_with_their_number(graph: Graph) -> None:
    load(graph, knows("a", "b", "k1"), knows("b", "a", "k2"), knows("a", "a", "k3"))
    with pytest.raises(ConstraintError, match="2 stored edges have the ends of edges of the input under other ids"):
        load(graph, knows("a", "b"), knows("b", "a"), knows("b", "b"), edge_id="ends")
    with pytest.raises(ConstraintError, match="1 stored edge has the ends"):
        write(graph, "edge:Knows", pa.table({"src": ["a"], "dst": ["b"]}), mode="append", edge_id="ends")
    assert set(ids(graph)) == {"k1", "k2", "k3"}
    load(graph, knows("a", "b", since=4), edge_id="since")
    assert len(ids(graph)) == 4, "of edges that properties tell apart these count, too"
    load(graph, knows("a", "b"), mode="overwrite", edge_id="ends")
    assert set(ids(graph)) == {'["a","b"]'}


def test_adopted_edges_keep_the_stored_ids(graph: Graph) -> None:
    load(graph, knows("a", "b", "k1", since=1), knows("b", "a", "k2", since=2))
    options: dict[str, Any] = {"edge_id": "ends", "adopt_edges": True}
    report = load(graph, knows("a", "b", since=5), knows("a", "a"), **options)
    assert (report.tables["edge:Knows"].updated, report.tables["edge:Knows"].inserted) == (1, 1)
    assert ids(graph) == {"k1": ("a", "b"), "k2": ("b", "a"), '["a","a"]': ("a", "a")}
    write(graph, "edge:Knows", pa.table({"src": ["b"], "dst": ["a"], "since": [9]}), mode="merge", **options)
    stored = {record["data"]["id"]: record["data"]["since"] for record in map(json.loads, graph.export(["Knows"]))}
    assert stored == {"k1": 5, "k2": 9, '["a","a"]': None}
    with pytest.raises(BadRowsError, match=r"1 key_duplicate"):
        load(graph, knows("a", "b", since=1), knows("a", "b", since=2), **options)
    with pytest.raises(BadRowsError, match=r"key_conflict.*'k1' exists in Knows already"):
        load(graph, knows("a", "b"), mode="append", **options)


def test_several_stored_edges_with_the_same_ends_are_not_adopted(graph: Graph) -> None:
    load(graph, knows("a", "b", "k1"), knows("a", "b", "k2"), knows("b", "b", '["b","b"]'), knows("b", "b", "k3"))
    for edge, count in (((("a", "b"),), "1 edge"), ((("a", "b"), ("b", "b")), "2 edges")):
        with pytest.raises(ConstraintError, match=f"of {count} of the input there are several stored ones"):
            load(graph, *(knows(*ends) for ends in edge), edge_id="ends", adopt_edges=True)


@pytest.mark.parametrize("adopt", [False, True])
@pytest.mark.parametrize("mode", ["merge", "changes"])
def test_a_stored_edge_with_other_ends_is_not_moved_by_its_id(graph: Graph, mode: str, adopt: bool) -> None:
    load(graph, knows("b", "a", '["a","b"]'))
    edge = knows("a", "b") | ({"op": "u"} if mode == "changes" else {})
    with pytest.raises(ConstraintError, match="1 edge of the graph would be lost, with an id that follows"):
        load(graph, edge, mode=mode, edge_id="ends", adopt_edges=adopt)
    assert ids(graph) == {'["a","b"]': ("b", "a")}
    load(graph, knows("a", 'c"'), mode="merge", edge_id="ends", adopt_edges=adopt)
    assert len(ids(graph)) == 2


def test_changes_delete_edges_by_their_ends(graph: Graph) -> None:
    load(graph, knows("a", "b"), knows("b", "a"), edge_id="ends")
    load(graph, knows("a", "a", "k1"))
    gone = [{"op": "d", "edge": "Knows", "from": source, "to": "a"} for source in ("a", "b")]
    with pytest.raises(ConstraintError, match="1 stored edge has the ends"):
        load(graph, *gone, mode="changes", edge_id="ends")
    by_id = {"op": "d", "edge": "Knows", "data": {"id": '["a","b"]'}}
    report = load(graph, *gone, by_id, mode="changes", edge_id="ends", adopt_edges=True)
    assert (report.tables["edge:Knows"].deleted, ids(graph)) == (3, {})
    load(graph, knows("a", "b", since=3), edge_id="since")
    frame = pa.table({"src": ["a"], "dst": ["b"], "since": [3], "op": ["d"]})
    assert (
        graph.load_table("edge:Knows", frame, "changes", options=LoadOptions(edge_id=["since"]))
        .tables["edge:Knows"]
        .deleted
        == 1
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edge_id": "sinc"}, "edge_id: no edge type has a property 'sinc'; did you mean 'since'"),
        ({"edge_id": "tags"}, "edge_id: no id follows from 'Knows.tags', which is no single value"),
        ({"edge_id": "role"}, "edge_id: edge type 'Knows' has no property 'role'"),
    ],
)
def test_properties_of_which_no_id_can_be_made_are_refused(graph: Graph, options: Any, message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        load(graph, knows("a", "b"), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edge_id": 3}, "edge_id is 'ends', or names of properties, not 3"),
        ({"edge_id": ["a", ""]}, "edge_id is 'ends', or names of properties"),
        ({"edge_id": ""}, "edge_id is 'ends', or names of properties"),
        ({"adopt_edges": True}, "adopt_edges goes with edge_id"),
        ({"edge_id": "ends", "adopt_edges": 1}, "adopt_edges is True or False, not 1"),
    ],
)
def test_options_that_are_none_are_refused(options: Any, message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        LoadOptions(**options)


def test_tables_that_contradict_the_option_are_refused_before_a_row_is_read(graph: Graph) -> None:
    rows = pa.table({"src": ["a"], "dst": ["b"], "key": ["k"]})
    with pytest.raises(BadRequestError, match="column 'since' is missing: ids of 'Knows' are to follow from it"):
        graph.load_table("edge:Knows", rows.drop_columns("key"), "merge", options=LoadOptions(edge_id="since"))
    mapping = {"edge": "Knows", "from": "src", "to": "dst", "id": "key"}
    with pytest.raises(BadRequestError, match="the mapping gives ids of edges; edge_id contradicts it"):
        graph.load(rows, "merge", mapping=mapping, options=LoadOptions(edge_id="ends"))


def test_a_patch_names_its_edge_by_id(graph: Graph) -> None:
    with pytest.raises(BadRequestError, match="edge_id does not go with mode 'update': a patch names its edge by 'id'"):
        graph.ingest(["{}"], "new", mode="update", options=LoadOptions(edge_id="ends"))
    assert graph.branches() == ["main"]


def test_a_merge_says_how_many_edges_a_repeat_adds_again(graph: Graph) -> None:
    report = load(graph, knows("a", "b"), knows("b", "a"), knows("a", "a", "k1"))
    again = "had no id: the same input would add them again; --edge-id"
    assert [again in warning for warning in report.warnings] == [True]
    assert report.warnings[0].startswith("2 edges of Knows")
    assert load(graph, knows("a", "b"), mode="append").warnings == ()
    assert load(graph, knows("a", "b", "k2")).warnings == ()
    assert load(graph, {"op": "u", **knows("a", "b")}, mode="changes").warnings[0].startswith("1 edge of Knows")
    report = load(graph, knows("a", "nobody"), knows("b", "b"), knows("b", "nobody"), max_bad_rows=2)
    assert report.warnings[0].startswith("1 edge of Knows"), "bad rows are not added"


def test_a_frame_whose_ends_others_wrote_meanwhile_is_a_conflict(graph: Graph) -> None:
    """Nobody looked at those edges when its rows were staged."""
    rows = pa.table({"src": ["a"], "dst": ["b"]})
    tries: list[tuple[dict[str, Any], str]] = [({}, "k1"), ({"adopt_edges": True}, "k2")]
    for options, other in tries:
        request, plan, parts = stage(graph, "edge:Knows", [rows], "merge", edge_id="ends", **options)
        load(graph, knows("a", "b", other))
        with pytest.raises(ConflictError, match="edges of 'edge:Knows' with the same ends were written by others"):
            finish_frame_load(graph.store, request, plan, parts)
        load(graph, {"op": "d", "edge": "Knows", "data": {"id": other}}, mode="changes")
    request, plan, parts = stage(graph, "edge:Knows", [rows], "merge", edge_id="ends")
    load(graph, knows("b", "a", "k3"))
    finish_frame_load(graph.store, request, plan, parts)
    assert ids(graph) == {"k3": ("b", "a"), '["a","b"]': ("a", "b")}
