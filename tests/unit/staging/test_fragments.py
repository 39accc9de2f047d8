"""Staged files: rows that replace stored ones come first and keep their row ids, and a file is read again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance.fragment import FragmentMetadata, RowIdSequence

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.records.mode import LoadMode
from spark_omnigraph.staging.fragments import last_of_each, locate_staged, packed_lines, stage_rest, write_fragment
from spark_omnigraph.staging.located import LocatedRowsBuilder
from spark_omnigraph.staging.receipt import StagedFragment
from spark_omnigraph.storage.tables.keys import Matches, find_rows
from spark_omnigraph.storage.tables.staged import StagedFile, TableTarget
from tests.unit.staging.tables import FILE, catalog, context, ids, people, target


def kept_row_ids(file: StagedFile) -> object:
    return FragmentMetadata.from_json(file.fragment).row_id_meta


def inline(*row_ids: int) -> object:
    return RowIdSequence(pa.array(row_ids, pa.uint64())).to_inline_metadata()


def staged(of: TableTarget, rows: pa.Table, *left_out: int, first: int = 0) -> StagedFragment:
    keep = ~np.isin(np.arange(rows.num_rows), left_out)
    matches = find_rows(of.open({}), rows["id"]) if of.row_count else None
    ordinals = np.arange(first, first + rows.num_rows, dtype=np.int64)
    return write_fragment(of, rows, ordinals, keep, matches, {})[0]


def test_new_rows_lie_as_they_came(tmp_path: Path) -> None:
    of = target(tmp_path)
    fragment = staged(of, people("x", "y", "z"), first=40)
    assert (fragment.hits, fragment.first_ordinal, fragment.ordinals, fragment.removed) == (0, 40, None, None)
    assert ids(fragment) == ["x", "y", "z"]
    assert Path(fragment.file.uri).parent == Path(of.uri, "data")
    assert Path(fragment.file.uri).is_file()
    assert of.open({}).count_rows() == 0, "nothing becomes visible"


def test_a_row_that_is_left_out_leaves_a_gap(tmp_path: Path) -> None:
    of = target(tmp_path)
    fragment = staged(of, people("w", "x", "y", "z"), 0, 2, first=40)
    assert (fragment.first_ordinal, fragment.file.rows) == (41, 2)
    assert fragment.row_ordinals().tolist() == [41, 43]
    assert ids(fragment) == ["x", "z"]


def test_rows_that_replace_come_first_by_row_id_and_keep_it(tmp_path: Path) -> None:
    of = target(tmp_path, stored=people("a", "b", "c", "d"))
    fragment = staged(of, people("x", "d", "a", "c"), 3)
    assert ids(fragment) == ["a", "d", "x"]
    assert (fragment.hits, fragment.row_ordinals().tolist()) == (2, [2, 1, 0])
    assert fragment.removed_addresses().tolist() == [0, 3]
    assert kept_row_ids(fragment.file) == inline(0, 3)


@pytest.mark.parametrize(
    ("keep", "hit", "row_ids"),
    [
        ([True, True, True, True], [False, True, False, True], [7, 5]),
        (
            [True, True, True, False],
            [True, True, False, False],
            [5, 7],
        ),  # the last one is refused: the one before counts
        ([False, True, False, False], [False, True, False, False], [7]),
    ],
)
def test_the_last_kept_row_of_an_id_replaces(keep: list[bool], hit: list[bool], row_ids: list[int]) -> None:
    found = Matches(
        np.array([True, True, False, True]), np.array([5, 7, 5], np.uint64), np.array([50, 70, 50], np.uint64)
    )
    last = last_of_each(found, np.array(keep))
    assert last.hit.tolist() == hit
    assert last.row_ids.tolist() == row_ids
    assert last.addresses.tolist() == [10 * row_id for row_id in row_ids]


def test_what_is_left_of_a_file_is_written_out_of_itself(tmp_path: Path) -> None:
    of = target(tmp_path, stored=people("a", "b"))
    told = context(of, mode=LoadMode.MERGE)
    whole = staged(of, people("x", "b", "y", "a"), first=10)
    rest = stage_rest(told, of.table_key, whole, np.array([11, 12]))
    assert rest is not None
    assert ids(rest) == ["a", "x"]
    assert (rest.hits, rest.row_ordinals().tolist(), rest.row_lines().tolist()) == (1, [13, 10], [13, 10])
    assert rest.removed_addresses().tolist() == [0]
    assert kept_row_ids(rest.file) == inline(0)
    assert stage_rest(told, of.table_key, whole, np.arange(10, 14)) is None


def test_lines_are_kept_where_they_are_not_the_ordinals(tmp_path: Path) -> None:
    fragment = staged(target(tmp_path), people("x", "y"), first=5)
    assert packed_lines(np.array([5, 6]), fragment) is None
    assert packed_lines(np.array([5, 8]), fragment) is not None


def test_rows_of_a_staged_file_are_located_and_told(tmp_path: Path) -> None:
    of, found = target(tmp_path), LocatedRowsBuilder()
    fragment = staged(of, people("x", "y", "z", age=7), 1, first=5)
    for ordinal, line, text in locate_staged(context(of), of.table_key, fragment, np.array([6, 7, 5])):
        found.add(ordinal, line, 0, text)
    rows = found.built()
    assert (rows.ordinals.tolist(), rows.lines.tolist(), rows.offsets.tolist()) == ([5, 7], [5, 7], [0, 0])
    assert [json.loads(text)["data"] for text in rows.texts(0)] == [
        {"id": name, "name": name, "age": 7} for name in ("x", "z")
    ]


def test_files_with_blobs_are_not_written_again_but_told_by_what_travels_beside(tmp_path: Path) -> None:
    schema = physical_schema(catalog().nodes["File"])
    plain = target(tmp_path, FILE)
    of = TableTarget(FILE, plain.uri, plain.version, 0, ("size",))
    blob = {"data": b"1", "uri": None}
    rows = pa.Table.from_pylist([{"id": "f", "name": "f", "content": blob, "size": 1}], schema)
    fragment, told = staged(of, rows), context(of)
    assert fragment.file.read_beside().to_pydict() == {"size": [1]}
    with pytest.raises(BadRequestError, match="rows of 'File' must be left out after they were written"):
        stage_rest(told, FILE, fragment, np.array([9]))
    [(_, _, text)] = locate_staged(told, FILE, fragment, np.array([0]))
    assert json.loads(text)["data"]["size"] == 1
