"""What the reference engine needs of a graph (the items of `test_checklist`) still holds once branches were merged into
main, into each other and back, with pylance alone as the reader.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from spark_omnigraph import Graph
from tests.format.sample import GAUGE, WIDE_SCHEMA, edge, node
from tests.format.test_checklist import MANIFEST_SCHEMA, TABLE_SCHEMAS, as_written
from tests.support.graph_files import Pin, commit_rows, internal, manifest_rows, pins, recovery_files

BRANCHES = pytest.mark.parametrize("branch", [None, "team/draft", "other"])


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Merges of every kind: three-way with inserts, updates and deletes, fast-forward, of a branch of a branch, back
    again, and one that changes nothing.
    """
    root = tmp_path_factory.mktemp("merged") / "graph"
    g = Graph.init(str(root), WIDE_SCHEMA)
    g.load(
        [
            *(node("Person", name=f"p{i}", age=i) for i in range(5)),
            node("Gauge", **GAUGE),
            node("Note", id="n1", text="x"),
        ]
    )
    g.load([edge("Knows", "p0", "p1", id="k1"), edge("Knows", "p1", "p2", id="k2"), node("Lot", num=7, area="n")])
    g.create_branch("team/draft")
    rows = [node("Person", name="p1", age=11), node("Person", name="new", age=9), edge("Knows", "new", "p1", id="k3")]
    g.load([*rows, node("Gauge", **{**GAUGE, "tag": "g2", "blob": None})], "merge", branch="team/draft")
    g.delete("node:Person", ["p4"], branch="team/draft")
    g.create_branch("other", base="team/draft")
    g.load([edge("Wrote", "new", "n1"), node("Lot", num=8, area="s")], branch="other")
    g.load([node("Person", name="p3", age=33), edge("Knows", "p3", "p0", id="k4")], "merge")
    assert str(g.merge_branch("team/draft", actor="ada").outcome) == "merged"
    assert str(g.merge_branch("main", "team/draft").outcome) == "fast_forward"
    assert str(g.merge_branch("other", "team/draft").outcome) == "merged"
    assert str(g.merge_branch("team/draft").outcome) == "fast_forward"
    assert str(g.merge_branch("main", "other").outcome) == "fast_forward"
    return root


@BRANCHES
def test_every_table_is_shown_as_it_lies_there(merged: Path, branch: str | None) -> None:
    shown = pins(merged, branch)
    assert shown.keys() == TABLE_SCHEMAS.keys()
    for key, pin in shown.items():
        ds = pin.open(merged)
        stored = pa.schema([as_written(field) for field in ds.schema])
        assert stored.equals(pa.schema(TABLE_SCHEMAS[key]), check_metadata=True), key
        assert (ds.has_stable_row_ids, ds.data_storage_version, ds.config()) == (True, "2.2", {})
        assert (ds.count_rows(), pin.head(merged).version) == (pin.row_count, pin.version), key
        assert pin.branch in (None, branch, "team/draft" if branch == "other" else None)


@BRANCHES
def test_rows_are_those_of_both_sides_with_their_ids(merged: Path, branch: str | None) -> None:
    tables = {
        key: pin.open(merged).to_table(columns=["id"])["id"].to_pylist() for key, pin in pins(merged, branch).items()
    }
    assert {key: sorted(ids) for key, ids in tables.items() if key != "edge:Wrote"} == {
        "node:Person": ["new", "p0", "p1", "p2", "p3"],
        "node:Gauge": ["g1", "g2"],
        "node:Note": ["n1"],
        "node:Lot": ['["n","7"]', '["s","8"]'],
        "edge:Knows": ["k1", "k2", "k3", "k4"],
        "edge:Idle": [],
    }
    assert len(tables["edge:Wrote"]) == 1
    people = pins(merged, branch)["node:Person"].open(merged).to_table(columns=["id", "age"]).to_pylist()
    assert {row["id"]: row["age"] for row in people} == {"new": 9, "p0": 0, "p1": 11, "p2": 2, "p3": 33}
    for key in ("edge:Knows", "edge:Wrote"):
        ends = pins(merged, branch)[key].open(merged).to_table(columns=["src", "dst"])
        assert set(ends["src"].to_pylist() + ends["dst"].to_pylist()) <= {*tables["node:Person"], *tables["node:Note"]}


@BRANCHES
def test_each_merge_is_a_commit_with_both_parents(merged: Path, branch: str | None) -> None:
    rows = commit_rows(merged, branch)
    ids = {row["graph_commit_id"] for name in (None, "team/draft", "other") for row in commit_rows(merged, name)}
    merges = [row for row in rows if row["merged_parent_commit_id"] is not None and row["manifest_branch"] == branch]
    assert len(merges) == {None: 2, "team/draft": 2, "other": 1}[branch]
    for row in merges:
        assert {row["parent_commit_id"], row["merged_parent_commit_id"]} <= ids
        assert pins(merged, branch, row["manifest_version"]).keys() == TABLE_SCHEMAS.keys()
    assert len({row["manifest_version"] for row in rows if row["manifest_branch"] == branch}) == len(
        [row for row in rows if row["manifest_branch"] == branch]
    )
    named = internal(merged, "_graph_commit_actors.lance").to_table().to_pylist()
    assert [row["actor_id"] for row in named] == ["ada"]


@BRANCHES
def test_the_manifest_is_written_as_any_write_does(merged: Path, branch: str | None) -> None:
    ds = internal(merged, "__manifest", branch)
    assert ds.schema.equals(MANIFEST_SCHEMA, check_metadata=False)
    assert ds.schema.metadata == {b"omnigraph:internal_schema_version": b"3"}
    transaction = ds.read_transaction(ds.version)
    assert transaction is not None
    assert type(transaction.operation).__name__ == "Update"
    rows = manifest_rows(merged, branch)
    assert len({row["object_id"] for row in rows}) == len(rows)
    own = {row["object_type"] for row in rows} - {"table", "table_version", "table_tombstone"}
    assert all(kind.startswith("x_") for kind in own)
    for row in rows:
        if row["object_type"] == "table_version":
            pin = Pin(row["table_key"], "", row["table_version"], row["table_branch"], row["row_count"])
            path = json.loads(row["metadata"])["manifest_path"]
            assert path.endswith(f"_versions/{2**64 - 1 - pin.version:020d}.manifest")
            assert ("/tree/" in path) is (pin.branch is not None)
    assert recovery_files(merged) == []
    assert set(internal(merged, "__manifest").branches.list()) == {"team/draft", "other"}
