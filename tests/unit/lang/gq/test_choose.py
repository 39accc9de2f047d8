"""Which engine a frame takes by itself: by numbers of stored rows alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.lang.gq.check.read_query import check_read
from spark_omnigraph.lang.gq.choose import Engine, choose
from spark_omnigraph.lang.gq.lower import lower
from spark_omnigraph.lang.gq.syntax.parser import parse_queries, pick_query
from spark_omnigraph.lang.pg import compile_schema

CATALOG = compile_schema(
    "node P { name: String @key  age: I32? }\nnode C { town: String @key }\nedge Knows: P -> P\nedge In: P -> C"
)
SMALL = {"node:P": 9_000, "node:C": 10, "edge:Knows": 90_000_000, "edge:In": 90_000_000}
LARGE = {"node:P": 6_000_000, "node:C": 10_000, "edge:Knows": 40_000_000, "edge:In": 20_000_000}
LOOKUP = '$p: P { name: "x" }'


def stored(rows: dict[str, int]) -> Callable[[TableKey], int]:
    return lambda key: rows.get(key, 0)


def engine_of(match: str, returned: str, rows: dict[str, int]) -> tuple[Engine, str]:
    query = pick_query(parse_queries(f"query q() {{ match {{ {match} }} return {{ {returned} }} }}"), None)
    choice = choose(lower(CATALOG, check_read(CATALOG, query)), CATALOG, stored(rows))
    return choice.engine, choice.reason


@pytest.mark.parametrize(
    ("match", "rows", "engine"),
    [
        ("$p: P $p knows $q", SMALL, Engine.EMBEDDED),
        ("$p: P $p knows $q $q knows $r", SMALL, Engine.SPARK),
        (f"{LOOKUP} $p knows{{1,3}} $q", LARGE, Engine.EMBEDDED),
        ("$p: P { age: 3 } $p knows $q", LARGE, Engine.EMBEDDED),
        ("$p: P { age: 3 } $p knows $q $q in $c", LARGE, Engine.SPARK),
        (f"{LOOKUP} not {{ $p knows $_ $p in $_ }}", LARGE, Engine.EMBEDDED),
        ("$p: P not { $p knows $_ } not { $p in $_ }", LARGE, Engine.SPARK),
        ("$c: C $p: P $p in $c $p knows $q", SMALL, Engine.SPARK),
    ],
)
def test_edges_that_are_walked_from_many_nodes_count(match: str, rows: dict[str, int], engine: Engine) -> None:
    assert engine_of(match, "count($p) as n", rows)[0] is engine


@pytest.mark.parametrize(
    ("match", "tail", "engine"),
    [
        ("$p: P", "$p", Engine.SPARK),
        ("$p: P", "$p } order { $p.age", Engine.SPARK),
        ("$p: P", "count($p) as n", Engine.EMBEDDED),
        (LOOKUP, "$p", Engine.EMBEDDED),
        ("$c: C", "$c", Engine.EMBEDDED),
    ],
)
def test_large_answers_are_made_by_many_tasks(match: str, tail: str, engine: Engine) -> None:
    assert engine_of(match, tail, LARGE)[0] is engine


def test_a_limit_makes_an_answer_small() -> None:
    query = pick_query(parse_queries("query q() { match { $p: P } return { $p } order { $p.age } limit 10 }"), None)
    assert choose(lower(CATALOG, check_read(CATALOG, query)), CATALOG, stored(LARGE)).engine is Engine.EMBEDDED


def test_reasons_have_the_numbers() -> None:
    _, reason = engine_of("$p: P $p knows $q $q in $c", "count($p) as n", LARGE)
    assert reason == "60,000,000 edges (In, Knows) are walked from many nodes"
    _, reason = engine_of("$p: P", "$p", LARGE)
    assert reason == "the answer begins with 6,000,000 rows and is not limited"
    _, reason = engine_of("$p: P $p knows $q", "$p", {"node:P": 20_000, "edge:Knows": 1})
    assert reason.startswith("1 edge is walked from many nodes, and ")
    _, reason = engine_of("$p: P", "$p", {"node:P": 1})
    assert reason == "no edges are walked from many nodes, and the answer begins with 1 row"
