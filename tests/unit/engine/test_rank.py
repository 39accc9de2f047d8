"""Rankings of large tables: what Lance finds is what all rows, scored one by one, would give."""

from __future__ import annotations

import random

import pytest

from spark_omnigraph.answer import Json
from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.graph.handle import Graph
from tests.support.engine import answer

WORDS = ("queen", "king", "river", "stone", "engine")
ROWS = 400


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    chance = random.Random(5)
    lines = []
    for i in range(ROWS):
        text = " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 6)))
        vector = [chance.randint(0, 4), chance.randint(0, 4)]
        value = "null" if i % 50 == 0 else str(vector)
        lines.append(f'{{"type":"D","data":{{"k":"d{i:03}","n":{i % 10},"t":"{text}","u":"{text}","v":{value}}}}}')
    made = Graph.init(
        tmp_path_factory.mktemp("rank") / "g",
        "node D { k: String @key  n: I32 @index  t: String @index  u: String  v: Vector(2)? @index }",
    )
    made.load(lines)
    return made


QUERIES = [
    f"query q() {{ match {{ $d: D {where} }} return {{ $d.k, {by} as s }} order {{ {by}, $d.n desc }} limit {limit} }}"
    for where in ("", "$d.n > 6", '$d.n = 3 not { $d.k = "d003" }')
    for by in ("nearest($d.v, [1.0, 2.0])", 'bm25($d.t, "queen river")', 'bm25($d.u, "queen river")')
    for limit in (1, 7, 500)
]


@pytest.mark.parametrize("text", QUERIES)
def test_the_same_rows_with_and_without_the_search_of_lance(graph: Graph, text: str) -> None:
    expected = graph.query(text).to_pylist()
    for spare, few in ((0, 16), (3, 16), (1000, 16), (3, 1)):
        costs = Costs(scored_rows=1, spare=spare, spare_texts=64 * spare, many_share=few)
        found = answer(graph, text, costs).to_pylist()
        assert [row["d.k"] for row in found] == [row["d.k"] for row in expected]
        assert [row["s"] for row in found] == pytest.approx([row["s"] for row in expected])


def test_equal_scores_are_ordered_by_the_keys_that_follow_and_then_by_id(graph: Graph) -> None:
    text = "query q() { match { $d: D } return { $d.n, $d.k, nearest($d.v, [1.0, 2.0]) as s } "
    text += "order { nearest($d.v, [1.0, 2.0]), $d.n desc } limit 300 }"
    rows: list[tuple[Json, ...]] = [tuple(row.values()) for row in graph.query(text).to_pylist()]
    assert rows == sorted(rows, key=lambda row: (row[2], -row[0] if isinstance(row[0], int) else 0, row[1]))
    assert len({row[2] for row in rows}) < 20


def test_text_columns_are_searched_alike_with_and_without_an_index(graph: Graph) -> None:
    for word in ("queens", "RIVER", "the", "ston"):
        found = [
            sorted(str(row["d.k"]) for row in graph.query(
                f'query q() {{ match {{ $d: D search($d.{column}, "{word}") }} return {{ $d.k }} }}'
            ).to_pylist())
            for column in "tu"
        ]  # laid out as a table  # fmt: skip
        assert found[0] == found[1]
        assert bool(found[0]) == (word in ("queens", "RIVER"))


def test_an_index_that_covers_a_part_changes_no_answer(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = Graph.init(tmp_path_factory.mktemp("part") / "g", "node D { k: String @key  t: String @index }")
    made.load(['{"type":"D","data":{"k":"a","t":"The quick fox"}}'])
    made.load(['{"type":"D","data":{"k":"b","t":"the quick fox"}}', '{"type":"D","data":{"k":"c","t":"slow"}}'])
    assert any(status.rows == 1 for status in made.indexes())
    for clause in ('search($d.t, "foxes")', 'fuzzy($d.t, "quik", 1)'):
        found = made.query(f"query q() {{ match {{ $d: D {clause} }} return {{ $d.k }} order {{ $d.k }} }}")
        assert [row["d.k"] for row in found.to_pylist()] == ["a", "b"]
    best = 'query q() { match { $d: D } return { $d.k, bm25($d.t, "fox") as s } order { bm25($d.t, "fox") } }'
    rows = made.query(best).to_pylist()
    assert [row["d.k"] for row in rows] == ["a", "b"]
    assert rows[0]["s"] == rows[1]["s"]
