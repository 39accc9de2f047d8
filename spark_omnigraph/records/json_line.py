"""One line of input as one JSON object, strictly, with every number's text kept.

This is the slow and exact reader. The fast one never accepts a line that this one refuses.
"""

from __future__ import annotations

import json
import re
from collections import Counter

from spark_omnigraph.catalog.numbers import Real

MAX_DEPTH = 128
"""Nesting beyond this is refused, as other engines do. Records themselves nest three deep."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
_LONGEST_INTEGER = 400
"""Digits; longer integers exceed every type, and converting them takes time that grows with the square."""


class InvalidJsonError(ValueError):
    """The line is not one JSON object; the text says what is wrong and where."""


class Members(dict[str, object]):
    """A JSON object. `repeated` names the members that were given more than once; of each the last one counts."""

    repeated: tuple[str, ...] = ()


def parse_line(raw: bytes, constants: bool = False) -> Members:
    """The object on a line. Raises InvalidJsonError with the place of the first problem.

    A byte order mark before it is no part of it: files that begin with one may have been joined. With `constants` the
    numbers that are not finite pass, as Python writes them.
    """
    raw = raw.removeprefix(BYTE_ORDER_MARK)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidJsonError(f"invalid UTF-8 at byte {error.start + 1}") from None
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _depth(raw) > MAX_DEPTH:
        raise InvalidJsonError(f"nested more than {MAX_DEPTH} levels deep")
    value = _parse(text, _LENIENT if constants else _DECODER)
    if not isinstance(value, Members):
        raise InvalidJsonError(f"a line must hold one JSON object, got {show(value)}")
    if _SURROGATE.search(raw):
        _refuse_lone_surrogates(value)
    return value


def parse_value(text: str) -> object:
    """The JSON value that a text is. Raises InvalidJsonError as `parse_line` does."""
    raw = text.encode("utf-8", "surrogatepass")
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _depth(raw) > MAX_DEPTH:
        raise InvalidJsonError(f"nested more than {MAX_DEPTH} levels deep")
    value = _parse(text, _DECODER)
    if _SURROGATE.search(raw):
        _refuse_lone_surrogates(value)
    return value


def show(value: object, limit: int = 80) -> str:
    """A JSON value as text for a message, shortened."""
    text = value.text if isinstance(value, Real) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}…"


def _parse(text: str, decoder: json.JSONDecoder) -> object:
    start = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        value, end = decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        if text.startswith("\ufeff", error.pos):
            raise InvalidJsonError(f"a byte order mark at character {error.pos + 1}") from None
        reason = error.msg.removesuffix(" at")
        raise InvalidJsonError(f"{reason} at character {error.pos + 1}") from None
    rest = text[end:].lstrip(" \t\r\n")
    if rest.startswith("\ufeff"):
        place = len(text) - len(rest) + 1
        raise InvalidJsonError(f"a byte order mark at character {place}: were files joined without a line break?")
    if rest:
        raise InvalidJsonError(f"more text after the JSON value at character {len(text) - len(rest) + 1}")
    return value


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    for bracket in _BRACKET.findall(_STRING.sub(b"", raw)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _refuse_lone_surrogates(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = ord(error.object[error.start])
        raise InvalidJsonError(f"half of a surrogate pair (\\u{half:04x}) in a string") from None


def _members(pairs: list[tuple[str, object]]) -> Members:
    members = Members(pairs)
    if len(members) != len(pairs):
        members.repeated = tuple(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
    return members


def _integer(text: str) -> int | Real:
    # A float keeps the sign of zero, an integer does not.
    return Real(text) if text == "-0" or len(text) > _LONGEST_INTEGER else int(text)


def _refuse_constant(name: str) -> object:
    raise InvalidJsonError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_integer, parse_float=Real, parse_constant=_refuse_constant
)
_LENIENT = json.JSONDecoder(object_pairs_hook=_members, parse_int=_integer, parse_float=Real, parse_constant=Real)
