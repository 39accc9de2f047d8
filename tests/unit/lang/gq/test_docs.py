"""What the documentation of the language shows is what happens."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from types import ModuleType

import pytest

from spark_omnigraph.errors import QueryTypeError
from spark_omnigraph.lang.gq import params
from spark_omnigraph.lang.gq.check.read_query import check_read
from spark_omnigraph.lang.gq.lint import SchemaSource, lint_queries
from spark_omnigraph.lang.gq.syntax import parser
from spark_omnigraph.lang.gq.syntax.parser import parse_queries
from spark_omnigraph.lang.pg import compile_schema

DOCS = Path(__file__).parents[4] / "docs"
PAGE = (DOCS / "query-language.md").read_text(encoding="utf-8")


def block(language: str, page: str = PAGE) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert isinstance(found, str)
    return found


HARBOUR = compile_schema(block("pg", (DOCS / "schema-language.md").read_text(encoding="utf-8")))


def test_the_queries_fit_the_schema() -> None:
    report = lint_queries(HARBOUR, block("gq"), "harbour.gq", SchemaSource("file", "harbour.pg"))
    assert [r.error for r in report.results] == [None] * 6
    assert [r.warnings for r in report.results] == [()] * 6


def test_the_error_is_shown_as_it_is() -> None:
    (query,) = parse_queries("query q() {\n  match { $b: Boat }\n  return { $b.lenght }\n}").queries
    with pytest.raises(QueryTypeError) as caught:
        check_read(HARBOUR, query)
    assert caught.value.message == block("text").rstrip("\n")


def test_every_rule_is_explained() -> None:
    rules = PAGE.partition("| rule |")[2].partition("\n\n")[0]
    named = {int(a) for a in re.findall(r"T(\d+)", rules)}
    ranges = [range(int(a), int(b) + 1) for a, b in re.findall(r"T(\d+) to T(\d+)", rules)]
    assert named.union(*ranges) == set(range(1, 25))


@pytest.mark.parametrize("module", [params, parser], ids=lambda module: module.__name__)
def test_examples_in_docstrings(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
