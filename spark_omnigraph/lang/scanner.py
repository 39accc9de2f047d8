"""Tokens of a source text of either language, read on demand.

Keywords have no word boundary in these languages (`nodePier` is `node Pier`, `a: Boolb: Bool` are two properties), so
what a piece of text is depends on what the parser expects there. White space and comments may stand before any token.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from spark_omnigraph.errors import InputError
from spark_omnigraph.lang.source import Name, Region, SourceText

IDENTIFIER = re.compile(r"[a-z_][A-Za-z0-9_]*")
TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*")
ENUM_VALUE = re.compile(r"[A-Za-z0-9_-]+")
WORD = re.compile(r"[A-Za-z0-9_]+")
INTEGER = re.compile(r"[0-9]+")
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
SIGNED = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
BOOLEAN = re.compile(r"true|false")
STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)

_BLANK = re.compile(r"[ \t\r\n]+|//[^\n]*")
_SHOWN = re.compile(r"\$?[A-Za-z0-9_]{1,40}|->|\.\.|/\*|.", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


ErrorMaker = Callable[[SourceText, Region, str], InputError]
"""Makes the error of a language for a message about a region."""


class Scanner:
    """A position in a source text. Whatever does not match leaves it behind white space, where it stood."""

    __slots__ = ("_report", "_subject", "_text", "pos", "source")

    def __init__(self, source: SourceText, report: ErrorMaker, subject: str) -> None:
        """`subject` names the text in errors: `schema`, `query`."""
        self.source = source
        self._report = report
        self._subject = subject
        self.pos = 0
        self._text = source.text

    def skip(self) -> int:
        """Go past white space and comments; a comment that is never closed is none."""
        while True:
            blank = _BLANK.match(self._text, self.pos)
            if blank is not None:
                self.pos = blank.end()
                continue
            close = self._text.find("*/", self.pos + 2) if self._text.startswith("/*", self.pos) else -1
            if close < 0:
                return self.pos
            self.pos = close + 2

    def at_end(self) -> bool:
        return self.skip() == len(self._text)

    def peek(self, literal: str) -> bool:
        return self._text.startswith(literal, self.skip())

    def take(self, literal: str) -> bool:
        """Go past a literal text if it comes next."""
        found = self.peek(literal)
        if found:
            self.pos += len(literal)
        return found

    def expect(self, literal: str, where: str) -> Region:
        """Go past a literal text that has to come next; `where` completes the error."""
        if not self.take(literal):
            raise self.unexpected(f"'{literal}' {where}")
        return Region(self.pos - len(literal), self.pos)

    def match(self, pattern: re.Pattern[str]) -> Name | None:
        """The token of a pattern if it comes next."""
        found = pattern.match(self._text, self.skip())
        if found is None:
            return None
        self.pos = found.end()
        return Name(found.group(), Region(found.start(), found.end()))

    def glued(self) -> Name | None:
        """The whole word whose first part was taken as a token of its own, leaving the position inside it.

        It turns the surprise of `Stringy` (`String`, then a property `y`) into an error that names the word.
        """
        start = self.pos
        while start > 0 and WORD.match(self._text[start - 1]):
            start -= 1
        word = WORD.match(self._text, start)
        if start == self.pos or word is None or word.end() == self.pos:
            return None
        return Name(word.group(), Region(start, word.end()))

    def decode(self, string: Name) -> str:
        """The value of a string token."""

        def plain(escape: re.Match[str]) -> str:
            value = _ESCAPED.get(escape.group(1))
            if value is None:
                start = string.region.start + 1 + escape.start()
                raise self.error(Region(start, start + 2), f"unsupported escape sequence: {escape.group()}")
            return value

        return _ESCAPE.sub(plain, string.text[1:-1])

    def error(self, region: Region, message: str) -> InputError:
        return self._report(self.source, region, message)

    def unexpected(self, wanted: str) -> InputError:
        """The error that something else stands at the position."""
        if self.at_end():
            last = len(self._text.rstrip())
            return self.error(Region(last, last), f"expected {wanted}, found the end of the {self._subject}")
        token = _SHOWN.match(self._text, self.pos)
        shown = "" if token is None else token.group()
        region = Region(self.pos, self.pos + len(shown))
        if shown == "/*":
            return self.error(region, "this comment is never closed")
        if shown == '"' and STRING.match(self._text, self.pos) is None:
            return self.error(region, "this string is never closed")
        found = f"'{shown}'" if shown.isprintable() and not shown.isspace() else f"U+{ord(shown):04X}"
        return self.error(region, f"expected {wanted}, found {found}")
