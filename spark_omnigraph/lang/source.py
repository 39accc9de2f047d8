"""Source texts of both languages: where a piece of one stands, and how an error shows it."""

from __future__ import annotations

from dataclasses import dataclass

from spark_omnigraph.errors import SourceSpan

LINE_LIMIT = 400
"""Characters of a line that a span keeps."""

MESSAGE_LIMIT = 1_000
"""Characters of a message: names in a text may be of any length."""

_BEFORE = LINE_LIMIT // 2
"""Of them, those before the column: a column further right drops the start of its line for `…`."""


@dataclass(frozen=True, slots=True)
class Region:
    """A half-open range of characters of a source text."""

    start: int
    end: int

    def to(self, other: Region) -> Region:
        """The range from the start of this one to the end of the other."""
        return Region(self.start, other.end)


@dataclass(frozen=True, slots=True)
class Name:
    """A token as it was written."""

    text: str
    region: Region


@dataclass(frozen=True, slots=True)
class SourceText:
    """One text to compile."""

    text: str

    def span(self, region: Region) -> SourceSpan:
        """Byte range, line, column and line text of a region.

        >>> SourceText("ä: X").span(Region(3, 4))
        SourceSpan(start=4, end=5, line=1, column=4, text='ä: X')
        """
        start = self.text.rfind("\n", 0, region.start) + 1
        stop = self.text.find("\n", region.start)
        line = self.text[start : stop if stop >= 0 else len(self.text)].removesuffix("\r")
        column = region.start - start + 1
        first = len(self.text[: region.start].encode())
        return SourceSpan(
            start=first,
            end=first + len(self.text[region.start : region.end].encode()),
            line=self.text.count("\n", 0, region.start) + 1,
            column=column,
            text=_clip_line(line, column),
        )


def clip(message: str) -> str:
    """A message of bounded length."""
    return message if len(message) <= MESSAGE_LIMIT else f"{message[:MESSAGE_LIMIT]}…"


def render(message: str, span: SourceSpan) -> str:
    """A message and, below it, the line it is about with carets under the span.

    >>> print(render("unknown type", SourceSpan(start=11, end=14, line=2, column=3, text="x: Int")))
    unknown type
     --> line 2, column 3
      |
    2 | x: Int
      |   ^^^
    """
    at = _caret(span.column)
    marked = span.text[at:].encode()[: span.end - span.start].decode(errors="ignore")
    blank = "".join(c if c == "\t" else " " for c in span.text[:at])
    margin = " " * len(str(span.line))
    return (
        f"{message}\n"
        f"{margin}--> line {span.line}, column {span.column}\n"
        f"{margin} |\n"
        f"{span.line} | {span.text}\n"
        f"{margin} | {blank}{'^' * max(1, len(marked))}"
    )


def _clip_line(line: str, column: int) -> str:
    if column > _BEFORE:
        start = column - 1 - _BEFORE
        line = f"…{line[start:]}"
    return line if len(line) <= LINE_LIMIT else f"{line[:LINE_LIMIT]}…"


def _caret(column: int) -> int:
    """Where `_clip_line` left the character of a column: the column alone decides."""
    return column - 1 if column <= _BEFORE else _BEFORE + 1
