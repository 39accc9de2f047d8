"""A schema change that stops at every named point: the old graph or the new one, tables, texts and files together."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from spark_omnigraph import FromColumn, Graph
from spark_omnigraph.catalog.identity import TableKey, table_path
from spark_omnigraph.graph.schema.apply import SchemaReport
from spark_omnigraph.storage.manifest.table import read_facts
from spark_omnigraph.storage.tables.scan import PinnedTable, stored_versions
from tests.crash.matrix import Row, expire_leases
from tests.crash.worlds import assert_whole

OLD = """
node Person { name: String @key  age: I32?  nick: String? }
node Place { k: String @key }
node Site { k: String @key  size: I32? }
edge Knows: Person -> Person
edge At: Person -> Site { since: I32? }
"""
NEW = """
node Person { name: String @key  years: I64? @rename_from("age")  note: String? }
node Spot @rename_from("Site") { k: String @key  size: I32? }
node Town { k: String @key }
edge Knows: Person -> Person { weight: I32 }
edge At: Person -> Spot { until: I32?  since: I32? }
"""
"""Each kind of work: a column renamed, widened and dropped for good, one that gets a value, one that is like another,
types that come and go.
"""
VALUES = {"Knows.weight": 7, "At.until": FromColumn("since")}
LINES = (
    {"type": "Person", "data": {"name": "a", "age": 1, "nick": "x"}},
    {"type": "Person", "data": {"name": "b"}},
    {"type": "Place", "data": {"k": "p"}},
    {"type": "Site", "data": {"k": "s", "size": 3}},
    {"edge": "Knows", "from": "a", "to": "b", "data": {"id": "k"}},
    {"edge": "At", "from": "a", "to": "s", "data": {"id": "w", "since": 4}},
)
SEEN_BEFORE = (
    {"edge": "At", "from": "a", "to": "s", "data": {"id": "w", "since": 4}},
    {"edge": "Knows", "from": "a", "to": "b", "data": {"id": "k"}},
    {"type": "Person", "data": {"id": "a", "age": 1, "name": "a", "nick": "x"}},
    {"type": "Person", "data": {"id": "b", "age": None, "name": "b", "nick": None}},
    {"type": "Place", "data": {"id": "p", "k": "p"}},
    {"type": "Site", "data": {"id": "s", "k": "s", "size": 3}},
)
SEEN_AFTER = (
    {"edge": "At", "from": "a", "to": "s", "data": {"id": "w", "since": 4, "until": 4}},
    {"edge": "Knows", "from": "a", "to": "b", "data": {"id": "k", "weight": 7}},
    {"type": "Person", "data": {"id": "a", "name": "a", "note": None, "years": 1}},
    {"type": "Person", "data": {"id": "b", "name": "b", "note": None, "years": None}},
    {"type": "Spot", "data": {"id": "s", "k": "s", "size": 3}},
)


def make_evolving(root: Path | str, storage_options: Mapping[str, str] | None = None) -> Graph:
    graph = Graph.init(root, OLD, storage_options=storage_options)
    graph.load([json.dumps(line) for line in LINES])
    return graph


def evolve(graph: Graph) -> SchemaReport:
    return graph.apply_schema(NEW, values=VALUES, allow_data_loss=True)


def seen(graph: Graph) -> tuple[str, tuple[object, ...]]:
    return graph.schema().strip(), tuple(json.loads(line) for line in graph.export())


STATES = {False: (OLD.strip(), SEEN_BEFORE), True: (NEW.strip(), SEEN_AFTER)}


def check_after_schema_crash(
    root: Path | str,
    row: Row,
    options: Mapping[str, str] | None = None,
    end: Callable[[Graph], None] = expire_leases,
) -> None:
    """Readers see one graph at once, everybody after the next read-write open; then the change can be made (again)."""
    reader = Graph.open(root, mode="r", storage_options=options)
    versions = reader.snapshot().version
    assert (reader.at().schema().strip(), seen(reader)[1]) == STATES[row.visible]
    end(reader)
    graph = Graph.open(root, storage_options=options)
    assert seen(graph) == STATES[row.finished]
    assert_whole(graph)
    assert not graph.store.has_schema_lock()
    assert [name for name in graph.store.objects.list("") if name.endswith(".staging")] == []
    left = [name for name in graph.store.objects.list("__recovery") if not name.startswith("x_published~")]
    assert left == [], left
    kind = "RolledForward" if row.finished else "RolledBack"
    assert [(a.kind, a.writer_kind) for a in graph.recoveries()] == ([(kind, "SchemaApply")] if row.audited else [])
    commits = graph.commits()
    assert [c.parent for c in commits[:-1]] == [c.id for c in commits[1:]], "one line of commits"
    told = read_facts(graph.store.manifest(None))
    assert told.keys() == {c.id for c in commits if c.facts is not None}, "no facts without their commit"
    if not row.finished:
        assert evolve(graph).applied
    assert seen(graph) == STATES[True]
    assert not evolve(graph).applied, "once is enough"
    assert [c.facts.operation for c in graph.commits() if c.facts is not None].count("schema_apply") == 1
    _check_gone(graph)
    graph.load([json.dumps({"type": "Town", "data": {"k": "t"}})])
    assert_whole(graph)
    assert versions <= graph.snapshot().version


def _check_gone(graph: Graph) -> None:
    """What was dropped for good is in no version that is stored."""
    store, folder = graph.store, table_path(TableKey.node("Person"))
    for version in stored_versions(PinnedTable(store.table_uri(folder, None), 1, store.storage_options)):
        assert "nick" not in store.open_dataset(folder, version).schema.names
    place = table_path(TableKey.node("Place"))
    for version in stored_versions(PinnedTable(store.table_uri(place, None), 1, store.storage_options)):
        assert store.open_dataset(place, version).count_rows() == 0
