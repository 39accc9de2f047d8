"""What names of files say: which a folder leaves out, which are packed, and globs, the same for files and for keys."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

_MAGIC = re.compile(r"[*?[]")
_ANY_DEPTH = "**"
_UNFINISHED = ("._COPYING_", ".tmp", ".crdownload", ".part", ".swp", "~")
"""How names end of files that are being written, and of what editors leave beside one."""


def has_magic(text: str) -> bool:
    """Whether a text is a glob: it has `*`, `?` or `[`."""
    return _MAGIC.search(text) is not None


def is_hidden(name: str) -> bool:
    """Whether Spark leaves out a file or folder of this name.

    >>> [is_hidden(name) for name in ("_SUCCESS", ".crc", "_day=2020", "a.jsonl")]
    [True, True, False, False]
    """
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def is_unfinished(name: str) -> bool:
    """Whether nobody finished writing a file, by its name.

    >>> [is_unfinished(name) for name in ("a.jsonl.tmp", "a.jsonl~", "part-1.jsonl._COPYING_", "a.jsonl")]
    [True, True, True, False]
    """
    return name.endswith(_UNFINISHED)


def is_packed(name: str) -> bool:
    """Whether a file is gzip, by its name: one that is read, and one that is written."""
    return name.lower().endswith((".gz", ".gzip"))


def fixed_folder(glob: str) -> str:
    """The folder above the first part of a glob that has magic; empty when that is the first part.

    >>> fixed_folder("in/2024-*/a.jsonl"), fixed_folder("*.jsonl")
    ('in', '')
    """
    magic = _MAGIC.search(glob)
    return glob[: magic.start() if magic else len(glob)].rpartition("/")[0]


def matches(key: str, glob: str) -> bool:
    """Whether the key of an object, or of a folder above it, matches from its first part to its last.

    `*`, `?` and `[…]` stay within one part, `**` as a whole part stands for any number of them. Hidden names are only
    met by parts that begin as they do.

    >>> matches("in/a.jsonl", "in/*.jsonl"), matches("in/old/a.jsonl", "in/*.jsonl"), matches("in/old/a.jsonl", "in/o*")
    (True, False, True)
    >>> matches("in/a.jsonl", "in/**/*.jsonl"), matches("in/old/a.jsonl", "in/**/*.jsonl"), matches("in/_x", "in/*")
    (True, True, False)
    """
    return _match(key.split("/"), _parts(glob))


def expand(glob: str) -> Iterator[str]:
    """Local files and folders that a glob names, with the meaning that it has for keys; links are followed, once each.

    Raises OSError for a folder that cannot be listed.
    """
    return _expand("/" if glob.startswith("/") else "", _parts(glob), set())


def _parts(glob: str) -> list[str]:
    return [part for part in glob.split("/") if part]


def _match(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    if not wanted:
        return not any(is_hidden(part) for part in parts)  # a folder matched, with what it holds
    if not parts:
        return False
    first, rest = wanted[0], wanted[1:]
    if first != _ANY_DEPTH:
        return _fits(parts[0], first) and _match(parts[1:], rest)
    if not rest:
        return _match(parts, rest)
    return _match(parts, rest) or (not is_hidden(parts[0]) and _match(parts[1:], wanted))


def _expand(folder: str, wanted: Sequence[str], seen: set[tuple[str, int]]) -> Iterator[str]:
    if not wanted:
        yield folder
        return
    first, rest = wanted[0], wanted[1:]
    if first == _ANY_DEPTH:
        place = os.path.realpath(folder), len(wanted)
        if place in seen:
            return
        seen.add(place)
        yield from _expand(folder, rest, seen)
        below = [name for name in _names(folder) if rest and not is_hidden(name)]
        rest = wanted
    elif has_magic(first):
        below = [name for name in _names(folder) if _fits(name, first)]
    else:
        below = [first]
    for name in below:
        path = os.path.join(folder, name)
        if os.path.isdir(path) or (not rest and os.path.lexists(path)):
            yield from _expand(path, rest, seen)


def _names(folder: str) -> list[str]:
    return sorted(os.listdir(folder or "."))


def _fits(part: str, wanted: str) -> bool:
    return (not is_hidden(part) or wanted[0] == part[0]) and fnmatchcase(part, wanted)
