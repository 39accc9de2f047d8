"""Columns in memory: when they are read whole, that they stay within their memory, and that they are never stale."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from spark_omnigraph.engine.columns import Columns
from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.memory import Memory
from spark_omnigraph.storage.tables.reader import Positions, ReadCache, TableReader
from spark_omnigraph.storage.tables.scan import PinnedTable
from spark_omnigraph.validate.key_index import TextIndex

ROWS = 10_000
COSTS = Costs()


class Watched(TableReader):
    """Counts what is read."""

    def __init__(self, pinned: PinnedTable) -> None:
        super().__init__(pinned, Memory())
        self.wholes: list[list[str]] = []
        self.takes: list[int] = []

    def columns(self, names: Sequence[str]) -> pa.Table:
        self.wholes.append(list(names))
        return super().columns(names)

    def take(self, positions: Positions, names: Sequence[str]) -> pa.Table:
        self.takes.append(len(positions))
        return super().take(positions, names)


@pytest.fixture
def reader(tmp_path: Path) -> Watched:
    rows = pa.table(
        {"n": pa.array(range(ROWS), pa.int64()), "t": [f"t{i % 7}" for i in range(ROWS)], "wide": ["x" * 900] * ROWS}
    )
    dataset = lance.write_dataset(rows, str(tmp_path / "t"))
    return Watched(PinnedTable(str(tmp_path / "t"), dataset.version))


def within(reader: Watched, budget: int) -> Columns:
    reader.memory = Memory(budget)
    return Columns(reader, COSTS)


def at(*positions: int) -> np.ndarray:
    return np.array(positions, dtype=np.int64)


def test_single_rows_are_taken_until_that_has_cost_as_much_as_the_column(reader: Watched) -> None:
    kept = Columns(reader, COSTS)
    # A column of 8 bytes costs 25 + 8 * 10,000 / 5,000 = 41 rows, a look-up of one row 26.
    assert kept.read(at(5), ["n"])["n"].to_pylist() == [5]
    assert (reader.takes, reader.wholes) == ([1], [])
    assert kept.read(at(7, 3), ["n"])["n"].to_pylist() == [7, 3]
    assert reader.wholes == [["n"]]
    assert kept.read(at(9, 9, 0), ["n"])["n"].to_pylist() == [9, 9, 0]
    assert (reader.takes, reader.wholes) == ([1], [["n"]])


def taken_until_whole(kept: Columns, reader: Watched, most: int) -> int:
    """How often single rows are read until their column is read whole."""
    reader.wholes.clear()
    for number in range(1, most + 1):
        assert kept.read(at(number), ["n"])["n"].to_pylist() == [number]
        if reader.wholes:
            return number
    pytest.fail("the column is never read whole")


def test_a_column_is_read_whole_early_the_first_time_and_then_where_the_one_before_has_paid(reader: Watched) -> None:
    costs = replace(COSTS, row_bytes=100)  # the column costs 25 + 8 * 10,000 / 100 = 825 rows, a look-up 26
    assert taken_until_whole(Columns(reader, costs), reader, 40) == 6  # a sixth
    next_one = Watched(PinnedTable(reader.table.uri, _appended(reader.table.uri)))
    next_one.memory = reader.memory
    assert taken_until_whole(Columns(next_one, costs), next_one, 40) == 32
    for _ in range(32):
        Columns(next_one, costs).read(at(1), ["n"])
    assert (len(next_one.wholes), len(next_one.takes)) == (1, 31)
    third = Watched(PinnedTable(reader.table.uri, _appended(reader.table.uri, ROWS + 1)))
    third.memory = reader.memory
    assert taken_until_whole(Columns(third, costs), third, 40) == 6


@pytest.mark.parametrize("count", [0, 1, 8, 9])
def test_rows_of_a_kept_column_do_not_hold_all_of_it(reader: Watched, count: int) -> None:
    kept = Columns(reader, COSTS)
    names = ["n", "t", "wide"]
    kept.whole(names)
    found = kept.read(np.arange(count, dtype=np.int64)[::-1], names)
    assert found["n"].to_pylist() == list(range(count))[::-1]
    assert found["t"].to_pylist() == [f"t{i % 7}" for i in range(count)][::-1]
    assert all(column.get_total_buffer_size() <= 64 + 1_024 * count for column in found.values())


def test_many_rows_are_read_with_the_whole_column_at_once_and_wide_ones_later(reader: Watched) -> None:
    kept = Columns(reader, COSTS)
    some = np.arange(0, ROWS, 40, dtype=np.int64)
    assert kept.read(some, ["n"])["n"].to_pylist() == some.tolist()
    assert reader.wholes == [["n"]]
    kept.read(some, ["wide"])
    assert reader.wholes == [["n"]]
    more = np.arange(0, ROWS, COSTS.many_share, dtype=np.int64)
    kept.read(more, ["wide", "t"])
    assert reader.wholes == [["n"], ["wide", "t"]]


def test_memory_is_bounded_and_large_columns_are_read_but_not_kept(reader: Watched) -> None:
    every = np.arange(ROWS, dtype=np.int64)
    kept = within(reader, 1_200_000)
    assert kept.read(every, ["wide"])["wide"][ROWS - 1].as_py() == "x" * 900
    assert reader.memory.bytes == 0
    assert not kept.fits(["wide"])
    assert kept.fits(["n"])
    for _ in range(30):
        assert kept.read(at(1), ["wide"])["wide"].to_pylist() == ["x" * 900]
    assert len(reader.wholes) == 1
    kept.read(every, ["n"])
    assert 0 < reader.memory.bytes <= 100_000


def test_texts_are_numbered_once(reader: Watched) -> None:
    kept = Columns(reader, COSTS)
    found = kept.text_numbers("t")
    assert found is not None
    assert (found.numbers[:9].tolist(), found.size) == ([0, 1, 2, 3, 4, 5, 6, 0, 1], 7)
    assert kept.text_numbers("t") is found
    assert kept.text_numbers("n") is None
    assert within(reader, 1000).text_numbers("t") is None


def test_a_sample_is_read_once_and_comes_from_everywhere(reader: Watched) -> None:
    kept = Columns(reader, COSTS)
    values = kept.sample("n").to_pylist()
    assert len(values) == COSTS.sample_rows
    assert (min(values), max(values)) == (0, ROWS - 1)
    assert kept.sample("n").to_pylist() == values
    assert reader.takes == [COSTS.sample_rows]


SEVENTH = ["t5", "t9", "t0"]
"""Texts of the column `t`, and one that it has not."""


def found(kept: Columns, beside: Sequence[str] = ()) -> list[tuple[int, int]] | None:
    known = kept.find("t", SEVENTH, beside)
    return None if known is None else list(zip(known[0].tolist(), known[1].tolist(), strict=True))


def rows_of_texts(count: int) -> list[tuple[int, int]]:
    return [(which, row) for which, text in enumerate(SEVENTH) for row in range(count) if f"t{row % 7}" == text]


def asked_until_found(kept: Columns, most: int) -> int:
    """How often rows are asked for until an index in memory answers."""
    for number in range(1, most + 1):
        if found(kept) is not None:
            return number
    pytest.fail("no index is made")


def test_an_index_of_texts_is_made_when_asking_lance_has_cost_enough(reader: Watched) -> None:
    # It would pay after 1,000 look-ups; three texts of one count as 1 + 3 / 8 of them.
    kept = Columns(reader, replace(COSTS, index_rows=10, first_asked=4, first_share=128))
    assert [found(kept, ["n"]) for _ in range(5)] == [None] * 5
    assert found(kept, ["n"]) == rows_of_texts(ROWS)
    assert found(kept, ["n"]) == rows_of_texts(ROWS)
    assert (reader.takes, reader.wholes) == ([16], [["t", "n"]]), "a sample for its width, and both columns"
    assert kept.read(at(9, 8), ["n"])["n"].to_pylist() == [9, 8]
    assert reader.wholes == [["t", "n"]]


def test_where_versions_change_before_an_index_has_paid_the_next_one_has_to_pay_first(reader: Watched) -> None:
    costs = replace(COSTS, index_rows=500, first_asked=4)  # pays after 20 look-ups
    assert asked_until_found(Columns(reader, costs), 3) == 3
    next_one = Watched(PinnedTable(reader.table.uri, _appended(reader.table.uri)))
    next_one.memory = reader.memory
    assert asked_until_found(Columns(next_one, costs), 20) == 15
    assert found(Columns(next_one, costs)) == rows_of_texts(ROWS + 1)
    for _ in range(20):
        found(Columns(next_one, costs))
    third = Watched(PinnedTable(reader.table.uri, _appended(reader.table.uri, ROWS + 1)))
    third.memory = reader.memory
    assert asked_until_found(Columns(third, costs), 3) == 3
    assert found(Columns(third, costs)) == rows_of_texts(ROWS + 2)
    assert found(Columns(reader, costs)) == rows_of_texts(ROWS)


def _appended(uri: str, number: int = ROWS) -> int:
    rows = pa.table({"n": pa.array([number], pa.int64()), "t": [f"t{number % 7}"], "wide": ["x"]})
    return int(lance.write_dataset(rows, uri, mode="append").version)


@pytest.mark.parametrize(("budget", "fits"), [(1 << 20, False), (1 << 22, True)])
def test_an_index_of_texts_stays_within_the_memory(reader: Watched, budget: int, fits: bool) -> None:
    kept = within(reader, budget)
    assert found(kept) is None, "who asks once does not wait for an index"
    for _ in range(4):
        assert found(kept) == (rows_of_texts(ROWS) if fits else None)
        assert 12 * ROWS * fits <= reader.memory.bytes <= budget
    assert reader.memory.has(TextIndex, (reader.identity, "t")) is fits
    reader.memory.forget(pa.Array, (reader.identity, "t"))
    if fits:
        assert found(kept) == rows_of_texts(ROWS), "texts are compared with those that are stored"


def test_texts_of_a_kind_that_only_others_write_have_no_index(tmp_path: Path) -> None:
    rows = pa.table({"t": pa.array(["t5", "t0"], pa.large_string())})
    dataset = lance.write_dataset(rows, str(tmp_path / "large"))
    kept = Columns(TableReader(PinnedTable(str(tmp_path / "large"), dataset.version), Memory()), COSTS)
    assert [found(kept) for _ in range(3)] == [None] * 3


SCHEMA = "node P { name: String @key  city: String?  n: I32? }"
GROUPED = "query q() { match { $p: P } return { $p.city, count($p) as c, sum($p.n) as s } order { c desc } }"
FILTERED = "query q() { match { $p: P $p.n > 1 } return { $p.name } order { $p.name } }"


def line(name: str, city: str, n: int) -> str:
    return f'{{"type": "P", "data": {{"name": "{name}", "city": "{city}", "n": {n}}}}}'


def grouped(graph: Graph) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in graph.query(GROUPED).to_pylist()]


def names(graph: Graph) -> list[object]:
    return [row["p.name"] for row in graph.query(FILTERED).to_pylist()]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = Graph.init(tmp_path / "g", SCHEMA)
    made.load([line("a", "x", 1), line("b", "x", 2), line("c", "y", 3)])
    assert grouped(made) == [("x", 2, 3.0), ("y", 1, 3.0)]
    assert names(made) == ["b", "c"]
    return made


def load_more(uri: str) -> None:
    Graph.open(uri).load([line("d", "y", 9), line("e", "y", 0)])


def test_each_kind_of_write_shows_at_once(graph: Graph) -> None:
    graph.load([line("a", "y", 5)], "merge")
    assert grouped(graph) == [("y", 2, 8.0), ("x", 1, 2.0)]
    assert names(graph) == ["a", "b", "c"]
    graph.mutate('query m() { delete P where name = "b" }')
    assert grouped(graph) == [("y", 2, 8.0)]
    graph.optimize()
    assert grouped(graph) == [("y", 2, 8.0)]
    graph.load([line("z", "z", 7)], "overwrite")
    assert (grouped(graph), names(graph)) == ([("z", 1, 7.0)], ["z"])


def test_a_write_of_another_process_shows_at_once(graph: Graph) -> None:
    other = multiprocessing.get_context("spawn").Process(target=load_more, args=(graph.uri,))
    other.start()
    other.join()
    assert other.exitcode == 0
    assert grouped(graph) == [("y", 3, 12.0), ("x", 2, 3.0)]
    assert names(graph) == ["b", "c", "d"]


def test_branches_and_the_past_show_their_own_rows(graph: Graph) -> None:
    before = graph.at()
    graph.create_branch("draft")
    graph.load([line("d", "z", 4)], branch="draft")
    graph.mutate('query m() { update P set { n: 0 } where name = "c" }')
    draft = graph.at(branch="draft")
    assert names(draft) == ["b", "c", "d"]
    assert names(graph) == ["b"]
    assert names(before) == ["b", "c"]
    assert grouped(draft)[-1] == ("z", 1, 4.0)


def test_a_graph_made_anew_in_the_same_place_shows_its_own_rows(graph: Graph) -> None:
    anew = Graph.init(graph.uri, SCHEMA, force=True)
    anew.load([line("a", "k", 7), line("b", "k", 7), line("c", "k", 7)])
    assert grouped(anew) == [("k", 3, 21.0)]
    assert names(anew) == ["a", "b", "c"]


def test_what_a_mutation_wrote_shows_beside_columns_in_memory(graph: Graph) -> None:
    graph.mutate('query m() { insert P { name: "d", city: "x", n: 8 } update P set { city: "w" } where n > 2 }')
    assert grouped(graph) == [("w", 2, 11.0), ("x", 2, 3.0)]


@pytest.mark.parametrize("budget", [0, 2_000, 20_000, 1 << 20])
def test_any_memory_gives_the_same_rows_and_is_kept_to(graph: Graph, budget: int) -> None:
    memory = Memory(budget)
    graph.store.reads = ReadCache(memory)
    graph.load([line(f"n{i:03}", "abc"[i % 3], i) for i in range(300)])
    searched = 'query q() { match { $p: P search($p.city, "b") } return { count($p) as n } }'
    for _ in range(3):
        assert grouped(graph)[:3] == [("a", 100, 14850.0), ("b", 100, 14950.0), ("c", 100, 15050.0)]
        assert len(names(graph)) == 300
        assert graph.query(searched).to_pylist() == [{"n": 100}]
        assert memory.bytes <= budget
    assert (memory.bytes > 0) == (budget > 0)
