"""Look-ups by key give the same rows whichever way they take: filters, an index, or the whole column."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spark_omnigraph.storage.tables import keys
from spark_omnigraph.storage.tables.keys import find_rows, rows_among, rows_with, stored_among

WORDS = [f"{letter}{number:03d}" for letter in "aéz'" for number in range(100)]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    rng = random.Random(5)
    ids = rng.sample(WORDS, 300)
    ends = [rng.choice(WORDS) for _ in range(600)]
    rows = pa.table({"id": ids, "src": ends[:300], "dst": ends[300:]})
    uri = str(tmp_path_factory.mktemp("keys") / "t.lance")
    dataset = lance.write_dataset(rows, uri, max_rows_per_file=70, enable_stable_row_ids=True)
    for column in ("id", "src", "dst"):
        dataset.create_scalar_index(column, "BTREE")
    dataset.delete("id < 'a020'")
    return lance.dataset(uri)


@pytest.fixture(params=["filter", "index", "all rows"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "filter":
        monkeypatch.setattr(keys, "IN_LIST_LIMIT", 7)
        monkeypatch.setattr(keys, "_SCAN_BATCH", 16)
    if request.param == "index":
        monkeypatch.setattr(keys, "_ROWS_A_LOOKUP", 0)
    return str(request.param)


@pytest.mark.parametrize("seed", range(4))
def test_all_ways_find_the_same_rows(stored: lance.LanceDataset, way: str, seed: int) -> None:
    rng = random.Random(seed)
    probe = [*rng.sample(WORDS, rng.choice([1, 12, 150])), "nowhere"]
    everything = stored.to_table(with_row_id=True, with_row_address=True).to_pylist()
    by_id = {row["id"]: row for row in everything}

    matches = find_rows(stored, pa.array([*probe, probe[0]]))
    hits = [by_id[key] for key in [*probe, probe[0]] if key in by_id]
    assert matches.hit.tolist() == [key in by_id for key in [*probe, probe[0]]]
    assert matches.row_ids.tolist() == [row["_rowid"] for row in hits]
    assert matches.addresses.tolist() == [row["_rowaddr"] for row in hits]

    assert sorted(stored_among(stored, "id", pa.array(probe)).to_pylist()) == sorted(set(probe) & by_id.keys())

    touching = {row["id"]: row["_rowaddr"] for row in everything if {row["src"], row["dst"]} & set(probe)}
    found = rows_with(stored, ["src", "dst"], pa.array(probe))
    assert dict(zip(found.ids.to_pylist(), found.addresses.tolist(), strict=True)) == touching
    assert len(found.ids) == len(touching)


def test_nothing_is_found_for_no_key(stored: lance.LanceDataset, way: str) -> None:
    matches = find_rows(stored, pa.array([], pa.string()))
    assert [len(part) for part in (matches.hit, matches.row_ids, matches.addresses)] == [0, 0, 0]
    assert stored_among(stored, "id", pa.array(["nowhere"])).to_pylist() == []
    assert len(rows_with(stored, ["id"], pa.array(["nowhere"])).ids) == 0


def test_the_keys_are_compared_once_for_many_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Arrow hashes all wanted keys anew for every call: a call a batch costs more than everything else.
    ids = [f"k{i:05d}" for i in np.random.default_rng(1).permutation(40_000)]
    dataset = lance.write_dataset(pa.table({"id": ids}), str(tmp_path / "t.lance"))
    monkeypatch.setattr(keys, "_SCAN_BATCH", 1_000)
    compared: list[int] = []
    is_in = pc.is_in

    def counted(column: pa.ChunkedArray, value_set: pa.Array) -> pa.ChunkedArray:
        compared.append(len(column))
        return is_in(column, value_set=value_set)

    monkeypatch.setattr(pc, "is_in", counted)
    near = pa.array([f"k{i:05d}" for i in range(20_000, 26_000)])
    assert sum(batch.num_rows for batch in rows_among(dataset, ["id"], ["id"], near)) == 6_000
    assert compared == [6_000]
    compared.clear()
    far = pa.array([f"k{i:05d}" for i in range(0, 40_000, 5)])
    assert sum(batch.num_rows for batch in rows_among(dataset, ["id"], ["id"], far)) == 8_000
    assert (len(compared), sum(compared)) == (2, 39_996)


def test_few_keys_of_a_large_table_are_asked_of_its_index(
    stored: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(keys, "IN_LIST_LIMIT", 2)
    monkeypatch.setattr(keys, "_ROWS_A_LOOKUP", 10)
    wanted = pa.array(WORDS[50:55])
    parts = keys._slices(stored, ["id"], wanted)
    assert parts is not None
    assert [part.to_pylist() for part in parts] == [WORDS[50:52], WORDS[52:54], WORDS[54:55]]
    assert keys._slices(stored, ["id"], pa.array(WORDS)) is None, "too many for the size of the table"
    bare = lance.write_dataset(stored.to_table(), str(tmp_path / "bare.lance"))
    assert keys._slices(bare, ["id"], wanted) is None, "there is no index"
    bare.create_scalar_index("id", "BTREE")
    assert keys._slices(bare, ["id"], wanted) is not None
    grown = lance.write_dataset(stored.to_table(), str(tmp_path / "bare.lance"), mode="append")
    assert keys._slices(grown, ["id"], wanted) is None, "half of the rows are in no index"
