"""Kinds of change are read from Lance's own transaction files, whatever pylance makes of them."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from spark_omnigraph.storage.messages.transactions import operation, operations
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.uri import locate


def rows(count: int, start: int = 0) -> pa.Table:
    return pa.table({"id": [str(i + start) for i in range(count)], "x": list(range(count))})


@pytest.fixture
def changed(tmp_path: Path) -> lance.LanceDataset:
    """One version of each kind that an outside program makes, in the order of the list below."""
    uri = str(tmp_path / "d")
    dataset = lance.write_dataset(rows(20), uri, data_storage_version="2.2", enable_stable_row_ids=True)
    dataset.create_scalar_index("id", "BTREE")
    for start in (100, 200):
        lance.write_dataset(rows(5, start), uri, mode="append")
    dataset = lance.dataset(uri)
    dataset.optimize.compact_files()
    dataset.delete("x = 1")
    dataset.update({"x": "7"}, where="x = 2")
    dataset.update_config({"a": "b"})
    dataset.add_columns({"y": "x + 1"})
    dataset.drop_columns(["y"])
    dataset.checkout_version(3).restore()
    lance.write_dataset(rows(1), uri, mode="overwrite")
    return lance.dataset(uri)


KINDS = [
    "CreateIndex",
    "Append",
    "Append",
    "ReserveFragments",
    "Rewrite",
    "Delete",
    "Update",
    "UpdateConfig",
    "Merge",
    "Project",
    "Restore",
    "Overwrite",
]


def test_every_kind_is_told_by_its_file(tmp_path: Path, changed: lance.LanceDataset) -> None:
    objects = Objects(locate(tmp_path))
    assert operations(objects, "d", changed, 1) == dict(enumerate(KINDS, 2))
    assert operations(objects, "d", changed, len(KINDS)) == {len(KINDS) + 1: "Overwrite"}
    assert operations(objects, "d", changed, len(KINDS) + 1) == {}


def test_a_file_that_is_gone_or_garbled_says_nothing(tmp_path: Path, changed: lance.LanceDataset) -> None:
    def file(read_version: int) -> Path:
        (found,) = (tmp_path / "d" / "_transactions").glob(f"{read_version}-*.txn")
        return found

    file(2).unlink()
    file(6).write_bytes(b"\xff\xff\xff")
    file(7).write_bytes(b"")
    kinds = operations(Objects(locate(tmp_path)), "d", changed, 1)
    assert [version for version, kind in kinds.items() if kind is None] == [3, 7, 8]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (b"", None),
        (b"\x08\x01", None),  # a read version and no operation
        (b"\xa2\x06\x00", "Append"),
        (b"\xa2\x06\x05", None),  # cut off
        (b"\xa2\x06\x00\xaa\x06\x00", None),  # two operations
        (b"\x9a\x06\x00", None),  # field 99
        (b"\xc2\x0c\x00", "Operation200"),
        (b"\xa6\x06\x00", None),  # no such wire type
        (b"\x80", None),
    ],
)
def test_what_is_not_one_operation_is_nothing(message: bytes, kind: str | None) -> None:
    assert operation(message) == kind
