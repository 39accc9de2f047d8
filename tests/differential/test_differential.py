"""The engine in all its forms against the oracle; `python -m tests.differential` runs more and prints what differs.

`DIFFERENTIAL_SEED` chooses another run.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from pathlib import Path

import pytest

from spark_omnigraph.errors import OmnigraphError, QueryTypeError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.read.query import prepare
from spark_omnigraph.lang.pg import compile_schema
from tests.differential.play import first_mismatch
from tests.differential.questions import Maker, Question
from tests.differential.run import compare
from tests.differential.worlds import State, World
from tests.oracle.values import single
from tests.oracle.walks import Rows

SEED = int(os.environ.get("DIFFERENTIAL_SEED", "20261128"))

SCHEMA = (
    "node A { name: String @key  i: I32?  v: Vector(2)? }\nnode B { t: String? }\nedge Ab: A -> B\nedge Self: A -> A"
)
SPOILED = (
    ("$q: Nothing", "T1"),
    ("$q: A { nothing: 1 }", "T2"),
    ('$q: A { i: "x" }', "T3"),
    ("$q: A  $q nothing $r", "T4"),
    ("$q: B  $q self $r", "T5"),
    ("$q.i = 1", "T6"),
    ("$q: A  $q.i = true", "T7"),
    ("$q: A  not { $r: B }", "T9"),
    ("$q: A  $q self{0,2} $r", "T15"),
    ("$q: A  $q self{3,2} $r", "T15"),
    ("$q: A  $q <ab> $r", "T22"),
    ("$q: A  $q $w:self{1,2} $r", "T23"),
)


def test_engine_and_oracle_agree(tmp_path: Path) -> None:
    compared, mismatches = compare(SEED, 150, 2, tmp_path)
    assert not mismatches, mismatches[0]
    assert compared == 150


def test_numbers_that_f32_cannot_hold_meet_what_is_stored_for_them(tmp_path: Path) -> None:
    schema = "node A {{ name: String @key  f: F32?{} }}\nnode B {{ t: String? }}"
    plain = Graph.init(tmp_path / "plain", schema.format(""))
    indexed = Graph.init(tmp_path / "indexed", schema.format(" @index"))
    given = {"a": 0.1, "b": 0.5, "c": 16777216.0, "d": None}
    for graph in (plain, indexed):
        graph.load([json.dumps({"type": "A", "data": {"name": name, "f": f}}) for name, f in given.items()])
    world = World(compile_schema(schema.format("")), schema, plain, indexed)
    nodes = {name: {"name": name, "f": single(f)} for name, f in given.items()}
    state = State("loaded", plain.snapshot(), indexed.snapshot(), Rows({"A": nodes, "B": {}}, {}))
    for word, literal in itertools.product(("=", "!=", "<", "<=", ">", ">="), ("0.1", "0.5", "16777217.0")):
        for clause in (f"$a.f {word} {literal}", f"{literal} {word} $a.f"):
            assert first_mismatch(world, state, Question(("$a: A", clause), ("$a", "$a.f"))) is None, clause


@pytest.mark.long
def test_engine_and_oracle_agree_on_thousands(tmp_path: Path) -> None:
    compared, mismatches = compare(SEED + 1, 4000, 16, tmp_path)
    assert not mismatches, mismatches[0]
    assert compared == 4000


@pytest.mark.parametrize(("clauses", "code"), SPOILED)
def test_one_wrong_clause_spoils_any_question(clauses: str, code: str) -> None:
    catalog = compile_schema(SCHEMA)
    rows = Rows({name: {} for name in catalog.nodes}, {name: {} for name in catalog.edges})
    source = random.Random(f"{SEED}/{code}")
    for _ in range(20):
        good = Maker(source, catalog, rows).question()
        prepare(catalog, good.text)
        bad = Question((*good.clauses, clauses), good.items, good.order, good.limit, good.params)
        with pytest.raises(QueryTypeError, match=f"type error: {code}: "):
            prepare(catalog, bad.text)


def test_questions_are_many_and_fit_their_schema() -> None:
    catalog = compile_schema(SCHEMA)
    rows = Rows({name: {} for name in catalog.nodes}, {name: {} for name in catalog.edges})
    source = random.Random(SEED)
    texts = {Maker(source, catalog, rows).question().text for _ in range(300)}
    assert len(texts) > 250
    for text in texts:
        try:
            prepare(catalog, text)
        except OmnigraphError as error:
            pytest.fail(f"{text}\n{error}")
