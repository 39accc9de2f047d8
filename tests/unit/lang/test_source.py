"""Spans of a source text and how an error shows them."""

from __future__ import annotations

import pytest

from spark_omnigraph.errors import SourceSpan
from spark_omnigraph.lang.source import LINE_LIMIT, Region, SourceText, render


def test_a_span_counts_bytes_lines_and_columns() -> None:
    source = SourceText("node A {\n  ä: Int\n}")
    assert source.span(Region(14, 17)) == SourceSpan(start=15, end=18, line=2, column=6, text="  ä: Int")


def test_first_and_last_character() -> None:
    assert SourceText("ab\ncd").span(Region(0, 1)) == SourceSpan(0, 1, 1, 1, "ab")
    assert SourceText("ab\ncd").span(Region(5, 5)) == SourceSpan(5, 5, 2, 3, "cd")
    assert SourceText("\nab").span(Region(0, 1)) == SourceSpan(0, 1, 1, 1, "")
    assert SourceText("").span(Region(0, 0)) == SourceSpan(0, 0, 1, 1, "")


def test_carriage_returns_are_no_part_of_a_line() -> None:
    assert SourceText("ab\r\ncd\r\n").span(Region(1, 2)).text == "ab"
    assert SourceText("ab\r\ncd\r\n").span(Region(4, 5)) == SourceSpan(4, 5, 2, 1, "cd")


def test_carets_stand_under_the_span() -> None:
    assert render("bad", SourceText("one\nlist of ä Blob x\n").span(Region(14, 18))).splitlines() == [
        "bad",
        " --> line 2, column 11",
        "  |",
        "2 | list of ä Blob x",
        "  |           ^^^^",
    ]


def test_wide_line_numbers_keep_the_margin_straight() -> None:
    shown = render("bad", SourceText("\n" * 99 + "abc").span(Region(100, 101))).splitlines()
    assert shown == ["bad", "   --> line 100, column 2", "    |", "100 | abc", "    |  ^"]


def test_tabs_are_kept_so_that_carets_line_up() -> None:
    assert render("bad", SourceText("\tx: Int").span(Region(4, 7))).splitlines()[-1] == "  | \t   ^^^"


def test_an_empty_span_gets_one_caret() -> None:
    assert render("bad", SourceText("ab").span(Region(2, 2))).splitlines()[-1] == "  |   ^"


def test_a_span_over_several_lines_is_marked_in_the_first() -> None:
    assert render("bad", SourceText("x (a,\n b)\n").span(Region(2, 9))).splitlines()[-2:] == ["1 | x (a,", "  |   ^^^"]


def test_long_lines_are_cut_on_the_right() -> None:
    span = SourceText("ab" * 1000).span(Region(3, 4))
    assert len(span.text) == LINE_LIMIT + 1
    assert span.text.endswith("ab…")
    assert render("bad", span).splitlines()[-1] == "  |    ^"


def test_long_lines_are_cut_on_the_left() -> None:
    line = "x" * 5000 + "BAD" + "y" * 5000
    span = SourceText(line).span(Region(5000, 5003))
    assert span.column == 5001
    assert len(span.text) <= LINE_LIMIT + 2
    *_, text, carets = render("bad", span).splitlines()
    assert text[carets.index("^") : carets.rindex("^") + 1] == "BAD"


@pytest.mark.parametrize("column", [1, 2, 199, 200, 201, 202, 203, 399, 400, 401, 402, 600])
@pytest.mark.parametrize("length", [1, 200, 400, 401, 1000])
def test_the_caret_finds_its_character_wherever_the_line_is_cut(column: int, length: int) -> None:
    line = "x" * (column - 1) + "!" + "y" * length
    *_, text, carets = render("bad", SourceText(line).span(Region(column - 1, column))).splitlines()
    assert text[carets.index("^")] == "!"
    assert carets.count("^") == 1
    assert len(text) <= LINE_LIMIT + len("1 | ") + 2
