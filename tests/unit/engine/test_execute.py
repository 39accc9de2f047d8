"""Queries on small graphs, written from the rules of the language."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from spark_omnigraph.answer import Json
from spark_omnigraph.engine.costs import Costs, Strategy
from spark_omnigraph.errors import EmbeddingConfigError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.read.query import bound_plan, prepare, run_query

SCHEMA = """
node Person {
    name: String @key
    age: I32? @index
    score: F64?
    small: F32?
    born: Date? @index
    seen: DateTime? @index
    big: U64? @index
    camelCase: I64?
    on: Bool? @index
    tags: [String]?
    bio: String?
    v: Vector(2)?
}
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge Lives: Person -> City
"""
PEOPLE = [
    '{"type":"Person","data":{"name":"ada","age":36,"score":1.5,"small":0.1,"born":"1815-12-10","seen":"1970-01-01T00:00:01Z",'
    '"big":18446744073709551615,"camelCase":1,"on":true,"tags":["a","b"],"bio":"The Queen of engines","v":[0,0]}}',
    '{"type":"Person","data":{"name":"bob","age":2,"score":-0.0,"small":0.5,"born":"1969-12-31","big":3,"camelCase":2,'
    '"on":false,"tags":[],"bio":"keeps engines","v":[3,4]}}',
    '{"type":"Person","data":{"name":"cyd","age":3,"score":0.0,"v":[0,1]}}',
    '{"type":"Person","data":{"name":"dan","bio":"queens"}}',
    '{"type":"City","data":{"name":"ada"}}',
    '{"type":"City","data":{"name":"oslo"}}',
    '{"edge":"Knows","from":"ada","to":"bob","data":{"since":1}}',
    '{"edge":"Knows","from":"ada","to":"bob","data":{"since":2}}',
    '{"edge":"Knows","from":"bob","to":"cyd"}',
    '{"edge":"Knows","from":"cyd","to":"ada"}',
    '{"edge":"Knows","from":"bob","to":"bob","data":{"since":9}}',
    '{"edge":"Lives","from":"ada","to":"ada"}',
    '{"edge":"Lives","from":"bob","to":"oslo"}',
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = Graph.init(tmp_path_factory.mktemp("run") / "g", SCHEMA)
    made.load(PEOPLE)
    return made


def rows(graph: Graph, text: str, params: Mapping[str, object] | None = None) -> list[tuple[Json, ...]]:
    """The rows by both ways of walking, which must agree up to order where there is no order."""
    plan = bound_plan(prepare(graph.catalog(), text), params)
    found = [
        [
            tuple(row.values())
            for row in run_query(graph.store, graph.catalog(), graph.snapshot(), plan, Costs(walk)).to_pylist()
        ]
        for walk in (Strategy.ADJACENCY, Strategy.LOOKUP, Strategy.BY_COST)
    ]
    if "order" not in text:
        found = [sorted(one, key=repr) for one in found]
    assert found[0] == found[1] == found[2]
    return found[0]


def asked(clauses: str, returned: str, rest: str = "", params: str = "") -> str:
    return f"query q({params}) {{ match {{ {clauses} }} return {{ {returned} }} {rest} }}"


def names(graph: Graph, clauses: str, params: str = "", **values: object) -> list[Json]:
    """Names of the people that a pattern finds."""
    return [
        row[0] for row in rows(graph, f"query q({params}) {{ match {{ {clauses} }} return {{ $p.name }} }}", values)
    ]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("$p: Person", ["ada", "bob", "cyd", "dan"]),
        ("$p: Person { age: 2 }", ["bob"]),
        ("$p: Person { age: 2.7 }", []),
        ("$p: Person $p.age >= 2.7", ["ada", "cyd"]),
        ("$p: Person 2.7 <= $p.age", ["ada", "cyd"]),
        ("$p: Person $p.age < 3000000000", ["ada", "bob", "cyd"]),
        ("$p: Person $p.age != 2", ["ada", "cyd"]),
        ("$p: Person { score: 0 }", ["bob", "cyd"]),
        ("$p: Person { small: 0.1 }", ["ada"]),
        ('$p: Person { born: date("1969-12-31") }', ["bob"]),
        ('$p: Person $p.born < date("1900-01-01")', ["ada"]),
        ('$p: Person { seen: datetime("1970-01-01T00:00:01Z") }', ["ada"]),
        ("$p: Person { camelCase: 2 }", ["bob"]),
        ("$p: Person { on: true }", ["ada"]),
        ('$p: Person { tags: "a" }', ["ada"]),
        ('$p: Person $p.bio contains "engines"', ["ada", "bob"]),
        ('$p: Person $p.name starts_with "b"', ["bob"]),
        ("$p: Person not { $p.age > 2 }", ["bob", "dan"]),
        ("$p: Person not { $p lives $c }", ["cyd", "dan"]),
        ("$p: Person not { $p knows $o $o.age > 2 }", ["ada", "dan"]),
        ("$p: Person not { $p knows $o not { $o lives $c } }", ["ada", "cyd", "dan"]),
        ("$p: Person $q: Person $p.age < $q.camelCase", []),
        ("$p: Person $q: Person $p.age = $q.age", ["ada", "bob", "cyd"]),
        ('$p: Person search($p.bio, "queen")', ["ada", "dan"]),
        ('$p: Person search($p.bio, "queen") search($p.bio, "engine")', ["ada"]),
        ('$q: Person $q knows $p search($p.bio, "keeping")', ["bob", "bob"]),
        ('$p: Person fuzzy($p.bio, "quen", 1)', ["ada", "dan"]),
        ('$p: Person search($p.bio, "the")', []),
    ],
)
def test_who_is_found(graph: Graph, clauses: str, expected: list[str]) -> None:
    assert names(graph, clauses) == expected


def test_parameters_of_every_kind(graph: Graph) -> None:
    assert names(graph, "$p: Person { big: $b }", "$b: U64", b=3) == ["bob"]
    assert names(graph, "$p: Person $p.big > $b", "$b: F64", b=9.3e18) == ["ada"]
    assert names(graph, "$p: Person { age: $b }", "$b: I32?", b=None) == []
    assert names(graph, "$p: Person { name: $b }", "$b: String", b="o'hara`\\") == []
    assert names(graph, "$p: Person $p.seen < now()") == ["ada"]
    assert names(graph, '$p: Person ["bob", "zed", "dan"] contains $p.name') == ["bob", "dan"]
    assert names(graph, "$p: Person [0.0, 7.5] contains $p.score") == ["bob", "cyd"]
    assert names(graph, "$p: Person $q: City [2, 9] contains $p.age $p.name != $q.name") == ["bob"] * 2
    assert names(graph, "$p: Person { name: $b }", "$b: String", b="new\nline\t\u0000") == []


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("$p: Person $p knows $q", [("ada", "bob"), ("bob", "bob"), ("bob", "cyd"), ("cyd", "ada")]),
        ("$q: Person $p knows $q", [("ada", "bob"), ("bob", "bob"), ("bob", "cyd"), ("cyd", "ada")]),
        ("$p: Person $p knows{2,2} $q", [("ada", "bob"), ("ada", "cyd"), ("bob", "ada"), ("cyd", "bob")]),
        (
            "$p: Person $p knows{1,3} $q",
            [
                ("ada", "bob"),
                ("ada", "cyd"),
                ("bob", "ada"),
                ("bob", "bob"),
                ("bob", "cyd"),
                ("cyd", "ada"),
                ("cyd", "bob"),
            ],
        ),
        ('$p: Person { name: "ada" } $p <knows> $q', [("ada", "bob"), ("ada", "cyd")]),
        ('$p: Person { name: "bob" } $p <knows> $q', [("bob", "ada"), ("bob", "bob"), ("bob", "cyd")]),
        ("$p: Person $q: Person $p knows $q $q knows $p", [("bob", "bob")]),
        ('$p: Person $p knows $q $q.name != "bob"', [("bob", "cyd"), ("cyd", "ada")]),
        ("$p: Person $p lives $q", [("ada", "ada"), ("bob", "oslo")]),
        ("$p: Person $p lives{1,5} $q", [("ada", "ada"), ("bob", "oslo")]),
        ("$p: Person $p lives{2,5} $q", []),
    ],
)
def test_walks(graph: Graph, clauses: str, expected: list[tuple[str, str]]) -> None:
    assert rows(graph, f"query q() {{ match {{ {clauses} }} return {{ $p.name, $q.name }} }}") == expected


def test_edge_variables_give_a_row_for_each_edge(graph: Graph) -> None:
    text = asked("$p: Person $p $w:knows $q", "$p.name, $q.name, $w.since", "order { $w.since, $p.name }")
    assert rows(graph, text) == [
        ("bob", "cyd", None),
        ("cyd", "ada", None),
        ("ada", "bob", 1),
        ("ada", "bob", 2),
        ("bob", "bob", 9),
    ]
    text = "query q() { match { $p: Person $q: Person $p $w:knows $q $w.since > 1 } return { $p.name, $q.name } }"
    assert rows(graph, text) == [("ada", "bob"), ("bob", "bob")]


def test_anonymous_targets_multiply_rows(graph: Graph) -> None:
    assert rows(graph, "query q() { match { $p: Person $p knows $_ } return { $p.name, count($p) as n } }") == [
        ("ada", 1),
        ("bob", 2),
        ("cyd", 1),
    ]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("$p.age", ["dan", "bob", "cyd", "ada"]),
        ("$p.age desc", ["ada", "cyd", "bob", "dan"]),
        ("$p.score", ["dan", "bob", "cyd", "ada"]),
        ("$p.on desc, $p.name desc", ["ada", "bob", "dan", "cyd"]),
        ("$p.big desc", ["ada", "bob", "cyd", "dan"]),
        ("$p.born", ["cyd", "dan", "ada", "bob"]),
    ],
)
def test_order(graph: Graph, order: str, expected: list[str]) -> None:
    for limit in ("", "limit 2", "limit 0"):
        found = rows(graph, asked("$p: Person", "$p.name", f"order {{ {order} }} {limit}"))
        assert [row[0] for row in found] == (expected[: int(limit[-1])] if limit else expected)


def test_aggregates(graph: Graph) -> None:
    summaries = "count($p), sum($p.age) as s, avg($p.age) as a, min($p.name) as f, max($p.big) as l"
    text = asked("$p: Person", summaries)
    assert rows(graph, text) == [(4, 41.0, 41 / 3, "ada", 2**64 - 1)]
    text = (
        "query q() { match { $p: Person } return { $p.on, count($p) as n, max($p.score) as m } order { n desc, on } }"
    )
    text = text.replace(", on }", " }")
    assert rows(graph, text) == [(None, 2, 0.0), (False, 1, -0.0), (True, 1, 1.5)]
    text = "query q() { match { $p: Person { age: 99 } } return { count($p), sum($p.age) as s, min($p.name) as f } }"
    assert rows(graph, text) == [(0, None, None)]
    text = "query q() { match { $p: Person { age: 99 } } return { $p.name, count($p) as n } }"
    assert rows(graph, text) == []


def test_a_parameter_beside_an_aggregate_is_a_constant_key(graph: Graph) -> None:
    params = "$i: I32?, $v: Vector(2), $l: [Date]"
    given = {"i": 7, "v": [1, 2], "l": ["1970-01-02"]}
    text = asked("$p: Person", "$i, count($p) as n, $v, $l, $p.on", params=params)
    assert rows(graph, text, given) == [
        (7, 1, [1.0, 2.0], ["1970-01-02"], False),
        (7, 1, [1.0, 2.0], ["1970-01-02"], True),
        (7, 2, [1.0, 2.0], ["1970-01-02"], None),
    ]
    assert rows(graph, asked("$p: Person", "$i, max($p.age) as a", params="$i: I32?")) == [(None, 36)]
    for items in ("$i, $v, $l, count($p)", "$i, $v, $l, [1], []"):
        assert rows(graph, asked("$p: Person { age: 99 }", items, params=params), given) == []


def test_nearest_with_filters_first(graph: Graph) -> None:
    returned = "$p.name, nearest($p.v, $v) as d"
    text = asked("$p: Person $p.age < 30", returned, "order { nearest($p.v, $v) } limit 2", "$v: Vector(2)")
    assert rows(graph, text, {"v": [0, 0]}) == [("cyd", 1.0), ("bob", 25.0)]
    text = (
        "query q() { match { $q: Person $q knows $p } return { $p.name } order { nearest($p.v, [0.0, 1.0]) } limit 9 }"
    )
    assert [row[0] for row in rows(graph, text)] == ["cyd", "ada", "bob", "bob"]


def test_bm25_keeps_what_matches_best_first(graph: Graph) -> None:
    score = 'bm25($p.bio, "queen engine")'
    text = asked("$p: Person", f"$p.name, {score} as s", f"order {{ {score} }}")
    found = rows(graph, text)
    assert [row[0] for row in found] == ["ada", "dan", "bob"]
    scores = [row[1] for row in found]
    assert scores == sorted(scores, reverse=True, key=lambda s: s if isinstance(s, float) else 0.0)


def test_rrf_fuses_two_rankings(graph: Graph) -> None:
    score = 'rrf(nearest($p.v, $v), bm25($p.bio, "queen"))'
    text = asked("$p: Person", f"$p.name, {score} as s", f"order {{ {score} }} limit 3", "$v: Vector(2)")
    found = rows(graph, text, {"v": [0, 0]})
    assert [row[0] for row in found] == ["ada", "dan", "cyd"]
    assert found[0][1] in (pytest.approx(1 / 61 + 1 / 62), pytest.approx(2 / 61))


def test_a_text_for_nearest_needs_a_provider(graph: Graph) -> None:
    text = 'query q() { match { $p: Person } return { $p.name } order { nearest($p.v, "x") } limit 1 }'
    with pytest.raises(EmbeddingConfigError, match="OPENROUTER_API_KEY or OPENAI_API_KEY is required"):
        rows(graph, text)


def test_reads_of_the_past(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node A { k: String @key }")
    text = "query q() { match { $a: A } return { $a.k } }"
    first = graph.load(['{"type":"A","data":{"k":"x"}}'])
    graph.load(['{"type":"A","data":{"k":"y"}}'])
    assert graph.query(text).row_count == 2
    assert graph.query(text, snapshot=first.commit).to_pylist() == [{"a.k": "x"}]
    assert graph.at(snapshot=first.commit).query(text).to_pylist() == [{"a.k": "x"}]
    assert graph.query(text, version=1).to_pylist() == []
