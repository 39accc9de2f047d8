"""Snapshot reduction (storage format 2.5) and manifest rows (2.3, 2.4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import DamagedError
from spark_omnigraph.manifest.branches import BranchName, stored_branch
from spark_omnigraph.manifest.rows import (
    ManifestRow,
    PublishFacts,
    RowKind,
    TableUpdate,
    sentinel_facts,
    sentinel_row,
    table_row,
    version_row,
)
from spark_omnigraph.manifest.snapshot import TableEntry, reduce_rows

DRAFT = BranchName("draft")


def version(key: str, number: int, branch: str | None = None, rows: int = 0) -> ManifestRow:
    return version_row(
        TableUpdate(TableKey(key), number, stored_branch(branch), rows, "srv/g/nodes/x/_versions/1.manifest")
    )


def tombstone(key: str, number: int) -> ManifestRow:
    return ManifestRow(f"{key}$tombstone${number:020d}", RowKind.TOMBSTONE, TableKey(key), table_version=number)


def test_the_greatest_version_of_each_table_shows_in_key_order() -> None:
    rows = [
        version("node:B", 2, rows=5),
        table_row(TableKey.node("B"), "nodes/b"),
        table_row(TableKey.edge("A"), "edges/a"),
        version("node:B", 10, "draft", 7),
        version("edge:A", 1),
    ]
    snapshot = reduce_rows(DRAFT, 12, rows)
    assert list(snapshot.entries) == ["edge:A", "node:B"]
    assert snapshot.entries["node:B"] == TableEntry(TableKey.node("B"), "nodes/b", 10, DRAFT, 7)
    assert (snapshot.version, snapshot.branch) == (12, "draft")


def test_a_tombstone_hides_its_version_and_older_ones_until_a_newer_version_comes() -> None:
    rows = [table_row(TableKey.node("B"), "nodes/b"), version("node:B", 2), tombstone("node:B", 3)]
    assert dict(reduce_rows(None, 1, rows).entries) == {}
    assert reduce_rows(None, 1, [*rows, version("node:B", 4)]).pin("node:B") == 4
    assert dict(reduce_rows(None, 1, [*rows, version("node:B", 3)]).entries) == {}


def test_rows_of_unknown_kinds_are_ignored() -> None:
    rows = [table_row(TableKey.node("B"), "nodes/b"), version("node:B", 1), ManifestRow("x:y", "x_other", TableKey())]
    assert reduce_rows(None, 1, [*rows, sentinel_row(PublishFacts("op", "c", None, None, 3))]).pin("node:B") == 1


def test_a_table_that_is_not_there_has_pin_zero() -> None:
    assert reduce_rows(None, 1, []).pin("node:B") == 0


def test_a_version_without_its_table_row_is_a_damaged_manifest() -> None:
    with pytest.raises(DamagedError, match=r"version 7 of branch 'main' has a row .* no table row.* from a backup"):
        reduce_rows(None, 7, [version("node:B", 1)])


@pytest.mark.parametrize("lacking", ["table_version", "row_count", "location"])
def test_a_row_that_lacks_a_value_is_damage_with_its_place(lacking: str) -> None:
    rows = [table_row(TableKey.node("B"), "nodes/b"), version("node:B", 1), version("node:B", 2)]
    broken = [replace(row, **{lacking: None}) if getattr(row, lacking) is not None else row for row in rows]
    with pytest.raises(DamagedError, match=r"version 7 of branch 'draft' has a row 'node:B.*it lacks a value"):
        reduce_rows(DRAFT, 7, broken)


def test_a_version_row_is_as_the_format_writes_it() -> None:
    row = version_row(
        TableUpdate(TableKey.node("Person"), 5, None, 3, "srv/g/nodes/x/_versions/18446744073709551610.manifest")
    )
    assert row.object_id == "node:Person$00000000000000000005"
    assert row.kind == "table_version"
    assert row.metadata == (
        '{"manifest_path":"srv/g/nodes/x/_versions/18446744073709551610.manifest","manifest_size":null,"e_tag":null,'
        '"naming_scheme":"V2"}'
    )
    assert (row.location, row.table_version, row.table_branch, row.row_count) == (None, 5, None, 3)


def test_the_sentinel_keeps_its_facts() -> None:
    facts = PublishFacts("op", "commit", "parent", "ädä", 41)
    row = sentinel_row(facts)
    assert (row.object_id, row.kind, row.table_key) == ("x:publish", "x_publish", "")
    assert sentinel_facts([row]) == facts
    assert sentinel_facts([]) is None
