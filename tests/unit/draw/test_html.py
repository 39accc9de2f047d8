"""Cards, tables and pages as HTML: escaped, bounded, readable by light and in the dark."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from spark_omnigraph.draw.card import Card, figures_grid, grid, shown
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.draw.html import bars_html, grid_html, page_html
from spark_omnigraph.draw.theme import DARK, LIGHT

HOSTILE = "<script>alert('1')</script>\"&\u202e\x1b\ud800"


class Seen(HTMLParser):
    """The tags of a text with what attributes they have, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self._style = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._style = tag == "style"

    def handle_data(self, data: str) -> None:
        if not self._style and data.strip():
            self.texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._style = False


class Thing(Displayed):
    def _card(self) -> Card:
        table = grid(HOSTILE, [HOSTILE, "n"], [[HOSTILE, 1], [None, 20_000]], 7)
        return Card("Thing", HOSTILE + "\n" + "x" * 1000, {HOSTILE: HOSTILE, "nothing": None}, (table,), (HOSTILE,))


def test_a_repr_is_one_short_line() -> None:
    line = repr(Thing())
    assert line.startswith("<Thing: <script>alert('1')</script>\"&\\u202e\\u001b\\ud800\\u000axxx")
    assert line.endswith("x…>")
    assert len(line) < 400


def test_hostile_values_are_text() -> None:
    seen = Seen(Thing()._repr_html_())
    assert seen.tags == {
        "div",
        "style",
        "h3",
        "p",
        "dl",
        "dt",
        "dd",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    assert seen.attributes == {"class"}
    assert seen.texts.count("<script>alert('1')</script>\"&\\u202e\\u001b\\ud800") == 6
    assert seen.texts[-2:] == ["20,000", "and 5 more rows"]


def test_a_table_is_bounded() -> None:
    def rows() -> object:
        while True:
            yield ["<" * 10_000] * 500

    html = grid_html(grid("", [f"c{number}" for number in range(500)], rows(), 10**9))  # type: ignore[arg-type]  # rows without an end
    assert len(html) < 500_000
    assert "and 999,999,980 more rows and 470 more columns" in html


def test_numbers_stand_to_the_right() -> None:
    html = grid_html(grid("", ["type", "rows"], [["a", 1], ["b", None]]))
    assert '<th>type</th><th class="og-num">rows</th>' in html
    assert '<td>b</td><td class="og-num"></td>' in html


def test_figures_that_are_zero_everywhere_are_left_out() -> None:
    found = figures_grid("Rows", {"node:B": {"read": 2, "bad": 0}, "node:A": {"read": 0, "bad": 0}})
    assert (found.columns, found.rows) == (("type", "read"), (("node:A", 0), ("node:B", 2)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "yes"),
        (1_234, "1,234"),
        (0.5, "0.5"),
        pytest.param(10**5_000, "a number of 16610 bits", id="large"),
        ([1, ["a", None]], "[1, [a, None]]"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, …]"),
        ("s3://KEY:SECRET@b/x", "s3://***@b/x"),
        ("x" * 115 + " password=abcdefgh", "x" * 115 + " pass…"),
        ("a\nb", "a\\u000ab"),
    ],
)
def test_values_are_shown_in_one_line(value: object, text: str) -> None:
    assert shown(value) == text


def test_bars_are_as_long_as_phases_took() -> None:
    html = bars_html({"stage": 2.0, "<b>": 0.5, "none": 0.0})
    assert [part.partition("%")[0] for part in html.split("width:")[1:]] == ["100.0", "25.0", "0.0"]
    assert "&lt;b&gt;" in html
    assert bars_html({}) == ""


def test_a_page_loads_nothing() -> None:
    page = page_html(HOSTILE, "<p>x</p>")
    seen = Seen(page)
    assert "default-src 'none'" in page
    assert not seen.attributes & {"src", "href", "onload"}
    assert not seen.tags & {"script", "link", "img", "iframe"}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_stand_out_from_their_ground(colours: dict[str, str]) -> None:
    grounds = {"fg": ("bg", "head", "node", "edge"), "dim": ("bg",), "good": ("bg",), "bad": ("bg",)}
    for text, behind in grounds.items():
        for ground in behind:
            dark, light = sorted((luminance(colours[text]), luminance(colours[ground])))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)
