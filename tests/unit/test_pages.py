"""Pages that are made from the code are current."""

from __future__ import annotations

from pathlib import Path

import pytest

import spark_omnigraph
from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.errors import OmnigraphError
from spark_omnigraph.spark.errors import CodedError
from tests.support.pages import DOCS, FILES, PICTURES, RULES, errors_table, pages, render


@pytest.mark.parametrize("page", pages())
def test_a_page_made_from_the_code_is_current(page: str) -> None:
    assert (DOCS / page).read_text(encoding="utf-8") == render(page), "run python -m tests.support.pages"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_made_from_the_code_is_current(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PICTURES[name](), "run python -m tests.support.pages"
    assert f"docs/{name}" in (DOCS.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_a_file_made_from_the_code_is_current(name: str) -> None:
    assert (DOCS.parent / name).read_text(encoding="utf-8") == FILES[name](), "run python -m tests.support.pages"


def test_the_page_of_the_api_has_every_public_name() -> None:
    page = FILES["docs/api.md"]()
    assert [name for name in spark_omnigraph.__all__ if f"`{name}" not in page] == []


def test_the_page_of_the_api_has_types_as_the_source_has_them() -> None:
    page = FILES["docs/api.md"]()
    assert "ForwardRef" not in page
    assert "`max_tokens: int | None`" in page


def test_every_error_says_what_to_do() -> None:
    table = errors_table()
    for row in ("| `conflict` | `ConflictError` | `ConflictError` | 4 |", "| `io` | `IoError` | `StorageError` | 1 |"):
        assert row in table
    assert OmnigraphError.way_out not in table
    assert not issubclass(CodedError, OmnigraphError)


def test_every_rule_is_explained() -> None:
    assert set(RULES) == set(Rule)


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_sessions_stand_in_blocks_of_code(page: Path) -> None:
    parts = page.read_text(encoding="utf-8").split("```")
    assert [line for prose in parts[::2] for line in prose.splitlines() if line.startswith(">>> ")] == []
