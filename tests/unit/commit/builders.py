"""A two-table graph below the schema language, and writes on it, for tests of the commit protocol."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit.contract import state_text
from spark_omnigraph.commit.plan import Identity, PreparedCommit, TableWrite, WriterKind
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.rows import table_row, version_row
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import PUBLISHED, RECOVERY, SCHEMA_SOURCE, SCHEMA_STATE
from spark_omnigraph.storage.manifest.commit_log import create_commit_log
from spark_omnigraph.storage.manifest.table import create_manifest
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.tables.commits import TableChange, create_dataset
from spark_omnigraph.storage.tables.staged import TableTarget, stage_rows
from spark_omnigraph.storage.uri import locate

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("x", pa.int32())])
TABLES = {"node:A": "nodes/a", "node:B": "nodes/b"}
HASH = "sha256:test"


class HookedObjects(Objects):
    """Objects that run a hook after (or instead of) an operation on a path that matches."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects.location)
        self.after_create: dict[str, Callable[[], None]] = {}
        self.fail_delete: set[str] = set()

    def create(self, path: str, content: bytes) -> bool:
        done = super().create(path, content)
        for ending in [e for e in self.after_create if path.endswith(e)]:
            self.after_create.pop(ending)()
        return done


def make_store(root: Path) -> GraphStore:
    """An empty graph with tables node:A and node:B."""
    location = locate(root)
    store = GraphStore(location, Objects(location, create=True))
    store.objects.put(SCHEMA_SOURCE, b"node A { } node B { }")
    store.objects.put(SCHEMA_STATE, state_text(HASH).encode())
    rows = []
    for key, path in TABLES.items():
        create_dataset(location.join(path), SCHEMA, None, {})
        table = TableKey(key)
        rows += [table_row(table, path), version_row(store.table_update(table, path, None, 1, 0))]
    create_manifest(location, rows)
    create_commit_log(location, Commit(new_ulid(), None, 3, None, None, 1))
    return GraphStore(location, HookedObjects(store.objects))


def hooks(store: GraphStore) -> HookedObjects:
    assert isinstance(store.objects, HookedObjects)
    return store.objects


def staged_write(store: GraphStore, key: str, ids: list[str], replace_all: bool = False) -> TableWrite:
    """A write that adds (or replaces all rows by) these ids, staged on the newest snapshot."""
    entry = store.snapshot(None).entries[key]
    target = TableTarget(TableKey(key), store.table_uri(entry.location, None), entry.version, entry.row_count)
    rows = pa.table({"id": ids, "x": list(range(len(ids)))}, schema=SCHEMA)
    file = stage_rows(target, rows, None, {})
    return TableWrite(entry, None, TableChange((file,), None, replace_all))


def prepared(*writes: TableWrite, reads: dict[str, int] | None = None, actor: str | None = None) -> PreparedCommit:
    identity = Identity(new_ulid(), new_ulid(), actor, WriterKind.LOAD)
    return PreparedCommit(identity, None, HASH, writes, reads or {})


def ids(store: GraphStore, key: str) -> list[str]:
    """Visible ids of a table, sorted."""
    dataset = store.open_table(store.snapshot(None).entries[key])
    return sorted(dataset.to_table(columns=["id"]).column("id").to_pylist())


def heads_equal_pins(store: GraphStore) -> bool:
    snapshot = store.snapshot(None)
    return all(store.head_version(e.location, None) == e.version for e in snapshot.entries.values())


def foreign_append(store: GraphStore, key: str, row_id: str) -> None:
    """A commit past the manifest, as a program that knows nothing of it would make."""
    rows = pa.table({"id": [row_id], "x": [0]}, schema=SCHEMA)
    lance.write_dataset(rows, store.location.join(TABLES[key]), mode="append")


def leftovers(store: GraphStore) -> list[str]:
    """What stands in `__recovery/` but for notes of publishes, which stay."""
    return [name for name in store.objects.list(RECOVERY) if not name.startswith(PUBLISHED)]
