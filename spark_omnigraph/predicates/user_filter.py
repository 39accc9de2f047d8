"""Filters that users write as Lance SQL: what is refused before Lance sees it, and how instants become exact.

Lance stops reading a predicate at `;`, ignores comments, takes "double quotes" for texts, and compares a DateTime with
a `timestamp` in nanoseconds, which overflows outside the years 1678 to 2261. Words that are values, such as `null`, are
never columns for it, and a name that is no column's is one's in another case. None of that may pass in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from spark_omnigraph.catalog.dates import instant_micros, parse_instant
from spark_omnigraph.catalog.types import EntityType, Scalar
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.predicates.sql import number
from spark_omnigraph.predicates.where import Term, where_sql

_TOKEN = re.compile(
    r"(?P<text>'(?:[^']|'')*')"
    r'|(?P<double>"(?:[^"]|"")*")'
    r"|(?P<quoted>`[^`]*`)"
    r"|(?P<comment>--|/\*)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<space>\s+)"
    r"|(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"
    r"|(?P<other>.)",
    re.DOTALL,
)


_VALUES = ("null", "true", "false", "current_date", "current_time", "current_timestamp")
"""Words that Lance SQL takes for values, also where a column is called so."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words


def filter_sql(text: str | None, terms: tuple[Term, ...], entity: EntityType, now: datetime) -> str | None:
    """Lance SQL for a user's predicate and a list of conditions, all of which must hold; None when there are none.

    `now()` is `now` for all rows. Raises BadRequestError for what Lance would misread; the names and types of the
    predicate itself are checked by planning it.
    """
    parts = [where_sql(terms, entity), None if text is None else checked_sql(text, entity, now)]
    given = [part for part in parts if part is not None]
    return given[0] if len(given) == 1 else " AND ".join(f"({part})" for part in given) or None


def checked_sql(text: str, entity: EntityType, now: datetime) -> str:
    """A user's predicate with its instants written out, or BadRequestError."""
    if not text.strip():
        raise BadRequestError("the filter is empty")
    tokens = [_Token(m.lastgroup or "", m.group()) for m in _TOKEN.finditer(text)]
    for token in tokens:
        _refuse_misread(token, entity)
    _refuse_ambiguous([token for token in tokens if token.kind != "space"], entity)
    return "".join(_rewritten(tokens, now))


def _refuse_misread(token: _Token, entity: EntityType) -> None:
    if token.kind == "comment":
        raise BadRequestError(f"comments do not belong in a filter: '{token.text}'")
    if token.kind == "other" and token.text in ("'", '"', "`"):
        raise BadRequestError(f"the filter has an unclosed {token.text}")
    if token.kind == "other" and token.text == ";":
        raise BadRequestError("';' does not belong in a filter")
    if token.kind == "double" and token.text[1:-1].lower() in {name.lower() for name in entity.columns}:
        name = token.text[1:-1]
        raise BadRequestError(f"\"{name}\" is a text in a filter; write the column as `{name}`, the text as '{name}'")
    if token.kind in ("word", "quoted") and token.text.strip("`").lower() in _blob_names(entity):
        raise BadRequestError(f"'{token.text}' is a Blob; blobs cannot be filtered")


def _refuse_ambiguous(tokens: list[_Token], entity: EntityType) -> None:
    """Words that might mean a column, and that Lance takes for something else or for one column of several."""
    by_folded: dict[str, list[str]] = {}
    for name in entity.columns:
        by_folded.setdefault(name.lower(), []).append(name)
    for place, token in enumerate(tokens):
        named = by_folded.get(token.text.lower(), []) if token.kind == "word" else []
        if named and token.is_word(*_VALUES) and not _follows_is(tokens, place):
            raise BadRequestError(
                f"'{token.text}' is a value in a filter, and a column of '{entity.name}'; write the column as"
                f" `{named[0]}`{_instead(token)}"
            )
        # A word before a text is a type, as in date '2020-01-31', and before a bracket a function.
        following = tokens[place + 1] if place + 1 < len(tokens) else token
        is_column = following.kind != "text" and following.text != "("
        if len(named) > 1 and token.text not in named and is_column:
            written = " or ".join(f"`{name}`" for name in named)
            raise BadRequestError(f"'{token.text}' may be one of several columns; write {written}")


def _follows_is(tokens: list[_Token], place: int) -> bool:
    """True after `IS` and `IS NOT`, where only a value can stand."""
    before = [token.text.lower() for token in tokens[max(0, place - 2) : place]]
    return before[-1:] == ["is"] or before == ["is", "not"]


def _instead(token: _Token) -> str:
    """Ways to mean the value all the same."""
    if token.is_word("true", "false"):
        return f", and the value after IS: `b IS {token.text}`"
    return ", and ask for the value with IS NULL" if token.is_word("null") else ""


def _rewritten(tokens: list[_Token], now: datetime) -> Iterator[str]:
    place = 0
    while place < len(tokens):
        token = tokens[place]
        following = _after_space(tokens, place + 1)
        end = _end_of_now(tokens, place)
        if end is not None:
            yield number(Scalar.DATETIME, instant_micros(now) // 1000)
            place = end
        elif token.is_word("timestamp") and following < len(tokens) and tokens[following].kind == "text":
            yield _instant_literal(tokens[following].text)
            place = following + 1
        else:
            yield token.text
            place += 1


def _end_of_now(tokens: list[_Token], place: int) -> int | None:
    """Place after `now()`, `current_timestamp()` or `current_timestamp`; None when something else stands there."""
    if not tokens[place].is_word("now", "current_timestamp"):
        return None
    opening = _after_space(tokens, place + 1)
    closing = _after_space(tokens, opening + 1)
    if [t.text for t in (*tokens[opening : opening + 1], *tokens[closing : closing + 1])] == ["(", ")"]:
        return closing + 1
    return place + 1 if tokens[place].is_word("current_timestamp") else None


def _after_space(tokens: list[_Token], place: int) -> int:
    while place < len(tokens) and tokens[place].kind == "space":
        place += 1
    return place


def _instant_literal(quoted: str) -> str:
    instant = parse_instant(quoted[1:-1])
    if instant is None:
        raise BadRequestError(f"timestamp {quoted} is not a time; write timestamp '2020-01-31 05:00:00' or with a zone")
    millis, rest = divmod(instant[0], 1_000_000)
    if rest:
        raise BadRequestError(f"timestamp {quoted} is finer than a millisecond; DateTime columns keep milliseconds")
    return number(Scalar.DATETIME, millis)


def _blob_names(entity: EntityType) -> set[str]:
    return {p.name.lower() for p in entity.properties if p.type.scalar is Scalar.BLOB}
