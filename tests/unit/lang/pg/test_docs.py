"""What the documentation shows is what happens."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from types import ModuleType

import pytest

from spark_omnigraph.catalog import bounds, identity
from spark_omnigraph.errors import SchemaParseError
from spark_omnigraph.lang import pg, source
from spark_omnigraph.lang.pg import compile_schema, near_miss

PAGE = (Path(__file__).parents[4] / "docs" / "schema-language.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_example_compiles() -> None:
    (example,) = blocks("pg")
    catalog = compile_schema(example)
    assert list(catalog.nodes) == ["Boat", "Note", "Pier"]
    assert list(catalog.edges) == ["About", "MooredAt"]
    assert catalog.nodes["Boat"].key == ("country", "number")
    assert catalog.edges["MooredAt"].cardinality.display() == "0..1"
    assert [prop.name for prop in catalog.nodes["Pier"].properties] == [
        *("code", "depth", "material", "name", "other_names"),
    ]


def test_the_error_is_shown_as_it_is() -> None:
    (shown,) = blocks("text")
    with pytest.raises(SchemaParseError) as caught:
        compile_schema("node Pier {\n  code: String @uniqe\n}")
    assert caught.value.message == shown.rstrip("\n")


def test_every_near_miss_that_is_named_is_one() -> None:
    part = PAGE.partition("near miss of a known one")[2].partition("## Interfaces")[0]
    names = set(re.findall(r"`@(\w+)`", part)) - set(near_miss.FORMS)
    assert len(names) >= 15
    assert {name for name in names if near_miss.resembles(name) is None} == set()


def test_kept_annotations_are_no_near_misses() -> None:
    assert "(`@pii`,\n`@owner(ops)`)" in PAGE
    assert near_miss.resembles("pii") is None
    assert near_miss.resembles("owner") is None


@pytest.mark.parametrize("module", [bounds, identity, near_miss, pg, source], ids=lambda module: module.__name__)
def test_examples_in_docstrings(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
