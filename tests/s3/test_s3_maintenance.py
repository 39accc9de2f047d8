"""Repair, clean-up and older formats on an S3 server, where times have seconds and names are keys."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import lance
import obstore
import pytest
from lance.fragment import write_fragments

from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from tests.races.loads import SCHEMA, records
from tests.support.object_store import S3Server

pytestmark = [pytest.mark.s3, pytest.mark.timeout(300)]

PLAIN = LoadOptions(build_indexes=False)


@pytest.fixture
def graph(s3: S3Server, uri: str) -> Graph:
    graph = Graph.init(uri, SCHEMA, storage_options=s3.storage_options)
    graph.load(records("one", ["a"]), options=PLAIN)
    graph.load(records("two", ["b"]), options=PLAIN)
    graph.create_branch("team/x")
    graph.load(records("three", ["c"]), branch="team/x")
    return graph


def part(graph: Graph, branch: str = "main") -> lance.LanceDataset:
    entry = graph.snapshot(branch=branch).entries["node:Part"]
    return graph.store.open_dataset(f"{entry.location}/tree/{entry.branch}" if entry.branch else entry.location)


def keys(graph: Graph) -> set[str]:
    return {each.path for each in graph.store.objects.walk("")}


def later(graph: Graph) -> None:
    """Waits until the store's clock, which counts seconds, has gone on: measured with the store, not with ours."""
    start = graph.store.objects.clock("__recovery")
    while graph.store.objects.clock("__recovery") - start < timedelta(seconds=2):
        pass


def test_repair(graph: Graph) -> None:
    part(graph).optimize.compact_files()
    (drift,) = graph.repair().drifts
    assert (drift.verdict, drift.operations) == ("verified_maintenance", ("ReserveFragments", "Rewrite"))
    assert graph.repair(confirm=True).repaired == ("node:Part",)
    part(graph, "team/x").delete("id = 'c'")
    assert graph.repair().drifts == ()
    (drift,) = graph.repair(branch="team/x").drifts
    assert drift.verdict == "suspicious"
    graph.load(records("four", ["d"]))
    assert len(graph.commits(actor="omnigraph:repair")) == 1


def test_cleanup(graph: Graph, s3: S3Server) -> None:
    graph.create_branch("never")
    before = keys(graph)
    for branch in ("main", "team/x"):
        dataset = part(graph, branch)
        write_fragments(
            dataset.head(1), dataset.uri, mode="append", data_storage_version="2.2", storage_options=s3.storage_options
        )
    with stop_at(CrashPoint.FORKED), pytest.raises(Crashed):
        graph.load(records("never", ["n"]), branch="never")
    residue = keys(graph) - before
    assert len(residue) > 4
    later(graph)
    dry = graph.cleanup(timedelta(0))
    assert {item.path for item in dry.items} == residue
    assert (dry.kept, keys(graph)) == ((), before | residue)
    report = graph.cleanup(timedelta(0), confirm=True)
    assert {(item.path, item.deleted) for item in report.items} == {(key, True) for key in residue}
    assert set(report.by_reason()) == {"unnamed_data", "orphan_branch"}
    assert keys(graph) == before
    assert {json.loads(line)["data"]["tag"] for line in graph.export(branch="team/x")} == {"one", "two", "three"}
    graph.load(records("now", ["n"]), branch="never")


def test_an_older_format_is_migrated(graph: Graph, s3: S3Server, uri: str) -> None:
    manifest = graph.store.manifest(None)
    manifest.update_schema_metadata({"omnigraph:internal_schema_version": "2"})
    manifest.create_branch("__run__1", None)
    reopened = Graph.open(uri, storage_options=s3.storage_options)
    assert reopened.branches() == ["main", "team/x"]
    assert not [key for key in keys(graph) if "__run__" in key]
    newest = reopened.store.manifest(None)
    assert newest.schema.metadata[b"omnigraph:internal_schema_version"] == b"3"


def test_many_objects_go_in_few_requests(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = graph.store.objects
    for number in range(30):
        objects.put(f"nodes/x/data/{number}.lance", b"1")
    requests: list[int] = []
    real = obstore.delete

    def counted(store: Any, paths: Any) -> None:
        requests.append(len(paths) if isinstance(paths, list) else 1)
        real(store, paths)  # handed on as it came

    monkeypatch.setattr(obstore, "delete", counted)
    objects.delete_all([f"nodes/x/data/{number}.lance" for number in range(40)])
    assert requests[0] == 40
    assert objects.walk("nodes/x") == ()


def test_mutations_indexes_and_compaction(graph: Graph) -> None:
    node, edge = 'code: "z", tag: "new"', 'from: "z", to: "z", tag: "new"'
    inserts = f"insert Part {{ {node} }} insert Bin {{ {node} }} insert In {{ {edge} }}"
    text = f'query move() {{ {inserts} update Part set {{ tag: "moved" }} where code >= "a" }}'
    for branch in ("main", "team/x"):
        result = graph.mutate(text, branch=branch)
        assert (result.affected_edges, result.tables["edge:In"].inserted) == (1, 1)
        assert graph.mutate('query q() { delete Part where code = "a" }', branch=branch).affected_nodes == 1
        rows = sorted(graph.export(branch=branch))
        graph.ensure_indices(branch=branch)
        report = graph.optimize(branch=branch)
        assert {table.left for table in report.tables.values()} == {None}
        assert report.tables["node:Part"].files_after == 1
        assert sorted(graph.export(branch=branch)) == rows
        assert {i.progress for i in graph.indexes(branch=branch) if i.table_key == "node:Part"} == {"complete"}
    assert [n for n in graph.store.objects.list("__recovery") if n.endswith((".json", ".lease"))] == []
