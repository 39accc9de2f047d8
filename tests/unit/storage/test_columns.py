"""Columns of a table changed as a whole: which rows, ids and row versions come out."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceDataset

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.records.arrow_schema import BLOB, BLOB_METADATA
from spark_omnigraph.storage.tables.changes import row_changes
from spark_omnigraph.storage.tables.columns import (
    LaidColumn,
    Layout,
    TableSource,
    fragment_ids,
    parts_to_write,
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
from spark_omnigraph.storage.tables.scan import PinnedTable, TableScan, fragment_sizes, read_batches
from spark_omnigraph.storage.tables.staged import TableTarget
from spark_omnigraph.storage.values.rewrite import NewValues, rewrite_columns

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


def same(table: LanceDataset, name: str) -> LaidColumn:
    return LaidColumn(table.schema.field(name), name)


def target(table: LanceDataset) -> TableTarget:
    return TableTarget(TableKey("node:T"), table.uri, table.version, table.count_rows())


def relaid(table: LanceDataset, *columns: LaidColumn) -> LanceDataset:
    layout = Layout(columns).beside_files(table.schema)
    source = TableSource(target(table), {})
    files = tuple(stage_columns(source, each, layout) for each in parts_to_write(source, layout))
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


LIKE = {"l_age": "age", "l_tags": "tags", "l_vec": "vec", "m_age": "age"}


def like(table: LanceDataset) -> LanceDataset:
    """The table with columns that get what others have, two of them the same."""
    new = [LaidColumn(table.schema.field(origin).with_name(name), origins=(origin,)) for name, origin in LIKE.items()]
    required = LaidColumn(pa.field("r_age", pa.int32(), nullable=False), origins=("age",))
    return relaid(table, kept("id"), *new, required, kept("age"), kept("body"), kept("tags"), kept("vec"))


def files_of(table: LanceDataset) -> set[str]:
    return {path.name for path in (Path(table.uri) / "data").iterdir() if path.suffix == ".lance"}


def test_a_column_like_another_one_is_read_where_that_one_lies(table: LanceDataset) -> None:
    before = files_of(table)
    moved = like(table)
    assert files_of(moved) == before, "nothing is written"
    rows = values(moved, "id", *LIKE, "r_age", "body")
    assert rows == [
        {"id": name, "l_age": age, "l_tags": [name], "l_vec": [1.0, 2.0], "m_age": age, "r_age": age, "body": body}
        for name, age, body in (("a", 0, b"a"), ("c", 2, None), ("d", 0, b"d"), ("e", 1, None))
    ]
    assert moved.to_table(columns=["l_vec"], filter="l_age = 2 AND m_age = age").to_pylist() == [{"l_vec": [1.0, 2.0]}]
    assert moved._take_rows([4, 2], columns=["m_age", "id"]).to_pylist() == [
        {"m_age": 1, "id": "e"},
        {"m_age": 2, "id": "c"},
    ]
    assert [row["_rowid"] for row in row_versions(moved)] == [row["_rowid"] for row in row_versions(table)]
    assert {row[VERSIONS[2]] for row in row_versions(moved)} == {moved.version}, "all rows count as updated"
    sizes = [(size.rows, size.bytes) for size in fragment_sizes(PinnedTable(moved.uri, moved.version))]
    assert sizes == [(size.rows, size.bytes) for size in fragment_sizes(PinnedTable(table.uri, table.version))]


@pytest.mark.parametrize(("changed", "stays"), [("l_age", "age"), ("age", "l_age")])
def test_one_of_two_columns_that_are_alike_changes_alone(table: LanceDataset, changed: str, stays: str) -> None:
    moved = like(table)
    (first, _) = fragment_ids(TableSource(target(moved), {}))
    new = NewValues(np.array([2]), lambda start, stop: pa.array([70], pa.int32())[start:stop])
    rewrite = rewrite_columns(target(moved), first, {changed: new}, {})
    moved = commit_strict(moved, prepare_change(moved, TableChange(columns=(rewrite,)), {}))
    moved.update({changed: "30"}, where="id = 'd'")
    for compacted in (False, True):
        if compacted:
            moved.optimize.compact_files()
            moved.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
        found = {row["id"]: (row[changed], row[stays], row["m_age"]) for row in values(moved, "id", *LIKE, "age")}
        assert found == {"a": (0, 0, 0), "c": (70, 2, 2), "d": (30, 0, 0), "e": (1, 1, 1)}
        moved.validate()


def test_a_file_stays_as_long_as_a_column_lies_in_it(table: LanceDataset) -> None:
    moved = like(table)
    alone = relaid(moved, kept("id"), same(moved, "l_age"))
    alone.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert [row["l_age"] for row in values(alone, "l_age")] == [0, 2, 0, 1], "what it was made of is gone"
    again = relaid(alone, kept("id"), same(alone, "l_age"), LaidColumn(pa.field("n", pa.int32()), origins=("l_age",)))
    assert values(again, "id", "n")[1] == {"id": "c", "n": 2}
    lance.write_dataset(rows("x"), moved.uri, mode="overwrite", allow_external_blob_outside_bases=True)
    last = lance.dataset(moved.uri)
    last.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    named = {file.path for fragment in last.get_fragments() for file in fragment.data_files()}
    assert files_of(last) == named


def test_what_is_not_stored_as_it_is_to_be_is_written(table: LanceDataset) -> None:
    body = LaidColumn(pa.field("b", BLOB, metadata=BLOB_METADATA), origins=("body",))
    columns = {
        "a blob": body,
        "another type": LaidColumn(pa.field("n", pa.int64()), origins=("age",)),
        "two columns": LaidColumn(pa.field("n", pa.int32()), origins=("age", "m")),
        "a value for what is null": LaidColumn(pa.field("n", pa.int32()), origins=("age",), value=pa.scalar(1)),
    }
    assert {why for why, column in columns.items() if column.shared(SCHEMA) is column} == set(columns)


def test_a_fragment_that_lacks_a_column_lacks_what_is_like_it(table: LanceDataset) -> None:
    wide = relaid(table, kept("id"), kept("age"), LaidColumn(pa.field("late", pa.string())))
    more = pa.table({"id": ["f"], "age": [9], "late": ["x"]}, schema=wide.schema)
    wide = lance.write_dataset(more, wide.uri, mode="append")
    moved = relaid(wide, kept("id"), same(wide, "late"), LaidColumn(pa.field("l", pa.string()), origins=("late",)))
    assert [row["l"] for row in values(moved, "l")] == [None, None, None, None, "x"]


def test_a_required_column_may_be_like_one_that_lacks_values_in_masked_rows_alone(table: LanceDataset) -> None:
    schema = pa.schema([SCHEMA.field("id"), SCHEMA.field("age")])
    wide = lance.write_dataset(pa.table({"id": ["f", "g"], "age": [None, 5]}, schema=schema), table.uri, mode="append")
    wide.delete("id = 'f'")
    wide = lance.dataset(wide.uri)
    required = LaidColumn(pa.field("r", pa.int32(), nullable=False), origins=("age",))
    moved = relaid(wide, kept("id"), required, kept("age"))
    assert [row["r"] for row in values(moved, "r")] == [0, 2, 0, 1, 5]
    moved.optimize.compact_files(materialize_deletions_threshold=0.0)
    assert {row["id"]: row["r"] for row in values(moved, "id", "r")} == {"a": 0, "c": 2, "d": 0, "e": 1, "g": 5}


def test_rows_are_told_as_updated_also_when_the_same_files_are_named(table: LanceDataset) -> None:
    """A column in a file of its own goes, and one that is like it comes: files have the names that they had."""
    first = relaid(table, kept("id"), LaidColumn(pa.field("k", pa.int32()), value=pa.scalar(3)), kept("vec"))
    last = relaid(first, kept("id"), LaidColumn(pa.field("l", pa.int32()), origins=("k",)), kept("vec"))
    names = [[[file.path for file in f.data_files()] for f in each.get_fragments()] for each in (first, last)]
    assert names[0] == names[1]
    pinned = [PinnedTable(each.uri, each.version) for each in (first, last)]
    assert len(row_changes(pinned[0], pinned[1], same_line=True).updated) == 4
    assert values(last, "id", "l")[0] == {"id": "a", "l": 3}


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


def test_fragments_of_a_length_have_one_file_of_one_value(table: LanceDataset) -> None:
    wide = lance.write_dataset(rows("f", "g"), table.uri, mode="append", allow_external_blob_outside_bases=True)
    before = files_of(wide)
    new = [LaidColumn(pa.field(name, pa.string(), nullable=False), value=pa.scalar(name)) for name in "kl"]
    moved = relaid(wide, kept("id"), *new, kept("age"))
    assert len(files_of(moved) - before) == 2, "fragments have 3, 2 and 2 rows"
    assert values(moved, "k", "l") == [{"k": "k", "l": "l"}] * 6
    last = fragment_ids(TableSource(target(moved), {}))[-1]
    given = NewValues(np.array([1]), lambda start, stop: pa.array(["new"])[start:stop])
    rewrite = rewrite_columns(target(moved), last, {"k": given}, {})
    moved = commit_strict(moved, prepare_change(moved, TableChange(columns=(rewrite,)), {}))
    moved.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert [row["k"] for row in values(moved, "k")] == [*"kkkkk", "new"]
    moved.delete("id IN ('a', 'c', 'd')")
    moved.optimize.compact_files()
    moved.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert {row["id"]: row["k"] for row in values(moved, "id", "k")} == {"e": "k", "f": "k", "g": "new"}
    assert files_of(moved) == {file.path for fragment in moved.get_fragments() for file in fragment.data_files()}


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
