"""Rows replaced, removed and added after an index was built: every kind of index answers for what is stored now."""

from __future__ import annotations

import json
import shutil

import lance
import numpy as np
import pytest

from spark_omnigraph import Graph
from spark_omnigraph.graph.read.scan import pin
from spark_omnigraph.storage.tables import search
from spark_omnigraph.storage.tables.reader import TableReader
from spark_omnigraph.storage.tables.rewritten import rewritten
from spark_omnigraph.storage.tables.scan import PinnedTable
from spark_omnigraph.storage.tables.search import Restricted, best_text_rows, nearest_rows, text_hits

SCHEMA = "node P { k: String @key  t: String? @index  n: I32? @index  e: enum(x, y)? @index  v: Vector(2)? @index }"
WORDS = ("word3", "word4", "word5", "word7", "beta", "gamma", "delta", "omega", "alpha")


def _line(key: str, text: str | None, number: int | None, at: float | None, e: str | None = "x") -> str:
    vector = None if at is None else [at, 0.0]
    return json.dumps({"type": "P", "data": {"k": key, "t": text, "n": number, "e": e, "v": vector}})


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PinnedTable]:
    """One table in several states after its indexes were built."""
    folder = tmp_path_factory.mktemp("search")
    graph = Graph.init(folder / "g", SCHEMA)
    found: dict[str, PinnedTable] = {}

    def note(name: str) -> PinnedTable:
        found[name] = pin(graph.store, graph.snapshot().entries["node:P"])
        return found[name]

    graph.load([_line(f"k{i}", f"alpha word{i}", i, i) for i in range(40)])
    note("whole")
    graph.load([_line("k3", "beta", 1003, 500.0, "y"), _line("k4", None, None, None, None)], "merge")
    note("replaced")
    graph.mutate('query m() { update P set { t: "delta", n: 1005 } where k = "k5" }')
    graph.delete("node:P", ["k7"])
    graph.load([_line("k7", "omega", 1007, 700.0)])
    note("removed and added again")
    graph.ensure_indices()
    note("extended")
    graph.load([_line("k3", "beta gamma", 2003, 3.0)], "merge")
    grown = note("extended and replaced")
    graph.ensure_indices()
    note("extended twice")
    copied = folder / "joined"
    shutil.copytree(grown.uri, copied)
    joined = lance.dataset(copied)
    joined.optimize.optimize_indices()
    found["joined by Lance"] = PinnedTable(str(copied), int(joined.version), {})
    graph.optimize()
    note("optimized")
    return found


STATES = (
    "whole", "replaced", "removed and added again", "extended", "extended and replaced", "extended twice",
    "joined by Lance", "optimized",
)  # laid out as a table  # fmt: skip


@pytest.fixture(params=STATES)
def reader(request: pytest.FixtureRequest, states: dict[str, PinnedTable]) -> TableReader:
    return TableReader(states[request.param])


@pytest.fixture(params=[0, 500_000], ids=["by Lance", "in memory"])
def most_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(search, "REBUILT_ROWS", request.param)
    size: int = request.param
    return size


@pytest.mark.usefixtures("most_rows")
def test_texts_are_found_by_the_words_that_they_have_now(reader: TableReader) -> None:
    texts = reader.columns(["t"]).column(0).to_pylist()
    for word in WORDS:
        wanted = [place for place, text in enumerate(texts) if text and word in text.split()]
        found = text_hits(reader, "t", word)
        assert (word, found.positions.tolist()) == (word, wanted)
        assert (found.scores > 0).all()


@pytest.mark.usefixtures("most_rows")
def test_words_within_reach_are_those_of_the_texts_of_now(reader: TableReader) -> None:
    texts = reader.columns(["t"]).column(0).to_pylist()
    for word, near in (("bta", "beta"), ("omga", "omega"), ("dalta", "delta")):
        wanted = [place for place, text in enumerate(texts) if text and near in text.split()]
        assert text_hits(reader, "t", word, 1).positions.tolist() == wanted


def test_the_best_texts_hold_no_old_ones(reader: TableReader) -> None:
    texts = reader.columns(["t"]).column(0).to_pylist()
    for word in WORDS:
        best = best_text_rows(reader, "t", word, 2, Restricted())
        if best is not None:
            assert all(word in (texts[place] or "").split() for place in best.positions)


def test_scalar_indexes_answer_for_the_values_of_now(reader: TableReader) -> None:
    numbers, enums = (reader.columns([name]).column(0).to_pylist() for name in "ne")
    for where, holds in (
        *((f"n = {n}", [v == n for v in numbers]) for n in (3, 4, 5, 7, 1003, 1005, 1007, 2003)),
        ("n < 10", [v is not None and v < 10 for v in numbers]),
        ("n >= 1000", [v is not None and v >= 1000 for v in numbers]),
        ("n IS NULL", [v is None for v in numbers]),
        ("n IN (3, 1003, 2003)", [v in (3, 1003, 2003) for v in numbers]),
        ("e = 'x'", [v == "x" for v in enums]),
        ("e = 'y'", [v == "y" for v in enums]),
    ):
        assert (where, reader.find(where).tolist()) == (where, np.flatnonzero(holds).tolist())


def test_the_nearest_rows_are_those_of_the_vectors_of_now(reader: TableReader) -> None:
    places = reader.columns(["v"]).column(0).to_pylist()
    firsts = np.array([np.inf if v is None else v[0] for v in places])
    for at in (3.0, 4.0, 7.0, 500.0, 700.0):
        found, _ = nearest_rows(reader, "v", np.array([at, 0.0], np.float32), 3, Restricted())
        assert sorted(abs(firsts[found] - at)) == sorted(abs(firsts - at))[:3]


def test_an_index_that_was_built_as_a_whole_leaves_nothing_to_check(states: dict[str, PinnedTable]) -> None:
    counts = {}
    for name, table in states.items():
        reader = TableReader(table)
        index = next(index for index in reader.indexes if index.columns == ("t",))
        counts[name] = len(rewritten(reader, index))
    assert (counts["whole"], counts["optimized"]) == (0, 0)
    assert counts["extended"] == counts["joined by Lance"] == 3
