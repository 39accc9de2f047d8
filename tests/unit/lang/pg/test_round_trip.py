"""Any valid schema text: through the IR and back, and in any order."""

from __future__ import annotations

import pickle
import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_omnigraph.catalog.ir import catalog_from_ir, ir_hash, ir_text
from spark_omnigraph.errors import InputError
from spark_omnigraph.lang.pg import compile_schema, compile_stored_schema
from tests.unit.lang.pg.schema_texts import declarations

patient = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)


@patient
@given(declarations())
def test_the_ir_holds_the_whole_catalog(parts: list[str]) -> None:
    source = "\n".join(parts)
    catalog = compile_schema(source)
    text = ir_text(catalog)
    again = catalog_from_ir(text)
    assert again == catalog
    assert ir_text(again) == text
    assert ir_hash(again) == catalog.ir_hash == again.ir_hash
    assert compile_stored_schema(source) == catalog
    assert pickle.loads(pickle.dumps(catalog)) == catalog


@patient
@given(declarations(), st.randoms(use_true_random=False), st.sampled_from(["// c\n", "/* node Q { } */", "\n\n"]))
def test_order_and_comments_mean_nothing(parts: list[str], chance: random.Random, comment: str) -> None:
    shuffled = comment.join(["", *chance.sample(parts, len(parts)), ""])
    assert compile_schema(shuffled) == compile_schema("\n".join(parts))


@patient
@given(declarations(), st.data())
def test_a_damaged_text_is_refused_or_compiled_but_never_crashes(parts: list[str], data: st.DataObject) -> None:
    source = "\n".join(parts)
    at = data.draw(st.integers(0, len(source)))
    length = data.draw(st.integers(0, 3))
    inserted = data.draw(st.text(st.sampled_from('@{}():,."?-_=aA1[]>/\\ \n*é'), max_size=3))
    damaged = source[:at] + inserted + source[at + length :]
    try:
        said = ir_text(compile_schema(damaged))
    except InputError as error:
        said = error.message
    assert said.startswith(("{", "parse error: ", "catalog error: "))


def test_properties_may_be_declared_in_any_order() -> None:
    one = compile_schema('node Ox { t: String @key  n: I32? @note @index  @range(n, 0..5)  @check(t, "x") }')
    two = compile_schema('node Ox { @check(t, "x")  @range(n, 0..5)  n: I32? @index @note  t: String @key }')
    assert one == two


def test_columns_and_enum_values_may_be_written_in_any_order() -> None:
    one = compile_schema("node Ox { a: enum(x, y) b: String @key(a, b) @unique(b, a) }")
    assert one == compile_schema("node Ox { b: String a: enum(y, x) @unique(a, b) @key(b, a) }")


def test_what_means_something_changes_the_hash() -> None:
    sources = [
        "node Ox { t: String }",
        "node Ox { t: String? }",
        "node Ox { t: [String] }",
        "node Ox { u: String }",
        "node Ox { t: String @index }",
        "node Ox { t: String @index(t) }",
        "node Ox { t: String @note }",
        "node Ox @note { t: String }",
        "node Oxen { t: String }",
        "node Ox { t: String } edge E: Ox -> Ox",
        "node Ox { t: String } edge E: Ox -> Ox @card(0..1)",
        "node Ox { t: String } interface I {}",
        "interface I {} node Ox implements I { t: String }",
    ]
    assert len({compile_schema(source).ir_hash for source in sources}) == len(sources)
