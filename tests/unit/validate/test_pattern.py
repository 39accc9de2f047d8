from __future__ import annotations

import pyarrow as pa
import pytest

from spark_omnigraph.validate.pattern import InvalidPatternError, Pattern, translate


def found(pattern: str, *texts: str | None) -> list[bool | None]:
    result: list[bool | None] = Pattern(pattern).found_in(pa.array(texts, pa.string())).to_pylist()
    return result


def test_patterns_are_searched_not_matched() -> None:
    assert found("b+", "abbc", "ac", "", None) == [True, False, False, None]
    assert found("^[a-z]+(-[a-z]+)*$", "ab-cd", "Not_ok", "ab\n") == [True, False, False]
    assert found("", "x", "") == [True, True]


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"^\d+$", "12٣", "1x"),
        (r"^\D+$", "ab", "a٣"),
        (r"^\w+$", "straße_1٣", "a b"),
        (r"^\W+$", " -", "é"),
        (r"^a\sb$", "a\u00a0b", "a_b"),
        (r"^\S+$", "aé", "a\u2003"),
        (r"^[\w.-]+$", "é.a-b", "a b"),
        (r"^[^\d]+$", "ab", "a٣"),
        (r"^[\d\s]+$", "1 ٣", "1a"),
        (r"^[]a]+$", "]a", "b"),
        (r"^[^]a]+$", "b", "]"),
        (r"^[[:alpha:]\d]+$", "a1", "é"),
        (r"^\[\d\]$", "[5]", "[x]"),
        (r"^\\d$", "\\d", "5"),
        (r"^[\\\d]+$", "\\5", "a"),
        (r"(?i)^é$", "É", "e"),
        (r"^\p{Greek}+$", "αβ", "ab"),
        (r"^.$", "é", "ab"),
        (r"^\x41\x{42}$", "AB", "ab"),
    ],
)
def test_the_dialect(pattern: str, yes: str, no: str) -> None:
    assert found(pattern, yes, no) == [True, False]


@pytest.mark.parametrize("pattern", ["[0-", "(", "a(?=b)", "(?<!a)b", r"(a)\1", "a{2,1}", "*", r"\q"])
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(InvalidPatternError):
        Pattern(pattern)


def test_patterns_without_classes_stay_as_they_are() -> None:
    for text in ("^a|b$", "[a-z]", r"\.\[", "[^]x]", "[[:digit:]]", "é"):
        assert translate(text) == text
