"""The oracle itself, on answers worked out by hand."""

from __future__ import annotations

import pytest

from spark_omnigraph.lang.gq.syntax.parser import parse_queries, pick_query
from spark_omnigraph.lang.pg import compile_schema
from tests.oracle.answer import answer
from tests.oracle.values import Stored, holds, single, sort_rows
from tests.oracle.walks import Rows, reached

CATALOG = compile_schema(
    "node P { name: String @key  n: I32?  f: F32?  ns: [I32]?  t: String?  v: Vector(2)? }\n"
    "node C { name: String @key }\nedge K: P -> P { w: I32? }\nedge L: P -> C"
)


def person(name: str, **given: Stored) -> dict[str, Stored]:
    return {"name": name, "n": None, "f": None, "ns": None, "t": None, "v": None, **given}


ROWS = Rows(
    nodes={
        "P": {
            "a": person("a", n=1, f=single(0.1), ns=(1, None), t="wax moss", v=(0.0, 0.0)),
            "b": person("b", n=2, v=(0.0, 3.0)),
            "c": person("c", t="bog", v=(1.0, 0.0)),
        },
        "C": {"a": {"name": "a"}, "x": {"name": "x"}},
    },
    edges={
        "K": {
            "k0": {"src": "a", "dst": "b", "w": 1},
            "k1": {"src": "a", "dst": "b", "w": None},
            "k2": {"src": "b", "dst": "c", "w": 3},
            "k3": {"src": "c", "dst": "a", "w": 4},
            "k4": {"src": "b", "dst": "b", "w": 5},
        },
        "L": {"l0": {"src": "a", "dst": "x"}},
    },
)


@pytest.mark.parametrize(
    ("start", "way", "low", "high", "expected"),
    [
        ("a", "out", 1, 1, "b"),
        ("a", "out", 2, 2, "bc"),
        ("a", "out", 3, 3, ""),
        ("a", "out", 1, 9, "bc"),
        ("a", "both", 1, 1, "bc"),
        ("b", "out", 1, 1, "bc"),
        ("b", "in", 2, 2, "c"),
    ],
)
def test_walks(start: str, way: str, low: int, high: int, expected: str) -> None:
    assert reached(ROWS, "K", start, way, low, high, True) == set(expected)


def test_edges_between_types_do_not_chain() -> None:
    assert reached(ROWS, "L", "a", "out", 1, 5, False) == {"x"}
    assert reached(ROWS, "L", "a", "out", 2, 5, False) == set()


@pytest.mark.parametrize(
    ("left", "word", "right", "expected"),
    [
        (2**53 + 1, "=", float(2**53), False),
        (2, "=", 2.0, True),
        (None, "!=", 1, False),
        ("a", "<", "ä", True),
        ((1, None), "contains", 1, True),
        ("waxy", "contains", "ax", True),
        ("waxy", "starts_with", "ax", False),
    ],
)
def test_comparisons(left: Stored, word: str, right: Stored, expected: bool) -> None:
    assert holds(left, word, right) is expected


def test_nulls_are_smallest_and_equal_rows_keep_their_order() -> None:
    rows = [(1, "x"), (None, "y"), (2, "z"), (1, "w")]
    assert sort_rows(rows, [(lambda r: r[0], False)]) == [rows[1], rows[0], rows[3], rows[2]]
    assert sort_rows(rows, [(lambda r: r[0], True)]) == [rows[2], rows[0], rows[3], rows[1]]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("match { $p: P } return { $p } order { $p.n desc, $p.name desc }", [("b",), ("a",), ("c",)]),
        ("match { $p: P { ns: 1 } } return { $p.f }", [(single(0.1),)]),
        ("match { $p: P { f: 0.1 } } return { $p.n }", [(1,)]),
        ('match { $p: P { name: "a" } $p k $q } return { $q }', [("b",)]),
        ('match { $p: P { name: "a" } $p $w:k $q } return { $w.w } order { $w.w }', [(None,), (1,)]),
        ("match { $p: P $p l $_ } return { $p }", [("a",)]),
        ("match { $c: C not { $c l $p } } return { $c }", [("a",)]),
        ("match { $p: P not { $p.n > 1 } } return { $p } order { $p.name }", [("a",), ("c",)]),
        ("match { $p: P } return { count($p.n) as c, sum($p.n) as s, avg($p.n) as m, max($p.t) as t }",
         [(2, 3.0, 1.5, "wax moss")]),
        ("match { $p: P $p.n > 9 } return { count($p) as c, min($p.n) as m }", [(0, None)]),
        ('match { $p: P search($p.t, "bog elk") } return { $p }', [("c",)]),
        ("match { $p: P } return { $p } order { nearest($p.v, [0, 0]) } limit 2", [("a",), ("c",)]),
        ("match { $p: P } return { $p } order { rrf(nearest($p.v, [0, 3]), nearest($p.v, [0, 0])) } limit 1", [("b",)]),
    ],
)  # laid out as a table  # fmt: skip
def test_answers(body: str, expected: list[tuple[Stored, ...]]) -> None:
    query = pick_query(parse_queries(f"query q() {{ {body} }}"), None)
    assert answer(CATALOG, ROWS, query, {}).rows == expected
