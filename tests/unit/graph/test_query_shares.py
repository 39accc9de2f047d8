"""A query run in shares of its leading scan, and sums that no share may round."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.read import query as queries
from spark_omnigraph.graph.read.query import QueryTask, bound_plan, prepare, query_task
from spark_omnigraph.lang.gq.needs import MANY

SCHEMA = "node P { name: String @key  n: I64?  u: U64?  v: Vector(2)?  t: String? }\nedge Knows: P -> P"
ROWS = 10


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = Graph.init(tmp_path_factory.mktemp("shares") / "g", SCHEMA)
    nodes = [{"type": "P", "data": {"name": f"p{n}", "n": n % 3, "v": [n, 1], "t": "wax"}} for n in range(ROWS)]
    edges = [{"edge": "Knows", "from": f"p{n}", "to": f"p{n * n % ROWS}"} for n in range(ROWS)]
    made.load([json.dumps(row) for row in (*nodes, *edges)])
    return made


def task_of(graph: Graph, body: str) -> QueryTask:
    catalog = graph.catalog()
    plan = bound_plan(prepare(catalog, f"query q() {{ {body} }}"), None)
    return query_task(graph.store, catalog, graph.snapshot(), plan)


def match(pattern: str, returned: str = "$p", tail: str = "") -> str:
    return f"match {{ {pattern} }} return {{ {returned} }} {tail}"


@pytest.mark.parametrize(
    "body",
    [
        match("$p: P", "$p, $p.n"),
        match("$p: P $p knows $q", "$p, $q"),
        match("$p: P $q: P $p.n = $q.n", "$p, $q"),
        match("$p: P not { $p knows{1,2} $q $q.n = $p.n }", 'bm25($p.t, "wax") as score'),
    ],
)
def test_the_rows_of_all_shares_are_the_answer(graph: Graph, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    monkeypatch.setattr(queries, "TASK_ROWS", 3)
    task = task_of(graph, body)
    shares = task.shares(8)
    assert shares == [(0, 3), (3, 6), (6, MANY)]
    found = [row for share in shares for row in task.run(share).to_pylist()]
    whole = task.run().to_pylist()
    assert len(whole) > 2
    assert sorted(found, key=str) == sorted(whole, key=str)


@pytest.mark.parametrize(
    "body",
    [
        match('$p: P { name: "p1" } $p knows $q'),
        match("$p: P", tail="order { $p.n }"),
        match("$p: P", tail="limit 3"),
        match("$p: P", "count($p) as n"),
        match("$p: P", tail="order { nearest($p.v, [1, 1]) } limit 2"),
        match("$p: P", "rrf(nearest($p.v, [1, 1]), nearest($p.v, [2, 1])) as score"),
    ],
)
def test_rows_that_depend_on_each_other_have_one_task(graph: Graph, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    monkeypatch.setattr(queries, "TASK_ROWS", 3)
    assert task_of(graph, body).shares(8) == [None]


def test_few_rows_are_one_task(graph: Graph) -> None:
    assert task_of(graph, match("$p: P")).shares(8) == [None]


def test_sums_of_integers_are_exact_and_rounded_once(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    large = [2**53 + 1, 2**53 + 1, 1, -(2**62), 2**62, -(2**53) - 1]
    unsigned = [2**64 - 1, 2**64 - 1, 1, 2**53 + 1, None, 0]
    rows = zip(large, unsigned, strict=True)
    graph.load([json.dumps({"type": "P", "data": {"name": str(i), "n": n, "u": u}}) for i, (n, u) in enumerate(rows)])
    text = "query q() { match { $p: P } return { sum($p.n) as n, avg($p.n) as mean, sum($p.u) as u } }"
    [found] = graph.query(text).to_pylist()
    # One by one as floats, the first would be 2**53 - 1 or 2**53 + 1, whatever the order.
    known = [u for u in unsigned if u is not None]
    assert found == {"n": float(sum(large)), "mean": float(sum(large)) / 6, "u": float(sum(known))}
    assert found["n"] == 2**53 + 2


def test_explain_names_the_engine_that_a_frame_would_take(graph: Graph) -> None:
    told = graph.explain(f"query q() {{ {match('$p: P $p knows $q')} }}")
    assert told.splitlines()[-1] == (
        "engine auto: embedded, since no edges are walked from many nodes, and the answer begins with 10 rows"
    )
