r"""`@check` patterns, searched in whole columns.

The dialect is that of Rust's `regex`: no look-around, no back-references, searched unanchored. Arrow's engine (RE2) is
the same kind of machine, but its `\d`, `\w` and `\s` know ASCII only; they are spelled out here.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

_DIGIT = r"\p{Nd}"
_WORD = r"\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{200C}\x{200D}"
_SPACE = r"\t\n\v\f\r\x{85}\p{Z}"
_OUTSIDE = {
    r"\d": _DIGIT,
    r"\D": r"\P{Nd}",
    r"\w": f"[{_WORD}]",
    r"\W": f"[^{_WORD}]",
    r"\s": f"[{_SPACE}]",
    r"\S": f"[^{_SPACE}]",
}
_INSIDE = {r"\d": _DIGIT, r"\D": r"\P{Nd}", r"\w": _WORD, r"\s": _SPACE}
_TOKEN = re.compile(r"\\.|\[:\^?\w+:\]|\[\^?\]?|.", re.DOTALL)


class InvalidPatternError(ValueError):
    """The text is no regular expression of the dialect."""


class Pattern:
    """A compiled pattern. Raises InvalidPatternError for text that is none."""

    def __init__(self, text: str) -> None:
        self._text = translate(text)
        try:
            pc.match_substring_regex(pa.array([""]), self._text)
        except pa.ArrowInvalid as error:
            raise InvalidPatternError(str(error)) from None

    def found_in(self, column: pa.Array) -> pa.BooleanArray:
        """Which values contain a match; null for null."""
        return pc.match_substring_regex(column, self._text)


def translate(text: str) -> str:
    r"""The pattern with Unicode classes spelled out for RE2.

    >>> translate(r"^\d[\w.]$") == r"^\p{Nd}[" + _WORD + ".]$"
    True
    """
    parts: list[str] = []
    in_class = False
    for match in _TOKEN.finditer(text):
        token = match[0]
        if in_class:
            in_class = token != "]"
            parts.append(_INSIDE.get(token, token))
        elif token.startswith("[") and not token.endswith(":]"):
            in_class = True
            parts.append(token)
        else:
            parts.append(_OUTSIDE.get(token, token))
    return "".join(parts)
