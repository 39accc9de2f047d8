"""Words that users meet: enumerations that print as their values, and the nearest known name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import Enum

_LISTED = 10


class TextEnum(str, Enum):
    """An enumeration whose members print as their values, also on Python 3.10."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(str(self.value), spec)


def nearest(word: str, known: Iterable[str]) -> str:
    """What a message about an unknown name ends with: `; did you mean 'x'?`, or nothing where no known name is near.
    Names that differ in case alone are the nearest.

    >>> "no type 'Flim'" + nearest("Flim", ["Film", "Person"])
    "no type 'Flim'; did you mean 'Film'?"
    """
    by_folded = {each.lower(): each for each in known}
    near = get_close_matches(word.lower(), by_folded, n=1)
    return f"; did you mean '{by_folded[near[0]]}'?" if near else ""


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(what: str, known: Iterable[str]) -> str:
    """The names that there are, the first ones of many; nothing where there is none.

    >>> "tag 'x' not found" + listed("tags", ["a", "b"])
    "tag 'x' not found (tags: a, b)"
    """
    names = list(known)
    more = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f" ({what}: {', '.join(names[:_LISTED])}{more})" if names else ""


def is_text(value: object) -> bool:
    """Whether a value is a text that has bytes in UTF-8, which one with half of a surrogate pair has not."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
