"""Plans are made once for a schema and a text, and kept within bounds."""

from __future__ import annotations

import pytest

from spark_omnigraph.errors import QueryTypeError
from spark_omnigraph.graph.read.query import LONGEST, PlanCache, bound_plan, prepare
from spark_omnigraph.lang.pg import compile_schema

NARROW = compile_schema("node P { name: String @key }")
WIDE = compile_schema("node P { name: String @key  age: I32? }")
TEXT = "query q($n: I32) { match { $p: P { age: $n } } return { $p.name } }"
TWO = "query a() { match { $p: P } return { $p.name } } query b() { match { $q: P } return { $q.name } }"


def test_a_plan_belongs_to_its_schema_and_the_name_of_its_query() -> None:
    cache = PlanCache()
    made = cache.get(WIDE, TEXT, None)
    assert cache.get(WIDE, TEXT, None) is made
    with pytest.raises(QueryTypeError, match="no property `age`"):
        cache.get(NARROW, TEXT, None)
    assert cache.get(NARROW, TWO, "a").plan.columns[0].name == "p.name"
    assert cache.get(NARROW, TWO, "b").plan.columns[0].name == "q.name"
    assert len(cache) == 3


def test_plans_are_bounded_in_number_and_length() -> None:
    cache = PlanCache(most=2)
    texts = [f"query q{i}() {{ match {{ $p: P }} return {{ $p.name }} }}" for i in range(3)]
    first = cache.get(NARROW, texts[0], None)
    cache.get(NARROW, texts[1], None)
    assert cache.get(NARROW, texts[0], None) is first
    cache.get(NARROW, texts[2], None)
    assert len(cache) == 2
    assert cache.get(NARROW, texts[0], None) is first
    cache.get(NARROW, texts[0] + " " * LONGEST, None)
    assert len(cache) == 2


def test_values_of_parameters_are_bound_anew() -> None:
    plans = [bound_plan(prepare(WIDE, TEXT), {"n": n}) for n in (1, 2)]
    assert plans[0] != plans[1]
