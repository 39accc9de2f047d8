"""Any text at all: it is refused with an error of ours that points into it, or it has a plan."""

from __future__ import annotations

import pickle
import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_omnigraph.errors import InputError, QueryParseError, SourceError
from spark_omnigraph.lang.gq.check.mutation import check_mutation
from spark_omnigraph.lang.gq.check.read_query import check_read
from spark_omnigraph.lang.gq.explain import explain
from spark_omnigraph.lang.gq.lint import SchemaSource, lint_queries
from spark_omnigraph.lang.gq.lower import lower
from spark_omnigraph.lang.gq.syntax.ast import Query
from spark_omnigraph.lang.gq.syntax.parser import parse_queries
from spark_omnigraph.lang.pg import compile_schema

GOLDEN = Path(__file__).parents[3] / "golden" / "gq"
HARBOUR = compile_schema((GOLDEN / "harbour.pg").read_text(encoding="utf-8"))
READS = "".join(path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob("*.gq")))
WRITES = """
query enter($c: String, $n: I64) { insert Boat { country: $c, number: $n name: "x" built: date("2024-01-31") } }
query moor($b: String) {
  insert MooredAt { from: $b to: "p" since: now() }
  update Pier set { depth: 2.5 } where code = "p"
}
query leave($t: DateTime) { delete Note where written < $t delete MooredAt where from = "b" }
"""
TEXTS = [f"query {part}" for text in (READS, WRITES) for part in re.split(r"(?m)^query ", text)[1:]]
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|\d+\.\d+|\$?\w+|[<>!]=|[^\w\s]', re.DOTALL)
ODD = ("[1, 2.5]", "9223372036854775808", "1e5", "{0,2}", "{1,}", "$_", "<follows>", '"\\q"', '"', "/*", "é", "//")
TOKENS = [*sorted({token for text in TEXTS for token in TOKEN.findall(text)}), *ODD]
patient = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=150)


def plan_of(query: Query) -> str:
    if query.is_mutation:
        return repr(check_mutation(HARBOUR, query).statements)
    return explain(lower(HARBOUR, check_read(HARBOUR, query)))


def plans(text: str) -> list[str]:
    return [plan_of(query) for query in parse_queries(text).queries]


def outcome(text: str) -> str:
    """What comes of a text; fails for errors that are not ours or that do not point into it."""
    try:
        return "\n".join(plans(text))
    except SourceError as error:
        _check_error(error, text)
        return error.message
    except InputError as error:
        return error.message


def _check_error(error: SourceError, text: str) -> None:
    prefix = "parse error: " if isinstance(error, QueryParseError) else "type error: "
    assert error.message.startswith(prefix)
    assert error.span is not None
    assert 0 <= error.span.start <= error.span.end <= len(text.encode())
    assert len(error.message) < 3_000
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def damaged(chance: random.Random) -> str:
    """A text of the corpus with some tokens dropped, doubled, swapped or replaced by those of others."""
    tokens = TOKEN.findall(chance.choice(TEXTS))
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(tokens) + 1)
        act = chance.randrange(4)
        if act == 0:
            del tokens[at : at + chance.randint(1, 3)]
        elif act == 1:
            tokens.insert(at, chance.choice(TOKENS))
        elif act == 2:
            tokens[at : at + 1] = [chance.choice(TOKENS)]
        else:
            tokens[at:at] = tokens[at : at + 4]
    return chance.choice(["", " "]).join(tokens)


def loosened(text: str, chance: random.Random) -> str:
    """The same text with other white space and comments between its tokens."""
    space = [" ", "\n", "\t", " /* $x: Y { */ ", " // }\n", "\r\n  "]
    return "".join(chance.choice(space) + token for token in TOKEN.findall(text) if not token.startswith("//"))


@patient
@given(st.text(max_size=200))
def test_letters(text: str) -> None:
    assert isinstance(outcome(text), str)


@patient
@given(st.lists(st.sampled_from(TOKENS), max_size=60), st.sampled_from(["", " "]))
def test_tokens(tokens: list[str], space: str) -> None:
    outcome(f"query q() {{ match {{ {space.join(tokens)} }} return {{ {space.join(reversed(tokens))} }} }}")


@patient
@given(st.randoms(use_true_random=False))
def test_damaged_queries(chance: random.Random) -> None:
    text = damaged(chance)
    said = outcome(text)
    body = lint_queries(HARBOUR, text, "x.gq", SchemaSource("file", "x.pg")).to_dict()
    if said.startswith("parse error"):
        (finding,) = body["findings"] if isinstance(body["findings"], list) else []
        assert finding["message"] == said
    else:
        assert (body["status"] == "error") >= said.startswith("type error")


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.split("(")[0].removeprefix("query "))
def test_layout_means_nothing(text: str) -> None:
    said = without_lines(plans(text))
    assert len(said) == 1
    for seed in range(5):
        assert without_lines(plans(loosened(text, random.Random(seed)))) == said


def without_lines(found: list[str]) -> list[str]:
    """Statements know the line on which they stand."""
    return [re.sub(r"\bline=\d+", "", one) for one in found]


def test_a_plan_survives_pickling() -> None:
    for query in parse_queries(READS).queries:
        plan = lower(HARBOUR, check_read(HARBOUR, query))
        assert pickle.loads(pickle.dumps(plan)) == plan


def test_long_names_make_short_messages() -> None:
    name = "x" * 100_000
    for text in (
        f"query q() {{ match {{ $b: Boat $b.{name} = 1 }} return {{ $b }} }}",
        f"query q() {{ match {{ $b: Boat }} return {{ ${name} }} }}",
        f"query q() {{ match {{ $b: Boat {name} }} return {{ $b }} }}",
        f'query q() {{ match {{ $b: Boat }} return {{ "{name}" }} order {{ "{name}" }} }}',
    ):
        assert len(outcome(text)) < 3_000
