"""Manifest rows of later formats as values: tables by their ids, commits as rows."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import DamagedError
from spark_omnigraph.manifest.formats.commit_rows import commits_of
from spark_omnigraph.manifest.formats.identity import reduce_by_identity
from spark_omnigraph.manifest.formats.stamps import FORMATS, format_of
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.rows import ManifestRow, TableId
from spark_omnigraph.manifest.snapshot import Snapshot

FIRST, SECOND = TableId(0x1C, 0x1F), TableId(2, 0x18)


def table(name: str, table_id: TableId | None, location: str | None = None) -> ManifestRow:
    place = location or (f"nodes/{table_id[0]:016x}-{table_id[1]:016x}" if table_id else "nodes/x")
    return ManifestRow("t", "table", TableKey(name), location=place, identity=table_id)


def version(name: str, table_id: TableId | None, number: int, rows: int = 1) -> ManifestRow:
    return ManifestRow(f"v{number}", "table_version", TableKey(name), None, None, number, None, rows, identity=table_id)


def tombstone(name: str, table_id: TableId, number: int) -> ManifestRow:
    return ManifestRow(f"x{number}", "table_tombstone", TableKey(name), None, None, number, identity=table_id)


def shown(rows: Iterable[ManifestRow]) -> Snapshot:
    return reduce_by_identity(None, 7, rows)


def test_a_table_has_the_name_of_its_row_and_the_version_of_its_ids() -> None:
    rows = [table("node:Vessel", FIRST), version("node:Boat", FIRST, 3, 5), version("node:Boat", FIRST, 2)]
    entry = shown(rows).entries["node:Vessel"]
    assert (entry.location, entry.version, entry.row_count) == ("nodes/000000000000001c-000000000000001f", 3, 5)
    assert entry.identity == FIRST
    assert list(shown(rows).entries) == ["node:Vessel"]


def test_a_tombstone_hides_its_own_table_alone() -> None:
    old = [table("node:Crane", SECOND), version("node:Crane", SECOND, 2), tombstone("node:Crane", SECOND, 2)]
    new = [table("node:Crane", FIRST), version("node:Crane", FIRST, 1, 9)]
    assert shown(old).entries == {}
    assert shown([*old, *new]).entries["node:Crane"].row_count == 9
    assert shown([*old, version("node:Crane", SECOND, 3)]).entries["node:Crane"].version == 3


@pytest.mark.parametrize("table_id", [None, TableId(0, 1), TableId(1, 0)])
def test_ids_that_are_none(table_id: TableId | None) -> None:
    for row in (table("node:P", table_id), version("node:P", table_id, 1)):
        with pytest.raises(DamagedError, match="no ids, or one that is 0"):
            shown([row])


def test_two_live_tables_of_one_name() -> None:
    rows = [row for each in (FIRST, SECOND) for row in (table("node:P", each), version("node:P", each, 1))]
    with pytest.raises(DamagedError, match="a second table 'node:P'"):
        shown(rows)


@pytest.mark.parametrize("place", ["nodes/x", "edges/000000000000001c-000000000000001f", "nodes/40d76f1f51639ec0"])
def test_a_path_that_is_not_that_of_the_ids(place: str) -> None:
    with pytest.raises(DamagedError, match="places its table at"):
        shown([table("node:P", FIRST, place)])


def test_a_version_without_a_table_row() -> None:
    with pytest.raises(DamagedError, match="no table row"):
        shown([version("node:P", FIRST, 1)])


def commit_row(metadata: str | None, number: int | None = 4) -> ManifestRow:
    return ManifestRow("01A", "graph_commit", TableKey(), None, metadata, number)


def test_commits_are_rows() -> None:
    told = '{"parent_commit_id":"01B","merged_parent_commit_id":"01C","actor_id":"ada","created_at":12}'
    head = ManifestRow("graph_head:main", "graph_head", TableKey(), None, '{"head_commit_id":"01A"}')
    assert commits_of([head, commit_row(told)]) == [Commit("01A", None, 4, "01B", "01C", 12, "ada")]
    assert commits_of([commit_row('{"created_at":1,"x":2}')]) == [Commit("01A", None, 4, None, None, 1)]


@pytest.mark.parametrize(
    ("metadata", "number"), [(None, 4), ("{}", 4), ('{"created_at":"1"}', 4), ('{"created_at":1}', None)]
)
def test_commits_that_no_engine_writes(metadata: str | None, number: int | None) -> None:
    with pytest.raises(DamagedError):
        commits_of([commit_row(metadata, number)])


def test_what_belongs_to_a_stamp() -> None:
    assert {n: (f.commits is not None, f.documents, f.is_written) for n, f in FORMATS.items()} == {
        1: (False, 1, True),
        2: (False, 1, True),
        3: (False, 1, True),
        4: (True, 1, False),
        5: (True, 2, False),
        6: (True, 2, False),
    }
    assert "spark-omnigraph convert s3://b/g TO" in format_of("6", (), "g").refusal("s3://b/g").message
