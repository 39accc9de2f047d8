"""What leaves the program as text: without secrets, and with nothing in it that a terminal would obey.

Pure, and below everything else: errors redact their messages when they are made, the program every line it writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

HIDDEN = "***"

_USER_AND_SECRET = re.compile(r"(?<=://)[^\s/@:'\"]*:(?!\d+/)[^\s'\"@]*@")
_USER = re.compile(r"(?<!abfss://)(?<!abfs://)(?<!wasbs://)(?<!wasb://)(?<=://)[^\s/@'\"]+@")
"""Before the account of Azure's schemes stands the name of a container."""
SECRET_NAME = re.compile(
    r"secret|password|passwd|token|credential|private[_-]?key|account[_-]?key|access[_-]?key(?![_-]?id)|sas[_-]?key",
    re.IGNORECASE,
)
"""Found in names of options that hold a secret."""
_NAMED = re.compile(
    r"(?i)\b((?:[a-z][a-z0-9_.-]*[_.-])?(?:secret[_-]?access[_-]?key|secret[_-]?key|client[_-]?secret|session[_-]?token"
    r"|access[_-]?token|security[_-]?token|bearer[_-]?token|sas[_-]?(?:token|key)|account[_-]?key|private[_-]?key"
    r"|password|passwd)(?:\\?[\"'])?\s?[=:]\s?(?:\\?[\"'])?)([^\s,;&\"'}\]\\]+)"
)
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSEEN_OR_BREAK = re.compile(f"[\t\n{_UNSEEN.pattern[1:]}")
_MISTAKABLE = re.compile(r'\A\Z|\A(?:null\Z|["\s])|\s\Z|\s\s|[\t-\r]')
"""Texts that look like nothing, like null, like a quoted text, or like others with other blanks."""
_SHOWN = 120
"""Characters of an excerpt."""
_BITS = 256
"""Of a number that is shown."""
_SHORTEST = 6
"""Characters of a value that is looked for as such; a shorter one would be found everywhere."""


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without credentials in URLs, without values of options that are named like a secret, and without the
    given secrets.

    >>> redact("cannot read s3://KEY:SECRET@b/x, aws_secret_access_key=abc")
    'cannot read s3://***@b/x, aws_secret_access_key=***'
    """
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, HIDDEN)
    if "@" in text and "://" in text:
        text = _USER.sub(f"{HIDDEN}@", _USER_AND_SECRET.sub(f"{HIDDEN}@", text))
    return _NAMED.sub(rf"\1{HIDDEN}", text)


def has_credentials(uri: str) -> bool:
    """Whether a user or a secret stands before the host of a URI. A secret may have slashes of its own."""
    return bool(_USER_AND_SECRET.search(uri) or _USER.search(uri))


def visible(text: str) -> str:
    r"""Control characters, marks that turn the direction of text, and lone surrogates as `\u001b`: what JSON has, too.
    Line breaks and tabs stay.
    """
    return _UNSEEN.sub(_escape, text)


def one_line(text: str) -> str:
    """As `visible`, with line breaks and tabs escaped too: for a value inside a line."""
    return _UNSEEN_OR_BREAK.sub(_escape, text)


def excerpt(text: str) -> str:
    r"""A text that others chose, for a message: in one line, and cut when it is long.

    >>> print(excerpt("a\nb"), excerpt("é\x1b[2J"))
    a\u000ab é\u001b[2J
    """
    return one_line(cut(text))


def cut(value: object) -> str:
    """A value in a message that is data itself: as it is, and cut when it is long."""
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def distinct(text: str, separator: str = "") -> str:
    r"""A text among others in one line, in quotes with escapes where it could be taken for nothing, for null, for two
    texts, or for one with other blanks.

    >>> print(distinct("a b"), distinct(" a"), distinct(""), distinct("null"), distinct("a\n"), distinct("a,b", ","))
    a b " a" "" "null" "a\n" "a,b"
    """
    plain = not _MISTAKABLE.search(text) and not (separator and separator in text)
    return one_line(text if plain else json.dumps(text, ensure_ascii=False))


def as_shown(value: object) -> str:
    """A value that a call was given, for a message: in one line, and cut when it is long.

    >>> print(as_shown("x"), as_shown(["a", None]), as_shown(10**5000))
    'x' ['a', None] a number of 16610 bits
    """
    if isinstance(value, int) and value.bit_length() > _BITS:
        return f"a number of {value.bit_length()} bits"
    try:
        return excerpt(repr(value))
    except ValueError:  # a number inside has more digits than Python writes
        return f"a {type(value).__name__} of numbers that are too long"


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
