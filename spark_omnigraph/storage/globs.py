"""Globs over object keys, with the meaning that they have in a folder of files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

_MAGIC = re.compile(r"[*?[]")
_ANY_DEPTH = "**"


def has_magic(text: str) -> bool:
    """Whether a text is a glob: it has `*`, `?` or `[`."""
    return _MAGIC.search(text) is not None


def fixed_folder(glob: str) -> str:
    """The folder above the first part of a glob that has magic; empty when that is the first part.

    >>> fixed_folder("in/2024-*/a.jsonl"), fixed_folder("*.jsonl")
    ('in', '')
    """
    magic = _MAGIC.search(glob)
    return glob[: magic.start() if magic else len(glob)].rpartition("/")[0]


def matches(key: str, glob: str) -> bool:
    """Whether a key matches from its first part to its last: `*`, `?` and `[…]` stay within one part, `**` as a whole
    part stands for any number of them. Parts that begin with a dot are only met by ones that do.

    >>> matches("in/a.jsonl", "in/*.jsonl"), matches("in/old/a.jsonl", "in/*.jsonl")
    (True, False)
    >>> matches("in/a.jsonl", "in/**/*.jsonl"), matches("in/old/a.jsonl", "in/**/*.jsonl")
    (True, True)
    """
    return _match(key.split("/"), glob.split("/"))


def _match(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    if not wanted:
        return not parts
    first, rest = wanted[0], wanted[1:]
    if first != _ANY_DEPTH:
        return bool(parts) and _fits(parts[0], first) and _match(parts[1:], rest)
    if not rest:
        return bool(parts) and not any(part.startswith(".") for part in parts)
    return _match(parts, rest) or (bool(parts) and not parts[0].startswith(".") and _match(parts[1:], wanted))


def _fits(part: str, wanted: str) -> bool:
    if part.startswith(".") and not wanted.startswith("."):
        return False
    return fnmatchcase(part, wanted)
