"""A column of a stored fragment written anew: what Lance makes of it, and that nothing else of a row moves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance import LanceDataset

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.tables.commits import TableChange, commit_strict, create_dataset, prepare_change
from spark_omnigraph.storage.tables.staged import TableTarget, stage_rows
from spark_omnigraph.storage.values.rewrite import NewValues, _roaring, rewrite_columns
from spark_omnigraph.storage.vectors import vector_type

ROWS = 66_000
"""More than one part of a Roaring bitmap covers."""
VECTOR = vector_type(2)
SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("v", VECTOR), pa.field("w", VECTOR)])


def vectors(numbers: np.ndarray) -> pa.Array:
    pairs = np.repeat(np.asarray(numbers, np.float32), 2)
    return pa.FixedSizeListArray.from_arrays(pa.array(pairs), type=VECTOR)


def new(at: list[int], numbers: list[int]) -> NewValues:
    values = np.array(numbers)
    return NewValues(np.array(at, dtype=np.int64), lambda first, last: vectors(values[first:last]))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two fragments of ROWS rows; of the second, the first and two further rows are deleted."""
    path = tmp_path_factory.mktemp("column") / "t"
    ids = np.arange(2 * ROWS)
    for part in (ids[:ROWS], ids[ROWS:]):
        rows = pa.table({"id": [f"r{i}" for i in part], "v": vectors(part), "w": pa.nulls(ROWS, VECTOR)}, schema=SCHEMA)
        if not path.exists():
            create_dataset(str(path), SCHEMA, rows, {})
        else:
            dataset = LanceDataset(str(path))
            target = TableTarget(TableKey("node:T"), str(path), dataset.version, ROWS)
            commit_strict(dataset, prepare_change(dataset, TableChange((stage_rows(target, rows, None, {}),)), {}))
    LanceDataset(str(path)).delete(f"id IN ('r{ROWS}', 'r{ROWS + 7}', 'r{ROWS + 65536}')")
    return path


@pytest.fixture
def table(template: Path, tmp_path: Path) -> LanceDataset:
    import shutil  # noqa: PLC0415 - of this fixture alone

    shutil.copytree(template, tmp_path / "t")
    return LanceDataset(str(tmp_path / "t"))


def target_of(table: LanceDataset) -> TableTarget:
    return TableTarget(TableKey("node:T"), str(table.uri), table.version, table.count_rows())


def landed(table: LanceDataset, change: TableChange) -> LanceDataset:
    return commit_strict(table, prepare_change(table, change, {}))


COLUMNS = ["id", "v", "w", "_row_created_at_version", "_row_last_updated_at_version"]


def file_fields(table: LanceDataset) -> list[list[int]]:
    fragment = table.get_fragment(0)
    assert fragment is not None
    return [file.fields for file in fragment.metadata.files]


def rows_of(table: LanceDataset, *names: str) -> dict[str, dict[str, object]]:
    listed = ", ".join(f"'{name}'" for name in names)
    found = table.scanner(columns=COLUMNS, with_row_id=True, filter=f"id IN ({listed})").to_table().to_pylist()
    return {row.pop("id"): row for row in found}


def others(table: LanceDataset, *names: str) -> pa.Table:
    listed = ", ".join(f"'{name}'" for name in names)
    return table.scanner(columns=COLUMNS, with_row_id=True, filter=f"id NOT IN ({listed})").to_table()


def test_only_the_given_rows_get_a_value_and_count_as_changed(table: LanceDataset) -> None:
    at = [1, 6, 65535, 65537, ROWS - 1]
    rewrite = rewrite_columns(target_of(table), 1, {"v": new(at, [-1, -6, -7, -8, -9])}, {})
    assert LanceDataset(str(table.uri)).version == table.version  # HEAD does not move
    after = landed(table, TableChange(columns=(rewrite,)))

    names = [f"r{ROWS + offset}" for offset in at]
    expected = rows_of(table, *names)
    for name, number in zip(names, [-1, -6, -7, -8, -9], strict=True):
        expected[name] |= {"v": [number, number], "_row_last_updated_at_version": after.version}
    assert rows_of(after, *names) == expected
    assert others(after, *names) == others(table, *names)
    changed = after.delta(compared_against=table.version)
    assert changed.get_updated_rows().read_all().num_rows == len(at)
    assert changed.get_inserted_rows().read_all().num_rows == 0


def test_two_columns_twice_and_compaction(table: LanceDataset) -> None:
    once = rewrite_columns(target_of(table), 0, {"v": new([0], [5]), "w": new([1, 2], [6, 7])}, {})
    first = landed(table, TableChange(columns=(once,)))
    again = rewrite_columns(target_of(first), 0, {"w": new([2, 3], [8, 9])}, {})
    second = landed(first, TableChange(columns=(again,)))
    # The file of the first time is still there for the column `v`; the one in which nothing is left is not named.
    assert file_fields(second) == [[0, -2, -2], [1, -2], [2]]
    whole = rewrite_columns(target_of(second), 0, {"v": new([4], [1])}, {})
    third = landed(second, TableChange(columns=(whole,)))
    assert file_fields(third) == [[0, -2, -2], [2], [1]]

    third.optimize.compact_files()
    found = rows_of(LanceDataset(str(table.uri)), *(f"r{i}" for i in range(6)))
    assert [found[f"r{i}"]["v"] for i in range(5)] == [[5, 5], [1, 1], [2, 2], [3, 3], [1, 1]]
    assert [found[f"r{i}"]["w"] for i in range(5)] == [None, [6, 6], [8, 8], [9, 9], None]
    assert [found[f"r{i}"]["_row_last_updated_at_version"] for i in range(6)] == [4, 4, 5, 5, 6, 1]


def test_columns_and_whole_rows_land_in_one_version(table: LanceDataset) -> None:
    rewrite = rewrite_columns(target_of(table), 0, {"v": new([3], [-3])}, {})
    row = table.scanner(filter=f"id = 'r{ROWS + 1}'", with_row_id=True, with_row_address=True).to_table()
    values = pa.table({"id": row["id"], "v": vectors(np.array([-4])), "w": row["w"]}, schema=SCHEMA)
    file = stage_rows(target_of(table), values, row["_rowid"].to_numpy(), {})
    after = landed(table, TableChange((file,), row["_rowaddr"].to_numpy(), columns=(rewrite,)))
    names = ("r3", f"r{ROWS + 1}")
    expected = rows_of(table, *names)
    for name, number in zip(names, (-3, -4), strict=True):
        expected[name] |= {"v": [number, number], "_row_last_updated_at_version": after.version}
    assert after.version == table.version + 1
    assert rows_of(after, *names) == expected
    assert others(after, *names).sort_by("_rowid") == others(table, *names).sort_by("_rowid")


def test_it_lands_on_the_version_it_was_made_for_or_not_at_all(table: LanceDataset) -> None:
    rewrite = rewrite_columns(target_of(table), 1, {"v": new([1], [-1])}, {})
    rows = pa.table({"id": ["late"], "v": vectors(np.array([0])), "w": pa.nulls(1, VECTOR)}, schema=SCHEMA)
    landed(table, TableChange((stage_rows(target_of(table), rows, None, {}),)))
    with pytest.raises(CommitFailed):
        landed(table, TableChange(columns=(rewrite,)))


def test_a_vector_index_answers_for_new_values_alone(table: LanceDataset) -> None:
    table.create_index("v", "IVF_FLAT", num_partitions=1, metric="L2")
    indexed = LanceDataset(str(table.uri))
    rewrite = rewrite_columns(target_of(indexed), 1, {"v": new([1, 2], [500_000, -3])}, {})
    after = landed(indexed, TableChange(columns=(rewrite,)))

    def nearest(number: int, k: int = 1) -> list[str]:
        query = {"column": "v", "q": np.full(2, number, np.float32), "k": k}
        found: list[str] = after.to_table(columns=["id"], nearest=query, prefilter=True)["id"].to_pylist()
        return found

    assert nearest(500_000) == [f"r{ROWS + 1}"]  # out of the index, found by looking at it
    assert nearest(-3) == [f"r{ROWS + 2}"]
    assert nearest(ROWS + 1) != [f"r{ROWS + 1}"]  # the old value is not answered for
    assert nearest(5) == ["r5"]
    # The first fragment leaves the index too: every commit lists it, so that any two collide, and Lance cannot tell.
    assert after.stats.index_stats("v_idx")["num_indexed_rows"] == 0


@pytest.mark.parametrize("offsets", [[], [0], [5, 65535, 65536], list(range(0, 200_000, 3))])
def test_roaring_bitmaps_are_those_of_lance(table: LanceDataset, offsets: list[int]) -> None:
    alive = [o for o in offsets if 0 < o < ROWS and o not in (7, 65536)]
    if not alive:
        assert _roaring(np.array([], dtype=np.int64))[:4] == b":0\x00\x00"
        return
    update = pa.table({"_rowid": pa.array([ROWS + o for o in alive], pa.uint64()), "v": vectors(np.zeros(len(alive)))})
    fragment = table.get_fragment(1)
    assert fragment is not None
    *_, expected = fragment.update_columns(update, with_offsets=True)
    assert _roaring(np.array(alive, dtype=np.int64)) == expected
