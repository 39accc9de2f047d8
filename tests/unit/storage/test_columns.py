"""Columns of a table changed as a whole: which rows, ids and row versions come out."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.records.arrow_schema import BLOB, BLOB_METADATA
from spark_omnigraph.storage.tables.columns import (
    LaidColumn,
    Layout,
    TableSource,
    fragment_ids,
    stage_columns,
    stage_copy,
)
from spark_omnigraph.storage.tables.commits import (
    CommitFailed,
    TableChange,
    commit_strict,
    create_dataset,
    prepare_change,
)
from spark_omnigraph.storage.tables.scan import PinnedTable, TableScan, read_batches
from spark_omnigraph.storage.tables.staged import TableTarget

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("age", pa.int32()),
        pa.field("body", BLOB, metadata=BLOB_METADATA),
        pa.field("tags", pa.list_(pa.field("item", pa.string()))),
        pa.field("vec", pa.list_(pa.field("item", pa.float32()), 2)),
    ]
)
VERSIONS = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def rows(*ids: str) -> pa.Table:
    bodies: list[object] = [{"data": name.encode(), "uri": None} for name in ids]
    bodies[-1] = None
    columns = [list(ids), list(range(len(ids))), bodies, [[name] for name in ids], [[1.0, 2.0]] * len(ids)]
    return pa.Table.from_arrays([pa.array(v, f.type) for v, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    """Two fragments, one row of the first masked, and an index of `age`."""
    uri = str(tmp_path / "t")
    create_dataset(uri, SCHEMA, rows("a", "b", "c"), {})
    lance.write_dataset(rows("d", "e"), uri, mode="append", allow_external_blob_outside_bases=True)
    found = lance.dataset(uri)
    found.delete("id = 'b'")
    found.create_scalar_index("age", "BTREE")
    return lance.dataset(uri)


def kept(name: str, source: str | None = None) -> LaidColumn:
    return LaidColumn(SCHEMA.field(source or name).with_name(name), source or name)


def target(table: LanceDataset) -> TableTarget:
    return TableTarget(TableKey("node:T"), table.uri, table.version, table.count_rows())


def relaid(table: LanceDataset, *columns: LaidColumn) -> LanceDataset:
    layout = Layout(columns)
    source = TableSource(target(table), {})
    ids = fragment_ids(source) if layout.filled else []
    files = tuple(stage_columns(source, each, layout) for each in ids)
    moved = commit_strict(table, prepare_change(table, TableChange(files, layout=layout), {}))
    assert moved.version == table.version + 1
    assert moved.schema.names == [column.field.name for column in columns]
    moved.validate()
    return moved


def values(table: LanceDataset, *columns: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for batch in read_batches(TableScan(PinnedTable(table.uri, table.version), columns)):
        found += batch.to_pylist()
    return found


def row_versions(table: LanceDataset) -> list[dict[str, object]]:
    return list(table.to_table(columns=["id", *VERSIONS[1:]], with_row_id=True).to_pylist())


def test_renamed_dropped_and_moved_columns_are_the_stored_ones(table: LanceDataset) -> None:
    files = {file.path for fragment in table.get_fragments() for file in fragment.data_files()}
    moved = relaid(table, kept("id"), kept("vec"), kept("years", "age"), kept("words", "tags"), kept("text", "body"))
    assert values(moved, "years", "id", "words", "text") == [
        {"years": 0, "id": "a", "words": ["a"], "text": b"a"},
        {"years": 2, "id": "c", "words": ["c"], "text": None},
        {"years": 0, "id": "d", "words": ["d"], "text": b"d"},
        {"years": 1, "id": "e", "words": ["e"], "text": None},
    ]
    assert row_versions(moved) == row_versions(table), "no row counts as written"
    assert {file.path for fragment in moved.get_fragments() for file in fragment.data_files()} == files
    assert [index.field_names for index in moved.describe_indices()] == [["years"]]
    assert relaid(moved, kept("id")).describe_indices() == []


def test_columns_without_values_are_null_and_write_no_file(table: LanceDataset) -> None:
    new = [
        LaidColumn(pa.field("b2", BLOB, metadata=BLOB_METADATA)),
        LaidColumn(pa.field("l2", pa.list_(pa.field("item", pa.date64())))),
        LaidColumn(pa.field("v2", pa.list_(pa.field("item", pa.float32()), 3))),
    ]
    moved = relaid(table, kept("id"), kept("age"), *new)
    assert values(moved, "id", "b2", "l2", "v2")[0] == {"id": "a", "b2": None, "l2": None, "v2": None}
    assert row_versions(moved) == row_versions(table)


def test_a_column_that_comes_back_has_none_of_its_former_values(table: LanceDataset) -> None:
    without = relaid(table, kept("id"), kept("tags"))
    again = relaid(without, kept("id"), LaidColumn(SCHEMA.field("age")), kept("tags"))
    assert [row["age"] for row in values(again, "age")] == [None] * 4


def test_filled_columns_have_their_values_and_every_row_counts_as_updated(table: LanceDataset) -> None:
    filled = [
        LaidColumn(pa.field("k", pa.int64(), nullable=False), value=pa.scalar(7)),
        LaidColumn(pa.field("age", pa.int64()), origins=("age",)),
        LaidColumn(pa.field("l", pa.list_(pa.field("item", pa.string()))), value=pa.scalar(["x", "y"])),
        LaidColumn(pa.field("or", pa.float64(), nullable=False), origins=("age",), value=pa.scalar(0.5)),
        LaidColumn(pa.field("empty", pa.string())),
    ]
    moved = relaid(table, kept("id"), *filled, kept("body"))
    wanted = {"id": "c", "k": 7, "age": 2, "l": ["x", "y"], "or": 2.0, "empty": None, "body": None}
    assert values(moved, *wanted)[1] == wanted
    assert [row["_rowid"] for row in row_versions(moved)] == [row["_rowid"] for row in row_versions(table)]
    assert {row[VERSIONS[2]] for row in row_versions(moved)} == {moved.version}
    assert {row[VERSIONS[1]] for row in row_versions(moved)} == {1, 2}
    assert moved.schema.field("age").type == pa.int64()
    assert moved.schema.field("k").nullable is False


def test_copied_rows_keep_their_ids_in_their_own_table_alone(table: LanceDataset, tmp_path: Path) -> None:
    layout = Layout((kept("id"), kept("years", "age"), kept("body"), LaidColumn(pa.field("n", pa.int32()))))
    other = create_dataset(str(tmp_path / "other"), layout.schema, None, {})
    for place in (table, other):
        source = TableSource(target(table), {})
        files = tuple(f for each in fragment_ids(source) if (f := stage_copy(source, each, layout, target(place))))
        change = TableChange(files, replace_all=True, layout=layout)
        moved = commit_strict(place, prepare_change(place, change, {}))
        assert change.added == 4
        assert values(moved, "id", "years", "body", "n") == [
            {"id": name, "years": age, "body": body, "n": None}
            for name, age, body in (("a", 0, b"a"), ("c", 2, None), ("d", 0, b"d"), ("e", 1, None))
        ]
        own = [row["_rowid"] for row in row_versions(table)] if place is table else [0, 1, 2, 3]
        assert [row["_rowid"] for row in row_versions(moved)] == own
        appended = lance.write_dataset(
            pa.table(
                {"id": ["z"], "years": [1], "n": [1]},
                schema=pa.schema([moved.schema.field(n) for n in ("id", "years", "n")]),
            ),
            moved.uri,
            mode="append",
        )
        ids_now = [row["_rowid"] for row in row_versions(appended)]
        assert len(set(ids_now)) == 5, "none is given out twice"


def test_a_column_that_had_got_values_leaves_no_file_behind_when_it_goes(table: LanceDataset) -> None:
    def filled(name: str) -> LaidColumn:
        return LaidColumn(pa.field(name, pa.int32(), nullable=False), value=pa.scalar(3))

    first = relaid(table, kept("id"), filled("k"), kept("vec"))
    both = relaid(first, kept("id"), filled("m"), kept("vec"))
    assert values(both, "id", "m")[0] == {"id": "a", "m": 3}
    alone = relaid(both, kept("id"), kept("vec"))
    assert [len(fragment.data_files()) for fragment in (*both.get_fragments(), *alone.get_fragments())] == [2, 2, 1, 1]


def test_one_value_for_all_rows_reads_none_of_them(table: LanceDataset) -> None:
    moved = relaid(table, kept("id"), LaidColumn(pa.field("k", pa.string(), nullable=False), value=pa.scalar("x")))
    assert values(moved, "id", "k") == [{"id": name, "k": "x"} for name in ("a", "c", "d", "e")]


@pytest.mark.parametrize("columns", [(kept("id"),), (kept("id"), LaidColumn(pa.field("n", pa.int32())))])
def test_a_layout_on_rows_that_moved_lands_elsewhere_or_not_at_all(
    table: LanceDataset, columns: tuple[LaidColumn, ...]
) -> None:
    """The protocol compares the version that is landed with the one that the sidecar names."""
    transaction = prepare_change(table, TableChange(layout=Layout(columns)), {})
    lance.write_dataset(rows("x"), table.uri, mode="append", allow_external_blob_outside_bases=True)
    with pytest.raises(CommitFailed):
        commit_strict(table, transaction)
    newer = lance.dataset(table.uri)
    transaction = prepare_change(newer, TableChange(layout=Layout(columns)), {})
    lance.dataset(table.uri).delete("id = 'a'")
    with suppress(CommitFailed):
        assert commit_strict(newer, transaction).version == newer.version + 2


def test_a_table_without_rows_takes_any_layout(tmp_path: Path) -> None:
    empty = create_dataset(str(tmp_path / "e"), SCHEMA, None, {})
    filled = LaidColumn(pa.field("k", pa.int32(), nullable=False), value=pa.scalar(1))
    assert relaid(empty, kept("id"), filled, kept("years", "age")).count_rows() == 0
