"""What stops schema changes, and other writes, from outside: a store that refuses, tables that have lost columns."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from spark_omnigraph import ConflictError, FromColumn, Graph, LoadOptions, StorageError
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.errors import DamagedError
from spark_omnigraph.graph.schema import tables as schema_tables
from spark_omnigraph.storage.faults import CommitFailed, Outcome
from spark_omnigraph.storage.layout import COMMITS, MANIFEST, STORAGE_VERSION
from tests.format.second_reader import check_format

NO_INDEX = LoadOptions(build_indexes=False)
KITES = "node Kite { tag: String @key  span: F64?  hue: String? }\nedge Tied: Kite -> Kite { since: I32? }"
WIDER = KITES.replace("hue: String?", "hue: String?  size: I32?")
RED = '{"type": "Kite", "data": {"tag": "a", "span": 1.5, "hue": "red"}}'


@pytest.fixture
def kites(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", KITES)
    graph.load([RED, '{"type": "Kite", "data": {"tag": "b"}}'], options=NO_INDEX)
    return graph


def files(graph: Graph) -> set[str]:
    return {each.path for each in graph.store.objects.walk("")}


def in_the_way(graph: Graph, folder: str) -> Path:
    """A file in place of the folder of references: no branch of the dataset can be made, as on a full disk."""
    place = Path(graph.uri, folder, "_refs", "branches")
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(b"")
    return place


@pytest.mark.parametrize("dataset", [COMMITS, MANIFEST])
def test_a_store_that_refuses_the_lock_is_no_conflict_and_nothing_of_the_lock_stays(kites: Graph, dataset: str) -> None:
    place = in_the_way(kites, dataset)
    before = files(kites)
    with pytest.raises(StorageError, match=r"the lock of the schema could not be taken .*the disk, which may be full"):
        kites.apply_schema(WIDER)
    assert files(kites) == before
    place.unlink()
    assert kites.apply_schema(WIDER).applied
    check_format(Path(kites.uri))


def test_a_branch_that_a_store_refuses_is_no_conflict(kites: Graph) -> None:
    place = in_the_way(kites, MANIFEST)
    with pytest.raises(StorageError, match=r"branch 'draft' could not be created .*the disk, which may be full"):
        kites.create_branch("draft")
    place.unlink()
    kites.create_branch("draft")
    place = in_the_way(kites, kites.snapshot().entry("node:Kite").location)
    with pytest.raises(StorageError, match=r"'node:Kite' could not be forked for branch 'draft', and nothing has"):
        kites.load([RED], "merge", branch="draft")
    place.unlink()
    assert kites.load([RED], "merge", branch="draft").commit is not None


def test_a_table_that_a_store_does_not_let_come_is_a_storage_error(
    kites: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> object:
        raise CommitFailed(Outcome.UNKNOWN, "no space left on device")

    monkeypatch.setattr(schema_tables, "create_dataset", full)
    with pytest.raises(StorageError, match="'node:Reel' cannot be made: no space left on device"):
        kites.apply_schema(KITES + "\nnode Reel { code: String @key }")
    assert not kites.store.has_schema_lock()


def test_what_failed_is_a_lost_race_or_a_store_to_look_at() -> None:
    lost, unknown = CommitFailed(Outcome.LOST, "won"), CommitFailed(Outcome.UNKNOWN, "full")
    assert isinstance(lost.told("it"), ConflictError)
    assert isinstance(unknown.told("it", is_lost=True), ConflictError)
    assert isinstance(unknown.told("it"), StorageError)


def stored_as(graph: Graph, table: str, changed: Callable[[pa.Table], pa.Table]) -> None:
    """A table as another program may leave it: changed rows at the version that the graph shows."""
    entry = graph.snapshot().entry(table)
    place = graph.store.location.join(entry.location)
    rows = changed(graph.store.open_table(entry).to_table())
    shutil.rmtree(place)
    dataset = lance.write_dataset(rows, place, data_storage_version=STORAGE_VERSION, enable_stable_row_ids=True)
    while dataset.version < entry.version:
        dataset.update_config({"version": str(dataset.version)})


def without(graph: Graph, table: str, column: str) -> None:
    stored_as(graph, table, lambda rows: rows.drop_columns([column]))


Write = Callable[[Graph], Any]
WRITES: dict[str, Write] = {
    "plan a rule": lambda g: g.plan_schema(KITES.replace("F64?", "F64? @unique")),
    "plan a new name": lambda g: g.plan_schema(KITES.replace("span: F64?", 'width: F64? @rename_from("span")')),
    "plan what cannot be": lambda g: g.plan_schema(KITES.replace("F64?", "F64").replace("hue: String?", "hue: I32?")),
    "rule": lambda g: g.apply_schema(KITES.replace("hue: String? }", "hue: String?  @range(span, 0.0..2.0) }")),
    "unique": lambda g: g.apply_schema(KITES.replace("F64?", "F64? @unique")),
    "required": lambda g: g.apply_schema(KITES.replace("F64?", "F64"), values={"Kite.span": 1.0}),
    "new name": lambda g: g.apply_schema(KITES.replace("span: F64?", 'width: F64? @rename_from("span")')),
    "another property": lambda g: g.apply_schema(WIDER),
    "a value": lambda g: g.apply_schema(WIDER, values={"Kite.size": 1}),
    "like it": lambda g: g.apply_schema(
        KITES.replace("hue: String?", "hue: String?  w: F64?"), values={"Kite.w": FromColumn("span")}
    ),
    "new type name": lambda g: g.apply_schema(
        KITES.replace("node Kite", 'node Glider @rename_from("Kite")').replace("Kite -> Kite", "Glider -> Glider")
    ),
    "dropped for good": lambda g: g.apply_schema(KITES.replace("hue: String?", ""), allow_data_loss=True),
    "append": lambda g: g.load(['{"type": "Kite", "data": {"tag": "c", "span": 1}}'], options=NO_INDEX),
    "merge": lambda g: g.load([RED], "merge", options=NO_INDEX),
    "update": lambda g: g.load([RED], "update", options=NO_INDEX),
    "mutate": lambda g: g.mutate('query q() { update Kite set { hue: "blue" } where tag = "a" }'),
    "where": lambda g: g.mutate('query q() { update Kite set { hue: "blue" } where span > 1.0 }'),
}


BY_ID: dict[str, Write] = {
    "rule": lambda g: g.apply_schema(KITES.replace("F64?", "F64? @unique")),
    "new property": lambda g: g.apply_schema(WIDER),
    "append": lambda g: g.load(['{"type": "Kite", "data": {"tag": "c"}}'], options=NO_INDEX),
    "restore": lambda g: g.restore(version=1, confirm=True),
    "erase": lambda g: g.erase("node:Kite", "a", confirm=True),
    "diff": lambda g: g.diff(1),
}


@pytest.mark.parametrize("call", BY_ID.values(), ids=BY_ID)
def test_a_table_that_has_lost_its_ids_says_so(kites: Graph, call: Write) -> None:
    without(kites, "node:Kite", "id")
    with pytest.raises(DamagedError, match=r"'node:Kite' has no column 'id' at version 2, .*from a backup"):
        call(kites)


@pytest.mark.parametrize("column", ["about", "v"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_vectors_are_not_asked_for_where_a_column_is_lost(tmp_path: Path, column: str, dry_run: bool) -> None:
    text = 'node Doc { slug: String @key  about: String?  v: Vector(4)? @embed("about") }'
    graph = Graph.init(tmp_path / "g", text)
    graph.load(['{"type": "Doc", "data": {"slug": "a", "about": "one"}}'], options=NO_INDEX)
    without(graph, "node:Doc", column)
    with pytest.raises(DamagedError, match=f"'node:Doc' has no column '{column}' at version 2"):
        graph.embed("Doc", "v", MockEmbedder(), dry_run=dry_run)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_table_that_has_lost_a_column_names_it_and_the_way_out(kites: Graph, write: Write) -> None:
    without(kites, "node:Kite", "span")
    before = list(kites.export())
    with pytest.raises(
        DamagedError, match=r"'node:Kite' has no column 'span' at version 2, .*from a backup; or give up"
    ):
        write(kites)
    assert (list(kites.export()), kites.schema()) == (before, KITES)
    assert not kites.store.has_schema_lock()


def test_a_column_that_is_lost_is_given_up_by_a_schema_without_it(kites: Graph) -> None:
    """The way out that the error names."""
    without(kites, "node:Kite", "span")
    (step,) = kites.plan_schema(KITES.replace("span: F64?", "")).steps
    assert (step.step.kind, step.touched, step.broken) == ("drop_property", 0, 0)
    kites.apply_schema(KITES.replace("span: F64?", ""))
    kites.apply_schema(KITES)
    kites.load([RED], "merge", options=NO_INDEX)
    assert kites.entity("node:Kite", "a") == {"id": "a", "hue": "red", "span": 1.5, "tag": "a"}
    check_format(Path(kites.uri))


def test_indexes_of_other_columns_are_built_beside_a_lost_one(kites: Graph) -> None:
    without(kites, "node:Kite", "tag")
    built = kites.ensure_indices()
    assert "node:Kite.id" in built
    assert any(
        "'node:Kite.tag' could not be built" in each and "has no column 'tag'" in each for each in built.warnings
    )
    with pytest.raises(DamagedError, match="'node:Kite' has no column 'tag' at version"):
        kites.load(['{"type": "Kite", "data": {"tag": "c"}}'], options=NO_INDEX)


def test_a_table_of_other_types_is_no_race_that_lasts(kites: Graph) -> None:
    """A load says so, and not that somebody changes the schema at this moment."""
    stored_as(kites, "node:Kite", lambda rows: rows.set_column(2, "span", rows.column("span").cast(pa.float32())))
    with pytest.raises(DamagedError, match="'node:Kite' has other columns at version 2 than the schema"):
        kites.load(['{"type": "Kite", "data": {"tag": "c"}}'], options=NO_INDEX)
