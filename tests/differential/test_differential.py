"""The engine in all its forms against the oracle; `python -m tests.differential` runs more and prints what differs.

`DIFFERENTIAL_SEED` chooses another run.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from spark_omnigraph.errors import OmnigraphError, QueryTypeError
from spark_omnigraph.graph.query import prepare
from spark_omnigraph.lang.pg import compile_schema
from tests.differential.questions import Maker, Question
from tests.differential.run import compare
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
