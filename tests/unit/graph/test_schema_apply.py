"""Schema changes of stored graphs: what rows are afterwards, who sees what, and what stands in the way."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import lance
import pyarrow as pa
import pytest

from spark_omnigraph import (
    BadRequestError,
    BadRowsError,
    ConflictError,
    ExpectedVersionMismatch,
    FromColumn,
    Graph,
    LoadOptions,
    NotFoundError,
)
from spark_omnigraph.branch.orphans import what_is_shown
from spark_omnigraph.branch.pins import internal_pins
from spark_omnigraph.catalog.identity import TableKey, table_path
from spark_omnigraph.commit.contract import read_contract
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from spark_omnigraph.commit.realign import realign_all
from spark_omnigraph.graph.changes.diff import Operation
from spark_omnigraph.graph.load import load
from spark_omnigraph.graph.read.export import export_records
from spark_omnigraph.graph.read.query import bound_plan, prepare, run_query
from spark_omnigraph.graph.schema import lock, stored
from spark_omnigraph.manifest.branches import BranchName
from spark_omnigraph.manifest.rows import RowKind, epoch_of
from spark_omnigraph.staging.stage import stage_range
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import COMMIT_ACTORS, COMMITS, MANIFEST, SCHEMA_APPLY_LOCK, STORAGE_VERSION
from spark_omnigraph.storage.objects.local_walk import FileStamp
from spark_omnigraph.storage.tables.index import coverage
from tests.format.second_reader import check_format
from tests.support import schema_steps

NO_INDEX = LoadOptions(build_indexes=False)
KITES = "node Kite { tag: String @key  span: F64?  hue: String? }\nedge Tied: Kite -> Kite { since: I32? }"
RANGED = KITES.replace("hue: String? }", "hue: String?\n  @range(span, 0.0..2.0) }")
LINES = (
    '{"type": "Kite", "data": {"tag": "a", "span": 1.5, "hue": "red"}}',
    '{"type": "Kite", "data": {"tag": "b"}}',
    '{"edge": "Tied", "from": "a", "to": "b", "data": {"id": "t", "since": 3}}',
)
SPAN = "query q() { match { $k: Kite } return { $k.tag, $k.span } order { $k.tag } }"


@pytest.fixture
def kites(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", KITES)
    graph.load(list(LINES), options=NO_INDEX)
    return graph


def exported(graph: Graph, version: int | None = None) -> list[str]:
    return list(graph.export(version=version))


def check(seed: int, folder: Path, hard: bool) -> bool:
    """A change at random: rows are what a naive reading says, or it is refused for the rows that this refuses. Whether
    it was made.
    """
    rng = random.Random(seed)
    before = schema_steps.schema(rng)
    data = schema_steps.rows(rng, before, 12)
    after = schema_steps.changed(rng, before, 4)
    root = folder / f"g{seed}"
    graph = Graph.init(root, schema_steps.text(before))
    lines = schema_steps.records(data)
    for part in (lines[::2], lines[1::2]) if all("type" in line for line in lines) else (lines,):
        if part:
            graph.load(part, options=NO_INDEX)
    old, version = exported(graph), graph.snapshot().version
    text, values = schema_steps.text(after), schema_steps.values(after)
    expected: Counter[str] = Counter()
    for _, rule, _, count in schema_steps.refused(before, after, data):
        expected[rule] += count
    preview = graph.plan_schema(text, values=values, allow_data_loss=hard)
    if expected.total():
        with pytest.raises(BadRowsError) as refused:
            graph.apply_schema(text, values=values, allow_data_loss=hard)
        assert dict(refused.value.summary.per_rule) == dict(+expected) == dict(preview.bad_rows.per_rule), seed
        assert refused.value.summary.total == preview.bad_rows.total
        assert (exported(graph), graph.schema(), graph.snapshot().version) == (old, schema_steps.text(before), version)
        check_format(root)
        return False
    files = data_files(graph)
    report = graph.apply_schema(text, values=values, allow_data_loss=hard)
    assert report.applied is bool(preview.steps), seed
    assert bool(data_files(graph) - files) is any(each.rewritten for each in preview.steps), seed
    naive = Graph.init(folder / f"n{seed}", text)
    wanted = schema_steps.records(schema_steps.migrated(data, after))
    if wanted:
        naive.load(wanted, options=NO_INDEX)
    assert exported(graph) == exported(naive), seed
    check_format(root)
    assert not graph.apply_schema(text, values=values, allow_data_loss=hard).applied, seed
    if not hard:
        assert exported(graph, version=version) == old, seed
        assert graph.at(version=version).schema() == schema_steps.text(before)
    graph.ensure_indices()
    if wanted:
        graph.load(wanted, "merge", options=NO_INDEX)
    assert exported(graph) == exported(naive), seed
    check_again(graph, after, schema_steps.migrated(data, after), seed)
    return True


def check_again(graph: Graph, types: schema_steps.Schema, data: schema_steps.Rows, seed: int) -> None:
    """Another change on top of one, which takes columns that the first one wrote and writes others."""
    after = deepcopy(types)
    for each in after:
        each.old = None
        each.props = [p for p in each.props if p.name == "tag" or not p.name.startswith("q")]
        each.props.append(schema_steps.Prop("z", "I32", nullable=False, fill=seed))
        for prop in each.props[:-1]:
            prop.old = prop.fill = None
    assert graph.apply_schema(schema_steps.text(after), values=schema_steps.values(after)).applied
    naive = Graph.init(Path(graph.uri).with_suffix(".again"), schema_steps.text(after))
    wanted = schema_steps.records(schema_steps.migrated(data, after))
    for mode in ("merge", "overwrite") if wanted else ():
        naive.load(wanted, mode, options=NO_INDEX)
        assert exported(graph) == exported(naive), seed
        graph.load(wanted, "overwrite", options=NO_INDEX)
    assert exported(graph) == exported(naive), seed
    check_format(Path(graph.uri))


def test_rows_are_those_of_a_naive_reading(tmp_path: Path) -> None:
    made = [check(seed, tmp_path, hard=seed % 3 == 0) for seed in range(6)]
    assert 1 < made.count(True) < len(made)


@pytest.mark.long
def test_rows_are_those_of_a_naive_reading_many_times(tmp_path: Path) -> None:
    made = [check(seed, tmp_path, hard=seed % 3 == 0) for seed in range(100, 140)]
    assert made.count(True) > 10


def test_rename_and_drop_are_not_seen_by_the_feed_and_write_no_row(kites: Graph) -> None:
    version = kites.snapshot().version
    entry = kites.snapshot().entry("node:Kite")
    files = kites.store.objects.walk(f"{entry.location}/data")
    names = {each.path for each in files}
    kites.apply_schema(KITES.replace("span: F64?  hue: String?", 'width: F64? @rename_from("span")  note: String?'))
    assert kites.diff(version).changes == ()
    assert {each.path for each in kites.store.objects.walk(f"{entry.location}/data")} == names
    assert kites.entity("node:Kite", "a") == {"id": "a", "note": None, "tag": "a", "width": 1.5}


def test_values_for_stored_rows_are_updates(kites: Graph) -> None:
    version = kites.snapshot().version
    kites.apply_schema(KITES.replace("since: I32?", "since: I32?  weight: F64"), values={"Tied.weight": 0.5})
    (change,) = kites.diff(version).changes
    assert (change.table_key, change.id, change.op) == ("edge:Tied", "t", Operation.UPDATE)
    assert kites.entity("edge:Tied", "t") == {"id": "t", "src": "a", "dst": "b", "since": 3, "weight": 0.5}


LIKE = KITES.replace("hue: String?", "hue: String?  label: String?").replace("since: I32?", "since: I32?  until: I32?")
ALIKE = {"Kite.label": FromColumn("hue"), "Tied.until": FromColumn("since")}


def data_files(graph: Graph) -> set[str]:
    entries = graph.snapshot().entries.values()
    return {each.path for entry in entries for each in graph.store.objects.walk(f"{entry.location}/data")}


def test_a_property_like_another_one_is_an_update_of_all_rows_without_a_file(kites: Graph) -> None:
    version, before, files = kites.snapshot().version, exported(kites), data_files(kites)
    planned = kites.plan_schema(LIKE, values=ALIKE)
    assert [(each.step.kind, each.shows_updates) for each in planned.steps] == [("add_property", True)] * 2
    report = kites.apply_schema(LIKE, values=ALIKE)
    assert data_files(kites) == files
    assert {key: rows.updated for key, rows in report.tables.items()} == {"node:Kite": 2, "edge:Tied": 1}
    assert {(change.id, change.op) for change in kites.diff(version).changes} == {
        ("a", Operation.UPDATE),
        ("b", Operation.UPDATE),
        ("t", Operation.UPDATE),
    }
    assert kites.entity("node:Kite", "a") == {"id": "a", "hue": "red", "label": "red", "span": 1.5, "tag": "a"}
    assert kites.entity("edge:Tied", "t") == {"id": "t", "src": "a", "dst": "b", "since": 3, "until": 3}
    assert exported(kites, version=version) == before
    check_format(Path(kites.uri))


def rewritten(graph: Graph, table: str, types: dict[str, pa.DataType], nullable: bool = False) -> None:
    """A table as another engine may have stored it, with other types or columns that may all be null, at the version
    that the graph shows.
    """
    entry = graph.snapshot().entry(table)
    place = graph.store.location.join(entry.location)
    rows = graph.store.open_table(entry).to_table()
    fields = [
        field.with_type(types.get(field.name, field.type)).with_nullable(nullable or field.nullable)
        for field in rows.schema
    ]
    shutil.rmtree(place)
    dataset = lance.write_dataset(
        rows.cast(pa.schema(fields)), place, data_storage_version=STORAGE_VERSION, enable_stable_row_ids=True
    )
    while dataset.version < entry.version:
        dataset.update_config({"version": str(dataset.version)})


def test_a_property_like_one_that_is_stored_in_another_type_is_written(kites: Graph) -> None:
    rewritten(kites, "node:Kite", {"hue": pa.large_string()})
    rewritten(kites, "edge:Tied", {"since": pa.int16()})
    planned = kites.plan_schema(LIKE, values=ALIKE)
    assert [each.rewritten for each in planned.steps] == [2, 1]
    kites.apply_schema(LIKE, values=ALIKE)
    assert kites.entity("node:Kite", "a") == {"id": "a", "hue": "red", "label": "red", "span": 1.5, "tag": "a"}
    assert kites.entity("edge:Tied", "t") == {"id": "t", "src": "a", "dst": "b", "since": 3, "until": 3}


def test_a_property_that_is_stored_in_another_type_may_be_required(kites: Graph) -> None:
    """Beside one that gets a value: then it is a column anew."""
    rewritten(kites, "edge:Tied", {"since": pa.int16()})
    required = KITES.replace("since: I32?", "since: I32  weight: F64")
    kites.apply_schema(required, values={"Tied.weight": 0.5})
    assert kites.entity("edge:Tied", "t") == {"id": "t", "src": "a", "dst": "b", "since": 3, "weight": 0.5}


def test_a_table_whose_columns_may_all_be_null_gets_values(kites: Graph) -> None:
    rewritten(kites, "node:Kite", {}, nullable=True)
    rewritten(kites, "edge:Tied", {}, nullable=True)
    kites.apply_schema(LIKE, values={**ALIKE, "Tied.until": 7})
    assert kites.entity("node:Kite", "a") == {"id": "a", "hue": "red", "label": "red", "span": 1.5, "tag": "a"}
    assert kites.entity("edge:Tied", "t") == {"id": "t", "src": "a", "dst": "b", "since": 3, "until": 7}
    kites.ensure_indices()
    kites.load(['{"type": "Kite", "data": {"tag": "a", "hue": "blue"}}'], "merge")
    assert kites.entity("node:Kite", "a") == {"id": "a", "hue": "blue", "label": None, "span": None, "tag": "a"}
    check_format(Path(kites.uri))


def test_properties_that_are_alike_go_their_own_ways(kites: Graph, tmp_path: Path) -> None:
    """They are written, copied, compacted, cleaned up and dropped without each other."""
    kites.apply_schema(LIKE, values=ALIKE)
    kites.mutate('query q() { update Kite set { hue: "blue" } where tag = "a" }')
    kites.mutate('query q() { update Kite set { label: "new" } where tag = "b" }')
    found = exported(kites)
    kites.copy(tmp_path / "copy")
    for graph in (kites, Graph.open(tmp_path / "copy")):
        graph.optimize()
        graph.cleanup(timedelta(0), keep=1, confirm=True, force=True)
        assert exported(graph) == found
        graph.apply_schema(LIKE.replace("hue: String?", "").replace("since: I32?", ""))
        graph.cleanup(timedelta(0), keep=1, confirm=True, force=True)
        assert [graph.entity("node:Kite", tag) for tag in "ab"] == [
            {"id": "a", "label": "red", "span": 1.5, "tag": "a"},
            {"id": "b", "label": "new", "span": None, "tag": "b"},
        ]
        assert graph.entity("edge:Tied", "t") == {"id": "t", "src": "a", "dst": "b", "until": 3}
        check_format(Path(graph.uri))


def test_of_one_value_for_all_rows_that_value_is_asked_and_no_row(
    kites: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_row(_: object) -> object:
        raise AssertionError("a row is read")

    monkeypatch.setattr(stored, "read_batches", no_row)
    bounded = KITES.replace("hue: String? }", "hue: String?  size: I32\n  @range(size, 0..9) }")
    refused = kites.plan_schema(bounded, values={"Kite.size": 10}).bad_rows
    assert (refused.total, dict(refused.per_rule)) == (2, {"range": 2})
    with pytest.raises(BadRowsError):
        kites.apply_schema(bounded, values={"Kite.size": 10})
    assert kites.apply_schema(bounded, values={"Kite.size": 9}).applied
    assert {row["size"] for row in (json.loads(line)["data"] for line in exported(kites)) if "size" in row} == {9}


def test_a_lock_that_another_engine_takes_at_this_moment_is_not_ours(
    kites: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    kites.store.manifest(None).create_branch(SCHEMA_APPLY_LOCK, None)
    monkeypatch.setattr(lock, "refuse_schema_change", lambda _: None)  # it came after the look
    with pytest.raises(ConflictError, match="the lock of the schema could not be taken"):
        kites.apply_schema(LIKE, values=ALIKE)
    assert kites.store.has_schema_lock()


def test_a_change_opens_what_it_reads_once_and_leaves_no_heap_of_files(
    kites: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To lock it, to plan on what stands then, and to publish on what stands at last the manifest is opened; how many
    files it and the log have then is known to who wrote them.
    """
    monkeypatch.setattr(FileStamp, "may_recur", False)  # what was written a moment ago is not read once more
    kites.apply_schema(RANGED, actor="ada")
    opened: Counter[str] = Counter()
    open_dataset, tidy = GraphStore.open_dataset, GraphStore.tidy

    def counted(store: GraphStore, path: str, version: int | None = None) -> Any:
        opened[path] += 1
        return open_dataset(store, path, version)

    monkeypatch.setattr(GraphStore, "open_dataset", counted)
    kites.apply_schema(KITES, actor="ada")
    assert opened == {MANIFEST: 3, COMMITS: 1}
    monkeypatch.setattr(GraphStore, "tidy", lambda store, branch, known: tidy(store, branch, 2, known))
    sizes = []
    for text in (RANGED, KITES, RANGED):
        kites.apply_schema(text, actor="ada")
        internal = (open_dataset(kites.store, path) for path in (MANIFEST, COMMITS, COMMIT_ACTORS))
        sizes.append([len(dataset.get_fragments()) for dataset in internal])
    assert sizes == [[1, 1, 1], [2, 2, 2], [1, 1, 1]]


def test_one_commit_tells_of_a_change(kites: Graph) -> None:
    report = kites.apply_schema(KITES.replace("hue: String?", ""), actor="ada", metadata={"ticket": "7"})
    newest, second = kites.commits()[:2]
    assert (newest.id, newest.actor, newest.parent) == (report.commit, "ada", second.id)
    assert newest.facts is not None
    assert (newest.facts.operation, dict(newest.facts.origin.metadata)) == ("schema_apply", {"ticket": "7"})
    rows = kites.store.manifest_rows(kites.store.manifest(None))
    assert [row.kind for row in rows].count(RowKind.SCHEMA) == 1
    epoch = epoch_of(rows, 0)
    assert epoch is not None
    assert epoch.next_hash == read_contract(kites.store).schema_hash


def test_old_states_keep_their_schema_through_several_changes(kites: Graph) -> None:
    seen = {kites.snapshot().version: (exported(kites), kites.schema(), kites.query(SPAN).to_pylist())}
    texts = [KITES.replace("span: F64?", f"span: F64?  n{i}: I32?") for i in range(3)]
    for text in (*texts, KITES, texts[0]):  # one schema comes twice
        kites.apply_schema(text)
        kites.load(['{"type": "Kite", "data": {"tag": "b", "span": 2}}'], "merge", options=NO_INDEX)
        seen[kites.snapshot().version] = (exported(kites), kites.schema(), kites.query(SPAN).to_pylist())
    for version, state in seen.items():
        old = kites.at(version=version)
        assert (exported(old), old.schema(), old.query(SPAN).to_pylist()) == state
        assert old.describe().to_dict()["schema_hash"] == old.catalog().ir_hash


def test_without_a_kept_schema_new_properties_are_null_in_old_states(kites: Graph) -> None:
    version = kites.snapshot().version
    kites.apply_schema(KITES.replace("span: F64?", "span: F64?  size: I64?").replace("since: I32?", "since: I64?"))
    snapshot = kites.store.snapshot(None, version)
    catalog = kites.catalog()
    lines = [json.loads(line) for line in export_records(kites.store, catalog, snapshot, ["Kite"])]
    assert lines[0]["data"] == {"id": "a", "hue": "red", "size": None, "span": 1.5, "tag": "a"}
    text = "query q() { match { $k: Kite $k $t:tied $o } return { $k.size, $t.since } }"
    plan = bound_plan(prepare(catalog, text), None)
    found = run_query(kites.store, catalog, snapshot, plan)
    assert found.to_pylist() == [{"k.size": None, "t.since": 3}]
    assert str(found.table.schema.field("t.since").type) == "int64"


def test_dropped_for_good_is_in_no_version_and_old_states_say_so(kites: Graph) -> None:
    version = kites.snapshot().version
    kites.apply_schema("node Kite { tag: String @key  span: F64? }", allow_data_loss=True)
    assert exported(kites) == [
        '{"type": "Kite", "data": {"id": "a", "span": 1.5, "tag": "a"}}',
        '{"type": "Kite", "data": {"id": "b", "span": null, "tag": "b"}}',
    ]
    with pytest.raises(NotFoundError, match="is not stored any more"):
        exported(kites, version=version)
    tied = kites.store.open_dataset(table_path(TableKey.edge("Tied")))
    assert [v["version"] for v in tied.versions()] == [tied.version]
    assert tied.count_rows() == 0
    assert (kites.cleanup(timedelta(0), confirm=True).kept, kites.repair().drifts) == ((), ())
    kites.apply_schema(KITES)
    assert kites.count("edge:Tied") == 0
    assert kites.entity("node:Kite", "a") == {"id": "a", "hue": None, "span": 1.5, "tag": "a"}


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        KITES.split("\n")[0],  # a type goes
        KITES.replace("{ since: I32? }", ""),
        KITES.replace("{ since: I32? }", '@rename_from("Tied")').replace("Tied:", "Bound:"),
    ],
    ids=["type", "property", "property of a renamed type"],
)
def test_a_tag_keeps_what_would_be_dropped_for_good(kites: Graph, text: str, ours: bool) -> None:
    """A plan says so, too."""
    if ours:
        kites.tag("kept")
    else:
        tied = kites.store.open_table(kites.snapshot().entry("edge:Tied"))
        tied.tags.create("kept", tied.version)
    before = exported(kites)
    found = kites.plan_schema(text, allow_data_loss=True)
    assert (found.tags, found.applicable, found.to_dict()["tags"]) == (("kept",), False, ["kept"])
    with pytest.raises(ConflictError, match="tag 'kept' keeps it"):
        kites.apply_schema(text, allow_data_loss=True)
    assert exported(kites) == before
    assert not kites.store.has_schema_lock()
    soft = kites.plan_schema(text)
    assert (soft.tags, soft.applicable) == ((), True)
    assert kites.apply_schema(text).applied


def test_other_branches_are_named_with_the_way_out(kites: Graph) -> None:
    kites.create_branch("draft")
    kites.create_branch("alt")
    with pytest.raises(ConflictError, match=r"only main; found non-main branches: alt, draft.*branch delete --merged"):
        kites.apply_schema(KITES.replace("hue: String?", ""))
    assert not kites.store.has_schema_lock()
    assert not kites.apply_schema(f"// the same\n{KITES}").applied, "nothing to do needs nobody to be away"


def test_a_branch_is_not_made_from_a_state_with_another_schema(kites: Graph) -> None:
    version = kites.snapshot().version
    kites.apply_schema(KITES.replace("hue: String?", ""))
    with pytest.raises(BadRequestError, match="has another schema"):
        kites.create_branch("draft", version=version)


def test_a_writer_that_was_planned_before_is_refused(kites: Graph) -> None:
    """It has staged its rows when the schema changes."""

    def change() -> None:
        Graph.open(kites.uri).apply_schema(RANGED)

    with stop_at(CrashPoint.CHECKED, change), pytest.raises(ConflictError, match="the schema changed after"):
        kites.load(['{"type": "Kite", "data": {"tag": "c", "span": 9}}'], options=NO_INDEX)
    assert kites.count("node:Kite") == 2


def test_a_writer_whose_table_loses_columns_while_rows_are_written_is_refused(
    kites: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lance compares new files with the newest version of a table, not with the one that was captured."""

    def late(context: Any, range_: Any) -> object:
        Graph.open(kites.uri).apply_schema(KITES.replace("hue: String?", ""))
        return stage_range(context, range_)

    monkeypatch.setattr(load, "stage_range", late)
    with pytest.raises(ConflictError, match="the schema of 'node:Kite' changed while rows of it were written"):
        kites.load(['{"type": "Kite", "data": {"tag": "c", "span": 9}}'], options=NO_INDEX)
    assert kites.count("node:Kite") == 2


def test_a_lock_that_goes_at_this_moment_stands_in_nobodys_way(kites: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever goes through the branches has seen its name, and it is gone before they look at it."""
    commit = kites.commits()[0].id
    monkeypatch.setattr(GraphStore, "branch_names", lambda _: {BranchName(SCHEMA_APPLY_LOCK)})
    assert "node:Kite" in {key for keys in what_is_shown(kites.store).tables.values() for key in keys}
    assert set(internal_pins(kites.store, MANIFEST)) <= {None}
    assert realign_all(kites.store) == []
    with pytest.raises(NotFoundError, match="commit 'none' not found"):
        kites.commit("none")
    assert kites.commit(commit).id == commit


def test_a_writer_that_has_looked_at_the_schema_looks_again_once_it_is_armed(kites: Graph) -> None:
    """The change leaves the table as it is, so that nothing else would stop the writer."""

    def change() -> None:
        assert Graph.open(kites.uri).apply_schema(RANGED).applied

    with stop_at(CrashPoint.LEASED, change), pytest.raises(ConflictError, match="the schema changed after"):
        kites.load(['{"type": "Kite", "data": {"tag": "c", "span": 9}}'], options=NO_INDEX)
    assert kites.count("node:Kite") == 2


def test_somebody_else_may_have_made_the_same_change(kites: Graph) -> None:
    text = KITES.replace("hue: String?", "")
    with stop_at(CrashPoint.SCHEMA_LOCKED, lambda: None):
        assert kites.apply_schema(text).applied
    assert not Graph.open(kites.uri).apply_schema(text).applied


def test_two_changes_at_once_are_one_and_a_refusal(kites: Graph) -> None:
    def second() -> None:
        with pytest.raises(ConflictError, match="schema change is running"):
            Graph.open(kites.uri).apply_schema(KITES.replace("hue: String?", ""))

    with stop_at(CrashPoint.SCHEMA_LOCKED, second):
        assert kites.apply_schema(KITES.replace("hue: String?", "x: I32?")).applied


def test_a_change_of_the_manifest_in_between_is_seen(kites: Graph) -> None:
    """Whatever publishes past the lock, as another engine's maintenance may: the change is planned anew."""

    def tidied() -> None:
        kites.store.tidy(None, above=1)

    with stop_at(CrashPoint.SCHEMA_STAGED, tidied):
        report = kites.apply_schema(KITES.replace("hue: String?", "x: I32?"))
    assert report.applied
    assert kites.entity("node:Kite", "a") == {"id": "a", "span": 1.5, "tag": "a", "x": None}
    check_format(Path(kites.uri))


def test_text_of_a_refused_step_is_the_first_one(kites: Graph) -> None:
    with pytest.raises(BadRequestError, match=r"\[OG-MF-103\].*Kite\.size"):
        kites.apply_schema(KITES.replace("span: F64?", "span: F64?  size: I32"))
    assert kites.schema() == KITES


def test_indexes_come_with_the_change_that_asks_for_them(kites: Graph) -> None:
    kites.apply_schema(KITES.replace("hue: String?", "hue: String? @index"))
    assert {i.column for i in kites.indexes() if i.name is not None} >= {"id", "hue"}
    assert isinstance(ExpectedVersionMismatch("__manifest", 1, 2), ConflictError)


def test_a_blob_that_may_be_null_from_now_on_keeps_its_bytes_beside_a_new_value(tmp_path: Path) -> None:
    """Lance writes no blob beside its row, and lets no column be null beside files of others: all rows come anew."""
    text = "node Doc { slug: String @key  body: Blob }"
    graph = Graph.init(tmp_path / "g", text)
    graph.load(['{"type": "Doc", "data": {"slug": "a", "body": "base64:aGk="}}'], options=NO_INDEX)
    graph.apply_schema(text.replace("Blob", "Blob?  n: I32"), values={"Doc.n": 4})
    assert graph.entity("node:Doc", "a") == {"id": "a", "body": "base64:aGk=", "n": 4, "slug": "a"}
    graph.load(['{"type": "Doc", "data": {"slug": "b", "n": 1}}'], options=NO_INDEX)
    assert graph.entity("node:Doc", "b") == {"id": "b", "body": None, "n": 1, "slug": "b"}


def test_vectors_and_blobs_of_a_table_are_not_written_when_another_column_is(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node Doc { slug: String @key  body: Blob?  v: Vector(2)? }")
    graph.load(['{"type": "Doc", "data": {"slug": "a", "body": "base64:aGk=", "v": [1, 2]}}'], options=NO_INDEX)
    before = {
        f.path for f in graph.store.open_table(graph.snapshot().entry("node:Doc")).get_fragments()[0].data_files()
    }
    graph.apply_schema("node Doc { slug: String @key  body: Blob?  n: I32  v: Vector(2)? }", values={"Doc.n": 4})
    fragment = graph.store.open_table(graph.snapshot().entry("node:Doc")).get_fragments()[0]
    added = {f.path: len(f.fields) for f in fragment.data_files() if f.path not in before}
    assert list(added.values()) == [1]
    assert before <= {f.path for f in fragment.data_files()}
    assert graph.entity("node:Doc", "a") == {"id": "a", "body": "base64:aGk=", "n": 4, "slug": "a", "v": [1.0, 2.0]}


def test_loads_and_changes_at_once_lose_nothing(kites: Graph) -> None:
    """Each writer is told what became of it: an acknowledged row is there, under whatever columns came meanwhile."""
    done: list[str] = []
    refused: Counter[str] = Counter()

    def load(worker: int) -> None:
        graph = Graph.open(kites.uri)
        for i in range(4):
            name = f"w{worker}-{i}"
            try:
                graph.load([json.dumps({"type": "Kite", "data": {"tag": name}})], options=NO_INDEX)
                done.append(name)
            except ConflictError:
                refused["load"] += 1

    def change() -> None:
        graph = Graph.open(kites.uri)
        for i in range(3):
            try:
                graph.apply_schema(KITES.replace("span: F64?", f"span: F64?  n{i}: I32?"), values={f"Kite.n{i}": i})
                done.append(f"n{i}")
            except ConflictError:
                refused["change"] += 1

    threads = [Thread(target=load, args=(worker,)) for worker in range(2)] + [Thread(target=change)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    graph = Graph.open(kites.uri)
    tags = {row["k.tag"] for row in graph.query("query q() { match { $k: Kite } return { $k.tag } }").to_pylist()}
    assert tags == {"a", "b", *(name for name in done if name.startswith("w"))}
    assert len(done) + refused.total() == 11
    operations = [commit.facts.operation for commit in graph.commits() if commit.facts is not None]
    assert operations.count("schema_apply") == sum(name.startswith("n") for name in done)
    check_format(Path(kites.uri))


def test_an_index_that_the_schema_asks_for_no_more_goes(tmp_path: Path) -> None:
    """Also of a property that gets another name with it; that of a key stays."""
    text = "node Film { title: String @key @index  plot: String? @index  year: I32? @index  score: I32? @index }"
    plain = 'node Film { title: String @key  story: String? @rename_from("plot")  year: I32?  score: I32? @index }'
    graph = Graph.init(tmp_path / "g", text)
    films = [
        {"title": f"f{i}", "plot": "a heist" if i % 2 else "two friends", "year": 1990 + i, "score": i}
        for i in range(6)
    ]
    graph.load([json.dumps({"type": "Film", "data": film}) for film in films])
    version = graph.snapshot().version

    def indexed() -> set[str]:
        dataset = graph.store.open_table(graph.snapshot().entry("node:Film"))
        return {name for each in coverage(dataset) for name in each.columns}

    assert indexed() == {"id", "title", "plot", "year", "score"}
    assert graph.apply_schema(plain).warnings == ()
    assert indexed() == {"id", "title", "score"} == {each.column for each in graph.indexes()}
    graph.load(['{"type": "Film", "data": {"title": "f1", "story": "at sea", "year": 1992}}'], "merge")
    heists = 'query q() { match { $f: Film  search($f.story, "heist") } return { $f.title } order { $f.title } }'
    in_1992 = "query q() { match { $f: Film  $f.year = 1992 } return { $f.title } order { $f.title } }"
    assert [row["f.title"] for row in graph.query(heists).to_pylist()] == ["f3", "f5"]
    assert [row["f.title"] for row in graph.query(in_1992).to_pylist()] == ["f1", "f2"]
    old = heists.replace("story", "plot")
    assert [row["f.title"] for row in graph.query(old, version=version).to_pylist()] == ["f1", "f3", "f5"]
    graph.apply_schema(plain.replace("story: String?", "story: String? @index"))
    assert indexed() == {"id", "title", "story", "score"}
    assert [row["f.title"] for row in graph.query(heists).to_pylist()] == ["f3", "f5"]
