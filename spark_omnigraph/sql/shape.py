"""Statements that no planner survives, and clauses that it passes over, told by their words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from datafusion import SessionContext

from spark_omnigraph.errors import BadRequestError, QueryTypeError

LONGEST_CHAIN = 4_000
"""Words and signs in a row that no comma of a list parts: each may be an operator, of which the parser knows many."""
MOST_OPERATORS = 1_000
"""Operators in a row, likewise: they are planned in time that grows with its square."""
MOST_COPIES = 2_000
"""Queries of WITH that a plan holds, since each use of one is a copy of it and of what it uses."""
WIDEST_CUBE = 12
"""Expressions of a CUBE, which is a set for each of their combinations."""
_QUOTED = r"(?:'[^']*')+|(?:\"[^\"]*\")+|`[^`]*`|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$|e'(?:\\.|''|[^'\\])*'(?!')"
_COMMENT = r"--[^\n]*|/\*(?:(?!/\*|\*/).)*(?:/\*(?:(?!/\*|\*/).)*\*/(?:(?!/\*|\*/).)*)*\*/"
_UNSURE = r"[\w.$@]*\$\w*\$|`|(?:[\w.$@]*[.$@]|\d\w*)?[eq]'|/\*(?:(?!\*/).)*/\*"
"""How other quotes and comments begin, in which a quote may stand that opens nothing."""
_WORD = re.compile(
    rf"(?P<quoted>{_QUOTED})|(?P<comment>{_COMMENT})|(?P<unsure>{_UNSURE})|[\w.$@]+|[^\s]", re.IGNORECASE | re.DOTALL
)
_BARE_WORD = re.compile(r"[\w.$@]+|[^\s`]")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_PARTING, _CHAINED = frozenset(("when", "then", "else")), frozenset(("from", "with"))
_SIGNS = frozenset("|-><:=!*/%&^#~+")
_SET_OPERATORS = frozenset(("union", "intersect", "except"))
_OPERATORS = _SIGNS | {"and", "or", "is", "like", "between"}
_BEFORE_VALUES = frozenset(
    ("select", "distinct", "where", "and", "or", "not", "on", "by", "as", "having", "case", "when", "then", "else")
) | frozenset("=<>+-")
"""Words that no table follows: what has the name of a query of WITH there is a column."""
_PASSED_OVER = re.compile(
    r"(?<!\S)(?:TABLESAMPLE|PREWHERE|CONNECT BY|START WITH|SAMPLE \( \d\S*|\* ILIKE"
    r"|FOR (?:UPDATE|SHARE|BROWSE|JSON|XML)"
    r"|WITH (?:ROLLUP|CUBE|TOTALS|ORDINALITY)(?! \(| AS (?:NOT )?(?:MATERIALIZED )?\()"
    r"|(?<!WITH )(?<!RECURSIVE )(?<! AS )(?<! , )PARTITION \()(?!\w)",
    re.IGNORECASE,
)
"""Clauses that the parser takes and the planner does not look at: the answer would be that of another statement."""
_WITH_LENGTHS = frozenset(("substring", "substr", "overlay"))
_OF_AGGREGATES = {
    ("filter", "("): "FILTER",
    ("ignore", "nulls"): "IGNORE NULLS",
    ("respect", "nulls"): "RESPECT NULLS",
} | {("within", "group"): "WITHIN GROUP"}
"""What stands behind calls of aggregates and windows alone, as OVER: behind others the planner passes over it."""


def refuse_shape(text: str) -> None:
    """BadRequestError for a statement that would end the process or take all of its memory; QueryTypeError for a clause
    that would be passed over.
    """
    is_sure, words = _words(text)
    shape = _Shape()
    for word in words:
        shape.add(word)
    longest = shape.longest if is_sure else len(words)
    if longest > LONGEST_CHAIN:
        raise BadRequestError(
            f"the statement has more than {LONGEST_CHAIN:,} words in a row, and so many cannot be planned: write a "
            "list after IN, or a table of VALUES, and texts in plain quotes"
        )
    if shape.operators > MOST_OPERATORS:
        raise BadRequestError(
            f"the statement has {shape.operators:,} operators, and at most {MOST_OPERATORS:,} in a row can be planned: "
            "write a list after IN, or a table of VALUES"
        )
    if shape.widest > WIDEST_CUBE:
        raise BadRequestError(f"a CUBE of {shape.widest} expressions is too wide: at most {WIDEST_CUBE}")
    if shape.copies > MOST_COPIES:
        raise BadRequestError(
            f"the queries of WITH use each other more than {MOST_COPIES:,} times, counted through: each use is a copy "
            "of all that it uses, so ask in several statements"
        )


def _words(text: str) -> tuple[bool, list[str]]:
    """Whether all quotes and comments are known, and the words without comments: where they are not, those within texts
    too. QueryTypeError for a clause that would be passed over.
    """
    is_sure, words, clauses = True, [], []
    for found in _WORD.finditer(text):
        kind = found.lastgroup
        if kind == "unsure":
            is_sure = False
            clauses += _BARE_WORD.findall(text, found.start())
            break
        if kind != "comment":
            words.append(found.group())
            clauses.append("''" if kind else found.group())
    passed_over = _PASSED_OVER.search(" ".join(_without_lengths(clauses)))
    if passed_over is not None:
        clause = passed_over.group().rstrip(" (.0123456789").upper()
        raise QueryTypeError(f"sql: {clause} is not supported; what is a name here stands in double quotes")
    return is_sure, words if is_sure else _BARE_WORD.findall(text)


def _without_lengths(words: list[str]) -> list[str]:
    """The words without FOR where it stands before a length: `substring(a FROM 1 FOR n)`."""
    calls, found = [""], []
    for before, word in zip(["", *words], words, strict=False):
        if word == "(":
            calls.append(before.lower())
        elif word == ")" and len(calls) > 1:
            calls.pop()
        found.append("," if word.lower() == "for" and calls[-1] in _WITH_LENGTHS else word)
    return found


@cache
def _scalar_functions() -> frozenset[str]:
    known = SessionContext()
    return frozenset(known.udfs()) - frozenset(known.udafs()) - frozenset(known.udwfs())


@dataclass(slots=True)
class _Level:
    """Inside one pair of brackets, so far: words since something parted them, and whether commas part them no more."""

    after: str = ""
    """The word before them."""
    length: int = 0
    operators: int = 0
    set_operators: int = 0
    """Those between queries, and pipes, which commas do not part."""
    is_chained: bool = False
    name: str | None = None
    """Of the query of WITH that they hold."""
    commas: int = 0
    copies: int = 1


@dataclass(slots=True)
class _Shape:
    """What the words of a statement come to. Commas part words before FROM and WITH alone, whose lists are chains."""

    longest: int = 0
    operators: int = 0
    widest: int = 0
    _levels: list[_Level] = field(default_factory=lambda: [_Level()])
    _copies_of: dict[str, int] = field(default_factory=dict)
    _before: tuple[str, str] = ("", "")
    _after: str = ""
    """The word before the brackets that were closed last."""

    @property
    def copies(self) -> int:
        return max(self._levels[0].copies, *self._copies_of.values(), 0)

    def add(self, word: str) -> None:
        level, plain = self._levels[-1], word.lower()
        self._refuse_of_scalar(plain)
        if word in _CLOSING:
            self._close()
        elif plain in _PARTING or (word == "," and not level.is_chained):
            level.length = level.operators = 0
            level.commas += 1
        else:
            level.commas += word == ","
            level.is_chained = plain in _CHAINED or (level.is_chained and (self._before[1], plain) != (")", "select"))
            level.length += 1
            level.operators += plain in _OPERATORS and self._before[1] not in _SIGNS
            if self._before[1].lower() not in _BEFORE_VALUES:
                level.copies += self._copies_of.get(_name(word), 0)
            level.set_operators += plain in _SET_OPERATORS or (self._before[1], word) == ("|", ">")
            self.longest = max(self.longest, level.length)
            self.operators = max(self.operators, level.operators, level.set_operators)
            if word in _OPENING:
                self._open()
        self._before = (self._before[1], word)

    def _refuse_of_scalar(self, word: str) -> None:
        """QueryTypeError for what only aggregates and windows have, behind or within the call of another function."""
        level, (before, last) = self._levels[-1], self._before
        clause, function = "", level.after
        if before == ")" and (last.lower(), word) in _OF_AGGREGATES:
            clause, function = _OF_AGGREGATES[last.lower(), word], self._after
        elif (last, word) == (")", "over"):
            clause, function = "OVER", self._after
        elif (last, word) == ("(", "distinct"):
            clause = "DISTINCT"
        elif (last.lower(), word) == ("order", "by") and not level.is_chained:
            clause = "ORDER BY"
        if clause and _name(function).lower() in _scalar_functions():
            raise QueryTypeError(f"sql: {clause} is for aggregates and windows, and {_name(function)} is neither")

    def _open(self) -> None:
        before, last = self._before
        name = None
        if last.lower() == "as":
            name = _name(self._after if before == ")" else before)
            # Where it is defined it is no use of a former one.
            self._levels[-1].copies -= self._copies_of.get(name, 0)
        self._levels.append(_Level(last, name=name))

    def _close(self) -> None:
        if len(self._levels) == 1:
            return
        level = self._levels.pop()
        self._after = level.after
        if level.after.lower() == "cube":
            self.widest = max(self.widest, level.commas + 1)
        if level.name is None:
            self._levels[-1].copies += level.copies - 1
        else:
            # Another query of this name, or a window, may be known in brackets alone.
            self._copies_of[level.name] = max(level.copies, self._copies_of.get(level.name, 0))


def _name(word: str) -> str:
    return word.strip('"`')
