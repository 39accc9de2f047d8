from __future__ import annotations

import sys

import pytest

from spark_omnigraph.catalog.numbers import Real
from spark_omnigraph.records.json_line import InvalidJsonError, parse_line, show

# The words are those of Python's parser, which has some of its own for this mistake since 3.13.
TRAILING_COMMA = (
    "Illegal trailing comma before end of object at character 7"
    if sys.version_info >= (3, 13)
    else "Expecting property name enclosed in double quotes at character 8"
)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"a":1} {"b":2}', "more text after the JSON value at character 9"),
        (b'{"a":1}x', "more text after the JSON value at character 8"),
        (b"[1]", "a line must hold one JSON object, got [1]"),
        (b"5", "a line must hold one JSON object, got 5"),
        (b'"x"', 'a line must hold one JSON object, got "x"'),
        (b"null", "a line must hold one JSON object, got null"),
        (b'{"a":', "Expecting value at character 6"),
        (b'{"a":1', "Expecting ',' delimiter at character 7"),
        (b'{"a":"x', "Unterminated string starting at character 6"),
        (b'{"a":1,}', TRAILING_COMMA),
        (b"{'a':1}", "Expecting property name enclosed in double quotes at character 2"),
        (b'{"a":NaN}', "NaN is not JSON"),
        (b'{"a":Infinity}', "Infinity is not JSON"),
        (b'{"a":-Infinity}', "-Infinity is not JSON"),
        (b'{"a":01}', "Expecting ',' delimiter at character 7"),
        (b'{"a":1.}', "Expecting ',' delimiter at character 7"),
        (b'{"a":"x\ty"}', "Invalid control character at character 8"),
        (b'{"a":"\xff"}', "invalid UTF-8 at byte 7"),
        (b'{"a":"\xed\xa0\x80"}', "invalid UTF-8 at byte 7"),
        (b'{"a":"\\ud800"}', "half of a surrogate pair (\\ud800) in a string"),
        (b'{"\\udc00":1}', "half of a surrogate pair (\\udc00) in a string"),
        (b"\xef\xbb\xbf\xef\xbb\xbf{}", "a byte order mark at character 1"),
        (b'\x0c{"a":1}', "Expecting value at character 1"),
        (b"", "Expecting value at character 1"),
    ],
)
def test_what_is_no_object_is_refused_with_its_place(raw: bytes, message: str) -> None:
    with pytest.raises(InvalidJsonError) as error:
        parse_line(raw)
    assert str(error.value) == message


def test_white_space_around_the_object_is_fine() -> None:
    assert parse_line(b' \t{"a": [1, null, true]} \r') == {"a": [1, None, True]}


def test_escapes() -> None:
    raw = b'{"a\\u0062":"\\ud83d\\ude00 \\" \\\\ \\/ \\n \\u0000", "c": "\xc3\xa9"}'
    assert parse_line(raw) == {"ab": '😀 " \\ / \n \0', "c": "é"}


def test_numbers_keep_their_text() -> None:
    members = parse_line(b'{"i":-5,"z":-0,"r":2.50,"e":1e3,"huge":1e400,"u":18446744073709551615}')
    assert members["i"] == -5
    assert members["u"] == 18446744073709551615
    texts = {name: value.text for name, value in members.items() if isinstance(value, Real)}
    assert texts == {"z": "-0", "r": "2.50", "e": "1e3", "huge": "1e400"}


def test_integers_of_any_length_are_read() -> None:
    value = parse_line(b'{"a":' + b"9" * 10_000 + b"}")["a"]
    assert isinstance(value, Real)
    assert value == float("inf")


def test_repeated_members_are_noted_and_the_last_counts() -> None:
    members = parse_line(b'{"b":1,"a":1,"\\u0061":2}')
    assert members == {"b": 1, "a": 2}
    assert members.repeated == ("a",)
    assert parse_line(b'{"a":1}').repeated == ()


def test_nesting_is_bounded_but_brackets_in_text_are_not_nesting() -> None:
    assert parse_line(b'{"a":' + b"[" * 127 + b"]" * 127 + b"}")
    with pytest.raises(InvalidJsonError, match="nested more than 128 levels deep"):
        parse_line(b'{"a":' + b"[" * 128 + b"]" * 128 + b"}")
    with pytest.raises(InvalidJsonError, match="nested more than 128 levels deep"):
        parse_line(b'{"a":' + b"[" * 100_000)
    text = "[{" * 500 + '\\"'
    assert parse_line(f'{{"a":"{text}"}}'.encode())["a"] == "[{" * 500 + '"'
    assert parse_line(b'{"a":[' + b",".join([b"[]"] * 1000) + b"]}")


def test_values_in_messages_are_shortened() -> None:
    assert show("é" * 100) == '"' + "é" * 79 + "…"
    assert show([1, {"a": None}]) == '[1, {"a": null}]'
    assert show(Real("1e400")) == "1e400"
