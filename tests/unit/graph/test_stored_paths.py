"""Rows of the manifest that would lead out of the graph, as a hand may write them: nothing is done by them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from spark_omnigraph import DamagedError, Graph, LoadOptions
from spark_omnigraph.branch.orphans import find_orphans, what_is_shown
from spark_omnigraph.errors import OmnigraphError
from tests.support.graph_files import pins

SCHEMA = "node A { k: String @key v: I32? }\nnode B { k: String @key }"
PLAIN = LoadOptions(build_indexes=False)


def row(kind: str, key: str, **data: object) -> str:
    return json.dumps({"type": kind, "data": {"k": key, **data}})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    graph.load([row("A", "mine"), row("B", "b")], options=PLAIN)
    return graph


def rewrite(graph: Graph, matches: Callable[[dict[str, Any]], bool], branch: str | None = None, **changes: Any) -> None:
    """Changes rows of the manifest past every engine."""
    folder = f"{graph.uri}/__manifest" + ("" if branch is None else f"/tree/{branch}")
    manifest = lance.dataset(folder)
    rows = [{**r, **changes} for r in manifest.to_table().to_pylist() if matches(r)]
    assert rows
    table = pa.Table.from_pylist(rows, schema=manifest.schema)
    manifest.merge_insert("object_id").when_matched_update_all().execute(table)


def registers_a(found: dict[str, Any]) -> bool:
    return bool(found["object_type"] == "table" and found["table_key"] == "node:A")


def shows_a(found: dict[str, Any]) -> bool:
    return bool(found["object_type"] == "table_version" and found["table_key"] == "node:A")


def all_writes(graph: Graph) -> list[Callable[[], object]]:
    return [
        lambda: graph.load([row("A", "x")], "append", options=PLAIN),
        lambda: graph.load([row("A", "mine", v=5)], "merge", options=PLAIN),
        lambda: graph.load([row("A", "x")], "overwrite", options=PLAIN),
        lambda: graph.delete("node:A", ["mine"]),
        lambda: graph.mutate('query m() { insert A { k: "m" } }'),
        graph.optimize,
        graph.ensure_indices,
        lambda: graph.repair(confirm=True, force=True),
    ]


def test_no_write_reaches_the_dataset_of_another_graph(graph: Graph, tmp_path: Path) -> None:
    victim = Graph.init(tmp_path / "victim", SCHEMA)
    victim.load([row("A", "mine", v=1)], options=PLAIN)
    location = victim.snapshot().entries["node:A"].location
    before = sorted((f, f.stat().st_mtime_ns) for f in (tmp_path / "victim").rglob("*"))
    rewrite(graph, registers_a, location=f"../victim/{location}")
    for write in all_writes(graph):
        with pytest.raises(DamagedError, match=r"row 'node:A' .*location '\.\./victim/.*' leaves the graph.*backup"):
            write()
    assert sorted((f, f.stat().st_mtime_ns) for f in (tmp_path / "victim").rglob("*")) == before
    assert victim.entity("node:A", "mine") == {"id": "mine", "k": "mine", "v": 1}


@pytest.mark.parametrize(
    "location",
    [
        "../victim/nodes/x",
        "/etc",
        "nodes/../../x",
        "nodes//x",
        "nodes\\x",
        "nodes/%2e%2e",
        "file:///x",
        "__manifest",
        "\x1b[2J",
    ],
)
def test_a_location_that_is_no_table_of_the_graph_is_named(graph: Graph, location: str) -> None:
    version = graph.snapshot().version
    rewrite(graph, registers_a, location=location)
    with pytest.raises(DamagedError, match="row 'node:A' that is not acted on: location") as caught:
        graph.snapshot()
    assert caught.value.message.isprintable()
    assert graph.count("node:B", version=version) == 1, "older versions can be read"


@pytest.mark.parametrize("branch", ["../../../victim", "x/..", "", "a b"])
def test_a_branch_of_a_table_that_leaves_the_graph_is_named(graph: Graph, branch: str) -> None:
    rewrite(graph, shows_a, table_branch=branch)
    with pytest.raises(DamagedError, match="table_branch '"):
        graph.snapshot()


def test_numbers_that_no_dataset_has_are_named(graph: Graph) -> None:
    rewrite(graph, shows_a, table_version=2**64 - 1)
    with pytest.raises(DamagedError, match="18446744073709551615 is no version"):
        graph.load([row("A", "x")])


def test_rows_of_kinds_that_nobody_acts_on_are_passed_over(graph: Graph) -> None:
    rewrite(graph, registers_a, object_id="later", object_type="x_later", location="../other")
    manifest = lance.dataset(f"{graph.uri}/__manifest")
    extra = [
        {**r, "object_id": "l", "object_type": "x_l", "location": "../o"} for r in manifest.to_table().to_pylist()[:1]
    ]
    manifest.merge_insert("object_id").when_not_matched_insert_all().execute(
        pa.Table.from_pylist(extra, schema=manifest.schema)
    )
    assert graph.count("node:A") == 1


def test_clean_up_goes_on_with_everything_else(graph: Graph) -> None:
    stray = Path(graph.uri, graph.snapshot().entries["node:B"].location, "data", "0" * 20 + ".lance")
    stray.write_bytes(b"")
    rewrite(graph, registers_a, location="../victim/nodes/x")
    report = graph.cleanup(timedelta(0), confirm=True)
    assert not stray.exists()
    assert [kept.what for kept in report.kept] == ["__manifest"]
    assert "row 'node:A'" in report.kept[0].why


def test_clean_up_keeps_what_a_damaged_row_may_have_shown(graph: Graph) -> None:
    """On the branch whose row is damaged nobody knows which fork is shown, so that none of this table is an orphan."""
    graph.create_branch("draft")
    graph.load([row("A", "draft")], branch="draft", options=PLAIN)
    location = graph.snapshot().entries["node:A"].location
    before = pins(Path(graph.uri))
    rewrite(graph, registers_a, branch="draft", location="../victim/nodes/x")
    shown = what_is_shown(graph.store)
    assert [o.branch for o in find_orphans(graph.store, location, shown)] == ["draft"], "it would be taken for one"
    stray = Path(graph.uri, location, "data", "0" * 20 + ".lance")
    stray.write_bytes(b"")
    graph.cleanup(timedelta(0), confirm=True)
    assert stray.exists()
    assert Path(graph.uri, location, "tree", "draft").is_dir()
    assert pins(Path(graph.uri)) == before
    with pytest.raises(OmnigraphError, match="branch 'draft'"):
        graph.snapshot(branch="draft")
