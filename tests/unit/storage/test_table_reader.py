"""Positions stand for the rows of a version, whatever was deleted, updated, appended or compacted before it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from spark_omnigraph.errors import StorageError
from spark_omnigraph.memory import Memory
from spark_omnigraph.storage.tables.reader import ReadCache, TableReader
from spark_omnigraph.storage.tables.scan import PinnedTable
from spark_omnigraph.storage.tables.search import Restricted, nearest_rows, text_hits


def rows(first: int, last: int) -> pa.Table:
    count = last - first
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(first * 2, last * 2), pa.float32()), 2)
    texts = [f"word{i} {'even' if i % 2 == 0 else 'odd'}" for i in range(first, last)]
    return (
        pa.table({"id": [f"k{i}" for i in range(first, last)], "n": range(first, last), "t": texts, "v": vectors})
        if count
        else None
    )


def states(folder: Path) -> list[TableReader]:
    """The versions of one table: written, indexed, thinned, changed, grown, compacted."""
    uri = str(folder / "t")
    lance.write_dataset(rows(0, 60), uri, enable_stable_row_ids=True, max_rows_per_file=20)
    dataset = lance.dataset(uri)
    dataset.create_scalar_index("n", "BTREE")
    dataset.create_scalar_index("t", "INVERTED")
    dataset = lance.dataset(uri)
    dataset.delete("n % 3 = 0")
    dataset.update({"n": "n + 1000", "t": "'changed even'"}, where="n > 50")
    lance.write_dataset(rows(60, 70), uri, mode="append")
    lance.dataset(uri).optimize.compact_files()
    newest = lance.dataset(uri).version
    return [TableReader(PinnedTable(uri, version)) for version in range(1, newest + 1)]


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> list[TableReader]:
    return states(tmp_path_factory.mktemp("states"))


def test_positions_name_the_same_row_everywhere(readers: list[TableReader]) -> None:
    assert len(readers) >= 7
    for reader in readers:
        everything = reader.columns(["id", "n", "t"]).to_pylist()
        assert len(everything) == reader.rows
        every = np.arange(reader.rows, dtype=np.int64)
        assert reader.take(every[::-1], ["n", "id", "t"]).to_pylist() == [
            dict(sorted(r.items(), key=lambda kv: "n id t".index(kv[0]))) for r in everything[::-1]
        ]
        conditions: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
            ("n > 30", lambda r: r["n"] > 30),
            ("n = 1052", lambda r: r["n"] == 1052),
            ("id IN ('k1', 'k65')", lambda r: r["id"] in ("k1", "k65")),
        ]
        for where, keeps in conditions:
            expected = [i for i, row in enumerate(everything) if keeps(row)]
            assert reader.find(where).tolist() == expected
            positions, table = reader.where(where, ["id"])
            assert dict(zip(positions.tolist(), table.column("id").to_pylist(), strict=True)) == {
                i: everything[i]["id"] for i in expected
            }
        hits = text_hits(reader, "t", "even")
        assert hits.positions.tolist() == [i for i, row in enumerate(everything) if "even" in row["t"]]
        near, _ = nearest_rows(reader, "v", np.array([0, 1], dtype=np.float32), 5, Restricted("n > 10"))
        wanted = sorted(
            (i for i, row in enumerate(everything) if row["n"] > 10), key=lambda i: int(everything[i]["id"][1:])
        )
        assert sorted(near.tolist()) == sorted(wanted[:5])


def test_a_position_may_be_taken_twice(readers: list[TableReader]) -> None:
    reader = readers[-1]
    ids = reader.columns(["id"]).column("id").to_pylist()
    assert reader.take(np.array([3, 1, 3]), ["id"]).column("id").to_pylist() == [ids[3], ids[1], ids[3]]
    assert reader.take(np.array([], dtype=np.int64), ["id"]).num_rows == 0


def test_a_cache_opens_a_version_once(readers: list[TableReader]) -> None:
    cache = ReadCache()
    first = cache.open(readers[0].table)
    assert cache.open(readers[0].table) is first
    assert cache.open(readers[1].table) is not first
    assert first.names == {"id", "n", "t", "v"}
    with pytest.raises(StorageError):
        cache.open(PinnedTable(readers[0].table.uri, 999))


def test_tables_of_all_graphs_share_one_memory(readers: list[TableReader], tmp_path: Path) -> None:
    memory = Memory(64 << 20)
    cache, other = ReadCache(memory), ReadCache(memory)
    first = cache.open(readers[0].table)
    assert first.memory is memory
    assert first.take(np.array([2]), ["id"]).column("id").to_pylist() == ["k2"]
    assert other.open(readers[0].table) is not first
    # Lance has read something meanwhile, which is weighed when the next table is opened.
    cache.open(readers[1].table)
    assert 0 < memory.bytes < 1 << 20
    memory.put(bytes, "a value of another kind", b"", (64 << 20) - 1)
    assert cache.open(readers[0].table) is not first


def test_a_graph_that_is_gone_leaves_nothing(readers: list[TableReader]) -> None:
    memory = Memory()
    cache = ReadCache(memory)
    cache.open(readers[0].table).columns(["id"])
    cache.open(readers[1].table)
    assert memory.bytes > 0
    del cache
    assert memory.bytes == 0


def test_without_memory_tables_are_read_all_the_same(readers: list[TableReader]) -> None:
    memory = Memory(0)
    opened = ReadCache(memory).open(readers[-1].table)
    assert text_hits(opened, "t", "even").positions.tolist() == text_hits(readers[-1], "t", "even").positions.tolist()
    assert memory.bytes == 0


def test_what_a_search_makes_is_kept_in_the_memory(readers: list[TableReader], tmp_path: Path) -> None:
    lance.write_dataset(rows(0, 6), str(tmp_path / "t"))
    memory = Memory()
    reader = TableReader(PinnedTable(str(tmp_path / "t"), 1), memory)
    assert text_hits(reader, "t", "even").positions.tolist() == [0, 2, 4]
    made = memory.get(lance.LanceDataset, (reader.identity, "t"))
    assert made is not None
    assert memory.bytes == 3 * reader.columns(["t"]).nbytes
    text_hits(reader, "t", "odd")
    assert memory.get(lance.LanceDataset, (reader.identity, "t")) is made


def test_identity_tells_states_apart(readers: list[TableReader], tmp_path: Path) -> None:
    assert len({reader.identity for reader in readers}) == len(readers)
    anew = states(tmp_path / "anew")
    assert anew[0].table.version == readers[0].table.version
    assert anew[0].identity[2] != readers[0].identity[2]


def test_a_branch_that_was_made_anew_has_another_identity(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(rows(0, 3), uri, enable_stable_row_ids=True)
    seen = {}
    for gone in ("k0", "k1"):
        branch = lance.dataset(uri).create_branch("b")
        branch.delete(f"id = '{gone}'")
        reader = TableReader(PinnedTable(f"{uri}/tree/b", branch.version))
        seen[reader.identity] = reader.columns(["id"]).column("id").to_pylist()
        lance.dataset(uri).branches.delete("b")
    # The place, the version and the number of deleted rows are the same.
    assert list(seen.values()) == [["k1", "k2"], ["k0", "k2"]]
