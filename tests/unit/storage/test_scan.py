"""Scans of pinned tables, without Spark."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from spark_omnigraph.errors import BadRequestError, StorageError
from spark_omnigraph.storage.tables import blobs as blobs_module
from spark_omnigraph.storage.tables import scan as scan_module
from spark_omnigraph.storage.tables.scan import (
    BATCH_BYTES,
    BATCH_ROWS,
    BLOB_RUN_BYTES,
    FragmentSize,
    PinnedTable,
    TableScan,
    check_filter,
    column_names,
    count_rows,
    fragment_sizes,
    read_batches,
)
from tests.unit.spark.graph_types import BLOB, BLOB_METADATA, STORED, stored_things, write_table


def rows(scan: TableScan) -> list[dict[str, object]]:
    return [row for batch in read_batches(scan) for row in batch.to_pylist()]


def numbers(count: int, start: int = 0) -> pa.Table:
    return pa.table({"id": [str(i) for i in range(start, start + count)], "n": pa.array(range(start, start + count))})


def test_a_pinned_table_never_shows_a_newer_version(tmp_path: Path) -> None:
    pinned = write_table(tmp_path / "t", numbers(3))
    lance.write_dataset(numbers(2, 3), pinned.uri, mode="append")
    assert [r["n"] for r in rows(TableScan(pinned, ("n",)))] == [0, 1, 2]
    newer = PinnedTable(pinned.uri, pinned.version + 1)
    assert [r["n"] for r in rows(TableScan(newer, ("n",)))] == [0, 1, 2, 3, 4]


def test_what_travels_to_a_task_is_small_and_hides_secrets() -> None:
    table = PinnedTable("s3://b/t", 3, {"aws_secret_access_key": "hidden"})
    assert pickle.loads(pickle.dumps(table)) == table
    assert "hidden" not in repr(TableScan(table, ("id",)))


def test_columns_come_in_the_asked_order(tmp_path: Path) -> None:
    pinned = write_table(tmp_path / "t", numbers(2))
    (batch,) = read_batches(TableScan(pinned, ("n", "id")))
    assert batch.schema.names == ["n", "id"]
    assert column_names(pinned) == ["id", "n"]


def test_fragments_limit_and_predicate(tmp_path: Path) -> None:
    pinned = write_table(tmp_path / "t", numbers(3), numbers(3, 3), numbers(3, 6))
    assert [r["n"] for r in rows(TableScan(pinned, ("n",), fragments=(2, 0)))] == [6, 7, 8, 0, 1, 2]
    assert [r["n"] for r in rows(TableScan(pinned, ("n",), where="n > 4", limit=2))] == [5, 6]
    assert rows(TableScan(pinned, ("n",), limit=0)) == []
    assert count_rows(pinned, "n > 4") == 4
    assert count_rows(pinned, None) == 9


def test_sizes_count_living_rows(tmp_path: Path) -> None:
    pinned = write_table(tmp_path / "t", numbers(3), numbers(4, 3))
    lance.dataset(pinned.uri).delete("n = 1")
    sizes = fragment_sizes(PinnedTable(pinned.uri, pinned.version + 1))
    assert [(s.id, s.rows) for s in sizes] == [(0, 2), (1, 4)]
    assert all(s.bytes > 0 for s in sizes)
    assert sizes[1] == FragmentSize(1, 4, sizes[1].bytes)


def test_an_empty_table_has_no_batches(tmp_path: Path) -> None:
    pinned = write_table(tmp_path / "t", STORED.empty_table())
    assert fragment_sizes(pinned) == []
    assert rows(TableScan(pinned, ("id", "v"))) == []


def test_wide_rows_make_small_batches(tmp_path: Path) -> None:
    text = os.urandom(100_000).hex()
    pinned = write_table(tmp_path / "t", pa.table({"id": [str(i) for i in range(400)], "s": [text] * 400}))
    batches = list(read_batches(TableScan(pinned, ("id", "s"))))
    assert sum(b.num_rows for b in batches) == 400
    assert max(b.nbytes for b in batches) <= 1.5 * BATCH_BYTES
    assert all(b.num_rows <= BATCH_ROWS for b in batches)


def test_blobs_arrive_as_bytes(tmp_path: Path) -> None:
    large, medium = os.urandom(5_000_000), os.urandom(200_000)
    pinned = write_table(
        tmp_path / "t",
        stored_things(
            [
                {"data": b"abc", "uri": None},
                None,
                {"data": b"", "uri": None},
                {"data": medium, "uri": None},
                {"data": b"more", "uri": None},
                {"data": large, "uri": None},
            ]
        ),
    )
    read = rows(TableScan(pinned, ("blob", "id")))
    assert [r["blob"] for r in read] == [b"abc", None, b"", medium, b"more", large]
    assert [list(r) for r in read] == [["blob", "id"]] * 6
    some = rows(TableScan(pinned, ("id", "blob"), where="i32 = -1"))
    assert [r["blob"] for r in some] == [b"more"]


def test_many_large_blobs_come_in_bounded_batches(tmp_path: Path) -> None:
    piece = os.urandom(6_000_000)
    field = pa.field("blob", BLOB, metadata=BLOB_METADATA)
    blobs = pa.array([{"data": piece, "uri": None}] * 12, BLOB)
    table = pa.Table.from_arrays(
        [pa.array([str(i) for i in range(12)]), blobs], schema=pa.schema([pa.field("id", pa.string()), field])
    )
    batches = list(read_batches(TableScan(write_table(tmp_path / "t", table), ("id", "blob"))))
    assert [b.num_rows for b in batches] == [5, 5, 2]
    assert all(b.nbytes <= 1.01 * BLOB_RUN_BYTES for b in batches)


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(
    "layers", ["", "RepdefAllValidItem, RepdefAllValidItem,", "RepdefAllValidItem, RepdefNullableItem,"]
)
def test_only_files_of_lance_7_with_nulls_show_a_first_empty_blob_as_null(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nullable: bool, layers: str
) -> None:
    """Lance 7 wrote null blobs as inline blobs without place and size; a first, empty blob looks the same."""
    field = pa.field("blob", BLOB, nullable=nullable, metadata=BLOB_METADATA)
    table = pa.Table.from_arrays([pa.array([{"data": b"", "uri": None}], BLOB)], schema=pa.schema([field]))
    pinned = write_table(tmp_path / "t", table)
    if layers:
        monkeypatch.setattr(blobs_module, "_pages", lambda *_: [f"FullZipLayout {{ layers: [ {layers} ] }}"])
    hidden = nullable and "Nullable" in layers
    assert rows(TableScan(pinned, ("blob",))) == [{"blob": None if hidden else b""}]
    assert blobs_module.column_with_hidden_nulls(lance.dataset(pinned.uri)) == ("blob" if hidden else None)


@pytest.mark.parametrize("form", ["file://{}", "FILE://{}"])
def test_no_reference_makes_a_reader_open_a_file_of_its_machine(tmp_path: Path, form: str) -> None:
    outside = tmp_path / "outside.bin"
    outside.write_bytes(b"secret")
    blobs: list[dict[str, object] | None] = [{"data": None, "uri": form.format(outside)}, *[None] * 5]
    pinned = write_table(tmp_path / "t", stored_things(blobs))
    with pytest.raises(
        BadRequestError, match=r"blob column 'blob' .* refers to '(?i:file).*outside\.bin'.*leave the column"
    ):
        rows(TableScan(pinned, ("blob",)))
    assert len(rows(TableScan(pinned, ("id",)))) == 6


def test_an_external_blob_that_is_gone_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "REMOTE_SCHEMES", ("file",))
    outside = tmp_path / "outside.bin"
    outside.write_bytes(b"x")
    blobs: list[dict[str, object] | None] = [{"data": None, "uri": f"file://{outside}"}, *[None] * 5]
    pinned = write_table(tmp_path / "t", stored_things(blobs))
    assert rows(TableScan(pinned, ("blob",)))[0]["blob"] == b"x"
    outside.unlink()
    with pytest.raises(StorageError, match="blobs of column 'blob'"):
        rows(TableScan(pinned, ("blob",)))


def test_failures_are_ours(tmp_path: Path) -> None:
    pinned = write_table(tmp_path / "t", numbers(3))
    with pytest.raises(BadRequestError, match="filter is not valid: No field named m"):
        check_filter(pinned, "m = 1")
    with pytest.raises(StorageError, match="at version 7"):
        rows(TableScan(PinnedTable(pinned.uri, 7), ("n",)))
    shutil.rmtree(tmp_path / "t" / "data")
    with pytest.raises(StorageError):
        rows(TableScan(pinned, ("n",)))
