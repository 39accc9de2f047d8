"""Branches inside: null for main, however it is stored, and a name of its own type for every other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.manifest.branches import BranchName, display, stored_branch
from spark_omnigraph.manifest.rows import RowKind
from spark_omnigraph.storage.manifest.table import publish_rows


@pytest.mark.parametrize(("name", "branch"), [(None, None), ("main", None), ("draft", "draft"), ("a/b", "a/b")])
def test_main_is_null_inside_and_named_outside(name: str | None, branch: BranchName | None) -> None:
    assert stored_branch(name) == parse_branch(name) == branch
    assert display(branch) == (name or "main")


def test_main_spelt_out_in_rows_and_sidecars_is_main(tmp_path: Path) -> None:
    """The format allows it, and there is no folder of a branch of that name."""
    graph = Graph.init(tmp_path / "g", "node Film { name: String @key }")
    graph.load([json.dumps({"type": "Film", "data": {"name": "Ran"}})])
    manifest = graph.store.manifest(None)
    rows = [row for row in graph.store.manifest_rows(manifest) if row.kind == RowKind.VERSION]
    publish_rows(manifest, [replace(row, table_branch=BranchName("main")) for row in rows])
    assert graph.snapshot().entries["node:Film"].branch is None
    assert graph.entity("node:Film", "Ran") == {"id": "Ran", "name": "Ran"}
    sidecar = {
        "schema_version": 2, "operation_id": "01J0000000000000000000000A", "started_at": "1750000000000000",
        "branch": "main", "actor_id": None, "writer_kind": "Load", "tables": [],
    }  # laid out as a table  # fmt: skip
    graph.store.objects.put("__recovery/01J0000000000000000000000A.json", json.dumps(sidecar).encode())
    assert [write.branch for write in graph.interrupted()] == ["main"]
    (done,) = Graph.open(graph.uri).recovered
    assert (done.branch, done.kind.value) == (None, "RolledForward")
