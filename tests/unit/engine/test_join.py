"""Pairs of rows against two loops."""

from __future__ import annotations

import pytest

from spark_omnigraph.answer import Json
from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.errors import QueryEngineError
from spark_omnigraph.graph.handle import Graph
from tests.support.engine import answer

VALUES: list[dict[str, Json]] = [
    {"k": f"x{i}", "i": i % 3 if i % 4 else None, "f": i / 2, "s": "abc"[i % 3], "d": i % 2, "u": 2**63 + i % 2}
    for i in range(9)
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = Graph.init(
        tmp_path_factory.mktemp("join") / "g",
        "node A { k: String @key i: I32? f: F64? s: String? d: Date? u: U64? } "
        "node B { k: String @key i: I64? f: F32? s: String? d: Date? u: U64? } edge Own: A -> B",
    )
    lines = []
    for row in VALUES:
        body = ", ".join(
            f'"{k}": ' + ("null" if v is None else f'"{v}"' if isinstance(v, str) else str(v)) for k, v in row.items()
        )
        lines += [f'{{"type":"{t}","data":{{{body}}}}}' for t in "AB"]
    made.load([*lines, '{"edge":"Own","from":"x1","to":"x2"}', '{"edge":"Own","from":"x2","to":"x2"}'])
    return made


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
@pytest.mark.parametrize(
    ("left", "word", "right"),
    [(a, "=", a) for a in "ifsdu"]
    + [("i", "=", "f"), ("f", "=", "i"), ("i", "<", "i"), ("s", "!=", "s"), ("i", ">=", "f")],
)
def test_pairs(graph: Graph, left: str, word: str, right: str, step: int) -> None:
    costs = Costs(pairs=step)
    plain = {"=": "__eq__", "<": "__lt__", "!=": "__ne__", ">=": "__ge__"}[word]
    expected = [
        (a["k"], b["k"])
        for a in VALUES
        for b in VALUES
        if a[left] is not None and b[right] is not None and getattr(_number(a[left]), plain)(_number(b[right]))
    ]
    for clauses in (f"$a.{left} {word} $b.{right}", f'$a.{left} {word} $b.{right} $a.k != "x0"'):
        text = f"query q() {{ match {{ $a: A $b: B {clauses} }} return {{ $a.k, $b.k }} }}"
        found = [tuple(row.values()) for row in answer(graph, text, costs).to_pylist()]
        assert found == [pair for pair in expected if "x0" not in clauses or pair[0] != "x0"]
    negated = f"query q() {{ match {{ $a: A not {{ $b: B $a.{left} {word} $b.{right} }} }} return {{ $a.k }} }}"
    kept = [row["a.k"] for row in answer(graph, negated, costs).to_pylist()]
    assert kept == [a["k"] for a in VALUES if a["k"] not in {pair[0] for pair in expected}]


def _number(value: Json) -> Json:
    return float(value) if isinstance(value, int) and value < 2**53 else value


def test_pairs_of_walked_rows(graph: Graph) -> None:
    text = "query q() { match { $a: A $a own $o $b: B $a.i = $b.i $o.s = $b.s } return { $a.k, $o.k, $b.k } }"
    found = [tuple(row.values()) for row in graph.query(text).to_pylist()]
    assert found == [("x2", "x2", "x2"), ("x2", "x2", "x5")]


def test_more_pairs_than_fit_are_refused(graph: Graph) -> None:
    with pytest.raises(QueryEngineError, match="every pair of 9 and 9 rows gives 81"):
        answer(graph, "query q() { match { $a: A $b: B } return { $a.k, $b.k } }", Costs(most_rows=80))
