"""Graphs made below the load: rows written by Lance, published row by row of the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from spark_omnigraph.branch.control import create_branch
from spark_omnigraph.graph import create
from spark_omnigraph.graph.create import create_graph
from spark_omnigraph.lang.pg import compile_stored_schema
from spark_omnigraph.manifest.branches import stored_branch
from spark_omnigraph.manifest.lineage import Commit, head
from spark_omnigraph.manifest.rows import version_row
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import branch_path
from spark_omnigraph.storage.manifest.commit_log import append_commit, read_commits
from spark_omnigraph.storage.manifest.table import publish_rows
from tests.unit.spark.graph_types import stored_things

SCHEMA = """
node Thing {
  b: Bool?
  blob: Blob?
  d: Date?
  e: enum(x, y)
  f32: F32?
  f64: F64?
  i32: I32?
  i64: I64?
  nums: [I32]?
  s: String?
  times: [DateTime]?
  ts: DateTime?
  u32: U32?
  u64: U64?
  v: Vector(2)?
}
node Empty {
  name: String @key
  big: U64?
  day: Date?
  tags: [String]?
}
edge Link: Thing -> Thing {
  since: Date?
}
"""

HOUR = 3_600_000_000


def new_graph(root: Path, schema: str = SCHEMA) -> GraphStore:
    return create_graph(root, schema)


def graph_of_before(root: Path, schema: str) -> GraphStore:
    """A graph whose schema was accepted once and is refused in new graphs, as names that differ in case alone are."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(create, "accept_schema", compile_stored_schema)
        return create_graph(root, schema)


def publish(
    store: GraphStore,
    tables: Mapping[str, pa.Table | pa.RecordBatchReader],
    branch: str | None = None,
    at: int | None = None,
    actor: str = "a",
) -> Commit:
    """Appends rows to tables and publishes them as one commit; a table of a branch is forked at its first write."""
    line = stored_branch(branch)
    snapshot = store.snapshot(line)
    rows = []
    for key, table in tables.items():
        entry = snapshot.entries[key]
        dataset = store.open_table(entry)
        if entry.branch != line:
            assert line is not None
            dataset.create_branch(line, (entry.branch, entry.version))
        uri = store.table_uri(entry.location, line)
        written = lance.write_dataset(table, uri, mode="append", allow_external_blob_outside_bases=True)
        folder = branch_path(entry.location, line)
        rows.append(
            version_row(store.table_update(entry.table_key, folder, line, written.version, written.count_rows()))
        )
    version = publish_rows(store.manifest(line), rows)
    parent = head(read_commits(store.location, line))
    assert parent is not None
    number = len(read_commits(store.location, line))
    commit = Commit(
        id=f"{number:026d}",
        branch=line,
        manifest_version=version,
        parent=parent.id,
        merged_parent=None,
        created_micros=at if at is not None else parent.created_micros + HOUR,
        actor=actor,
    )
    append_commit(store.location, commit)
    return commit


def links(*pairs: tuple[str, str]) -> pa.Table:
    schema = pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("src", pa.string(), nullable=False),
            pa.field("dst", pa.string(), nullable=False),
            pa.field("since", pa.date32()),
        ]
    )
    columns = [[f"{a}-{b}" for a, b in pairs], [a for a, _ in pairs], [b for _, b in pairs], [None for _ in pairs]]
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema)], schema=schema)


def branched_graph(root: Path) -> tuple[GraphStore, list[Commit]]:
    """`main` with six things and two links in two commits, and a branch `dev/one` with three more links."""
    store = new_graph(root)
    first = publish(store, {"node:Thing": stored_things()})
    second = publish(store, {"edge:Link": links(("a", "b"), ("b", "c"))})
    create_branch(store, "dev/one")
    third = publish(store, {"edge:Link": links(("c", "d"), ("d", "e"), ("e", "f"))}, branch="dev/one", actor="dev")
    return store, [first, second, third]
